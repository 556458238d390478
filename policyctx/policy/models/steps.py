"""The pipeline: which items a step takes, when, and what becomes of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from policyctx.definitions.actions import STEP_ACTIONS, Do
from policyctx.policy.derived import OfStep
from policyctx.policy.models.base import Names, Section
from policyctx.policy.models.compaction import Compaction
from policyctx.policy.models.gates import Untils, When
from policyctx.policy.models.placeholder import Wording
from policyctx.policy.models.rules import Globs, Recency, Threshold
from policyctx.policy.values import flag_globs_or_map

_ACTIONS = " ".join(f"`{do}`: {action.meaning}." for do, action in STEP_ACTIONS.items())


class WithInput(Section):
    """The inputs of calls that share the fate of their results."""

    short_form: ClassVar = "tools"

    tools: Annotated[Globs, Field(examples=["*", ["write_*"]])] = ("*",)
    """Those of tools whose name matches one of these globs."""
    leave: Literal["short_strings", "empty"] = "short_strings"
    """`short_strings`: a placeholder for each string that is longer than it; the input keeps its
    form. `empty`: nothing but `{}`, whatever the size of the input."""


class Select(Threshold):
    """Which items a step takes."""

    types: Annotated[Names | None, Field(examples=[["tool_result"], ["*"]])] = None
    """Item types, built-in or your own; `["*"]` is all. Default: all with `offload: true`."""
    tools: Annotated[Globs | None, Field(examples=["mcp__*", ["Read", "Grep"]])] = None
    """Only results and calls of tools whose name matches one of these globs."""
    except_tools: Annotated[Globs, Field(examples=["update_todo"])] = ()
    """Not those of tools whose name matches one of these globs."""
    errors: bool = True
    """`false` leaves failed results alone."""
    keep_recent: Annotated[Recency | None, Field(examples=[3, {"items": 5, "per": "all"}])] = None
    """Like the rule of this name, and nearer than it."""
    ephemeral: bool = False
    """Only items for which a type, a tool or code has set a `keep_recent`."""
    order: Literal["oldest", "largest", "by_type"] = "oldest"
    """Who goes first; `by_type` is in the order of `types`, the oldest of each first."""
    until: Annotated[Untils | None, Field(examples=[{"tokens": {"under": "60%"}}])] = None
    """Stop as soon as this holds."""
    unit: Literal["item", "message", "group", "turn"] = "item"
    """What leaves together, for `drop`: each item with its call or result, its whole message, the
    model's whole reply with the results of its calls (any other message is a group of its own), or
    its whole turn. A unit with something that must stay, stays."""
    with_input: Annotated[
        WithInput | None,
        BeforeValidator(flag_globs_or_map, json_schema_input_type=bool | Globs | WithInput | None),
        Field(examples=[True, ["write_*"], {"leave": "empty"}]),
    ] = None
    """The call's input shares its result's fate: always, for these tools, or as a map says; not for
    `drop`. Default: `false`."""


class Step(Section, OfStep):
    """One line of the pipeline."""

    # A file that extends another may take a step out by its name alone.
    model_config = ConfigDict(
        json_schema_extra={
            "required": ["name"],
            "if": {"properties": {"remove": {"const": True}}, "required": ["remove"]},
            "else": {"required": ["do"]},
        }
    )

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", max_length=60, examples=["retire"])]
    """Unique in the policy; `a-z`, `0-9` and `-`."""
    on: Literal["model_call", "arrival"] = "model_call"
    """`model_call`: before a model call, over the whole list. `arrival`: once for each new item."""
    do: Annotated[Do, Field(description=_ACTIONS)]
    select: Select = Select()
    """Which items; not for `compact`."""
    when: Annotated[When, Field(examples=[{"tokens": {"at_least": "80%"}}])] = ()
    """The gates: a map means all of them, a list of maps any."""
    placeholder: Annotated[Wording | None, Field(examples=["[Result in {path}]"])] = None
    """The wording of this step; not for `drop`."""
    must_shrink: bool = True
    """Leave an item alone whose placeholder would not be smaller."""
    compaction: Compaction | None = None
    """For `compact`: keys merged over the policy's `compaction`."""
    before: str | None = None
    """In a policy that extends another: the step before which this new one goes."""
    remove: bool = False
    """In a policy that extends another: take the step of this name out."""
