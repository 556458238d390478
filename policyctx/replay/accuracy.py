"""The accuracy of a replay: predicted sizes and cache reads against what was billed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.messages.pieces import request_content
from policyctx.replay.cost import cost_of
from policyctx.tokens.provider_models import provider_model
from policyctx.tokens.usage import Correction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.cost import BilledCall
    from policyctx.replay.recording import Recording, SummedBill
    from policyctx.tokens.counter import TokenCounter

# Before this call a session has hardly anything to learn from.
SETTLED_FROM = 10


@dataclass(frozen=True, slots=True)
class Prediction:
    """One call's prompt, in tokens: as it was counted, foreseen from the calls before, billed."""

    call: int
    """From 1 on, among those with usage."""
    counted: int
    predicted: int
    billed: int

    @property
    def error(self) -> float:
        """The share of the bill by which the prediction was off, above 0 when it was too high."""
        return (self.predicted - self.billed) / self.billed


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors of predictions without their sign, as shares of what was billed."""

    calls: int
    median: float
    within: float
    """What 95 % of the calls are within."""
    largest: float


def predictions(recording: Recording, counter: TokenCounter) -> Iterator[Prediction]:
    """Foresee each billed call of a session from those before it, as `Session.observe` would."""
    correction = Correction()
    billed = 0
    for call, context in zip(recording.calls, recording.contexts(), strict=True):
        if call.usage is None or not call.usage.prompt:
            continue
        billed += 1
        content = request_content(context, call.system)
        model = provider_model(content.provider, call.language_model)
        counted = counter.count_request(content, call.tools, model=model)
        yield Prediction(billed, counted, correction.corrected(counted), call.usage.prompt)
        correction = correction.observed(counted, call.usage)


def accuracy(made: Sequence[Prediction]) -> Accuracy | None:
    """Sum up the predictions from the tenth call on; None where a session has no more than nine."""
    errors = sorted(abs(one.error) for one in made if one.call >= SETTLED_FROM)
    if not errors:
        return None
    within = errors[min(len(errors) - 1, int(len(errors) * 0.95))]
    return Accuracy(len(errors), median(errors), within, errors[-1])


# What is off by less is near enough, as a share of what was billed.
TOLERANCE = 0.05
# A call off by fewer tokens needs no reason.
_UNTOLD = 500

Cause: TypeAlias = Literal["cached before", "kept longer", "missed", "more shared", "no times"]
MEANINGS: dict[Cause, str] = {
    "cached before": "the first call read what another session had cached",
    "kept longer": "the provider had its cache longer than model.cache.ttl",
    "missed": "the provider did not find its cache, though that was not long ago",
    "more shared": "the provider found more in its cache than the recording shows as shared",
    "no times": "it was not in the cache, perhaps after a pause: there are no time stamps",
}


@dataclass(frozen=True, slots=True)
class Check:
    """Cached and uncached prompt tokens of a session as it was: foreseen, and billed."""

    calls: int
    cached: int
    uncached: int
    billed_cached: int
    billed_uncached: int
    causes: tuple[tuple[Cause, int], ...] = ()
    """Why they differ, and by how many tokens in all, the most first."""

    @property
    def cached_error(self) -> float:
        """By which share of the bill the cached tokens were off, above 0 when too many."""
        return _error(self.cached, self.billed_cached)

    @property
    def uncached_error(self) -> float:
        """By which share of the bill the uncached tokens were off."""
        return _error(self.uncached, self.billed_uncached)

    @property
    def is_near(self) -> bool:
        """Are both within the tolerance."""
        return max(abs(self.cached_error), abs(self.uncached_error)) <= TOLERANCE

    def __add__(self, other: Check) -> Check:
        causes = Counter(dict(self.causes))
        causes.update(dict(other.causes))
        return Check(
            self.calls + other.calls,
            self.cached + other.cached,
            self.uncached + other.uncached,
            self.billed_cached + other.billed_cached,
            self.billed_uncached + other.billed_uncached,
            tuple(causes.most_common()),
        )


def checked(calls: Sequence[BilledCall], bill: SummedBill | None = None) -> Check | None:
    """Hold the model of the cache against the bill, of each call or of all calls together.

    None unless all calls are billed for. Usage that never speaks of a cache is not enough: many
    recordings leave that out.
    """
    usages = [billed.call.usage for billed in calls]
    billed_for = [usage for usage in usages if usage is not None and usage.prompt]
    is_summed = not billed_for and bill is not None and bill.calls == len(calls)
    if is_summed and bill is not None:
        billed_for = [bill.usage]
    elif len(billed_for) < len(calls):
        return None
    if not any(usage.cache_read or usage.cache_write for usage in billed_for):
        return None
    foreseen = [cost_of(billed.unedited, billed.idle, billed.call.terms) for billed in calls]
    causes: Counter[Cause] = Counter()
    each = () if is_summed else zip(calls, billed_for, foreseen, strict=True)
    for i, (billed, usage, cost) in enumerate(each):
        off = cost.cache_read - usage.cache_read
        if abs(off) > _UNTOLD:
            causes[_cause(billed, off, is_first=i == 0)] += abs(off)
    return Check(
        len(calls),
        sum(cost.cache_read for cost in foreseen),
        sum(cost.uncached for cost in foreseen),
        sum(usage.cache_read for usage in billed_for),
        sum(usage.prompt - usage.cache_read for usage in billed_for),
        tuple(causes.most_common()),
    )


def _cause(billed: BilledCall, off: int, *, is_first: bool) -> Cause:
    if off > 0:
        return "no times" if billed.idle is None else "missed"
    if is_first or billed.unedited.shared == 0:
        return "cached before"
    if billed.idle is not None and billed.idle > billed.call.terms.ttl:
        return "kept longer"
    return "more shared"


def _error(foreseen: int, billed: int) -> float:
    if billed == 0:
        return 0.0 if foreseen == 0 else float("inf")
    return (foreseen - billed) / billed
