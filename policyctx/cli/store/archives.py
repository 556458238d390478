"""`policyctx store restore-archive`: the messages that a compaction replaced, as they were."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from policyctx.cli.store import options  # noqa: TC001 - typer reads the annotations at run time
from policyctx.compaction.archive import ITEM_TYPE, messages_text
from policyctx.errors import UnknownArchiveError
from policyctx.policy.diagnosing import nearest
from policyctx.store.finding import stores_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.store.entries import Entry
    from policyctx.store.filesystem import ContextFileSystem


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
) -> None:
    """Print the messages that a compaction replaced, a JSON array, byte for byte as archived.

    `policyctx store ls ROOT --type archive` lists the archives.

    Example: policyctx store restore-archive .offload compaction-001 -o before.json
    """
    stores = stores_in(root, session=session).values()
    found = sorted(_archives(stores), key=lambda one: one[1].saved_at)
    chosen = [one for one in found if archive is None or archive in {one[2], one[1].path}]
    if not chosen:
        known = list(dict.fromkeys(item_id for _, _, item_id in found))
        likeliest = None if archive is None else next(iter(nearest(archive, known)), None)
        raise UnknownArchiveError(archive, known, likeliest, path=str(root))
    store, entry, _ = chosen[-1]
    written = messages_text(store.read(entry.path)).encode("utf-8", "surrogatepass")
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(written)


def _archives(
    stores: Iterable[ContextFileSystem],
) -> Iterator[tuple[ContextFileSystem, Entry, str]]:
    """Yield each archive with its store and its id."""
    for store in stores:
        for entry in store.list():
            if entry.origin is not None and entry.origin.item_type == ITEM_TYPE:
                yield store, entry, entry.origin.item_id
