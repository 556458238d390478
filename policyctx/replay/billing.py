"""What a provider would have billed for the prompts of a replay, in its own tokens.

A recording shows the messages, and the usage of its responses shows what was billed for them:
with the provider's tokenizer, and with what no message shows. The recorded bill is taken as it is;
what a policy spared is taken off it, at the scale that the responses of the session teach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.tokens.correction import Correction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.replay.sent_list import Prompt
    from policyctx.replay.simulated import SimulatedCall


_UNTAUGHT = Correction()


class Size(NamedTuple):
    """A prompt in the provider's tokens, and how many at its beginning were sent before."""

    tokens: int
    shared: int


class BilledCall(NamedTuple):
    """A call with its two prompts as a provider would bill them."""

    call: SimulatedCall
    unedited: Size
    edited: Size
    idle: float | None
    """Seconds since the last call of the same language model; None where nobody knows."""


def billed_calls(calls: Sequence[SimulatedCall]) -> tuple[BilledCall, ...]:
    """Return the calls of one session as a provider would bill them.

    Without any usage the provider's tokens are taken to be the counted ones.
    """
    lines = _lines(calls)
    overheads: dict[str | None, float] = {}
    times: dict[str | None, float] = {}
    billed = []
    for call in calls:
        model = call.language_model
        line = lines[model]
        before = overheads.get(model, 0.0)
        if call.usage is not None and call.usage.prompt:
            overheads[model] = call.usage.prompt - line.scale * call.unedited.tokens
        elif model not in overheads:
            overheads[model] = line.overhead
        now = overheads[model]
        idle = None if call.at is None or model not in times else call.at - times[model]
        unedited = _size(call.unedited, line.scale, now, before)
        edited = _size(call.edited, line.scale, now, before)
        billed.append(BilledCall(call, unedited, edited, idle))
        if call.at is not None:
            times[model] = call.at
    return tuple(billed)


def _lines(calls: Iterable[SimulatedCall]) -> dict[str | None, Correction]:
    """Return what the whole session has taught of each language model."""
    lines: dict[str | None, Correction] = {}
    for call in calls:
        line = lines.get(call.language_model, _UNTAUGHT)
        if call.usage is not None:
            line = line.observed(call.unedited.tokens, call.usage)
        lines[call.language_model] = line
    return lines


def _size(prompt: Prompt, scale: float, overhead: float, before: float) -> Size:
    """Return a prompt's size; what no message shows stands at its beginning, and is shared."""
    tokens = max(0, round(scale * prompt.tokens + overhead))
    shared = max(0, round(scale * prompt.shared + before)) if prompt.follows else 0
    return Size(tokens, min(shared, tokens))
