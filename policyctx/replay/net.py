"""`Net`: what a policy costs or saves in one session, when all that it causes is counted.

Net is the simulated cost with the policy less the one without, both by the same simulator, plus the
calls that write its summaries and the re-reads of what it should have kept. Its dollars are those
of the input, except the output of summaries and re-reads, which is named apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from policyctx.pricing.dollars import CallPrices, Dollars, Rates, dollars
from policyctx.replay.cost import BilledCall, Cost, costs_of
from policyctx.replay.provider_tokens import scales_of
from policyctx.replay.simulated import Regret, SimulatedSession, SummaryCall
from policyctx.tokens.usage import HOUR, Usage

# A session is dearer when its net is above both: $, and a share of what it costs without a policy.
DEARER_DOLLARS, DEARER_SHARE = 0.01, 0.01


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of the net: what some calls take."""

    number: int = 0
    """How many calls."""
    tokens: int = 0
    """Of their prompts, as the provider bills them."""
    output: int = 0
    """Tokens of their replies; 0 for recorded calls, since no policy changes their output."""
    dollars: Dollars = field(default_factory=Dollars)
    """Of a session with prices."""

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.number + other.number,
            self.tokens + other.tokens,
            self.output + other.output,
            self.dollars + other.dollars,
        )


@dataclass(frozen=True, slots=True)
class Net:
    """The lines of the net of one session, or of several together."""

    without: Charge = Charge()
    """The recorded calls without the policy, under the client's own breakpoints."""
    edited: Charge = Charge()
    """The recorded calls with the policy, under the breakpoints that are sent with it."""
    summaries: Charge = Charge()
    """The calls that write its summaries; none where no model is asked."""
    re_reads: Charge = Charge()
    """What the agent would have read again because it used it."""

    @property
    def tokens(self) -> int:
        """Tokens of prompts: below 0 when the policy takes fewer."""
        return self.edited.tokens - self.without.tokens + self._more.tokens

    @property
    def dollars(self) -> float:
        """The net in $, output of summaries and re-reads included: below 0 when it saves."""
        return self.edited.dollars.prompt - self.without.dollars.prompt + self._more.dollars.total

    @property
    def output(self) -> int:
        """Tokens of output in it."""
        return self._more.output

    @property
    def output_dollars(self) -> float:
        """The $ of output in it."""
        return self._more.dollars.output

    @property
    def share(self) -> float:
        """The net as a share of the cost without the policy."""
        whole = self.without.dollars.prompt
        return self.dollars / whole if whole else 0.0

    @property
    def is_dearer(self) -> bool:
        """Whether the policy makes one session dearer, by more than a cent and a hundredth."""
        allowed = max(DEARER_DOLLARS, DEARER_SHARE * self.without.dollars.prompt)
        return self.dollars > allowed

    @property
    def _more(self) -> Charge:
        return self.summaries + self.re_reads

    def __add__(self, other: Net) -> Net:
        return Net(
            self.without + other.without,
            self.edited + other.edited,
            self.summaries + other.summaries,
            self.re_reads + other.re_reads,
        )


def net_of(session: SimulatedSession, billed: Sequence[BilledCall]) -> Net:
    """Return the net of one session, whose calls are `billed`; without prices it has no $."""
    costs = costs_of(billed)
    without, edited = (
        Charge(len(billed), cost.prompt, 0, _of_input(cost))
        for cost in (costs.unedited, costs.edited)
    )
    is_priced = all(call.call.terms.prices is not None for call in billed)
    # The provider's tokens for each counted one.
    factors = [scale.factor for scale in scales_of(session.calls)]
    summaries = [_summary(one, factors, is_priced=is_priced) for one in session.summaries]
    reads = _ReReads(session, billed, factors, is_priced=is_priced)
    return Net(without, edited, sum(summaries, Charge()), sum(reads.charges(), Charge()))


def _of_input(cost: Cost) -> Dollars:
    return replace(cost.dollars, output=0.0)


def _summary(call: SummaryCall, factors: Sequence[float], *, is_priced: bool) -> Charge:
    """Return what one summary takes: a request with what is cached of it."""
    factor = factors[call.call - 1]
    read, written = round(factor * call.read), round(factor * call.written)
    usage = Usage(
        max(0, round(factor * call.prompt) - read - written),
        cache_read=read,
        cache_write=written,
        output=round(factor * call.output),
    )
    paid = Dollars()
    if is_priced and call.prices is not None:
        paid = dollars(usage, call.prices)
    return Charge(1, usage.prompt, usage.output, paid)


class _UsedRange(NamedTuple):
    """A range of a removed item that a reply used."""

    call: int
    """The number of the call, from 1 on, that first used it."""
    tokens: int
    """As the policy counts them."""


def used_ranges(regret: Regret) -> Iterator[_UsedRange]:
    """Yield what must be read again, each range once, together no more than the item took.

    What the recording itself asks for again is left out: it has paid for that call.
    """
    left = regret.removal.tokens
    for need in regret.needs:
        tokens = min(need.tokens, left)
        left -= tokens
        if need.kind == "used" and tokens > 0:
            yield _UsedRange(need.call, tokens)


class _ReReads:
    """The re-reads of one session."""

    def __init__(
        self,
        session: SimulatedSession,
        billed: Sequence[BilledCall],
        factors: Sequence[float],
        *,
        is_priced: bool,
    ) -> None:
        self._session, self._billed, self._factors = session, billed, factors
        self._is_priced = is_priced
        # What a token of a range costs to read from the call with this index on, until the end.
        read = [self._read_price(call) for call in billed]
        self._read_from = [*accumulate(reversed(read), initial=0.0)][::-1]

    def charges(self) -> Iterator[Charge]:
        """Yield what each range costs."""
        for regret in self._session.regrets:
            for used in used_ranges(regret):
                yield self._charge(used)

    def _charge(self, used: _UsedRange) -> Charge:
        """Charge an extra call, and the range in the call that used it and in each later one."""
        billed = self._billed[used.call - 1]
        tokens = round(self._factors[used.call - 1] * used.tokens)
        later = len(self._billed) - used.call
        output = self._session.tool_call_output
        prompt = billed.edited + tokens * (1 + later)
        if not self._is_priced:
            return Charge(1, prompt, output)
        extra = self._paid(billed, billed.edited, tokens, output)
        read = Dollars(cache_read=tokens * self._read_from[used.call])
        return Charge(1, prompt, output, extra + read)

    def _paid(self, billed: BilledCall, read: int, written: int, output: int) -> Dollars:
        """Return what is paid at the rates of a call; a model without a cache takes input."""
        rates = self._rates(billed)
        terms = billed.call.terms
        usage = Usage(
            0,
            cache_read=read,
            cache_write=written,
            cache_write_1h=written if terms.ttl >= HOUR else 0,
            output=output,
        )
        if terms.cache is None:
            usage = Usage(read + written, output=output)
        elif not terms.cache.bills_writes:
            usage = Usage(written, cache_read=read, output=output)
        return dollars(usage, CallPrices(rates))

    def _rates(self, billed: BilledCall) -> Rates:
        prices = billed.call.terms.prices
        assert prices is not None  # noqa: S101 - every call of the session has prices
        return prices.rates(billed.edited)

    def _read_price(self, billed: BilledCall) -> float:
        """Return the $ for one token that a call reads from the cache."""
        return self._paid(billed, 1, 0, 0).prompt if self._is_priced else 0.0
