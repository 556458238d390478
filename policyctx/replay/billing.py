"""What a provider would have billed for the prompts of a replay, in its own tokens.

A recording shows the messages, and the usage of its responses shows what was billed for them:
with the provider's tokenizer, and with what no message shows. The recorded bill is taken as it is;
what a policy spared is taken off it, at the scale that the responses of the session teach. Where no
more than a sum is recorded, each call has the share of it that its counted tokens have.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from policyctx.tokens.correction import Correction
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.planning.facts import Facts
    from policyctx.replay.recording import Recording, SummedBill
    from policyctx.replay.sent_list import MessageSizes, Prompt
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
        if (bill := call.bill) is not None and bill.prompt:
            overheads[model] = bill.prompt - line.scale * call.unedited.tokens
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


def call_shares(recording: Recording, sizes: MessageSizes, facts: Facts) -> list[Usage | None]:
    """Return each call's share of what the calls were billed together, None where it has none.

    `sizes` have measured the messages of the whole recording.
    """
    if recording.bill is None:
        return [None] * len(recording.calls)
    counted, messages = [], 0
    for call in recording.calls:
        new = sum(sizes.tokens(message, facts) for message in call.new)
        messages = new if call.anew else messages + new
        beside = tuple(part for part in (call.system, call.tools) if part is not None)
        counted.append(messages + replace(facts, beside=beside).tokens_beside)
    return [*shares_of(counted, recording.bill)]


def shares_of(counted: Sequence[int], bill: SummedBill) -> list[Usage]:
    """Return the share of each call, by what is counted for its prompt, in tokens.

    Calls that the bill is not for have the same scale. Without a billed prompt the scale is 1.
    """
    together = sum(counted[: bill.calls])
    beside, rest = bill.beside, bill.usage.prompt - bill.beside * min(bill.calls, len(counted))
    if bill.usage.prompt and rest <= 0:
        beside, rest = 0, bill.usage.prompt
    scale = rest / together if bill.usage.prompt and together else 1.0
    prompts = _rounded([scale * tokens for tokens in counted])
    outputs = _rounded([bill.usage.output / bill.calls if bill.calls else 0.0] * len(counted))
    return [
        Usage(max(1, prompt + beside), output=output)
        for prompt, output in zip(prompts, outputs, strict=True)
    ]


def _rounded(parts: Sequence[float]) -> list[int]:
    """Return whole numbers whose sums, from the first on, are those of the parts."""
    ends = [round(end) for end in accumulate(parts)]
    return [end - before for end, before in zip(ends, [0, *ends], strict=False)]


def _lines(calls: Iterable[SimulatedCall]) -> dict[str | None, Correction]:
    """Return what the whole session has taught of each language model."""
    lines: dict[str | None, Correction] = {}
    for call in calls:
        line = lines.get(call.language_model, _UNTAUGHT)
        if (bill := call.bill) is not None:
            line = line.observed(call.unedited.tokens, bill)
        lines[call.language_model] = line
    return lines


def _size(prompt: Prompt, scale: float, overhead: float, before: float) -> Size:
    """Return a prompt's size; what no message shows stands at its beginning, and is shared."""
    tokens = max(0, round(scale * prompt.tokens + overhead))
    shared = max(0, round(scale * prompt.shared + before)) if prompt.follows else 0
    return Size(tokens, min(shared, tokens))
