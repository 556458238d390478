"""`policyctx export anthropic`: a policy as edits of Anthropic's server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text
from policyctx.integrations.context_management.edits import BETAS
from policyctx.integrations.context_management.exporting import LeftBehind, exported
from policyctx.policy.loading import loaded
from policyctx.policy.sources import policy_source

app = typer.Typer(
    name="export",
    help="Write a policy in the words of a server that edits contexts.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if a step or key stays behind.")
]


@app.callback()
def exports() -> None:
    """Take the options that belong to no server."""


@app.command("anthropic")
def anthropic(
    policy: arguments.Policy, strict: Strict = False, as_json: arguments.Json = False
) -> None:
    """Print the context_management that says what a policy says, as far as the server can.

    Each step and key that stays behind is listed on stderr with the reason. Exits with 1 under
    --strict if there is one.

    Example: policyctx export anthropic policy.yaml --strict
    """
    edits, left = exported(*loaded(policy_source(policy)))
    management = {"edits": [edit.model_dump(exclude_none=True) for edit in edits]}
    betas = sorted({BETAS[type(edit)] for edit in edits})
    if as_json:
        report = {"context_management": management, "betas": betas, "left_behind": reports(left)}
        console().out(json_text(report), highlight=False)
    else:
        console().out(json_text(management), highlight=False)
        if betas:
            console(stderr=True).print(f"send it with betas: {', '.join(betas)}", soft_wrap=True)
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
        out.print(f"  {place}{one.key}: {one.reason}", soft_wrap=True, markup=False)
