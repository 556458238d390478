"""How item types refine each other, and which rule applies to an item: the nearest one.

Each key is looked up on its own. After a step's `select` come the tool (its exact name, then globs
in the order written), the item type, the types that it refines, a hint from code, and the policy's
top level.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, TypeAlias, TypeVar

from policyctx.definitions.items import ITEM_TYPES, NEVER_REPLACED, NEVER_TAKEN, Item
from policyctx.policy.models import Policy, Step, ToolRule
from policyctx.policy.models.base import Section
from policyctx.policy.models.compaction import Compaction
from policyctx.policy.models.rules import ItemRule, Match, Placeholder, TextMatch

# The first part of the path of a rule that code gives, such as ("hints", "Read", "keep_recent").
HINTS = "hints"
# A key of the policy by its parts, such as ("tools", "mcp__*", "min_tokens"); a step by its name.
RulePath: TypeAlias = tuple[str, ...]
# A map of the policy that may give a rule key, and where it stands.
Level: TypeAlias = tuple[RulePath, Any]
S = TypeVar("S", bound="Section")


@cache
def type_default(item_type: str) -> ItemRule | None:
    """Return what a built-in type says where a policy says nothing nearer, if anything."""
    found = ITEM_TYPES.get(item_type)
    if found is None or found.keep_recent is None:
        return None
    return ItemRule.model_validate({"keep_recent": found.keep_recent})


def parent(item_type: str, items: Mapping[str, ItemRule]) -> str | None:
    """Return the type that this one refines, None for one that refines none."""
    if (built_in := ITEM_TYPES.get(item_type)) is not None:
        return built_in.refines
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


class TypeTable:
    """The policy's own types, by the built-in type that they refine, tried in the order written."""

    def __init__(self, items: Mapping[str, ItemRule]) -> None:
        self._items = items
        self._refinements: dict[str, list[tuple[str, Match]]] = {}
        for name, rule in items.items():
            if rule.match is not None:
                self._refinements.setdefault(rule.match.type, []).append((name, rule.match))

    def lineage(self, item_type: str) -> tuple[str, ...]:
        """Return the type, then the types that it refines, the nearest first."""
        return lineage(item_type, self._items)

    def refining(self, built_in: str, tool: str | None) -> list[tuple[str, Match]]:
        """Return the policy's own types of a built-in type that items of a tool may have."""
        found = self._refinements.get(built_in, ())
        return [one for one in found if one[1].tool is None or matches(tool, one[1].tool)]


def is_of(match: Match, item: Item) -> bool:
    """Return whether an item of a tool that matches is of the policy's own type."""
    return (
        (match.role is None or item.role == match.role)
        and (match.error is None or item.error == match.error)
        and (match.media_type is None or matches(item.media_type, (match.media_type,)))
        and (match.text is None or _has(match.text, item.text))
    )


def _has(wanted: TextMatch, text: str) -> bool:
    return (
        (wanted.startswith is None or text.startswith(wanted.startswith))
        and (wanted.endswith is None or text.endswith(wanted.endswith))
        and (wanted.contains is None or any(part in text for part in wanted.contains))
    )


def why_never(step: Step, of_type: Sequence[str]) -> str | None:
    """Return why a step takes no item of a type, by its lineage `of_type`; None where it may."""
    never = NEVER_TAKEN if step.action.leaves_nothing else NEVER_REPLACED
    if of_type[-1] in never:
        return never[of_type[-1]]
    if step.on == "arrival":
        built_in = (ITEM_TYPES[name] for name in of_type if name in ITEM_TYPES)
        return next(filter(None, (it.never_on_arrival for it in built_in)), None)
    return None


def levels(
    policy: Policy, lineage: Sequence[str], tool: str | None, *, hint: ToolRule | None = None
) -> list[Level]:
    """Return the maps that may give a key for items of a type and tool, nearest first.

    `lineage` is the type, then the types that it refines; `hint` what code says of the tool.
    """
    from_code: list[Level] = [] if hint is None else [((HINTS, tool or ""), hint)]
    return [*tool_levels(policy, tool), *type_levels(policy, lineage), *from_code, ((), policy)]


def tool_levels(policy: Policy, tool: str | None) -> list[Level]:
    """Return the rules for this tool, nearest first: the exact name, then globs in order."""
    tools = policy.tools
    matching = [] if tool is None else [g for g in tools if g != tool and matches(tool, [g])]
    if tool in tools:
        matching.insert(0, tool)
    return [(("tools", glob), tools[glob]) for glob in matching]


def type_levels(policy: Policy, lineage: Sequence[str]) -> list[Level]:
    """Return the rules for a type, nearest first: its own, then those of the types it refines."""
    found: list[Level] = []
    for name in lineage:
        rules = policy.items.get(name), type_default(name)
        found += [(("items", name), rule) for rule in rules if rule is not None]
    return found


def nearest_given(given: Iterable[Level], key: str) -> tuple[Any, RulePath]:
    """Return the first value given for `key`, and its path; (None, the key) for none."""
    for path, level in given:
        if (value := getattr(level, key, None)) is not None:
            return value, (*path, key)
    return None, (key,)


def offload_given(given: Sequence[Level]) -> tuple[bool, RulePath]:
    """Return whether items may be replaced: `false` on a tool or on the nearest type is absolute.

    Else the nearest value; without one they may not.
    """
    of_tools = [found for level in given if level[0][:1] == ("tools",) for found in _given(level)]
    of_type = nearest_given([level for level in given if level[0][:1] == ("items",)], "offload")
    from_code = [f for level in given if level[0][:1] in {(), (HINTS,)} for f in _given(level)]
    typed = [] if of_type[0] is None else [of_type]
    refused = next((path for value, path in (*of_tools, *typed) if value is False), None)
    if refused is not None:
        return False, refused
    value, path = next(iter((*of_tools, *typed, *from_code)), (False, ("offload",)))
    return bool(value), path


def wording(policy: Policy, step: Step, given: Sequence[Level]) -> Placeholder:
    """Return what a step leaves in an item's place."""
    found: Placeholder = step.placeholder or nearest_given(given, "placeholder")[0]
    return widest_wording(policy, step) if found is policy.placeholder else found


def widest_wording(policy: Policy, step: Step) -> Placeholder:
    """Return what a step leaves if no rule but the policy's top level gives a wording.

    If that gives none either, the action of the step may have a text of its own.
    """
    text = step.action.text
    if text is None or "placeholder" in policy.model_fields_set:
        return policy.placeholder
    return policy.placeholder.model_copy(update={"text": text})


def _given(level: Level) -> list[tuple[Any, RulePath]]:
    value, path = nearest_given([level], "offload")
    return [] if value is None else [(value, path)]


def matches(tool: str | None, globs: Iterable[str]) -> bool:
    """Does the tool's name match one of the globs; an item without a tool matches none."""
    return tool is not None and any(fnmatchcase(tool, glob) for glob in globs)


def compaction_of(policy: Policy, step: Step) -> Compaction:
    """Return the policy's `compaction` with the keys of a `compact` step's over it."""
    whole, own = policy.compaction, step.compaction
    return whole if own is None else _over(whole, own)


def _over(base: S, own: S) -> S:
    changes = {key: getattr(own, key) for key in own.model_fields_set}
    for key, value in changes.items():
        below = getattr(base, key)
        if hasattr(value, "model_fields_set") and below is not None and key != "keep_recent":
            changes[key] = _over(below, value)
    return base.model_copy(update=changes)
