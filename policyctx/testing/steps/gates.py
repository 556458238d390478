"""Then: what the gates of steps said, and sums net of placeholders."""

from operator import attrgetter
from typing import Protocol

from policyctx.testing.contents import compact
from policyctx.testing.failures import OutcomeError
from policyctx.testing.kinds import Amount
from policyctx.testing.selecting import Fate
from policyctx.testing.step_definitions import then
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
    """`Result.net_freed_chars` is the length of the originals less that of their placeholders; of
    `offload_tool_result` it is `freed_chars`.
    """
    turn = policyctx_world.last
    net, concerned = 0, [fate for fate in turn.fates if fate.is_new or turn.returned is not None]
    for fate in concerned:
        left = _left_in_place(policyctx_world, fate)
        if left is not None:
            has_media = fate.item.media and not isinstance(fate.original, str)
            net += len(compact(fate.original) if has_media else fate.original_text) - len(left)
    returned = turn.returned
    found = _net_freed_chars(policyctx_world.result) if returned is None else returned.freed_chars
    if not net or found != net:
        raise OutcomeError(f"{net:,} characters", f"{found:,}", concerned)


def _left_in_place(world: World, fate: Fate) -> str | None:
    """Return the placeholder of an item that was offloaded, None for any other."""
    if fate.turn.returned is not None:
        return str(world.text_now(fate)) if fate.state == "offloaded" else None
    return None if fate.decision is None else fate.decision.placeholder
