"""`policyctx store restore-archive`: the messages that a compaction replaced, as they were."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import Annotated

import typer

from policyctx.cli.output import json_text
from policyctx.cli.store import options  # noqa: TC001 - typer reads the annotations at run time
from policyctx.compaction.archive import ITEM_TYPE, archived_messages
from policyctx.errors import StoreError
from policyctx.store.finding import stores_in


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
    """Print the messages that a compaction replaced, a JSON array, exactly as they were.

    `policyctx store ls ROOT --type archive` lists the archives.

    Example: policyctx store restore-archive .offload compaction-001 -o before.json
    """
    stores = stores_in(root, session=session).values()
    found = [
        (s, e) for s in stores for e in s.list() if e.origin and e.origin.item_type == ITEM_TYPE
    ]
    if archive is not None:
        known = [(e.origin.item_id, e.path) for _, e in found if e.origin]
        chosen = [pair for pair, names in zip(found, known, strict=True) if archive in names]
    else:
        chosen = sorted(found, key=lambda pair: pair[1].saved_at)
    if not chosen:
        named = "archive" if archive is None else f"archive {archive!r}"
        raise StoreError(f"no {named} in {root}", path=str(root))
    store, entry = chosen[-1]
    text = json_text(archived_messages(store.read(entry.path)), indent=None) + "\n"
    if output is None:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()
    else:
        output.write_text(text, encoding="utf-8", errors="surrogatepass")
