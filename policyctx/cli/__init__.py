"""The command `policyctx`: one module a command."""

from __future__ import annotations

import io
import sys

from policyctx.errors import PolicyctxError, PolicyError


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 the input was wrong (said on stderr), 2 usage.
    """
    from policyctx.cli.app import app  # noqa: PLC0415 - typer is needed by no one else

    for stream in (sys.stdout, sys.stderr):
        # A console or pipe that lacks a character shows a question mark for it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except PolicyctxError as error:
        print(_said(error), file=sys.stderr)  # noqa: T201 - the one place that says it
        sys.exit(1)


def _said(error: PolicyctxError) -> str:
    """The error for people: a policy's mistakes with their lines, any other in a paragraph."""
    if not isinstance(error, PolicyError):
        return f"error: {error}"
    from policyctx.cli.diagnostics import Format, shown  # noqa: PLC0415 - seldom needed

    return shown(error.diagnostics, Format.TEXT)
