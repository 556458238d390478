"""What a person does with policy files: `check`, `show`, `schema` of keys and `agents`."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from policyctx.cli import output
from policyctx.cli.output import argument, option
from policyctx.errors import Diagnostic, PolicyError, counted, visible
from policyctx.policy import sources
from policyctx.policy.agents import AgentEntry, AgentsFile, agents_schema, entry_policy, read_agents
from policyctx.policy.diagnosing import in_order
from policyctx.policy.findings import findings
from policyctx.policy.loading import at_causes, loaded
from policyctx.policy.schema import explained, policy_schema, schema_of
from policyctx.policy.writing import origins, resolved_yaml

_Key = Annotated[
    str | None,
    argument("[KEY]", "A key by its dotted path; names of types, tools and steps may be left out."),
]


def check(
    policies: Annotated[list[str], argument("POLICY...", "Presets' names or files' paths.")],
    form: Annotated[
        output.Format, option("For people, programs, or GitHub's annotations.", "--format")
    ] = output.Format.TEXT,
    strict: Annotated[bool, option("Count warnings as errors.", "--strict")] = False,
    as_json: Annotated[bool, option("The same as --format json.", "--json")] = False,
    extends_from: output.ExtendsFrom = [],  # noqa: B006 - typer copies it
) -> None:
    """Check policies: every mistake, and what is probably a mistake.

    Exits with 1 when there is an error; --strict makes warnings errors.

    Example: policyctx check policy.yaml --strict
    """
    found = [diagnostic for policy in policies for diagnostic in _checked(policy, extends_from)]
    form = output.Format.JSON if as_json else form
    if found or form is output.Format.JSON:
        typer.echo(output.shown(found, form))
    counts = Counter[str](d.severity for d in found)
    if form is output.Format.TEXT:
        typer.echo(_summary(len(policies), counts), err=True)
    if counts["error"] or (strict and counts["warning"]):
        raise typer.Exit(1)


def _checked(policy: str, extends_from: Sequence[Path]) -> list[Diagnostic]:
    try:
        source = sources.policy_source(policy, extends_from=extends_from)
        checked, root = loaded(source)
        found = partial(findings, advice=True)
        return at_causes(found(root, checked), source, sources.environment(), findings=found)
    except PolicyError as error:
        return list(error.diagnostics)


def _summary(policies: int, counts: Mapping[str, int]) -> str:
    if not counts:
        return "1 policy, nothing found" if policies == 1 else f"{policies} policies, nothing found"
    words = ("error", "warning", "notice")
    return ", ".join(counted(counts[word], word) for word in words if word in counts)


def show(
    policy: output.Policy,
    with_origins: Annotated[
        bool, option("Show where each value was written.", "--origins")
    ] = False,
    as_json: output.Json = False,
) -> None:
    """Show a policy with all that it extends, as YAML.

    The output loads to the same policy again. A value from the environment is shown as its
    expression, such as ${NAME}, never as what the variable holds.

    Example: policyctx show coding-agent --origins
    """
    _, root = loaded(sources.policy_source(policy))
    out = output.console()
    if with_origins:
        rows = origins(root)
        if as_json:
            output.print_json([{"key": k, "value": v, "place": str(place)} for k, v, place in rows])
            return
        cells = ((key, output.json_text(value, indent=None), place) for key, value, place in rows)
        columns, whole = ("key", "value", "written at"), {"key", "written at"}
        out.print(output.Grid(columns, cells, whole=whole))
        return
    if as_json:
        output.print_json(root.as_written())
    else:
        out.out(resolved_yaml(root).rstrip())


def schema(
    key: _Key = None,
    agents: Annotated[
        bool, option("Print the JSON Schema of a policyctx.yaml.", "--agents")
    ] = False,
    as_json: output.Json = False,
) -> None:
    """Print the JSON Schema of a policy, or explain one key.

    The end of a path is enough: of a key that several maps have, the full paths are listed.

    Example: policyctx schema items.keep_recent
    """
    out = output.console()
    if agents:
        if key is not None:
            raise typer.BadParameter("--agents goes without a KEY")
        output.print_json(agents_schema())
    elif key is None:
        output.print_json(policy_schema())
    elif as_json:
        output.print_json(schema_of(key))
    else:
        text = Text(visible(explained(key)))
        text.stylize("bold", 0, text.plain.find("\n"))
        text.highlight_regex(r"`[^`]+`", "cyan")
        out.print(text)


def agents(
    directory: output.Directory = Path(),
    form: Annotated[
        output.Format,
        option("For people, programs, or the errors alone as GitHub's annotations.", "--format"),
    ] = output.Format.TEXT,
    as_json: Annotated[bool, option("The same as --format json.", "--json")] = False,
) -> None:
    """Show which agent gets which policy, from which line.

    Reads the nearest policyctx.yaml, in the working directory or above it, and checks the policy
    of every entry. Exits with 1 when one of them is wrong.

    Example: policyctx agents
    """
    if form is output.Format.GITHUB and not as_json:
        _annotate(directory)
        return
    file = read_agents(sources.agents_source(directory))
    mistakes = [(entry, _mistakes(entry, file)) for entry in file.entries]
    out = output.console()
    if as_json or form is output.Format.JSON:
        report = {"file": file.path, "agents": [_report(*checked) for checked in mistakes]}
        output.print_json(report)
    elif not mistakes:
        out.print(f"{file.path} has no entries")
    else:
        rows = (_row(*checked) for checked in mistakes)
        columns = ("agent", "policy", "written at", "loads")
        out.print(output.Grid(columns, rows, whole=columns))
    if found := in_order(d for _, of_entry in mistakes for d in of_entry):
        raise PolicyError(found)


def _annotate(directory: Path) -> None:
    found: Sequence[Diagnostic]
    try:
        file = read_agents(sources.agents_source(directory))
        found = in_order(d for entry in file.entries for d in _mistakes(entry, file))
    except PolicyError as error:
        found = error.diagnostics
    if found:
        typer.echo(output.shown(found, output.Format.GITHUB))
        raise typer.Exit(1)


def _mistakes(entry: AgentEntry, file: AgentsFile) -> tuple[Diagnostic, ...]:
    """What is wrong with an entry's policy; a glob stands for the agents that it matches."""
    try:
        entry_policy(entry, file, agent=entry.pattern)
    except PolicyError as error:
        return error.diagnostics
    return ()


def _row(entry: AgentEntry, mistakes: tuple[Diagnostic, ...]) -> tuple[object, ...]:
    loads = counted(len(mistakes), "error") if mistakes else "ok"
    written_at = f"{entry.place.file}:{entry.place.line}"
    return entry.pattern, entry.named or "written there", written_at, loads


def _report(entry: AgentEntry, mistakes: tuple[Diagnostic, ...]) -> dict[str, Any]:
    return {
        "agent": entry.pattern,
        "policy": entry.named,
        "file": entry.place.file,
        "line": entry.place.line,
        "errors": json.loads(output.shown(mistakes, output.Format.JSON)),
    }
