"""Then: what the gates of steps said, and sums net of placeholders."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from policyctx.testing.defining import then
from policyctx.testing.failures import OutcomeError
from policyctx.testing.filler import compact

if TYPE_CHECKING:
    from policyctx.testing.kinds import Amount
    from policyctx.testing.world import World


class _Verdict(Protocol):
    """What a plan records of one gate."""

    step: str
    gate: str
    opens: bool
    sentence: str


_net_freed_chars = attrgetter("net_freed_chars")


@then(
    "the gate {gate:name} of the step {step:name} {state=opens|stays closed}"
    "( because {reason:text})",
    'the gate "ratio" of the step "offload-tool-results" opens',
    'the gate "ratio" of the step "offload-tool-results" stays closed because "nothing selected"',
)
def _(policyctx_world: World, gate: str, step: str, state: str, reason: str = "") -> None:
    """What a gate of the last event compared, and whether its step ran; the words of its reason
    are those that the plan records.
    """
    verdicts: tuple[_Verdict, ...] = getattr(policyctx_world.last.plan, "gates", ())
    found = [v for v in verdicts if (v.gate, v.step) == (gate, step)]
    told = "\n".join(map(_told, found or verdicts)) or "no gate was asked"
    wanted = f"the gate {gate} of the step {step} {state}"
    holds = [v.opens == (state == "opens") and reason in v.sentence for v in found]
    if not holds or not all(holds):
        raise OutcomeError(f"{wanted} {reason and f'because {reason}'}".strip(), told)


def _told(verdict: _Verdict) -> str:
    opens = "opens" if verdict.opens else "stays closed"
    return f"{verdict.gate} of {verdict.step} {opens}: {verdict.sentence}"


@then(
    "{amount:amount} characters are freed net of placeholders",
    "at least 1,400 characters are freed net of placeholders",
)
def _(policyctx_world: World, amount: Amount) -> None:
    """`Result.net_freed_chars`: the same less what the placeholders take."""
    found = _net_freed_chars(policyctx_world.result)
    if not amount.holds_for(found):
        raise OutcomeError(f"{amount} characters", f"{found:,}", policyctx_world.fates)


@then(
    "the characters freed, net of placeholders, add up",
    "the characters freed, net of placeholders, add up",
)
def _(policyctx_world: World) -> None:
    """`Result.net_freed_chars` is what the originals have less what their placeholders have."""
    fates = [fate for fate in policyctx_world.last.fates if fate.is_new]
    net = 0
    for fate in fates:
        if fate.decision is not None and fate.decision.placeholder is not None:
            original = fate.original
            text = original if isinstance(original, str) else compact(original)
            net += len(text) - len(fate.decision.placeholder)
    found = _net_freed_chars(policyctx_world.result)
    if not net or found != net:
        raise OutcomeError(f"{net:,} characters", f"{found:,}", fates)
