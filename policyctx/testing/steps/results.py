"""Then: what is reported of an event and of its gates, and how it fails."""

from policyctx.planning.gates import GateVerdict
from policyctx.testing.contents import compact
from policyctx.testing.failures import OutcomeError
from policyctx.testing.kinds import Amount
from policyctx.testing.selecting import Fate
from policyctx.testing.step_definitions import then
from policyctx.testing.world import World


@then(
    "{amount:amount} character(s) (is|are) freed( {net=net of placeholders})",
    "2500 characters are freed",
    "no characters are freed",
    "at least 1,400 characters are freed net of placeholders",
)
def _(policyctx_world: World, amount: Amount, net: str = "") -> None:
    """The characters newly offloaded, `Result.freed_chars`, or less their placeholders,
    `Result.net_freed_chars`.
    """
    world = policyctx_world
    found = world.result.net_freed_chars if net else world.outcome.freed_chars
    if not amount.holds_for(found):
        raise OutcomeError(f"{amount} characters", f"{found:,}", policyctx_world.fates)


@then(
    "the result reports {amount:amount} offloaded item(s)",
    "the result reports 2 offloaded items",
    "the result reports no offloaded item",
)
def _(policyctx_world: World, amount: Amount) -> None:
    """`Result.offloaded_count` and the length of `Result.files`."""
    result = policyctx_world.outcome
    for found in (result.offloaded_count, len(result.files)):
        if not amount.holds_for(found):
            raise OutcomeError(f"{amount} items", f"{found:,}", policyctx_world.fates)


@then("{amount:amount} warning(s) (is|are) given", "1 warning is given", "no warning is given")
def _(policyctx_world: World, amount: Amount) -> None:
    """In `Result.warnings`."""
    warnings = policyctx_world.outcome.warnings
    if not amount.holds_for(len(warnings)):
        raise OutcomeError(f"{amount} warnings", "\n".join(warnings) or "none")


@then(
    "the request is {fate=sent again|not sent again}",
    "the request is sent again",
    "the request is not sent again",
)
def _(policyctx_world: World, fate: str) -> None:
    """Again if the steps with `on: overflow` have made the refused prompt shorter."""
    found = "sent again" if policyctx_world.sent_again else "not sent again"
    if found != fate:
        raise OutcomeError(fate, found)


@then("a warning says {text:text}", 'a warning says "No space left"')
def _(policyctx_world: World, text: str) -> None:
    """One of them has these words."""
    warnings = policyctx_world.outcome.warnings
    if not any(text in warning for warning in warnings):
        raise OutcomeError(f"a warning with {text!r}", "\n".join(warnings) or "no warning")


@then(
    "it fails with (a|an) {name:name}( that says {text:text})( because of (a|an) {cause:name})",
    "it fails with a StoreError",
    'it fails with a StoreError that says "cannot be written" because of a ConnectionError',
    'it fails with a StoreError that says "No space left"',
)
def _(policyctx_world: World, name: str, text: str = "", cause: str = "") -> None:
    """The last event raised this error, of `policyctx.errors`; its text has these words, and its
    `__cause__` is of this class. An error that no step expects fails the scenario.
    """
    error = policyctx_world.turns[-1].error if policyctx_world.turns else None
    wanted = f"{name} with {text!r}" if text else name
    if error is None:
        raise OutcomeError(wanted, "no error")
    names = [kind.__name__ for kind in type(error).__mro__]
    if name not in names or text not in str(error):
        raise OutcomeError(wanted, f"{type(error).__name__}: {error}")
    if cause and type(error.__cause__).__name__ != cause:
        raise OutcomeError(f"{wanted} because of {cause}", f"because of {error.__cause__!r}")
    policyctx_world.error_is_known = True


@then(
    "the gate {gate:name} of the step {step:name} {state=opens|stays closed}"
    "( because {reason:text})",
    'the gate "ratio" of the step "offload-tool-results" opens',
    'the gate "ratio" of the step "offload-tool-results" stays closed because "nothing selected"',
)
def _(policyctx_world: World, gate: str, step: str, state: str, reason: str = "") -> None:
    """In the last event; the reason's words are those in the plan."""
    plan = policyctx_world.last.plan
    verdicts = plan.gates if plan is not None else ()
    found = [v for v in verdicts if (v.gate, v.step) == (gate, step)]
    told = "\n".join(map(_told, found or verdicts)) or "no gate was asked"
    wanted = f"the gate {gate} of the step {step} {state}"
    holds = [v.opens == (state == "opens") and reason in v.sentence for v in found]
    if not holds or not all(holds):
        raise OutcomeError(f"{wanted} {reason and f'because {reason}'}".strip(), told)


def _told(verdict: GateVerdict) -> str:
    opens = "opens" if verdict.opens else "stays closed"
    return f"{verdict.gate} of {verdict.step} {opens}: {verdict.sentence}"


@then("the characters freed, net of placeholders, add up")
def _(policyctx_world: World) -> None:
    """`Result.net_freed_chars`, or `freed_chars` of `offload_tool_result`, is the length of the
    originals less that of their placeholders.
    """
    turn = policyctx_world.last
    net, concerned = 0, [fate for fate in turn.fates if fate.is_new or turn.returned is not None]
    for fate in concerned:
        if (left := _left_in_place(policyctx_world, fate)) is not None:
            has_media = fate.item.media and not isinstance(fate.original, str)
            net += len(compact(fate.original) if has_media else fate.original_text) - len(left)
    returned = turn.returned
    found = policyctx_world.result.net_freed_chars if returned is None else returned.freed_chars
    if not net or found != net:
        raise OutcomeError(f"{net:,} characters", f"{found:,}", concerned)


def _left_in_place(world: World, fate: Fate) -> str | None:
    """Return the placeholder of an item that was offloaded, None for any other."""
    if fate.turn.returned is not None:
        return str(world.text_now(fate)) if fate.state == "offloaded" else None
    return None if fate.decision is None else fate.decision.placeholder
