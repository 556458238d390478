"""`policyctx store restore`: offloaded texts back into a file of messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from policyctx.cli.output import console
from policyctx.cli.store import showing
from policyctx.cli.store.showing import counted, opened_stores
from policyctx.errors import StoreError
from policyctx.resources import open_file
from policyctx.store.restoring import restorer


def restore(
    root: showing.Root,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Messages or a session, as JSON or JSON lines.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write, a new one, in place of stdout."),
    ] = None,
    session: showing.Session = None,
) -> None:
    """Put offloaded texts back into a file of messages, in the places of their placeholders.

    The file may be any JSON, such as the session file of a host: a string that is a placeholder
    becomes its text. Items that were cleared or dropped were not saved and do not come back;
    messages that a compaction replaced are in its archive.

    Example: policyctx store restore .offload messages.json -o restored.json
    """
    with opened_stores(root, session=session) as stores:
        found = restorer(stores.values())
    try:
        with open_file(file) as opened:
            text = found.lines(opened.read().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError("neither JSON nor JSON lines", path=str(file)) from error
    written = text.encode("utf-8", "surrogatepass")
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(output, flags, 0o600), "wb") as new:
            new.write(written)
    left = f"; {counted(found.left, 'placeholder')} stay" if found.left else ""
    console(stderr=True).print(f"{counted(found.restored, 'text')} restored{left}", soft_wrap=True)
