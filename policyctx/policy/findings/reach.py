"""What a step can reach: the item types that it selects, and why it can take none of one.

Only the policy is asked; what code adds to it at run time is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.policy.findings.globs import is_exact, is_name_left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.findings.checked import Checked
    from policyctx.policy.findings.globs import Globs
    from policyctx.policy.models import Step

NOT_OFFLOADED = "nothing says `offload: true`"

_NEVER = frozenset({"system_prompt", "compaction_summary"})
# What is no text of its own that a placeholder could stand for, or is signed.
NEVER_REPLACED = _NEVER | {"thinking", "tool_call", "image", "document"}
WITHOUT_TOOL = frozenset(
    {"system_prompt", "user_message", "assistant_message", "thinking", "compaction_summary"}
)


def selected_types(checked: Checked, step: Step) -> list[str]:
    """Return the item types that the step names, or whose parent it names."""
    named = step.select.types
    if named is None:
        named = tuple(name for name, rule in checked.policy.items.items() if rule.offload)
    return names_among(checked, named)


def names_among(checked: Checked, named: tuple[str, ...]) -> list[str]:
    """Return all types that a list of types speaks of, refinements included."""
    wanted = set(named)
    return [t for t in checked.types if wanted & {"*", t, checked.parent(t)}]


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
    if checked.parent(item_type) in WITHOUT_TOOL:
        return False
    return checked.answered(("left", groups), lambda: is_name_left(groups))


def tool_groups(checked: Checked, step: Step, item_type: str) -> tuple[Globs, ...]:
    """Return the groups of globs of which a candidate's tool matches one each."""
    rule = checked.policy.items.get(item_type)
    of_type = rule.match.tool if rule and rule.match else None
    return tuple(group for group in (step.select.tools, of_type) if group is not None)


def refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    """Return why the step can take no item of a type that it selects, None when it can."""
    return checked.answered(
        ("refusal", step.name, item_type), lambda: _refusal(checked, step, item_type)
    )


def _refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    kind = checked.parent(item_type)
    rule = checked.policy.items.get(item_type)
    if kind in (_NEVER if step.do == "drop" else NEVER_REPLACED):
        return f"`{step.do}` never takes it"
    if step.on == "arrival" and kind == "recalled":
        return "it is never taken on arrival"
    if rule and rule.match and rule.match.error and not step.select.errors:
        return "`errors: false` leaves failed results"
    if not may_meet(checked, step, item_type):
        return "`tools` selects none of its tools"
    return _refused_by_rules(checked, step, item_type)


def _refused_by_rules(checked: Checked, step: Step, item_type: str) -> str | None:
    wanted, unwanted = tool_groups(checked, step, item_type), step.select.except_tools
    if step.do != "drop":
        offload = nearest(checked, item_type, "offload")
        allowed, refused = _tools_with(checked, offload=True), _tools_with(checked, offload=False)
        if offload is False:
            return "it has `offload: false`"
        if offload is None and (not allowed or checked.parent(item_type) in WITHOUT_TOOL):
            return NOT_OFFLOADED
        wanted = wanted if offload else (*wanted, allowed)
        unwanted = (*unwanted, *refused)
    if not wanted and not nearest(checked, item_type, "pin"):
        return None
    if checked.parent(item_type) in WITHOUT_TOOL:
        return "it is pinned"
    if not is_name_left(wanted, unwanted):
        return "no tool is left of those selected"
    return None if _is_unpinned_left(checked, item_type, wanted, unwanted) else "it is pinned"


def _is_unpinned_left(
    checked: Checked, item_type: str, wanted: tuple[Globs, ...], unwanted: Globs
) -> bool:
    """Is a tool left whose nearest `pin` is not true."""
    nearer: Globs = ()
    for glob, pin in ranked(checked, "pin"):
        if not pin and is_name_left((*wanted, (glob,)), (*unwanted, *nearer)):
            return True
        nearer = (*nearer, glob)
    pinned = nearest(checked, item_type, "pin")
    return not pinned and is_name_left(wanted, (*unwanted, *nearer))


def nearest(checked: Checked, item_type: str, key: str) -> Any:  # noqa: ANN401 - any key's value
    """Return what a type, else the one that it refines, gives for a key, None for nothing."""
    for name in (item_type, checked.parent(item_type)):
        rule = checked.policy.items.get(name)
        if rule is not None and (value := getattr(rule, key)) is not None:
            return value
    return None


def ranked(checked: Checked, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the tools that give the key, and its value: exact names first, then globs in order."""
    tools = checked.policy.tools
    for glob in sorted(tools, key=lambda glob: not is_exact(glob)):
        if (value := getattr(tools[glob], key)) is not None:
            yield glob, value


def _tools_with(checked: Checked, *, offload: bool) -> Globs:
    return tuple(glob for glob, value in ranked(checked, "offload") if value is offload)
