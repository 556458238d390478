"""The entries that the files themselves show, for contents that no index knows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote_to_bytes

from policyctx.messages.json_text import JSON
from policyctx.planning.placeholders import line_count
from policyctx.store.backend import Backend, is_temporary
from policyctx.store.content import PACKED, STATE_FOLDER, Origin, decoded, encoded, sha256_of
from policyctx.store.files import Format, is_rest, origin_in, stored_bytes, stored_status, text_of
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import INDEX, all_indexes
from policyctx.store.snapshot import is_snapshot

# Written beside the contents where the root is in a repository.
_NO_CONTENT = ".gitignore"
# By the default layout, the first folder is the item's type and the second its tool.
_WITH_TYPE, _WITH_TOOL = 2, 3


def adopted_entries(
    backend: Backend, index: Index, form: Format, *, but: set[str]
) -> Iterator[IndexEntry]:
    """Yield an entry for each file that neither this index nor that of another session knows.

    Its origin comes from the newest record that names the file, from the file, or else from its
    path as far as it follows the default layout. A file with the hash of its record was saved here;
    any other file is adopted. The rest of a content is none itself.
    """
    records = {str(record.get("path")).removesuffix(PACKED): record for record in index.records}
    for path in stray_files(backend, index, but=but):
        try:
            raw = stored_bytes(backend, path)
            text = text_of(raw, form)
            origin = origin_in(raw, form) or origin_by(path)
            saved_at = stored_status(backend, path)[0].modified
        except (OSError, ValueError):
            continue  # not a content of this store, or removed meanwhile
        content = encoded(text)
        sha256 = sha256_of(content)
        record = records.get(path, {})
        is_ours = record.get("sha256") == sha256
        of_another = is_rest(path, text)
        yield IndexEntry(
            path=path,
            sha256=sha256,
            size=len(content),
            chars=len(text),
            lines=line_count(text),
            saved_at=saved_at,
            format=form,
            origin=_recorded_origin(record, origin) if is_ours else None if of_another else origin,
            is_rest=of_another,
            adopted=not is_ours,
        )


def stray_files(backend: Backend, index: Index, *, but: Iterable[str]) -> Iterator[str]:
    """Yield the path of each file that no session's index knows, except `but`."""
    known = {entry.path for entry in index}.union(but)
    for other in all_indexes(backend):
        known |= {entry.path for entry in other}
    try:
        found = sorted({_plain(path) for path in backend.files(without=frozenset({STATE_FOLDER}))})
    except FileNotFoundError:
        return
    for path in found:
        if path in known or path == _NO_CONTENT or is_temporary(path):
            continue
        if path != INDEX or not is_snapshot(backend, path):  # it may be another session's
            yield path


def _plain(path: str) -> str:
    return path.removesuffix(PACKED)


def is_named_after(path: str, key: str) -> bool:
    """Whether a file is named after an item id or tool-use id, with or without a number."""
    item_id = origin_by(path).item_id
    stem, _, number = item_id.rpartition("-")
    return item_id == key or (stem == key and number.isdecimal())


def _recorded_origin(record: Mapping[str, JSON], otherwise: Origin) -> Origin:
    """Return the origin that a record states, completed by another origin."""
    names = ("item_id", "item_type", "tool_use_id", "tool")
    values = [record.get(name) for name in names]
    item_id, item_type, tool_use_id, tool = (v if isinstance(v, str) else None for v in values)
    return replace(
        otherwise,
        item_id=item_id or otherwise.item_id,
        item_type=item_type or otherwise.item_type,
        tool_use_id=tool_use_id or otherwise.tool_use_id,
        tool_name=tool or otherwise.tool_name,
    )


def origin_by(path: str) -> Origin:
    """Return the origin that the path of a file shows, by the default layout."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0] or name
    item_id = decoded(unquote_to_bytes(stem))
    return Origin(
        item_id,
        item_type=folders[0] if len(folders) + 1 >= _WITH_TYPE else "unknown",
        tool_use_id=item_id if len(folders) + 1 >= _WITH_TOOL else None,
        tool_name=folders[1] if len(folders) + 1 >= _WITH_TOOL else None,
    )
