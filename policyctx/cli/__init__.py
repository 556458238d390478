"""The command `policyctx`: one module a command."""

from __future__ import annotations

import io
import sys

from policyctx.errors import PolicyctxError


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 the input was wrong (said on stderr in one paragraph), 2 usage.
    """
    from policyctx.cli.app import app  # noqa: PLC0415 - typer is needed by no one else

    for stream in (sys.stdout, sys.stderr):
        # A console or pipe that lacks a character shows a question mark for it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except PolicyctxError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the one place that says it
        sys.exit(1)
