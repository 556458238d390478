"""`policyctx store restore-archive`: the messages that a compaction replaced, as they were."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.output import json_text
from policyctx.cli.store import options
from policyctx.cli.store.showing import entry_report
from policyctx.compaction.assembly import ITEM_TYPE, messages_text
from policyctx.errors import AmbiguousSessionError, UnknownArchiveError
from policyctx.policy.diagnosing import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.store.filesystem import ContextFileSystem
    from policyctx.store.index import IndexEntry


def restore_archive(
    root: options.Root,
    archive: Annotated[
        str | None,
        typer.Argument(metavar="[ARCHIVE]", help="Its id or path. Default: the newest."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, in place of stdout.")
    ] = None,
    session: options.Session = None,
    as_json: arguments.Json = False,
) -> None:
    """Print the messages that a compaction replaced, a JSON array, byte for byte as archived.

    `policyctx store ls ROOT --type archive` lists the archives. `--json` puts the messages into an
    object, beside what is known of the archive.

    Example: policyctx store restore-archive .offload compaction-001 -o before.json
    """
    with options.opened_stores(root, session=session) as stores:
        name, entry = _chosen(stores, archive, root)
        text = messages_text(stores[name].read(entry.path))
    if as_json:
        known = entry_report(entry, stores[name], name)
        text = json_text({**known, "messages": json.loads(text)}) + "\n"
    written = text.encode("utf-8", "surrogatepass")
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(written)


def _chosen(
    stores: dict[str, ContextFileSystem], archive: str | None, root: Path
) -> tuple[str, IndexEntry]:
    """Return an archive and its session: the newest, or the newest of this id or path.

    Raises `UnknownArchiveError` when there is none, and `AmbiguousSessionError` when more than one
    session has such a one.
    """
    found = sorted(_archives(stores), key=lambda one: one[1].saved_at)
    chosen = [one for one in found if archive is None or archive in {_id(one[1]), one[1].path}]
    if not chosen:
        known = list(dict.fromkeys(_id(entry) for _, entry in found))
        likeliest = None if archive is None else next(iter(nearest(archive, known)), None)
        raise UnknownArchiveError(archive, known, likeliest, path=str(root))
    sessions = sorted({name for name, _ in chosen})
    if len(sessions) > 1:
        raise AmbiguousSessionError(archive or "an archive", sessions, path=str(root))
    return chosen[-1]


def _archives(stores: dict[str, ContextFileSystem]) -> Iterator[tuple[str, IndexEntry]]:
    """Yield each archive with its session."""
    for name, store in stores.items():
        for entry in store.list():
            if entry.origin is not None and entry.origin.item_type == ITEM_TYPE:
                yield name, entry


def _id(entry: IndexEntry) -> str:
    return entry.item_id or ""
