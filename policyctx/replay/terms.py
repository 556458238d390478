"""`CallTerms`: at which prices, with which window and under which cache a recorded call was made.

What the policy sets wins. Everything else is that of the recorded language model, on the day of the
call or today, and of the writes that the provider billed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd
from typing import Literal, NamedTuple, TypeAlias

from policyctx.planning.facts import window_of
from policyctx.policy.models import Model
from policyctx.policy.values import ASSUMED_TTL, Duration
from policyctx.pricing.dollars import CallPrices, Dollars, dollars, prices_of
from policyctx.pricing.rows import CacheRules, ModelRow, row_of
from policyctx.replay.recording import ModelCall
from policyctx.tokens.usage import HOUR, Usage

PricesOf: TypeAlias = Literal["recorded", "today"]
"""Whose prices: those of each call's own day, or those of the newest rows."""

UNNAMED = "a model that the recording does not name"
# So many different reads tell in which steps a prefix is found.
_READS = 8


@dataclass(frozen=True, slots=True)
class CallTerms:
    """On which terms a provider takes one call."""

    language_model: str
    window: int
    """Tokens that the model can see: as the policy says, else the recording, else the row."""
    cache: CacheRules | None
    """None if the model has no cache."""
    window_is_assumed: bool = False
    """Neither the policy, the recording nor the table of models says which window it has."""
    ttl: int = ASSUMED_TTL
    """Seconds that what the call writes to the cache stays there."""
    ttl_is_assumed: bool = False
    """The recording does not say how long: the TTL is the last known one, or five minutes."""
    prices: CallPrices | None = None
    """None if neither the policy nor a row of the language model has them."""
    tier_is_assumed: bool = False
    """The prices are the standard ones, since those of the call's service tier are not known."""
    row: ModelRow | None = None

    @property
    def has_breakpoints(self) -> bool:
        """Whether breakpoints decide what the cache keeps."""
        return self.cache is not None and self.cache.kind != "prefix"

    def dollars(self, usage: Usage) -> Dollars | None:
        """Return what the call costs; None without prices.

        Writes whose TTL the usage does not tell have that of these terms.
        """
        if self.prices is None:
            return None
        if usage.cache_write_1h is None:
            hour = usage.cache_write if self.ttl >= HOUR else 0
            usage = replace(usage, cache_write_1h=hour)
        return dollars(usage, self.prices)


def terms_of(
    calls: Sequence[ModelCall], model: Model, prices: PricesOf = "recorded"
) -> list[CallTerms]:
    """Return the terms of the calls of one session, in their order; `model` is the policy's."""
    written = None if model.price is None else prices_of(model.price)
    is_set = "context_window" in model.model_fields_set
    last: dict[str, int] = {}
    terms = []
    bills: defaultdict[str | None, list[Usage]] = defaultdict(list)
    for call in calls:
        if call.usage is not None and call.usage.prompt:
            bills[call.language_model].append(call.usage)
    shown: dict[tuple[str | None, CacheRules | None], CacheRules | None] = {}
    for call in calls:
        name = call.language_model or model.name or ""
        at = call.at if prices == "recorded" else None
        row = row_of(name, at=at)
        key = call.language_model, _cache(model, row)
        if key not in shown:
            shown[key] = _as_billed(key[1], bills[call.language_model])
        ttl, is_assumed = _ttl(call, model, row, last.get(name))
        if call.usage is not None and (told := call.usage.write_ttl) is not None:
            last[name] = told
        tier = "" if call.usage is None else call.usage.tier
        of_row, is_standard = (None, False) if row is None else row.billed(tier, at=at)
        terms.append(
            CallTerms(
                language_model=name or UNNAMED,
                window=called_window(call, model, name, at),
                window_is_assumed=row is None and call.window is None and not is_set,
                cache=shown[key],
                ttl=ttl,
                ttl_is_assumed=is_assumed,
                prices=written or of_row,
                tier_is_assumed=is_standard and written is None,
                row=row,
            )
        )
    return terms


def called_window(call: ModelCall, model: Model, name: str | None, at: float | None) -> int:
    """Return the window of a recorded call, in tokens: the policy's, the recording's, the row's."""
    if call.window is None or "context_window" in model.model_fields_set:
        return window_of(model, name, at=at)
    return call.window


