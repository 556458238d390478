"""What a person does with policy files: `check`, `show`, `schema` of keys, `init` and `agents`."""

import json
import os
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer
from rich.text import Text

from policyctx.cli import output
from policyctx.definitions.names import DEFAULT
from policyctx.errors import Diagnostic, Location, PolicyError, StoreError, visible
from policyctx.policy import sources
from policyctx.policy.agents import AgentEntry, AgentsFile, agents_schema, entry_policy, read_agents
from policyctx.policy.diagnosing import hint, in_order
from policyctx.policy.findings import findings
from policyctx.policy.loading import extended, resolved, validated
from policyctx.policy.models import Model
from policyctx.policy.models.steps import Store
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.reference import explained
from policyctx.policy.schema import policy_schema, schema_of
from policyctx.policy.writing import origins, resolved_yaml

_Key = Annotated[
    str | None,
    typer.Argument(
        metavar="[KEY]",
        help="A key by its dotted path; names of types, tools and steps may be left out.",
        show_default=False,
    ),
]
_SIZES = {
    "min_tokens": "From this size on an item is worth offloading, in tokens; a share such as 1% is"
    " of the\nmodel's window.",
    "min_chars": "From this size on an item is worth offloading, in characters; give min_tokens in"
    " its place\nto count tokens.",
}
_TOOLS = {
    "read_file": {"min_tokens": 4000},
    "mcp__*": {"min_tokens": 500},
    "update_todo": {"pin": True},
}


def check(
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", help="Presets' names or files' paths.")
    ],
    form: Annotated[
        output.Format,
        typer.Option("--format", help="For people, programs, or GitHub's annotations."),
    ] = output.Format.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
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
    errors = sum(d.severity == "error" for d in found)
    warnings = len(found) - errors
    if form is output.Format.TEXT:
        typer.echo(_summary(len(policies), errors, warnings), err=True)
    if errors or (strict and warnings):
        raise typer.Exit(1)


def _checked(policy: str, extends_from: Sequence[Path]) -> list[Diagnostic]:
    try:
        root = resolved(sources.policy_source(policy, extends_from=extends_from))
        return findings(root, validated(root))
    except PolicyError as error:
        return list(error.diagnostics)


