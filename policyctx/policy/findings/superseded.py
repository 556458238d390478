"""Steps that come too late: one before them, without a gate, has taken all that they could."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from policyctx.policy.globs import MOST_COMPARED, is_name_left
from policyctx.policy.reach import nearest, selected_types, taken_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import KeepRecent, Step, Threshold
    from policyctx.policy.values import Share


def superseded_steps(checked: Checked) -> Iterator[Diagnostic]:
    """PC301, for an `offload` or `clear` after one that always takes as much or more."""
    steps = [(path, step) for path, step in checked.steps if step.do in {"offload", "clear"}]
    for i, (path, step) in enumerate(steps[:MOST_COMPARED]):
        if not taken_types(checked, step):
            continue
        for _, earlier in steps[:i]:
            if _supersedes(checked, earlier, step):
                sentence = (
                    f"step {step.name!r} can never take anything: {earlier.name!r}, before it and "
                    "without a gate, takes all that it selects"
                )
                hint = f"put it before {earlier.name!r}, or remove it"
                yield checked.warning("PC301", (*path, "name"), sentence, hint)
                break


def _supersedes(checked: Checked, earlier: Step, step: Step) -> bool:
    one, other = earlier.select, step.select
    return (
        earlier.on == step.on
        and not earlier.when
        and not one.until
        and one.errors >= other.errors
        and one.ephemeral <= other.ephemeral
        and set(taken_types(checked, step)) <= set(selected_types(checked, earlier))
        and _takes_as_many_tools(earlier, step)
        and _keeps_no_more(checked, earlier, step)
        and _is_as_low(checked, earlier, step)
        and _shrinks_as_often(checked, earlier, step)
    )


def _takes_as_many_tools(earlier: Step, step: Step) -> bool:
    one, other = earlier.select, step.select
    within = () if other.tools is None else (other.tools,)
    if one.tools is not None and (not within or is_name_left(within, one.tools)):
        return False
    return not is_name_left((*within, one.except_tools), other.except_tools)


def _keeps_no_more(checked: Checked, earlier: Step, step: Step) -> bool:
    """Does `keep_recent` leave nothing to the later step.

    Who is recent depends on all candidates, so only the same candidates keep the same.
    """
    if step.on == "arrival" or not any(map(_keeps_any, _recencies(checked, earlier))):
        return True
    one, other = earlier.select, step.select
    same_types = selected_types(checked, earlier) == selected_types(checked, step)
    return same_types and one.tools == other.tools and one.keep_recent == other.keep_recent


def _recencies(checked: Checked, step: Step) -> Iterator[KeepRecent]:
    """Every `keep_recent` that may hold for a candidate of the step."""
    if (own := step.select.keep_recent) is not None:
        yield own
        return
    of_types = (nearest(checked, t, "keep_recent") for t in selected_types(checked, step))
    of_tools = (tool.keep_recent for tool in checked.policy.tools.values())
    yield from (keep for keep in (*of_types, *of_tools) if keep is not None)


def _keeps_any(keep: KeepRecent) -> bool:
    return any((keep.items, keep.messages, keep.turns, keep.tokens))


def _is_as_low(checked: Checked, earlier: Step, step: Step) -> bool:
    """Is every threshold of the earlier step as low as any of the later one."""
    if _amount(earlier.select) is None and _amount(step.select) is None:
        return True
    return all(
        low == 0 or (unit == other_unit and checked.tokens(low) <= checked.tokens(high))
        for (low, unit), (high, other_unit) in product(
            _thresholds(checked, earlier), _thresholds(checked, step)
        )
    )


def _thresholds(checked: Checked, step: Step) -> list[tuple[int | Share, str]]:
    if (own := _amount(step.select)) is not None:
        return [own]
    policy = checked.policy
    rules = map(_amount, (*policy.items.values(), *policy.tools.values()))
    return [*filter(None, rules), _amount(policy) or (0, "tokens")]


def _amount(level: Threshold) -> tuple[int | Share, str] | None:
    if level.min_chars is not None:
        return level.min_chars, "chars"
    return None if level.min_tokens is None else (level.min_tokens, "tokens")


def _shrinks_as_often(checked: Checked, earlier: Step, step: Step) -> bool:
    """Does the size of placeholders leave nothing to the later step.

    Of a call only what is longer than the placeholder gives way, whether or not the step must
    shrink. Where sizes matter, both have the same wording, in the same unit.
    """
    if not earlier.must_shrink and "tool_call" not in map(checked.kind, taken_types(checked, step)):
        return True
    units = [amount and amount[1] for amount in (_amount(earlier.select), _amount(step.select))]
    return (
        step.must_shrink >= earlier.must_shrink
        and earlier.do == step.do
        and earlier.placeholder == step.placeholder
        and units[0] == units[1]
    )
