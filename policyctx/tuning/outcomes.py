"""The figures of one setting in one session and in several, with intervals.

`outcome_of` is the only place that knows how a replay is priced.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.common import Common
from policyctx.replay.recording import Recording
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of, margin
from policyctx.replay.terms import PricesOf

_DRAWS = 2_000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """One session under one setting."""

    without: float
    """$ without a policy."""
    net: float
    """$ with the setting less `without`, re-reads and summaries included; below 0 where it
    saves."""
    regret_tokens: int
    """Tokens of what was removed and must be read again."""
    over_window_without: int
    """Calls over the context window without a policy."""
    over_window_with: int
    acted: bool
    """Whether the policy removed anything."""
    calls: int
    assumed: tuple[str, ...] = ()
    """What is not known of its models and taken for something: windows, and prices of a tier."""

    @property
    def margin(self) -> float:
        """The $ within which two costs of this session count as the same."""
        return margin(self.without)

    @property
    def is_dearer(self) -> bool:
        """Whether the session costs more than without a policy."""
        return self.net > self.margin

    @property
    def raises_over_window(self) -> bool:
        """Whether more calls are over the context window than without a policy."""
        return self.over_window_with > self.over_window_without

    @property
    def unedited(self) -> "SessionOutcome":
        """The same session without a policy."""
        over = self.over_window_without
        return SessionOutcome(self.without, 0.0, 0, over, over, acted=False, calls=self.calls)


@dataclass(frozen=True, slots=True)
class Sums:
    """One setting over several sessions."""

    sessions: int
    without: float
    net: float
    regret_tokens: int
    dearer: int
    """Sessions that cost more than without a policy."""
    idle: int
    """Sessions in which the policy never acted."""
    over_window: int
    """Sessions with more calls over the context window than without a policy."""

    @property
    def saved(self) -> float:
        """The share of the cost that is saved; below 0 where it costs more."""
        return -self.net / self.without if self.without and self.net else 0.0


def sums(outcomes: Iterable[SessionOutcome]) -> Sums:
    """Return the sums over the sessions."""
    found = list(outcomes)
    return Sums(
        sessions=len(found),
        without=math.fsum(one.without for one in found),
        net=math.fsum(one.net for one in found),
        regret_tokens=sum(one.regret_tokens for one in found),
        dearer=sum(one.is_dearer for one in found),
        idle=sum(not one.acted for one in found),
        over_window=sum(one.raises_over_window for one in found),
    )


@dataclass(frozen=True, slots=True)
class Unpriced:
    """A session with calls that have no price."""

    models: tuple[str, ...]
    """The language models of these calls."""


def outcome_of(
    recording: Recording,
    policy: OffloadPolicy,
    prices: PricesOf = "recorded",
    *,
    common: Common | None = None,
) -> SessionOutcome | Unpriced:
    """Return the figures of a recording under a policy, net of re-reads and summaries.

    Only the breakpoints that are sent are priced. `common` is kept from one policy to the next.
    Raises as `simulated` does.
    """
    common = common or Common(recording)
    session = simulated(recording, policy, prices=prices, layouts=(), common=common)
    figures = figures_of(session, unedited=common.unedited)
    if not figures.priced:
        return Unpriced(tuple(sorted(figures.unpriced)))
    return SessionOutcome(
        without=figures.net.without.dollars.prompt,
        net=figures.net.dollars,
        regret_tokens=figures.regretted_tokens,
        over_window_without=figures.unedited.over_window,
        over_window_with=figures.edited.over_window,
        acted=figures.removed > 0 or figures.compactions > 0,
        calls=figures.calls,
        assumed=(
            *(f"the window of {name}" for name in sorted(figures.assumed_windows)),
            *(f"standard prices for the service tier {tier}" for tier in sorted(figures.tiers)),
        ),
    )


class Interval(NamedTuple):
    """The bounds of a confidence interval."""

    low: float
    high: float


class SessionTally(NamedTuple):
    """How many sessions cost less, more, and about the same."""

    wins: int
    losses: int
    ties: int


class Influence(NamedTuple):
    """The number whose absence changes a sum most, and the sum without it."""

    position: int
    without: float


def standard_error(clusters: Sequence[float]) -> float:
    """Return the standard error of the sum of independent clusters; infinite for fewer than two."""
    count = len(clusters)
    if count <= 1:
        return math.inf
    mean = math.fsum(clusters) / count
    spread = math.fsum((one - mean) ** 2 for one in clusters)
    return math.sqrt(spread / (count - 1) * count)


def bootstrap_interval(
    clusters: Sequence[float], *, seed: int, draws: int = _DRAWS, level: float = _LEVEL
) -> Interval | None:
    """Return the percentile interval of the sum of clusters, drawn with replacement.

    None for fewer than two clusters, of which nothing can be said.
    """
    if len(clusters) <= 1:
        return None
    chance = random.Random(seed)  # noqa: S311 - no secret
    sums = sorted(math.fsum(chance.choices(clusters, k=len(clusters))) for _ in range(draws))
    outside = (1 - level) / 2
    return Interval(quantile(sums, outside), quantile(sums, 1 - outside))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of ascending numbers, linear between two of them."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def tally(differences: Sequence[float], margins: Sequence[float]) -> SessionTally:
    """Count differences below minus their margin as wins, above it as losses, others as ties."""
    pairs = list(zip(differences, margins, strict=True))
    wins = sum(one < -margin for one, margin in pairs)
    losses = sum(one > margin for one, margin in pairs)
    return SessionTally(wins, losses, len(pairs) - wins - losses)


def influence(differences: Sequence[float]) -> Influence | None:
    """Return the influence of the largest difference on the sum; None for no differences."""
    if not differences:
        return None
    position = max(range(len(differences)), key=lambda i: (abs(differences[i]), -i))
    return Influence(position, math.fsum(differences) - differences[position])


def layers(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the layer of each point: 0 on the front, 1 on the front of the others, and so on.

    Smaller numbers are better. A point is on the front if none is at least as good in every number
    and better in one; equal points are in the same layer.
    """
    found = [-1] * len(points)
    left = set(range(len(points)))
    layer = 0
    while left:
        front = [i for i in left if not any(_dominates(points[j], points[i]) for j in left)]
        for i in front:
            found[i] = layer
        left -= set(front)
        layer += 1
    return found


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
