"""What a step can reach: the item types that it selects, and why it can take none of one.

Only the policy is asked; what code adds to it at run time is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from policyctx.definitions.item_types import WITH_TOOL, WITHOUT_TOOL
from policyctx.policy.globs import is_exact, is_name_left
from policyctx.policy.lookup import Level, RulePath, nearest_given, type_levels, why_never

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from policyctx.policy.checked import Checked
    from policyctx.policy.globs import Globs
    from policyctx.policy.models import Step

NOT_OFFLOADED = "nothing says `offload: true`"


class ToolsLeft(NamedTuple):
    """The tools of which a step may take an item.

    Their names match a glob of each group `wanted`, and none of `unwanted`.
    """

    wanted: tuple[Globs, ...]
    unwanted: Globs


def selected_types(checked: Checked, step: Step) -> list[str]:
    """Return the item types that the step names, or that refine one that it names."""
    named = step.select.types
    if named is None:
        named = tuple(name for name, rule in checked.policy.items.items() if rule.offload)
    return names_among(checked, named)


def names_among(checked: Checked, named: tuple[str, ...]) -> list[str]:
    """Return all types that a list of types speaks of, refinements included."""
    return [t for t in checked.types if not {"*", *checked.lineage(t)}.isdisjoint(named)]


def outermost(checked: Checked, types: Collection[str]) -> list[str]:
    """Return the types without those that refine another of them, for people to read."""
    return [t for t in types if set(checked.lineage(t)).isdisjoint({*types} - {t})]


def taken_types(checked: Checked, step: Step) -> list[str]:
    """Return the item types of which the step may take one."""
    types = selected_types(checked, step)
    return checked.answered(
        ("taken", step.name), lambda: [t for t in types if refusal(checked, step, t) is None]
    )


def may_meet(checked: Checked, step: Step, item_type: str, tool: str | None = None) -> bool:
    """May an item of this type (and of a tool that matches `tool`) be a candidate of the step."""
    groups = tool_groups(checked, step, item_type)
    if tool is not None:
        groups = (*groups, (tool,))
    if not groups:
        return True
    if checked.kind(item_type) in WITHOUT_TOOL:
        return False
    return checked.answered(("left", groups), lambda: is_name_left(groups))


def tool_groups(checked: Checked, step: Step, item_type: str) -> tuple[Globs, ...]:
    """Return the groups of globs of which a candidate's tool matches one each."""
    rule = checked.policy.items.get(item_type)
    of_type = rule.match.tool if rule and rule.match else None
    return tuple(group for group in (step.select.tools, of_type) if group is not None)


def tools_left(checked: Checked, step: Step, item_type: str) -> ToolsLeft:
    """Return the tools that are left to the step once every rule on them has been heard."""
    wanted, unwanted = tool_groups(checked, step, item_type), step.select.except_tools
    if step.action.is_bound_by_rules:
        unwanted = (*unwanted, *_tools_with(checked, offload=False))
        if nearest(checked, item_type, "offload") is None:
            wanted = (*wanted, _tools_with(checked, offload=True))
    return ToolsLeft(wanted, unwanted)


def refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    """Return why the step can take no item of a type that it selects, None when it can."""
    return checked.answered(
        ("refusal", step.name, item_type), lambda: _refusal(checked, step, item_type)
    )


def nearest(checked: Checked, item_type: str, key: str) -> Any:  # noqa: ANN401 - any key's value
    """Return what a type, else one that it refines, gives for a key, None for nothing."""
    return nearest_given(_type_levels(checked, item_type), key)[0]


def ranked(checked: Checked, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the tools that give the key, and its value: exact names first, then globs in order."""
    tools = checked.policy.tools
    for glob in sorted(tools, key=lambda glob: not is_exact(glob)):
        if (value := getattr(tools[glob], key)) is not None:
            yield glob, value


def rules_that_speak(
    checked: Checked, item_type: str, tools: ToolsLeft, key: str
) -> Iterator[tuple[RulePath, Any]]:
    """Yield each rule that is the nearest to give a key for an item of this type and such a tool.

    Each is yielded with what it gives; the value is None where no rule gives any.
    """
    wanted, unwanted = tools
    has_tool = checked.kind(item_type) in WITH_TOOL
    if checked.kind(item_type) not in WITHOUT_TOOL:
        for glob, value in ranked(checked, key):
            if is_name_left((*wanted, (glob,)), unwanted):
                yield ("tools", glob, key), value
            unwanted = (*unwanted, glob)
    if (not wanted and not has_tool) or is_name_left(wanted, unwanted):
        value, path = nearest_given([*_type_levels(checked, item_type), ((), checked.policy)], key)
        yield path, value


def _refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    rule = checked.policy.items.get(item_type)
    if (why := why_never(step, checked.lineage(item_type))) is not None:
        return why
    if rule and rule.match and rule.match.error and not step.select.errors:
        return "`errors: false` leaves failed results"
    if not may_meet(checked, step, item_type):
        return "`tools` selects none of its tools"
    return _refused_by_rules(checked, step, item_type)


def _refused_by_rules(checked: Checked, step: Step, item_type: str) -> str | None:
    is_without_tool = checked.kind(item_type) in WITHOUT_TOOL
    if step.action.is_bound_by_rules:
        offload = nearest(checked, item_type, "offload")
        if offload is False:
            return "it has `offload: false`"
        if offload is None and (is_without_tool or not _tools_with(checked, offload=True)):
            return NOT_OFFLOADED
    # Code speaks of tools only; to no other item can it give a `keep_recent`.
    is_aged = nearest(checked, item_type, "keep_recent") is not None
    if step.select.ephemeral and is_without_tool and not is_aged:
        return "nothing gives it a `keep_recent`"
    tools = tools_left(checked, step, item_type)
    if not tools.wanted and not nearest(checked, item_type, "pin"):
        return None
    if tools.wanted and not is_without_tool and not is_name_left(*tools):
        return "no tool is left of those selected"
    pins = [pin for _, pin in rules_that_speak(checked, item_type, tools, "pin")]
    return "it is pinned" if all(pins) else None


def _tools_with(checked: Checked, *, offload: bool) -> Globs:
    return tuple(glob for glob, value in ranked(checked, "offload") if value is offload)


def _type_levels(checked: Checked, item_type: str) -> list[Level]:
    return type_levels(checked.policy, checked.lineage(item_type))
