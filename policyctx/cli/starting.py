"""`policyctx init`: a policy to start from, by what a preset says or by what sessions used."""

import json
import os
import re
import secrets
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, TypeAlias, get_args

import typer

from policyctx.cli import output
from policyctx.cli.output import argument, option
from policyctx.cli.progress import Progressed, gathered, interruptible, replay_policy, tell
from policyctx.cli.replay import Agents, Jobs, Since, recording_files
from policyctx.cli.replay_output import outcome_report
from policyctx.definitions.names import DEFAULT
from policyctx.errors import (
    Diagnostic,
    InputError,
    Location,
    PolicyError,
    StoreError,
    counted,
    visible,
)
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy import sources
from policyctx.policy.diagnosing import hint
from policyctx.policy.loading import extended
from policyctx.policy.models import VERSIONS, Model
from policyctx.policy.models.compaction import FileSource
from policyctx.policy.models.steps import Store
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.schema import policy_schema
from policyctx.policy.writing import resolved_yaml
from policyctx.replay.answer import verdict
from policyctx.replay.cluster import executor
from policyctx.replay.common import Common
from policyctx.replay.places import RecordingFile
from policyctx.replay.recording import Recording
from policyctx.replay.running import LoadedPolicy, compiled
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import Figures, figures_of, total
from policyctx.tokens.usage import Summable

# The fewest calls for which a tool gets a rule, and the least share of all tokens for a comment.
_ENOUGH, _SHARE = 3, 0.01
# Of each item, so the whole input of a call.
_EXCERPT = 1 << 24
_READING = {"read", "view", "open", "cat"}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PATH = re.compile(r"[^:/]/|\\|\.\w+$")
_SCHEMA = "policy.schema.json"
_FIRST = f"# yaml-language-server: $schema=./{_SCHEMA}\n"
_Replayed: TypeAlias = "Progressed[tuple[dict[str, ToolUse], Figures]]"

_FEATURE = """\
Feature: What {name} does with the tools of recorded sessions

  Background:
    Given the policy "{name}.yaml"

  Scenario: Small results of {tool} stay
    Given 12 {tool} results of 10 tokens
    When the policy is applied
    Then no results are offloaded
"""
_OLD_LEAVE = """
  Scenario: An old result of {tool} leaves when the prompt cache has expired
    Given a result "old" of 3,000 tokens from {tool}
    And 9 {tool} results of 10 tokens
    When the policy is applied
    And 1 hour passes
    And the policy is applied again
    Then the result "old" is offloaded
"""
_RESTORED = """
  Scenario: A summary brings back the file that {tool} read
    Given the summarizer answers "The file was read."
    And the working directory has the file "a.py" that reads "A = 1"
    And a user message of 190,000 tokens
    And the agent has read the file "a.py" with {tool}
    And a user message of 10 tokens
    When the policy is applied
    Then the file "a.py" is restored
"""

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


@interruptible()
def init(
    preset: Annotated[
        str, argument("PRESET", "The preset that the policy builds on.")
    ] = "coding-agent",
    name: Annotated[str, option("What the policy is called; its file is NAME.yaml.")] = "policy",
    directory: output.Directory = Path(),
    sessions: Annotated[
        list[str] | None,
        option(
            "Write the policy for the tools of these recorded sessions; files, folders or"
            " URLs; repeatable.",
            "--from",
            metavar="SESSIONS",
        ),
    ] = None,
    agent: Agents = None,
    since: Since = None,
    jobs: Jobs = 1,
    force: Annotated[bool, option("Replace files that exist.", "--force")] = False,
    as_json: output.Json = False,
) -> None:
    """Write a policy to start from, and a policyctx.yaml that runs every agent under it.

    The policy builds on a preset and shows, commented out, what people change first. With --from or
    --agent it says what differs for the tools that these sessions used, with the figures, and a
    feature file beside it tests it. All files are written or none; none that exists is replaced
    without --force. A policyctx.yaml that exists stays as it is, and the lines that name the new
    policy in it are shown. The JSON Schema beside the policy is for editors.

    Examples: policyctx init coding-agent

    policyctx init --agent claude-code --since 30d
    """
    _check_preset(preset)
    _check_name(name)
    policy, agents = directory / f"{name}.yaml", directory / sources.AGENTS_FILE
    schema, feature = directory / _SCHEMA, policy.with_suffix(".feature")
    is_fitted = bool(sessions or agent)
    if since is not None and not is_fitted:
        raise typer.BadParameter("--since goes with --from or --agent")
    own = [policy, feature] if is_fitted else [policy]
    taken = [path for path in own if os.path.lexists(path)]
    if taken and not force:
        what = f"{_listed(taken)} exist" if len(taken) > 1 else f"{taken[0]} exists"
        raise StoreError(f"{what} already; --force replaces what exists", path=str(taken[0]))
    fitted = None
    if is_fitted:
        fitted = _fitted(name, preset, recording_files(sessions, agent, since, partial=False), jobs)
        files = {policy: fitted.text, feature: fitted.feature}
    else:
        tree = extended(sources.policy_source(preset), {}).root
        files = {policy: starter_policy(name, preset, tree)}
    others = {agents: starter_agents(policy.name), schema: f"{output.json_text(policy_schema())}\n"}
    has_agents = os.path.lexists(agents) and not force
    for path, text in others.items():
        if force or not os.path.lexists(path):
            files = {path: text, **files}
    taken = [path for path in files if os.path.lexists(path)]
    _write(files, taken)
    new = [path for path in files if path not in taken]
    if as_json:
        report = {"wrote": [*map(str, new)], "replaced": [*map(str, taken)]}
        output.print_json(report | ({} if fitted is None else fitted.report()))
    else:
        if fitted is not None:
            output.console().print(verdict(preset, fitted.figures))
        _show_what_to_try(policy, new, taken)
        if has_agents:
            _show_how_to_add(agents, name)
    if fitted is not None:
        tell(fitted.so_far)
        raise typer.Exit(fitted.so_far.exit_code)


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
            out.print(f"{verb} {_listed(paths)}")
    name = shlex.quote(str(policy))
    out.print("\nTry next:", style="bold")
    out.print(f"  policyctx check {name}")
    out.print(f"  policyctx plan {name} MESSAGES")
    for path in (*new, *replaced):
        if path.suffix == ".feature":
            out.print(f"  policyctx test {shlex.quote(str(path))}")


