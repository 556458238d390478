"""Why a policy took nothing from a recording, in a few words."""

from collections import Counter
from collections.abc import Sequence

from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan

_RESULT = "tool_result"
_RECENT = frozenset({"recent", "batch_recent"})


def why_untouched(plans: Sequence[Plan]) -> str:
    """Return why nothing was removed, as of the last plan of each list of a session.

    The same reason is the same text in every session, so that reasons can be counted.
    """
    if not any(plan.conversation.policy.all_steps for plan in plans):
        return "the policy has no step"
    results = [item for plan in plans for item in plan.items if item.kind == _RESULT]
    kept = [decision for plan in plans for decision in plan.decisions]
    of_results = [decision for decision in kept if decision.item.kind == _RESULT]
    if not results and all(decision.reason.code == "gate_closed" for decision in kept):
        return "no tool result is sent to a model"
    return _why_kept(of_results or kept, "result" if of_results else "item")


def _why_kept(kept: Sequence[Decision], what: str) -> str:
    reasons = Counter(decision.reason.code for decision in kept)
    small = next((d.reason for d in kept if d.reason.code == "below_threshold"), None)
    others = set(reasons) - {"below_threshold"}
    if small is not None and not others:
        return f"every {what} is below min_{small.values['unit']}"
    if "gate_closed" in others:
        return "the gate of every step that selects items stayed closed"
    if others and others <= _RECENT:
        large = "large " if small is not None else ""
        return f"keep_recent keeps every {large}{what}"
    if not kept:
        return "no step selects any item"
    [(code, _)] = reasons.most_common(1)
    return next(d.reason.sentence for d in kept if d.reason.code == code)
