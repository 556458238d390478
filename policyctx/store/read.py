"""Reading back: by path or id, by a search for text, and to verify every content.

Also the entries that the files themselves show, for contents that no index knows.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from policyctx import lazy
from policyctx.definitions.names import is_url
from policyctx.errors import CorruptContentError, StoreError
from policyctx.messages.json_text import JSON, parsed
from policyctx.planning.placeholders import line_count
from policyctx.policy.diagnosing import hint
from policyctx.store import files
from policyctx.store.backend import Backend, Progress, is_temporary
from policyctx.store.content import (
    PACKED,
    STATE_FOLDER,
    Origin,
    decoded,
    encoded,
    is_inside,
    sha256_of,
)
from policyctx.store.hollow import Hollow
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import INDEX, all_indexes
from policyctx.store.snapshot import is_snapshot

# Objects that are read at the same time.
_READING_THREADS = 16
# How many characters of a long line are shown before and after a match.
_AROUND = 120
# Written beside the contents where the root is in a repository.
_NO_CONTENT = ".gitignore"


class ContentReader:
    """Reads the contents of one store, and checks each against the index.

    The `reserved` paths are not contents; None means that the store keeps no index.

    Raises `OSError`, `StoreError` and `CorruptContentError`.
    """

    def __init__(
        self,
        backend: Backend,
        index: Index,
        form: files.Format,
        *,
        reserved: frozenset[str] | None = None,
    ) -> None:
        self._reserved, self._backend, self._index, self._format = reserved, backend, index, form

    def text(self, key: str | os.PathLike[str], lines: tuple[int, int] | None = None) -> str:
        """Return the text of a path, item id or tool-use id: all of it, or the `lines` wanted."""
        entry = self.entry(key)
        found = self._unknown(key) if entry is None else self.of(entry)
        return found if lines is None else lines_of(found, *lines)

    def has(self, key: str | os.PathLike[str]) -> bool:
        """Whether the index knows a key, or there is a file at that path."""
        if self.entry(key) is not None:
            return True
        path = self._relative(key)
        return path is not None and files.is_stored(self._backend, path)

    def known(self, key: str | os.PathLike[str]) -> IndexEntry:
        """Return the entry of a key. Raises `StoreError` when the index does not know it."""
        entry = self.entry(key)
        if entry is None:
            raise StoreError(f"{key} is not in the index of {self._backend.root}", path=str(key))
        return entry

    def block(self, key: str | os.PathLike[str]) -> JSON:
        """Return the original block of a content."""
        entry = self.known(key)
        hollow = entry.hollow if entry.rest is None else self._rest(entry.rest)
        if hollow is None:
            raise StoreError(f"{key}: its original block was not kept", path=str(key))
        try:
            return hollow.filled(self.of(entry))
        except (LookupError, TypeError, ValueError) as error:
            raise StoreError(f"{key}: its original block is damaged", path=str(key)) from error

    def _rest(self, sha256: str) -> Hollow | None:
        """Return the hollow block in the content with this hash; None if it is gone."""
        entry = self._index.at(self._index.equal(sha256) or "")
        return None if entry is None else Hollow.of(parsed(self.of(entry)))

    def entry(self, key: str | os.PathLike[str]) -> IndexEntry | None:
        """Return the entry of a path or an id, None for an unknown key; a path is tried first."""
        path = self._relative(key)
        if path is not None and (found := _at(self._index, path)) is not None:
            return found
        if not isinstance(key, str):
            return None
        return self._index.by_id(key) or self._index.named_by(key)

    def of(self, entry: IndexEntry) -> str:
        """Return the text of an entry. Raises `CorruptContentError` when its file holds another."""
        try:
            raw = files.stored_bytes(self._backend, entry.path)
            text = decoded(raw) if entry.format == "text" else files.text_of(raw, entry.format)
        except ValueError as error:
            raise self._corrupt(entry, f"no content: {error}") from error
        found = sha256_of(raw if entry.format == "text" else encoded(text))
        if found not in {entry.sha256, entry.replaces}:
            raise self._corrupt(entry, found)
        return text

    def texts(self, entries: Sequence[IndexEntry]) -> list[str]:
        """Return the text of each entry as `of` does; objects are read at the same time."""
        if not self._backend.is_remote or not entries:
            return [self.of(entry) for entry in entries]
        with lazy.futures.ThreadPoolExecutor(min(len(entries), _READING_THREADS)) as threads:
            return [*threads.map(self.of, entries)]

    def _unknown(self, key: str | os.PathLike[str]) -> str:
        """Return the text of a file that the index does not know, such as another session's."""
        path = self._path(key)
        try:
            for index in all_indexes(self._backend):
                if (entry := _at(index, path)) is not None:
                    return self.of(entry)
            raw = files.stored_bytes(self._backend, path)
            return files.text_of(files.unpacked(raw) if files.is_packed(raw) else raw, self._format)
        except FileNotFoundError as error:
            if (found := self._stray(key)) is not None:
                return found
            where = self._absolute(key)
            meant = hint(key, self._index.ids())
            reason = f"No such file, and no item of this id{meant and '; '}{meant}"
            raise StoreError(f"{where} cannot be read: {reason}", path=where) from error

    def _stray(self, key: str | os.PathLike[str]) -> str | None:
        """Return the text of a file that is named after the item, where the journal lost it."""
        if self._reserved is None or not isinstance(key, str):
            return None
        for path in stray_files(self._backend, self._index, but=self._reserved):
            if is_named_after(path, key):
                with suppress(OSError, ValueError):
                    return files.text_of(files.stored_bytes(self._backend, path), self._format)
        return None

    def _corrupt(self, entry: IndexEntry, found: str) -> CorruptContentError:
        target = f"{self._backend.root}/{entry.path}"
        return CorruptContentError(path=target, expected=entry.sha256, found=found)

    def _path(self, key: str | os.PathLike[str]) -> str:
        path = self._relative(key)
        if path is None or is_temporary(path):
            where = self._absolute(key)
            raise StoreError(f"{where} is not in the store {self._backend.root}", path=where)
        return path

    def _relative(self, key: str | os.PathLike[str]) -> str | None:
        """Return the path below the root that `key` may be; None for a path elsewhere."""
        if isinstance(key, str) and is_url(key):
            return self._below_url(key)
        given = Path(key)
        if not given.is_absolute():
            path = given.as_posix()
            return path if is_inside(path) else None
        for root in map(Path, (*self._backend.roots(), *self._index.roots)):
            if given.is_relative_to(root):
                path = given.relative_to(root).as_posix()
                return path if is_inside(path) else None
        return None

    def _below_url(self, key: str) -> str | None:
        for root in (*self._backend.roots(), *self._index.roots):
            path = key.removeprefix(f"{root}/")
            if path != key:
                return path if is_inside(path) else None
        return None

    def _absolute(self, key: str | os.PathLike[str]) -> str:
        """Return a key as the path of a file, to be shown."""
        text = os.fspath(key)
        return text if is_url(text) or Path(text).is_absolute() else f"{self._backend.root}/{text}"