def _show_how_to_add(agents: Path, name: str) -> None:
    """Show the lines that run an agent under the policy, for a file that is left as it is."""
    out = output.console()
    out.print(f"\n{agents} is left as it is. To run an agent under the policy, add to it:")
    out.print(f'  agents:\n    "{name}": ./{name}.yaml')


def _listed(paths: Iterable[Path]) -> str:
    *first, last = map(str, paths)
    return f"{', '.join(first)} and {last}" if first else last


def starter_policy(name: str, preset: str, tree: Node) -> str:
    """Return a policy that extends `preset`, whose resolved tree is `tree`.

    With all of its settings taken in it says what the preset says, and what is shown of `tools`
    as an example where the preset has none.
    """
    says = tree.plain()
    comments = (
        f"All that the preset {preset} says, and what you change here.\n"
        "Lines with a single # are settings as they are now; to change one, take away its #.\n"
        f"To keep secrets out of the context: extends: [{preset}, secrets]\n"
        'To leave an outline: placeholder: {text: "{outline}\\nIn {path}", outline: {tokens: 400}}'
    )
    return "\n".join((_head(name, preset, comments), *_settings(says)))


def _head(name: str, preset: str, comments: str) -> str:
    first = _yaml({"apiVersion": VERSIONS[-1], "name": name})
    return f"{_FIRST}{indent(comments, '## ')}\n{first}extends: [{preset}]\n"


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
    lines = _yaml({key: value}).splitlines()
    commented = "\n".join(f"# {line}".rstrip() for line in lines)
    return f"{indent(prose, '## ')}\n{commented}\n"


def _yaml(keys: dict[str, object]) -> str:
    return resolved_yaml(read_yaml(sources.PolicySource("starter", output.json_text(keys))))


