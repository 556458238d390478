"""`Meter`: what the calls of a session were billed, and about what they would have cost without it.

The bill is the provider's own usage at list prices. What the calls would have cost without the
policy is an estimate: the same prompts with all that left them, in a cache that no edit changed.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from policyctx.compaction.assembly import SummaryUsage
from policyctx.pricing.dollars import CallPrices, dollars
from policyctx.tokens.usage import FIVE_MINUTES, Summable, Usage


@dataclass(frozen=True, slots=True)
class Spent(Summable):
    """What calls were billed. Dollars are those of prompts alone; no policy changes the output."""

    calls: int = 0
    usage: Usage = field(default_factory=lambda: Usage(0))
    spared: int = 0
    """Tokens that the prompts would have had in addition without the policy."""
    priced: int = 0
    """Calls of models with a known price; the dollars are theirs."""
    tiered: int = 0
    """Calls of these at a service tier without known prices, whose dollars are standard prices."""
    billed: float = 0.0
    without: float = 0.0
    """An estimate; see `without_policy`."""
    summaries: float = 0.0
    """For the summaries of compactions, output included."""

    @property
    def net(self) -> float:
        """The bill and the summaries less the estimate without a policy: below 0 if it saves."""
        return self.billed + self.summaries - self.without


@dataclass(slots=True)
class Meter:
    """Adds up the calls of one session, in the order in which they were answered."""

    spent: Spent = field(default_factory=Spent)
    _held: int | None = None
    """Tokens that the cache would hold of the last prompt without the policy; None before it."""
    _at: float = 0.0
    _ttl: int = FIVE_MINUTES
    _caches: bool = False
    """Whether a response has said anything of a cache."""

    def observe(
        self,
        usage: Usage,
        *,
        spared: int,
        model: str | None,
        at: float,
        prices: CallPrices | None = None,
    ) -> Spent:
        """Add a call that was answered at a time in seconds, and return it alone.

        `spared` are the tokens that its prompt would have had in addition without the policy;
        `prices` replace those of the model.
        """
        row = None
        with suppress(OSError):  # the answer is paid for; without the table it has no known price
            from policyctx.pricing.rows import row_of

            row = row_of(model)
        self._ttl = usage.write_ttl or (row.cache.ttl if row and row.cache else self._ttl)
        self._caches |= bool(usage.cache_read or usage.cache_write)
        held = self._held
        if held is None:  # what was there before is not known, except what was read of it
            held = usage.cache_read + spared if usage.cache_read else 0
        elif not self._caches or at - self._at > self._ttl:
            held = 0
        other = without_policy(usage, spared, held)
        self._held, self._at = other.prompt, at
        one = Spent(1, usage, spared)
        is_standard = False
        if prices is None and row is not None:
            prices, is_standard = row.billed(usage.tier)
        if prices is not None:
            bill, instead = (dollars(each, prices).prompt for each in (usage, other))
            one = replace(one, priced=1, tiered=int(is_standard), billed=bill, without=instead)
        self.spent += one
        return one

    def summarised(self, usage: SummaryUsage) -> Spent:
        """Add what a compaction cost, and return it alone."""
        one = Spent(summaries=usage.dollars or 0.0)
        self.spent += one
        return one


def without_policy(usage: Usage, spared: int, held: int) -> Usage:
    """Return about what a provider would have billed for the prompt with what was taken out of it.

    `held` are the tokens that the cache would hold, all of them at the beginning of the prompt. The
    rest is written to the cache if the provider said that it wrote, and not cached otherwise. This
    is the least that the call could have cost, so it never flatters the policy.
    """
    prompt = usage.prompt + spared
    read = min(prompt, max(held, usage.cache_read))
    rest = prompt - read
    if not usage.cache_write:
        return Usage(rest, read, 0, usage.output)
    plain = min(rest, usage.input)
    written = rest - plain
    hour = usage.cache_write_1h
    if hour is not None:
        hour = round(written * hour / usage.cache_write)
    return Usage(plain, read, written, usage.output, hour)
