"""`CallPrices`: what one call costs in dollars; `Payback`: what an edit costs and saves."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from policyctx.policy.models import Prices
from policyctx.policy.models.base import PriceKinds
from policyctx.tokens.usage import HOUR, Summable, Usage

_MILLION = 1_000_000


class Rates(NamedTuple):
    """$ per million tokens."""

    input: float
    """Neither written to the cache nor read from it."""
    write_5m: float
    write_1h: float
    read: float
    output: float

    def write(self, ttl: int) -> float:
        """Return the price of a write that lives for `ttl` seconds."""
        return self.write_1h if ttl >= HOUR else self.write_5m


class CallPrices(NamedTuple):
    """What calls of one language model cost; the size of a prompt decides which rates it has."""

    base: Rates
    above: tuple[tuple[int, Rates], ...] = ()
    """Rates for the whole call, its output too, of a prompt of more tokens than each number."""

    def rates(self, prompt: int) -> Rates:
        """Return the rates for a prompt of so many tokens, cached ones included."""
        return next((rates for tokens, rates in reversed(self.above) if prompt > tokens), self.base)


@dataclass(frozen=True, slots=True)
class Dollars(Summable):
    """What tokens cost, in $, by what was taken for them."""

    input: float = 0.0
    cache_write: float = 0.0
    """Writes for five minutes and for an hour together."""
    cache_read: float = 0.0
    output: float = 0.0

    @property
    def prompt(self) -> float:
        """Everything but the output."""
        return self.input + self.cache_write + self.cache_read

    @property
    def total(self) -> float:
        """All of it."""
        return self.prompt + self.output


def dollars(usage: Usage, prices: CallPrices) -> Dollars:
    """Return what one call costs.

    A write without a known TTL is taken to live for five minutes. The price of a large prompt is
    one of the whole call, so the sum of several calls must not be passed.
    """
    rates, hour = prices.rates(usage.prompt), usage.cache_write_1h or 0
    writes = (usage.cache_write - hour) * rates.write_5m + hour * rates.write_1h
    return Dollars(
        usage.input * rates.input / _MILLION,
        writes / _MILLION,
        usage.cache_read * rates.read / _MILLION,
        usage.output * rates.output / _MILLION,
    )


def prices_of(written: Prices) -> CallPrices:
    """Return the prices of a policy; by default a write for an hour costs what others do."""
    tiers = sorted(written.above, key=lambda tier: tier.tokens)
    return CallPrices(_rates(written), tuple((tier.tokens, _rates(tier)) for tier in tiers))


def _rates(written: PriceKinds) -> Rates:
    hour = written.cache_write_1h
    return Rates(
        written.input,
        written.cache_write,
        written.cache_write if hour is None else hour,
        written.cache_read,
        written.output,
    )


# $ per million tokens where nobody knows them: what most providers take for one of input.
RATIOS = Rates(input=1.0, write_5m=1.25, write_1h=2.0, read=0.1, output=5.0)


class Payback(NamedTuple):
    """What an edit costs at once, and what it saves with each later call, in millionths of $."""

    cost: Fraction
    saved: Fraction

    @property
    def calls(self) -> float:
        """How many model calls it takes until the edit has paid for itself; may be infinite."""
        if self.saved < 0 or self.cost > 0 == self.saved:
            return math.inf
        return math.ceil(self.cost / self.saved) if self.cost else 0


def payback(*, rewritten: int, freed: int, rates: Rates, ttl: int) -> Payback:
    """Return what an edit costs and saves.

    `rewritten` are the tokens behind the first change that the provider holds in its cache, and
    must be written to it anew, for `ttl` seconds; `freed` are those that no later call reads any
    more.
    """
    write, read = Fraction(str(rates.write(ttl))), Fraction(str(rates.read))
    return Payback(max(0, rewritten) * max(Fraction(0), write - read), freed * read)