@dataclass(slots=True)
class ToolUse(Summable):
    """The calls and results of one tool, and what became of the results under a policy."""

    calls: int = 0
    paths: Counter[str] = field(default_factory=Counter)
    """Calls whose input has a path, by its field."""
    results: int = 0
    tokens: int = 0
    left: int = 0
    """Results that were removed, other than by a summary."""
    freed: int = 0
    """The tokens that these freed."""
    needed: int = 0
    """How many of these were needed again."""

    def read_field(self, tool: str, policy: OffloadPolicy) -> str:
        """Return the field that holds the path, for a tool that reads files unknown to a policy."""
        words = {word.lower() for word in _WORD.findall(tool)}
        known = any(policy.path_fields(tool, one) for one in get_args(FileSource))
        if known or not words & _READING or self.calls < _ENOUGH or not _PLAIN.fullmatch(tool):
            return ""
        return next((name for name, n in sorted(self.paths.items()) if n == self.calls), "")

    @property
    def figures(self) -> str:
        """Its figures in words."""
        results = f"{counted(self.results, 'result')} with {self.tokens:,} tokens"
        return f"{results}; {self.left:,} left, freed {self.freed:,}; {self.needed:,} needed again"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A policy for the tools of recorded sessions that builds on a preset."""

    name: str
    preset: str
    figures: Figures
    """With the preset."""
    so_far: _Replayed
    """What came of the recordings."""
    uses: Mapping[str, ToolUse]
    """By tool, those with most tokens first."""
    readers: Mapping[str, str]
    """Tools that read files and that the preset does not know, with the field of the path."""

    @property
    def text(self) -> str:
        """The policy."""
        least = _SHARE * sum(use.tokens for use in self.uses.values())
        lines = [
            f"From {counted(self.figures.calls, 'call')} of a model:",
            f"{verdict(self.preset, self.figures)}.",
            f"Tools by the size of their results, and what left with {self.preset}:",
        ]
        lines += [
            f"  {visible(tool)}: {use.figures}"
            for tool, use in self.uses.items()
            if use.tokens and use.tokens >= least
        ]
        lines += [] if self.readers else [f"No tool that reads files is new to {self.preset}."]
        if any(use.needed for use in self.uses.values()):
            lines += [
                "To keep more of what is needed again is a trade against larger prompts:",
                "policyctx tune measures it.",
            ]
        head = _head(self.name, self.preset, "\n".join(lines))
        rules = "".join(
            f"  # It reads files: all of its {self.uses[tool].calls:,} calls have a path in {path}."
            f"\n  {tool}: {{reads_file: {path}}}\n"
            for tool, path in self.readers.items()
        )
        return f"{head}\ntools:\n{rules}" if rules else head

    @property
    def feature(self) -> str:
        """A feature file that the policy passes."""
        [heaviest, *_] = [tool for tool in self.uses if _PLAIN.fullmatch(tool)] or ["Bash"]
        made = _FEATURE.format(name=self.name, tool=heaviest)
        if heaviest in self.uses and self.uses[heaviest].left:
            made += _OLD_LEAVE.format(tool=heaviest)
        return made + "".join(_RESTORED.format(tool=tool) for tool in self.readers)

    def report(self) -> dict[str, Any]:
        """Return its figures as plain values."""
        tools = {
            tool: {
                **{one.name: getattr(use, one.name) for one in fields(use)},
                "reads_file": self.readers.get(tool),
            }
            for tool, use in self.uses.items()
        }
        answer = verdict(self.preset, self.figures)
        return {"answer": answer, "tools": tools, **outcome_report(self.so_far)}


def _used(
    policy: LoadedPolicy, recording: Recording, path: str
) -> tuple[dict[str, ToolUse], Figures]:
    """Replay one recording; return the use of its tools, and its figures."""
    common, uses = Common(recording), defaultdict[str, ToolUse](ToolUse)
    session = simulated(recording, compiled(policy), path=path, excerpt=_EXCERPT, common=common)
    for item in session.items:
        if item.tool and item.item_type == "tool_result":
            uses[item.tool].results += 1
            uses[item.tool].tokens += item.tokens
        elif item.tool and item.item_type == "tool_call":
            uses[item.tool].calls += 1
            uses[item.tool].paths.update(_path_fields(item.text, policy.policy))
    again = {(one.removal.part, one.removal.position) for one in session.regrets}
    for one in session.removals:
        if one.tool and one.item_type == "tool_result" and not one.action.takes_messages:
            uses[one.tool].left += 1
            uses[one.tool].freed += one.freed
            uses[one.tool].needed += (one.part, one.position) in again
    return dict(uses), figures_of(session, unedited=common.unedited)


def _path_fields(text: str, policy: OffloadPolicy) -> Iterator[str]:
    """Yield the fields of a call's input that known tools have for a path, and that hold one."""
    given: object = None
    with suppress(ValueError, RecursionError):
        given = json.loads(text)
    if isinstance(given, dict):
        known = {name for rule in policy.tools.values() for name in rule.reads_file or ()}
        for name in known & given.keys():
            if isinstance(given[name], str) and _PATH.search(given[name]):
                yield name


def _fitted(name: str, preset: str, found: Sequence[RecordingFile], jobs: int) -> Fitted:
    """Replay sessions under a preset, and return the policy for their tools.

    Raises `InputError` where no session has a result of a tool.
    """
    loaded = replay_policy(preset)
    so_far: _Replayed
    with executor(jobs, None) as workers:
        so_far = gathered(found, partial(_used, loaded), workers)
    figures = total(each for _, each in so_far.results)
    so_far.calls = figures.calls
    if so_far.is_interrupted or not so_far.calls:
        tell(so_far)
        raise typer.Exit(so_far.exit_code)
    uses = defaultdict[str, ToolUse](ToolUse)
    for each, _ in so_far.results:
        for tool, use in each.items():
            uses[tool] += use
    if not any(use.results for use in uses.values()):
        raise InputError("no session has a tool result, so no policy can be written")
    heaviest = dict(sorted(uses.items(), key=lambda one: -one[1].tokens))
    found_fields = {tool: use.read_field(tool, loaded.policy) for tool, use in heaviest.items()}
    readers = {tool: path for tool, path in found_fields.items() if path}
    return Fitted(name, preset, figures, so_far, heaviest, readers)
