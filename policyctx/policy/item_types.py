"""What item types are to one another, and which of them a step never takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.models.rules import BUILT_IN_TYPES, ItemRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.policy.models import Step

# The built-in types that are another one, seen more closely.
_PARENTS = {"recalled": "tool_result"}
# What a type says where a policy says nothing nearer: what an agent read back it still needs.
TYPE_DEFAULTS = {"recalled": ItemRule.model_validate({"keep_recent": 3})}

# What no step takes, with why: the rules, the summary that stands for the history, and what is
# not understood.
NEVER_TAKEN = {
    "system_prompt": "the system prompt stays",
    "compaction_summary": "the summary stays until the next compaction",
    "unknown": "a block of a kind not known here stays",
}
# What no text can stand in the place of.
NEVER_REPLACED = {**NEVER_TAKEN, "thinking": "the bytes of thinking are signed"}


def parent(item_type: str, items: Mapping[str, ItemRule]) -> str | None:
    """Return the type that this one refines, None for one that refines none."""
    if item_type in BUILT_IN_TYPES:
        return _PARENTS.get(item_type)
    rule = items.get(item_type)
    return rule.match.type if rule is not None and rule.match is not None else None


def lineage(item_type: str, items: Mapping[str, ItemRule]) -> tuple[str, ...]:
    """Return the type, then the types that it refines, the nearest first.

    The last one is what an item is by itself. `items` are the policy's.
    """
    found = [item_type]
    while (refined := parent(found[-1], items)) is not None:
        found.append(refined)
    return tuple(found)


def why_never(step: Step, of_type: Sequence[str]) -> str | None:
    """Return why the step takes no item of a type, whatever its rules; None where it may.

    `of_type` is the type's lineage.
    """
    never = NEVER_TAKEN if step.do == "drop" else NEVER_REPLACED
    if of_type[-1] in never:
        return never[of_type[-1]]
    if step.on == "arrival" and "recalled" in of_type:
        return "what was read back is not taken on arrival"
    return None