def _at(index: Index, path: str) -> IndexEntry | None:
    return index.at(path) or index.at(path.removesuffix(PACKED))


def lines_of(text: str, first: int, last: int | None = None) -> str:
    """Return the lines from `first` to `last`, counted from 1; None means to the end."""
    if first <= 1 and last is None:
        return text
    every = re.findall(r"[^\n]*\n|[^\n]+", text)
    return "".join(every[max(first, 1) - 1 : None if last is None else max(last, 0)])


class FoundLine(NamedTuple):
    """A line that contains the searched text."""

    entry: IndexEntry
    line: int
    """From 1 on; a line ends with a line feed."""
    text: str
    """The line, or the part of a long line around the match."""
    char: int = 1
    """Position of the match in the line, from 1 on."""


def matches(
    backend: Backend,
    entries: Iterable[IndexEntry],
    text: str,
    *,
    ignore_case: bool,
    in_parts: bool = False,
) -> Iterator[FoundLine]:
    """Yield every line of these contents that contains the text; search each file once.

    With `in_parts`, a long line is yielded again for each match outside the parts shown before. A
    text of several lines is reported at its first line. Raises `ValueError` for an empty text,
    and `OSError`. A file that was removed meanwhile is skipped.
    """
    if not text:
        raise ValueError("an empty text is everywhere")
    seen: set[str] = set()
    for entry in entries:
        if entry.path in seen:
            continue
        seen.add(entry.path)
        finder = Finder(text, ignore_case=ignore_case, in_parts=in_parts)
        try:
            for piece in chain(files.pieces(backend, entry.path, entry.format), (None,)):
                for line, shown in finder.found(piece):
                    yield FoundLine(entry, line, shown, finder.char)
        except FileNotFoundError:
            continue


