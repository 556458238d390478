"""The prompts of a recording in the tokens of its provider.

The recorded bill is the starting point; what a policy saved is subtracted, at the scale that the
session's responses teach. Where only a sum is recorded, each call gets the share that its counted
tokens have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, islice

from policyctx.planning.facts import Facts
from policyctx.replay.cache.requests import Scale
from policyctx.replay.recording import Recording, SummedBill
from policyctx.replay.sent_list import MessageBlocks, SentList
from policyctx.replay.simulated import SimulatedCall
from policyctx.tokens.usage import Correction, Usage

_UNTAUGHT = Correction()


def scales_of(calls: Sequence[SimulatedCall]) -> list[Scale]:
    """Return for each call of a session the line from counted tokens to the provider's.

    It goes through the bill of the call, and otherwise through the last one of the same language
    model. Without any usage the provider's tokens are taken to be the counted ones.
    """
    lines = _lines(calls)
    overheads: dict[str | None, float] = {}
    scales = []
    for call in calls:
        model = call.language_model
        line = lines[model]
        if (bill := call.bill) is not None and bill.prompt:
            overheads[model] = bill.prompt - line.scale * call.unedited.tokens
        scales.append(Scale(line.scale, overheads.setdefault(model, line.overhead)))
    return scales


def call_shares(recording: Recording, blocks: MessageBlocks, facts: Facts) -> list[Usage | None]:
    """Return each call's share of what the calls were billed together, None where it has none.

    `blocks` have measured the messages of the whole recording.
    """
    if recording.bill is None:
        return [None] * len(recording.calls)
    counted, messages = [], 0
    for call in recording.calls:
        new = sum(blocks.tokens(message, facts) for message in call.new)
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


def learnt(recording: Recording, calls: int, facts: Facts) -> Correction:
    """Return what `Session.observe` would have learnt from the first `calls` calls.

    `recording` is whole: where only a sum was billed, each call has its share of it. The lists are
    counted as they were recorded, with the counter and the scale of `facts`; each message is
    counted once. Without usage the result is a new `Correction`.
    """
    made = recording.calls[:calls]
    correction = Correction()
    if recording.bill is None and all(call.usage is None for call in made):
        return correction
    counted = made if recording.bill is None else recording.calls
    blocks = MessageBlocks()
    blocks.measure((message for call in counted for message in call.new), facts)
    shares = call_shares(recording, blocks, facts)
    whole = SentList(blocks)
    for call, context, share in zip(
        made, islice(recording.contexts(), calls), shares, strict=False
    ):
        beside = tuple(part for part in (call.system, call.tools) if part)
        sent = whole.sent(context, replace(facts, beside=beside))
        billed = call.usage if call.usage is not None and call.usage.prompt else share
        if billed is not None and billed.prompt:
            correction = correction.observed(sent.tokens, billed)
    return correction
