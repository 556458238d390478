"""The accuracy of a replay: predicted sizes and cache reads against what was billed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from statistics import median
from typing import Literal, TypeAlias

from policyctx.messages.editing import request_content
from policyctx.replay.cost import BilledCall, Cost
from policyctx.replay.recording import Recording
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.sizes import provider_model
from policyctx.tokens.usage import HOUR, Correction, Usage

# Before this call a session has hardly anything to learn from.
SETTLED_FROM = 10
Cause: TypeAlias = Literal["cached before", "kept longer", "missed", "more shared", "no times"]
MEANINGS: dict[Cause, str] = {
    "cached before": "unknown, because another session may have filled the cache",
    "kept longer": "the provider kept a cache entry longer than its TTL",
    "missed": "the provider did not find a cache entry that had not expired",
    "more shared": "the provider read more from its cache than earlier calls explain",
    "no times": "an entry was not found and may have expired: the recording has no time stamps",
}
# A call off by fewer tokens needs no reason.
_UNTOLD = 500


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


@dataclass(frozen=True, slots=True)
class Check:
    """The prompt cache of a session without a policy: foreseen from its messages, and billed.

    Only calls whose usage is known are compared. Differences are added without their sign, so none
    cancels another. The size of each prompt is the billed one; what of it is read from the cache is
    foreseen.
    """

    calls: int = 0
    tokens: int = 0
    """Of the prompts that were compared."""
    off: int = 0
    """Tokens that were foreseen as read and were not, or the other way round."""
    unknown: int = 0
    """Tokens that were read when nothing of the session was in the cache."""
    billed: float | None = None
    """The $ of the prompts; None where the prices are not known."""
    billed_off: float = 0.0
    """The $ between what was foreseen for each call and what was billed for it."""
    billed_unknown: float = 0.0
    """The $ of `unknown`, which are not in `billed_off`."""
    causes: tuple[tuple[Cause, int], ...] = ()
    """Why they differ, and by how many tokens in all, the most first."""
    believed: float = 0.0
    """The $ of the prompts in the costs of the replay, which believe what the bills say."""

    @property
    def bias(self) -> float | None:
        """The share of the billed $ by which the costs of the replay are above them."""
        return self.believed / self.billed - 1 if self.billed else None

    @property
    def error(self) -> float | None:
        """The forecast error: the $ that are off as a share of those billed."""
        return self.billed_off / self.billed if self.billed else None

    @property
    def unknown_share(self) -> float | None:
        """The $ of `unknown` as a share of those billed."""
        return self.billed_unknown / self.billed if self.billed else None

    def __add__(self, other: Check) -> Check:
        causes = Counter(dict(self.causes))
        causes.update(dict(other.causes))
        known = [one.billed for one in (self, other) if one.billed is not None]
        return Check(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.off + other.off,
            self.unknown + other.unknown,
            sum(known) if known else None,
            self.billed_off + other.billed_off,
            self.billed_unknown + other.billed_unknown,
            tuple(causes.most_common()),
            self.believed + other.believed,
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of many sessions, by the format of their recordings."""

    formats: Mapping[str, tuple[Check, ...]] = field(default_factory=dict)

    @property
    def sessions(self) -> int:
        """How many sessions were checked."""
        return sum(map(len, self.formats.values()))

    def together(self, format_: str) -> Check:
        """Return the check of all calls of a format."""
        return reduce(add, self.formats[format_], Check())

    def median(self, format_: str) -> float | None:
        """Return the forecast error of the median session; None where no price is known."""
        errors = [check.error for check in self.formats[format_]]
        known = [error for error in errors if error is not None]
        return median(known) if known else None


def checks_of(many: Iterable[Checks]) -> Checks:
    """Return all checks together, in their order."""
    found: dict[str, list[Check]] = {}
    for one in many:
        for name, checks in one.formats.items():
            found.setdefault(name, []).extend(checks)
    return Checks({name: tuple(checks) for name, checks in found.items()})


def checked(calls: Sequence[BilledCall]) -> Check | None:
    """Hold the simulated prompt cache against the bill of each call.

    None if no usage of the session speaks of a cache: many recordings leave that out.
    """
    known = [(one, one.call.usage) for one in calls]
    compared = [(one, usage) for one, usage in known if usage is not None and usage.prompt]
    if not any(usage.cache_read or usage.cache_write for _, usage in compared):
        return None
    check = Check()
    for one, usage in compared:
        check += _compared(one, usage)
    return check


def _by_rules(one: BilledCall) -> Cost:
    """Return what a prompt costs if its bill says nothing of the cache; without the output."""
    believed = replace(one.costs.unedited, output=0)
    if (missing := believed.cache_read - one.foreseen) <= 0:
        return believed.with_read(-missing)
    hour = missing if one.ttls.rest >= HOUR else 0
    return replace(
        believed,
        cache_read=one.foreseen,
        cache_write=believed.cache_write + missing,
        cache_write_1h=believed.cache_write_1h + hour,
    )


def _compared(one: BilledCall, usage: Usage) -> Check:
    foreseen = _by_rules(one)
    unknown = 0
    if foreseen.cache_read == 0:
        unknown = min(usage.cache_read, one.unedited if one.is_first else one.head)
    expected = foreseen.with_read(unknown)
    off = expected.cache_read - usage.cache_read
    causes: Counter[Cause] = Counter()
    causes["cached before"] = unknown
    causes[_cause(one, off)] += abs(off)
    known = tuple((cause, tokens) for cause, tokens in causes.most_common() if tokens > _UNTOLD)
    bills = (usage, foreseen.usage, expected.usage, one.costs.unedited.usage)
    priced = [d.prompt for bill in bills if (d := one.call.terms.dollars(bill)) is not None]
    if not priced:
        return Check(1, usage.prompt, abs(off), unknown, causes=known)
    paid, alone, warmed, believed = priced
    return Check(
        1,
        usage.prompt,
        abs(off),
        unknown,
        paid,
        abs(warmed - paid),
        abs(alone - warmed),
        known,
        believed,
    )


def _cause(one: BilledCall, off: int) -> Cause:
    if off > 0:
        return "no times" if one.call.at is None else "missed"
    return "kept longer" if one.is_expired else "more shared"