def _summary(policies: int, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return "1 policy, nothing found" if policies == 1 else f"{policies} policies, nothing found"
    return ", ".join(_count(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def show(
    policy: output.Policy,
    with_origins: Annotated[
        bool, typer.Option("--origins", help="Show where each value was written.")
    ] = False,
    as_json: output.Json = False,
) -> None:
    """Show a policy with all that it extends, as YAML.

    The output loads to the same policy again. A value from the environment is shown as its
    expression, such as ${NAME}, never as what the variable holds.

    Example: policyctx show coding-agent --origins
    """
    root = resolved(sources.policy_source(policy))
    validated(root)
    out = output.console()
    if with_origins:
        rows = origins(root)
        if as_json:
            report = [{"key": k, "value": v, "place": str(place)} for k, v, place in rows]
            out.out(output.json_text(report), highlight=False)
            return
        cells = ((key, output.json_text(value, indent=None), place) for key, value, place in rows)
        columns, whole = ("key", "value", "written at"), {"key", "written at"}
        out.print(output.table(columns, cells, numeric=set(), whole=whole))
        return
    out.out(
        output.json_text(root.as_written()) if as_json else resolved_yaml(root).rstrip(),
        highlight=False,
    )


def schema(
    key: _Key = None,
    agents: Annotated[
        bool, typer.Option("--agents", help="Print the JSON Schema of a policyctx.yaml.")
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
        out.out(output.json_text(agents_schema()), highlight=False)
    elif key is None:
        out.out(output.json_text(policy_schema()), highlight=False)
    elif as_json:
        out.out(output.json_text(schema_of(key)), highlight=False)
    else:
        text = Text(visible(explained(key)))
        text.stylize("bold", 0, text.plain.find("\n"))
        text.highlight_regex(r"`[^`]+`", "cyan")
        out.print(text, soft_wrap=True)


def init(
    preset: Annotated[
        str, typer.Argument(metavar="PRESET", help="The preset that the policy builds on.")
    ] = "coding-agent",
    name: Annotated[
        str, typer.Option(help="What the policy is called; its file is NAME.yaml.")
    ] = "policy",
    directory: output.Directory = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write a policy to start from, and a policyctx.yaml that runs every agent under it.

    The policy builds on a preset and shows, commented out, what people change first. Both files
    are written or none; none that exists is replaced without --force. A policyctx.yaml that exists
    stays as it is, and the lines that name the new policy in it are shown.

    Example: policyctx init coding-agent
    """
    _check_preset(preset)
    _check_name(name)
    policy, agents = directory / f"{name}.yaml", directory / sources.AGENTS_FILE
    files = {policy: starter_policy(name, preset, extended(sources.policy_source(preset), {}).root)}
    has_agents = os.path.lexists(agents) and not force
    if not has_agents:
        files = {agents: starter_agents(policy.name), **files}
    taken = [path for path in files if os.path.lexists(path)]
    if taken and not force:
        what = f"{_listed(taken)} exist" if len(taken) > 1 else f"{taken[0]} exists"
        raise StoreError(f"{what} already; --force replaces what exists", path=str(taken[0]))
    _write(files, taken)
    _show_what_to_try(policy, [path for path in files if path not in taken], taken)
    if has_agents:
        _show_how_to_add(agents, name)


def _check_preset(preset: str) -> None:
    presets = sources.preset_names()
    if preset not in presets:
        likely = hint(preset, presets)
        known = f"the presets are {', '.join(presets)}"
        said = f"{likely} T{known[1:]}" if likely else known
        raise PolicyError([Diagnostic(Location(preset or "''"), "PC001", "no such preset", said)])


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        wanted = "expected a-z, 0-9, _ and -, with a letter or digit first"
        raise typer.BadParameter(f"{wanted}, got {name!r}", param_hint="--name")
    if f"{name}.yaml".lower() == sources.AGENTS_FILE:
        raise typer.BadParameter(
            f"{sources.AGENTS_FILE} is the file of agents", param_hint="--name"
        )


def _write(files: Mapping[Path, str], taken: list[Path]) -> None:
    """Write all files, replacing those taken, or leave the disk as it was."""
    kept: list[Path] = []
    try:
        with ExitStack() as undo:
            for path, text in files.items():
                if path in taken:
                    kept.append(_set_aside(path, undo))
                with path.open("x", encoding="utf-8", newline="\n") as file:
                    undo.callback(path.unlink)
                    file.write(text)
            undo.pop_all()
        for path in kept:
            path.unlink()
    except OSError as error:
        where = str(error.filename or next(iter(files)))
        raise StoreError(f"{where} cannot be written: {error.strerror}", path=where) from error


def _set_aside(path: Path, undo: ExitStack) -> Path:
    """Give the file another name, to be given back where writing fails."""
    if path.is_dir():
        raise StoreError(f"{path} cannot be replaced: it is a folder", path=str(path))
    aside = path.with_name(f".{secrets.token_hex(8)}.old")
    path.rename(aside)
    undo.callback(aside.replace, path)
    return aside


def _show_what_to_try(policy: Path, new: list[Path], replaced: list[Path]) -> None:
    out = output.console()
    for verb, paths in (("wrote", new), ("replaced", replaced)):
        if paths:
            out.print(f"{verb} {_listed(paths)}", soft_wrap=True)
    name = shlex.quote(str(policy))
    out.print("\nTry next:", style="bold")
    out.print(f"  policyctx check {name}", soft_wrap=True)
    out.print(f"  policyctx plan {name} MESSAGES", soft_wrap=True)


def _show_how_to_add(agents: Path, name: str) -> None:
    """Show the lines that run an agent under the policy, for a file that is left as it is."""
    out = output.console()
    out.print(f"\n{agents} is left as it is. To run an agent under the policy, add to it:")
    out.print(f'  agents:\n    "{name}": ./{name}.yaml', soft_wrap=True)


def _listed(paths: Iterable[Path]) -> str:
    return " and ".join(map(str, paths))


def starter_policy(name: str, preset: str, tree: Node) -> str:
    """Return a policy that extends `preset`, whose resolved tree is `tree`.

    With all of its settings taken in it says what the preset says, and what is shown of `tools`
    as an example where the preset has none.
    """
    says = tree.plain()
    head = f"""\
## All that the preset {preset} says, and what you change here.
## Lines with a single # are settings as they are now; to change one, take away its #.
## To keep secrets out of the context: extends: [{preset}, secrets]
## To leave an outline: placeholder: {{text: "{{outline}}\\nIn {{path}}", outline: {{tokens: 400}}}}
{_yaml({"apiVersion": says["apiVersion"], "name": name})}extends: [{preset}]
"""
    return "\n".join((head, *_settings(says)))


def starter_agents(policy: str) -> str:
    """Return a `policyctx.yaml` that runs every agent under the policy file of this name."""
    return f"""\
## Which agent runs under which policy. An agent's exact name comes first, then the globs in the
## order written. An entry is a preset's name, the path of a file, or a policy without a name.
apiVersion: policyctx/v1
agents:
  # coder: coding-agent
  # "research-*": {{extends: ./{policy}, model: {{context_window: 1000000}}}}
  "*": ./{policy}
"""


def _settings(says: dict[str, Any]) -> Iterator[str]:
    """The keys that people change first, as the preset has them or else by their defaults."""
    unit = "min_chars" if "min_chars" in says else "min_tokens"
    yield _setting(_SIZES[unit], unit, says.get(unit, 0))
    window = says.get("model", {}).get("context_window", Model().context_window)
    yield _setting("The window of your model, in tokens.", "model", {"context_window": window})
    if "items" in says:
        yield _setting("Which types of items may be offloaded at all.", "items", says["items"])
    prose = "Tools with rules of their own, by name or glob: another size, or never offloaded."
    yield _setting(prose, "tools", says.get("tools", _TOOLS))
    prose = "The text left in an item's place; {path} is where the agent reads the content again."
    yield _setting(prose, "placeholder", says.get("placeholder", DEFAULT))
    root = says.get("store", {}).get("root", Store().root)
    yield _setting("The folder that content goes to.", "store", {"root": root})
    if "steps" in says:
        prose = (
            "The pipeline. A step of a known name replaces that step; a new one goes to the end,"
            " such as\nthis one, which makes room when the provider refuses a prompt as too long:\n"
            "- {name: too-long, on: overflow, do: drop, select: {unit: group, types: ['*'],"
            " until: {tokens: {under: 60%}}}}"
        )
        yield _setting(prose, "steps", says["steps"])


def _setting(prose: str, key: str, value: object) -> str:
    """A key that is commented out, below what it does."""
    lines = _yaml({key: value}).splitlines()
    commented = "\n".join(f"# {line}".rstrip() for line in lines)
    return f"{indent(prose, '## ')}\n{commented}\n"


def _yaml(keys: dict[str, object]) -> str:
    return resolved_yaml(read_yaml(sources.PolicySource("starter", output.json_text(keys))))


def agents(
    directory: output.Directory = Path(),
    form: Annotated[
        output.Format,
        typer.Option(
            "--format", help="For people, programs, or the errors alone as GitHub's annotations."
        ),
    ] = output.Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
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
        out.out(output.json_text(report), highlight=False)
    elif not mistakes:
        out.print(f"{file.path} has no entries", soft_wrap=True)
    else:
        rows = (_row(*checked) for checked in mistakes)
        columns = ("agent", "policy", "written at", "loads")
        out.print(output.table(columns, rows, numeric=set(), whole=set(columns)))
    if found := in_order(d for _, of_entry in mistakes for d in of_entry):
        raise PolicyError(found)


def _annotate(directory: Path) -> None:
    """Print each error as an annotation; exit with 1 if there is one."""
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
        "errors": json.loads(output.shown(mistakes, output.Format.JSON)),
    }
