"""`policyctx import anthropic`: edits of Anthropic's server as a policy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from policyctx.cli import arguments
from policyctx.cli.exporting import Strict, print_left, reports
from policyctx.cli.output import console, json_text
from policyctx.errors import Diagnostic, Location, PolicyError
from policyctx.integrations.context_management.edits import read_edits
from policyctx.integrations.context_management.importing import imported
from policyctx.policy.sources import MAX_BYTES, PolicySource, read_source

app = typer.Typer(
    name="import",
    help="Make a policy of what a server that edits contexts is asked to do.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def imports() -> None:
    """Take the options that belong to no server."""


@app.command("anthropic")
def anthropic(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A JSON file: a context_management, its edits, or a request body. `-` is stdin.",
        ),
    ],
    name: Annotated[str, typer.Option(help="What the policy is called.")] = "imported",
    strict: Strict = False,
    as_json: arguments.Json = False,
) -> None:
    """Print a policy that does what the edits of a context_management ask the server to do.

    Each key that stays behind is listed on stderr with the reason. Exits with 1 under --strict if
    there is one.

    Example: policyctx import anthropic request.json > policy.yaml
    """
    made = imported(read_edits(_source(file)), name)
    if as_json:
        report = {"policy": made.document, "left_behind": reports(made.left)}
        console().out(json_text(report), highlight=False)
    else:
        console().out(made.text.rstrip(), highlight=False)
        print_left(made.left)
    if strict and made.left:
        raise typer.Exit(1)


def _source(file: str) -> PolicySource:
    if file != "-":
        return read_source(Path(file), file, allow_pipe=True)
    raw = sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        sentence = f"not UTF-8: byte {error.start} cannot be read"
    else:
        if len(raw) <= MAX_BYTES:
            return PolicySource("stdin", text)
        sentence = f"larger than {MAX_BYTES // 1024} KiB"
    raise PolicyError([Diagnostic(Location("stdin"), "PC001", sentence)])
