"""The prompts of a replay in the provider's tokens, and their cost under its prompt cache.

The recorded bill is the starting point; what a policy saved is subtracted, at the scale that the
session's responses teach. Where only a sum is recorded, each call gets the share that its counted
tokens have.

The prefix that a call shares with the call before is read from the cache if that call was recent
enough and the prefix long enough; the rest is written to the cache. A policy that changes what was
already sent pays for it here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from policyctx.pricing.dollars import Dollars
from policyctx.replay.sent_list import MessageSizes, SentList
from policyctx.tokens.usage import HOUR, Correction, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.planning.facts import Facts
    from policyctx.replay.recording import Recording, SummedBill
    from policyctx.replay.sent_list import Prompt
    from policyctx.replay.simulated import SimulatedCall
    from policyctx.replay.terms import CallTerms

_UNTAUGHT = Correction()


class PromptSize(NamedTuple):
    """A prompt in the provider's tokens, and how many at its beginning were sent before."""

    tokens: int
    shared: int


class BilledCall(NamedTuple):
    """A call with its two prompts as a provider would bill them."""

    call: SimulatedCall
    unedited: PromptSize
    edited: PromptSize
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


def _size(prompt: Prompt, scale: float, overhead: float, before: float) -> PromptSize:
    """Return a prompt's size; what no message shows stands at its beginning, and is shared."""
    tokens = max(0, round(scale * prompt.tokens + overhead))
    shared = max(0, round(scale * prompt.shared + before)) if prompt.follows else 0
    return PromptSize(tokens, min(shared, tokens))


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
    sizes = MessageSizes()
    sizes.measure((message for call in counted for message in call.new), facts)
    shares = call_shares(recording, sizes, facts)
    whole = SentList(sizes)
    for call, context, share in zip(
        made, islice(recording.contexts(), calls), shares, strict=False
    ):
        beside = tuple(part for part in (call.system, call.tools) if part)
        sent = whole.sent(context, replace(facts, beside=beside))
        billed = call.usage if call.usage is not None and call.usage.prompt else share
        if billed is not None and billed.prompt:
            correction = correction.observed(sent.tokens, billed)
    return correction


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens by what a provider takes for them; sums of some calls."""

    cache_read: int = 0
    cache_write: int = 0
    input: int = 0
    """Neither read from the cache nor written to it, being too short to be cached."""
    output: int = 0
    """As far as the recording knows; a policy does not change it."""
    cache_write_1h: int = 0
    """How many of `cache_write` are written for an hour, the others for five minutes."""
    dollars: Dollars = field(default_factory=Dollars)
    """Of each call at its own price; nothing for a session with a call without prices."""

    @property
    def uncached(self) -> int:
        """Tokens of the prompts that were not read from the cache."""
        return self.cache_write + self.input

    @property
    def prompt(self) -> int:
        """Tokens of the prompts."""
        return self.cache_read + self.uncached

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.input + other.input,
            self.output + other.output,
            self.cache_write_1h + other.cache_write_1h,
            self.dollars + other.dollars,
        )


@dataclass(frozen=True, slots=True)
class Costs:
    """What one session or many cost without a policy, and with it."""

    unedited: Cost = Cost()
    edited: Cost = Cost()

    def __add__(self, other: Costs) -> Costs:
        return Costs(self.unedited + other.unedited, self.edited + other.edited)


def costs_of(calls: Sequence[BilledCall]) -> Costs:
    """Return what the calls of one session cost, each on its own terms.

    There are no dollars if a call has no prices.
    """
    is_priced = all(one.call.terms.prices is not None for one in calls)
    unedited, edited = (
        sum((_cost_of(size, one, is_priced=is_priced) for size, one in sizes), Cost())
        for sizes in (
            [(one.unedited, one) for one in calls],
            [(one.edited, one) for one in calls],
        )
    )
    return Costs(unedited, edited)


def _cost_of(size: PromptSize, billed: BilledCall, *, is_priced: bool) -> Cost:
    cost = replace(cost_of(size, billed.idle, billed.call.terms), output=billed.call.output)
    usage = Usage(cost.input, cost.cache_read, cost.cache_write, cost.output, cost.cache_write_1h)
    paid = billed.call.terms.dollars(usage) if is_priced else None
    return cost if paid is None else replace(cost, dollars=paid)


def cost_of(size: PromptSize, idle: float | None, terms: CallTerms) -> Cost:
    """Return the tokens of a prompt; when nobody knows the time, the cache is still there."""
    cache = terms.cache
    if cache is None or size.tokens < cache.min_tokens:
        return Cost(input=size.tokens)
    expired = idle is not None and idle > terms.ttl
    read = 0 if expired or size.shared < cache.min_tokens else size.shared
    written = size.tokens - read
    if not cache.bills_writes:
        return Cost(read, input=written)
    return Cost(read, written, cache_write_1h=written if terms.ttl >= HOUR else 0)