class Finder:
    """Searches a text piece by piece; its memory does not grow with the text."""

    def __init__(self, wanted: str, *, ignore_case: bool, in_parts: bool = False) -> None:
        self.char = 1
        """Position in its line, from 1 on, of the match that was yielded last."""
        self._wanted, self._in_parts = wanted, in_parts
        self._pattern = re.compile(re.escape(wanted), re.IGNORECASE) if ignore_case else None
        self._window = ""
        self._searched = 0
        self._line = 1
        self._shown_line = self._shown_end = 0
        self._line_chars = 0
        """Number of characters of the window's first line that came before the window."""

    def found(self, piece: str | None) -> Iterator[tuple[int, str]]:
        """Yield the line number and excerpt of each match in the next piece; None ends the text."""
        self._window += piece or ""
        behind = 0 if piece is None else len(self._wanted) + _AROUND
        limit = max(len(self._window) - behind, self._searched)
        line, counted = self._line, 0
        for start in self._starts(limit):
            line += self._window.count("\n", counted, start)
            counted = start
            if line != self._shown_line or (self._in_parts and start >= self._shown_end):
                self._shown_line = line
                begin = self._window.rfind("\n", 0, start) + 1
                self.char = start - begin + 1 + (0 if begin else self._line_chars)
                yield line, self._excerpt(start)
        kept = max(limit - _AROUND, 0)
        self._line += self._window.count("\n", 0, kept)
        newline = self._window.rfind("\n", 0, kept)
        self._line_chars = kept - newline - 1 + (self._line_chars if newline < 0 else 0)
        self._shown_end -= kept
        self._window = self._window[kept:]
        self._searched = limit - kept

    def _starts(self, limit: int) -> Iterator[int]:
        if self._pattern is not None:
            for match in self._pattern.finditer(self._window, self._searched):
                if match.start() >= limit:
                    return
                yield match.start()
            return
        start = self._window.find(self._wanted, self._searched)
        while 0 <= start < limit:
            yield start
            start = self._window.find(self._wanted, start + len(self._wanted))

    def _excerpt(self, start: int) -> str:
        end = start + len(self._wanted)
        begin = max(self._window.rfind("\n", 0, start) + 1, start - _AROUND)
        line_end = self._window.find("\n", end)
        line_end = line_end if line_end >= 0 else len(self._window)
        self._shown_end = min(line_end, end + _AROUND)
        return self._window[begin : self._shown_end]


class Harm(NamedTuple):
    """A content that differs from what was saved."""

    entry: IndexEntry
    kind: Literal["missing", "altered", "unreadable"]
    reason: str


