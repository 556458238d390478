"""`policyctx agents`: which agent runs under which policy, by the nearest `policyctx.yaml`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from policyctx.cli import arguments
from policyctx.cli.diagnostics import Format, shown
from policyctx.cli.output import console, json_text, table
from policyctx.errors import Diagnostic, PolicyError
from policyctx.policy.agents import AgentEntry, AgentsFile, entry_policy, read_agents
from policyctx.policy.diagnosing import in_order
from policyctx.policy.sources import agents_source


def agents(
    directory: arguments.Directory = Path(),
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="For people, programs, or the errors alone as GitHub's annotations."
        ),
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show which agent gets which policy, from which line.

    Reads the nearest policyctx.yaml, in the working directory or above it, and checks the policy
    of every entry. Exits with 1 when one of them is wrong.

    Example: policyctx agents
    """
    if form is Format.GITHUB and not as_json:
        _annotate(directory)
        return
    file = read_agents(agents_source(directory))
    mistakes = [(entry, _mistakes(entry, file)) for entry in file.entries]
    out = console()
    if as_json or form is Format.JSON:
        report = {"file": file.path, "agents": [_report(*checked) for checked in mistakes]}
        out.out(json_text(report), highlight=False)
    elif not mistakes:
        out.print(f"{file.path} has no entries", soft_wrap=True)
    else:
        rows = (_row(*checked) for checked in mistakes)
        columns = ("agent", "policy", "written at", "loads")
        out.print(table(columns, rows, numeric=set(), whole=set(columns)))
    if found := in_order(d for _, of_entry in mistakes for d in of_entry):
        raise PolicyError(found)


def _annotate(directory: Path) -> None:
    """Print each error as an annotation; exit with 1 if there is one."""
    found: Sequence[Diagnostic]
    try:
        file = read_agents(agents_source(directory))
        found = in_order(d for entry in file.entries for d in _mistakes(entry, file))
    except PolicyError as error:
        found = error.diagnostics
    if found:
        typer.echo(shown(found, Format.GITHUB))
        raise typer.Exit(1)


def _mistakes(entry: AgentEntry, file: AgentsFile) -> tuple[Diagnostic, ...]:
    """What is wrong with an entry's policy; a glob stands for the agents that it matches."""
    try:
        entry_policy(entry, file, agent=entry.pattern)
    except PolicyError as error:
        return error.diagnostics
    return ()


def _row(entry: AgentEntry, mistakes: tuple[Diagnostic, ...]) -> tuple[object, ...]:
    count = len(mistakes)
    loads = "ok" if not count else "1 error" if count == 1 else f"{count} errors"
    written_at = f"{entry.place.file}:{entry.place.line}"
    return entry.pattern, entry.named or "written there", written_at, loads


def _report(entry: AgentEntry, mistakes: tuple[Diagnostic, ...]) -> dict[str, Any]:
    return {
        "agent": entry.pattern,
        "policy": entry.named,
        "file": entry.place.file,
        "line": entry.place.line,
        "errors": json.loads(shown(mistakes, Format.JSON)),
    }