def _cache(model: Model, row: ModelRow | None) -> CacheRules | None:
    """Return the rules of the cache; those of an unknown model find the longest prefix."""
    settings = model.cache
    if row is None or (row.cache is None and model.price is not None):
        return CacheRules("prefix", settings.min_tokens, settings.seconds())
    is_set = "min_tokens" in settings.model_fields_set
    if row.cache is None or not is_set:
        return row.cache
    return row.cache._replace(min_tokens=settings.min_tokens)


def _as_billed(rules: CacheRules | None, bills: Sequence[Usage]) -> CacheRules | None:
    """Return the rules of a cache as all bills of its model show them.

    A ChatGPT subscription bills no writes of models whose writes the API bills, and its cache finds
    the longest prefix.
    """
    if rules is None or not bills:
        return rules
    reads = sorted({one.cache_read for one in bills})
    untold = any(one.cache_write or one.cache_write_1h is None for one in bills)
    if rules.kind == "breakpoints" and not untold and reads[-1] > bills[0].cache_read:
        rules = rules._replace(kind="prefix", bills_writes=False)
    if rules.kind == "prefix" and len(reads) > _READS:
        step = gcd(*(after - before for before, after in pairwise(filter(None, reads))))
        rules = rules._replace(step=max(step, rules.step))
    return rules


def _ttl(call: ModelCall, model: Model, row: ModelRow | None, last: int | None) -> tuple[int, bool]:
    """Return the TTL of what a call writes, and whether it is assumed."""
    if isinstance(model.cache.ttl, Duration):
        return model.cache.ttl.seconds, False
    if row is not None and row.cache is not None and row.cache.kind != "anthropic":
        return row.cache.ttl, False
    usage = call.usage
    if usage is not None and usage.write_ttl is not None:
        return usage.write_ttl, False
    wrote = usage is not None and usage.cache_write > 0
    is_told = usage is not None and not wrote and usage.cache_write_1h is not None
    # Whether a model that nobody knows has such a cache, only a write tells.
    is_assumed = wrote if row is None else not is_told
    return ASSUMED_TTL if last is None else last, is_assumed


class Contradiction(NamedTuple):
    """A key of the policy that says something else than the recording."""

    key: str
    written: str
    recorded: str
    """Of what: `writes were for 1h`."""
    is_of_writes: bool = False
    """It is true of so many writes to the cache, and not of so many calls."""

    def sentence(self, number: int, of: int) -> str:
        """Return it for people, with how many calls or writes it is true of."""
        return f"{self.key} {self.written}; {number:,} of {of:,} {self.recorded}"


def contradictions(
    calls: Sequence[ModelCall], terms: Sequence[CallTerms], model: Model
) -> Counter[Contradiction]:
    """Return what the policy sets otherwise than a session has it, and in how many calls."""
    found: Counter[Contradiction] = Counter()
    for call, one in zip(calls, terms, strict=True):
        found.update(_contradicting(call, one, model))
    return found


def _contradicting(call: ModelCall, terms: CallTerms, model: Model) -> Iterator[Contradiction]:
    told = None if call.usage is None else call.usage.write_ttl
    ttl = model.cache.ttl
    if isinstance(ttl, Duration) and told is not None and told != ttl.seconds:
        yield Contradiction(
            "model.cache.ttl", f"is {ttl}", f"writes were for {Duration(told)}", is_of_writes=True
        )
    if model.price is not None and model.price.cache_write_1h is None and told == HOUR:
        missing = "writes were for 1h, and cost cache_write"
        yield Contradiction("model.price", "has no cache_write_1h", missing, is_of_writes=True)
    row = terms.row
    window = call.window or (row and row.context_window)
    if window and "context_window" in model.model_fields_set and window != model.context_window:
        name = terms.language_model if row is None else row.name
        recorded = f"calls were to {name}, which has {window:,}"
        yield Contradiction("model.context_window", f"is {model.context_window:,}", recorded)
    if row is None:
        return
    if model.price is not None and model.price.input != row.prices.base.input:
        recorded = f"calls were to {row.name}, whose input costs ${row.prices.base.input:g}"
        yield Contradiction("model.price", f"has input ${model.price.input:g}", recorded)