class Verification(NamedTuple):
    """The result of verifying every content; `harmed` lists the damaged ones."""

    checked: int
    """The number of contents; what a list held beside its texts belongs to its content."""
    harmed: tuple[Harm, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every content is there as it was saved."""
        return not self.harmed


def verify_entries(
    backend: Backend, entries: Sequence[IndexEntry], progress: Progress
) -> Verification:
    """Read every content and compare its hash; `progress` gets the number done and the total."""
    harmed = []
    for done, entry in enumerate(entries):
        progress(done, len(entries))
        if (harm := harm_of(backend, entry)) is not None:
            harmed.append(harm)
    progress(len(entries), len(entries))
    return Verification(sum(not entry.is_rest for entry in entries), tuple(harmed))


def harm_of(backend: Backend, entry: IndexEntry) -> Harm | None:
    """Return the damage of a content, None when it is as it was saved."""
    try:
        found = files.sha256_in(backend, entry.path, entry.format)
    except FileNotFoundError:
        return Harm(entry, "missing", "its file is gone")
    except OSError as error:
        return Harm(entry, "unreadable", error.strerror or str(error))
    except ValueError as error:
        return Harm(entry, "altered", str(error))
    if found in {entry.sha256, entry.replaces}:
        return None
    return Harm(entry, "altered", f"its sha256 is {found}, not {entry.sha256}")


def adopted_entries(
    backend: Backend, index: Index, form: files.Format, *, but: set[str]
) -> Iterator[IndexEntry]:
    """Yield an entry for each file that neither this index nor that of another session knows.

    Its origin comes from the newest record that names the file, from the file, or else from its
    path as far as it follows the default layout. A file with the hash of its record was saved here;
    any other file is adopted. The rest of a content is none itself.
    """
    records = {str(record.get("path")).removesuffix(PACKED): record for record in index.records}
    for path in stray_files(backend, index, but=but):
        try:
            raw = files.stored_bytes(backend, path)
            is_enveloped = form == "envelope"
            text, origin = files.opened_envelope(raw) if is_enveloped else (decoded(raw), None)
            origin = origin or origin_by(path)
            saved_at = files.stored_status(backend, path)[0].modified
        except (OSError, ValueError):
            continue  # not a content of this store, or removed meanwhile
        content = encoded(text)
        sha256 = sha256_of(content)
        record = records.get(path, {})
        is_ours = record.get("sha256") == sha256
        of_another = files.is_rest(path, text)
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
        paths = backend.files(without=frozenset({STATE_FOLDER}))
        found = sorted({path.removesuffix(PACKED) for path in paths})
    except FileNotFoundError:
        return
    for path in found:
        if path in known or path == _NO_CONTENT or is_temporary(path):
            continue
        if path != INDEX or not is_snapshot(backend, path):  # it may be another session's
            yield path


def is_named_after(path: str, key: str) -> bool:
    """Whether a file is named after an item id or tool-use id, with or without a number."""
    item_id = origin_by(path).item_id
    stem, _, number = item_id.rpartition("-")
    return item_id == key or (stem == key and number.isdecimal())


def _recorded_origin(record: Mapping[str, JSON], otherwise: Origin) -> Origin:
    """Return the origin that a record states, completed by another origin."""
    said = {name: value for name, value in record.items() if isinstance(value, str) and value}
    return replace(
        otherwise,
        item_id=said.get("item_id", otherwise.item_id),
        item_type=said.get("item_type", otherwise.item_type),
        tool_use_id=said.get("tool_use_id", otherwise.tool_use_id),
        tool_name=said.get("tool", otherwise.tool_name),
    )


def origin_by(path: str) -> Origin:
    """Return the origin that the path of a file shows, by the default layout."""
    *folders, name = path.split("/")
    item_id = decoded(unquote_to_bytes(name.rpartition(".")[0] or name))
    item_type, tool = folders[0] if folders else "unknown", folders[1] if folders[1:] else None
    return Origin(item_id, item_type, tool_use_id=tool and item_id, tool_name=tool)
