"""`policyctx export` and `import`: a policy from and to the edits of Anthropic's server."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from policyctx.cli.output import Json, Policy, argument, console, group, option, print_json
from policyctx.errors import Diagnostic, Location, PolicyError
from policyctx.integrations.context_edits import BETAS, read_edits
from policyctx.integrations.context_management import LeftBehind, exported, imported
from policyctx.policy.loading import loaded
from policyctx.policy.sources import MAX_BYTES, PolicySource, policy_source, read_source

export_app = group()
Strict = Annotated[bool, option("Exit with 1 if a step or key stays behind.", "--strict")]


@export_app.command("anthropic")
def export_anthropic(policy: Policy, strict: Strict = False, as_json: Json = False) -> None:
    """Print the context_management that says what a policy says, as far as the server can.

    Each step and key that stays behind is listed on stderr with the reason: a key if the server
    does something else there, a whole step if it runs on arrival or on overflow, takes other item
    types, some tools or ephemeral ones alone, has other gates, alternatives of gates or another
    shape of `keep_recent`, or is the second of its kind. Where only keys stay behind, the server
    may clear more than the policy: it knows no `until` and no globs of pinned tools, and without
    `keep_recent` clears the newest results too. A share is one of `model.context_window`, 200,000
    if the policy sets none. Exits with 1 under --strict if anything stays behind.

    Example: policyctx export anthropic policy.yaml --strict
    """
    edits, left = exported(*loaded(policy_source(policy)))
    management = {"edits": [edit.model_dump(exclude_none=True) for edit in edits]}
    betas = sorted({BETAS[type(edit)] for edit in edits})
    if as_json:
        print_json({"context_management": management, "betas": betas, "left_behind": reports(left)})
    else:
        print_json(management)
        if betas:
            console(stderr=True).print(f"send it with betas: {', '.join(betas)}")
        print_left(left)
    if strict and left:
        raise typer.Exit(1)


def reports(left: Sequence[LeftBehind]) -> list[dict[str, Any]]:
    """Return what stays behind as plain values, for `--json`."""
    return [
        {"key": one.key, "place": str(one.place) if one.place else None, "reason": one.reason}
        for one in left
    ]


def print_left(left: Sequence[LeftBehind]) -> None:
    """List on stderr what stays behind."""
    out = console(stderr=True)
    if left:
        stay = "step or key stays" if len(left) == 1 else "steps or keys stay"
        out.print(f"{len(left)} {stay} behind:")
    for one in left:
        place = f"{one.place}: " if one.place else "by default: "
        out.print(f"  {place}{one.key}: {one.reason}")


import_app = group()


@import_app.command("anthropic")
def import_anthropic(
    file: Annotated[
        str,
        argument(
            "FILE", "A JSON file: a context_management, its edits, or a request body. `-` is stdin."
        ),
    ],
    name: Annotated[str, option("What the policy is called.")] = "imported",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Print a policy that does what the edits of a context_management ask the server to do.

    Each key that stays behind is listed on stderr with the reason. Exits with 1 under --strict if
    there is one.

    Example: policyctx import anthropic request.json > policy.yaml
    """
    made = imported(read_edits(_source(file)), name)
    if as_json:
        print_json({"policy": made.document, "left_behind": reports(made.left)})
    else:
        console().out(made.text.rstrip())
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
