"""The edits of Anthropic's `context_management`, read strictly from JSON.

The keys are those of the types of the beta API in Anthropic's Python SDK; a test compares them with
the installed SDK. Defaults and the least trigger of a compaction are those of Anthropic's
documentation, since the types do not say them.
"""

import re
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, Strict, ValidationError

from policyctx.definitions.items import HostObject
from policyctx.errors import Diagnostic, PolicyError
from policyctx.policy.diagnosing import hint, in_order, not_one_of, shown_node
from policyctx.policy.models.base import Count, Section
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.sources import PolicySource

LEAST_COMPACTION_TRIGGER = 50_000
"""Input tokens; the server takes no compaction with a lower trigger."""

# An escaped pair of surrogates, or any other escape of JSON.
_ESCAPES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\.")

TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,256}")
"""What the name of a tool consists of. A policy would read another text as a glob or a variable."""
ToolName = Annotated[str, Field(pattern=f"^{TOOL_NAME.pattern}$")]
ToolNames = Annotated[tuple[ToolName, ...], Strict(strict=False)]


class InputTokens(Section):
    """A number of input tokens."""

    type: Literal["input_tokens"]
    value: Count


class ToolUses(Section):
    """A number of tool uses."""

    type: Literal["tool_uses"]
    value: Count


class ThinkingTurns(Section):
    """A number of assistant turns with thinking."""

    type: Literal["thinking_turns"]
    value: Annotated[int, Field(gt=0)]


class AllThinking(Section):
    """All turns with thinking."""

    type: Literal["all"]


class ClearToolUses(Section):
    """Clears the oldest tool results once the prompt is over the trigger."""

    type: Literal["clear_tool_uses_20250919"]
    trigger: Annotated[InputTokens | ToolUses, Field(discriminator="type")] = InputTokens(
        type="input_tokens", value=100_000
    )
    keep: ToolUses = ToolUses(type="tool_uses", value=3)
    clear_at_least: InputTokens | None = None
    clear_tool_inputs: bool | ToolNames | None = None
    exclude_tools: ToolNames | None = None


class ClearThinking(Section):
    """Clears the thinking of all but the newest turns. Without `keep` the model decides."""

    type: Literal["clear_thinking_20251015"]
    keep: (
        Annotated[ThinkingTurns | AllThinking, Field(discriminator="type")] | Literal["all"] | None
    ) = None


class Compact(Section):
    """Replaces the conversation by a summary once the prompt is over the trigger."""

    type: Literal["compact_20260112"]
    trigger: InputTokens | None = None
    instructions: str | None = None
    pause_after_compaction: bool | None = None


Edit: TypeAlias = ClearToolUses | ClearThinking | Compact
COMPACTION_TRIGGER = 150_000
"""Input tokens; the trigger of a `Compact` that names none."""
BETAS: dict[type[Section], str] = {
    ClearToolUses: "context-management-2025-06-27",
    ClearThinking: "context-management-2025-06-27",
    Compact: "compact-2026-01-12",
}
"""The value of `anthropic-beta` that a request with the edit needs."""


class ContextManagement(Section):
    """The value of `context_management` in a request."""

    edits: Annotated[
        tuple[Annotated[Edit, Field(discriminator="type")], ...], Strict(strict=False)
    ] = ()


def read_edits(source: PolicySource) -> tuple[tuple[Edit, Node], ...]:
    """Return each edit with the place where it stands.

    The text is the value of `context_management` as JSON or YAML, its list of edits, or a map that
    has it under this key, such as the body of a request. Raises `PolicyError` with every mistake.
    """
    root = read_yaml(PolicySource(source.name, _as_yaml(source.text), source.path))
    found = root.value.get("context_management", root) if root.is_map else root
    if isinstance(found.value, list):
        found = Node({"edits": found}, found.place)
    if not found.is_map:
        sentence = f"expected a map with `edits`, got {shown_node(found)}"
        raise PolicyError([Diagnostic(found.place, "PC103", sentence)])
    if "edits" not in found.value:
        sentence = "there are no `edits`, neither here nor under `context_management`"
        raise PolicyError([Diagnostic(found.place, "PC102", sentence)])
    try:
        read = ContextManagement.model_validate(found.plain())
    except ValidationError as error:
        raise PolicyError(in_order(_diagnostic(found, one) for one in error.errors())) from None
    return tuple(zip(read.edits, found.value["edits"].value, strict=True))


def _as_yaml(text: str) -> str:
    """Return JSON as YAML, which has no tabs between values and no surrogates in its escapes."""

    def character(escape: re.Match[str]) -> str:
        high, low = escape.groups()
        if high is None:
            return escape.group()
        return bytes.fromhex(high + low).decode("utf-16-be")

    return _ESCAPES.sub(character, text.replace("\t", " "))


def _diagnostic(root: Node, error: HostObject) -> Diagnostic:
    path, node = root.deepest(error["loc"])
    kind = error["type"]
    if kind == "extra_forbidden":
        known = _keys(error["loc"])
        likely = hint(path[-1], known) or f"the keys here are {', '.join(known)}"
        return Diagnostic(node.key or node.place, "PC101", f"unknown key {path[-1]!r}", likely)
    if kind in {"missing", "union_tag_not_found"}:
        key = "type" if kind == "union_tag_not_found" else error["loc"][-1]
        return Diagnostic(node.place, "PC102", f"the key {key!r} is missing")
    if kind == "union_tag_invalid":
        tags = error["ctx"]["expected_tags"].split(", ")
        return not_one_of(node.child("type") or node, [tag.strip("'") for tag in tags])
    sentence = error["msg"][:1].lower() + error["msg"][1:]
    return Diagnostic(node.place, "PC106", f"{sentence}, got {shown_node(node)}")


_EDITS = {get_args(edit.model_fields["type"].annotation)[0]: edit for edit in BETAS}


def _keys(place: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the map in which pydantic has found an unknown one."""
    *_, owner, _key = ("", *place)
    if owner == "":
        return [*ContextManagement.model_fields]
    # Below an edit every map has the same keys.
    return [*_EDITS.get(str(owner), InputTokens).model_fields]
