"""`policyctx check`: is a policy right, and does it mean what it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from policyctx.cli import arguments
from policyctx.cli.diagnostics import Format, shown
from policyctx.errors import Diagnostic, PolicyError
from policyctx.policy.findings import findings
from policyctx.policy.loading import resolved, validated
from policyctx.policy.sources import policy_source


def check(
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", help="Presets' names or files' paths.")
    ],
    form: Annotated[
        Format, typer.Option("--format", help="For people, programs, or GitHub's annotations.")
    ] = Format.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    extends_from: arguments.ExtendsFrom = [],  # noqa: B006 - typer copies it
) -> None:
    """Check policies: every mistake, and what is probably a mistake.

    Exits with 1 when there is an error; --strict makes warnings errors.

    Example: policyctx check policy.yaml --strict
    """
    found = [diagnostic for policy in policies for diagnostic in _checked(policy, extends_from)]
    form = Format.JSON if as_json else form
    if found or form is Format.JSON:
        typer.echo(shown(found, form))
    errors = sum(d.severity == "error" for d in found)
    warnings = len(found) - errors
    if form is Format.TEXT:
        typer.echo(_summary(len(policies), errors, warnings), err=True)
    if errors or (strict and warnings):
        raise typer.Exit(1)


def _checked(policy: str, extends_from: Sequence[Path]) -> list[Diagnostic]:
    try:
        root = resolved(policy_source(policy, extends_from=extends_from))
        return findings(root, validated(root))
    except PolicyError as error:
        return list(error.diagnostics)


def _summary(policies: int, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return "1 policy, nothing found" if policies == 1 else f"{policies} policies, nothing found"
    return ", ".join(_count(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
