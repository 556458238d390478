"""The files that `policyctx init` writes: a policy to start from, and who runs under it.

Every setting is shown as it is now, commented out by a single `#`; prose has two.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

from policyctx.cli.output import json_text
from policyctx.policy.models import Model
from policyctx.policy.models.placeholder import DEFAULT
from policyctx.policy.models.store import Store
from policyctx.policy.showing import resolved_yaml
from policyctx.policy.sources import PolicySource
from policyctx.policy.yaml_reader import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.nodes import Node

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
