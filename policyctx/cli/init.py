"""`policyctx init`: a policy to start from, and a `policyctx.yaml` that names it."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from policyctx.cli.output import Directory, console, json_text
from policyctx.definitions.actions import DEFAULT
from policyctx.errors import Diagnostic, Location, PolicyError, StoreError
from policyctx.policy.diagnosing import hint
from policyctx.policy.loading import extended
from policyctx.policy.meant import resolved_yaml
from policyctx.policy.models import Model
from policyctx.policy.models.steps import Store
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.sources import AGENTS_FILE, PolicySource, policy_source, preset_names

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


def starter_policy(name: str, preset: str, tree: Node) -> str:
    """Return a policy that extends `preset`, whose resolved tree is `tree`.

    With all of its settings taken in it says what the preset says, and what is shown of `tools`
    as an example where the preset has none.
    """
    says = tree.plain()
    head = f"""\
## All that the preset {preset} says, and what you change here.
## Lines with a single # are settings as they are now; to change one, take away its #.
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
            "The pipeline. A step of a known name replaces that step; a new one goes to the end."
        )
        yield _setting(prose, "steps", says["steps"])


def _setting(prose: str, key: str, value: object) -> str:
    """A key that is commented out, below what it does."""
    lines = _yaml({key: value}).splitlines()
    commented = "\n".join(f"# {line}".rstrip() for line in lines)
    return f"{indent(prose, '## ')}\n{commented}\n"


def _yaml(keys: dict[str, object]) -> str:
    return resolved_yaml(read_yaml(PolicySource("starter", json_text(keys))))


def init(
    preset: Annotated[
        str, typer.Argument(metavar="PRESET", help="The preset that the policy builds on.")
    ] = "coding-agent",
    name: Annotated[
        str, typer.Option(help="What the policy is called; its file is NAME.yaml.")
    ] = "policy",
    directory: Directory = Path(),
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
    policy, agents = directory / f"{name}.yaml", directory / AGENTS_FILE
    files = {policy: starter_policy(name, preset, extended(policy_source(preset), {}).root)}
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
    presets = preset_names()
    if preset not in presets:
        likely = hint(preset, presets)
        known = f"the presets are {', '.join(presets)}"
        said = f"{likely} T{known[1:]}" if likely else known
        raise PolicyError([Diagnostic(Location(preset or "''"), "PC001", "no such preset", said)])


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        wanted = "expected a-z, 0-9, _ and -, with a letter or digit first"
        raise typer.BadParameter(f"{wanted}, got {name!r}", param_hint="--name")
    if f"{name}.yaml".lower() == AGENTS_FILE:
        raise typer.BadParameter(f"{AGENTS_FILE} is the file of agents", param_hint="--name")


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
    out = console()
    for verb, paths in (("wrote", new), ("replaced", replaced)):
        if paths:
            out.print(f"{verb} {_listed(paths)}", soft_wrap=True)
    name = shlex.quote(str(policy))
    out.print("\nTry next:", style="bold")
    out.print(f"  policyctx check {name}", soft_wrap=True)
    out.print(f"  policyctx plan {name} MESSAGES", soft_wrap=True)


def _show_how_to_add(agents: Path, name: str) -> None:
    """Show the lines that run an agent under the policy, for a file that is left as it is."""
    out = console()
    out.print(f"\n{agents} is left as it is. To run an agent under the policy, add to it:")
    out.print(f'  agents:\n    "{name}": ./{name}.yaml', soft_wrap=True)


def _listed(paths: Iterable[Path]) -> str:
    return " and ".join(map(str, paths))
