"""Statistics of paired differences: standard errors, bootstrap intervals, fronts, influence.

Differences are given by cluster: the sessions of one project are not independent of each other, so
a project is drawn as a whole. All results are the same for the same numbers and seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

_DRAWS = 2_000
_LEVEL = 0.95


class Interval(NamedTuple):
    """The bounds of a confidence interval."""

    low: float
    high: float


class Tally(NamedTuple):
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
    if count < 2:  # noqa: PLR2004 - one number has no spread
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
    if len(clusters) < 2:  # noqa: PLR2004 - see above
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


def tally(differences: Sequence[float], margins: Sequence[float]) -> Tally:
    """Count differences below minus their margin as wins, above it as losses, others as ties."""
    pairs = list(zip(differences, margins, strict=True))
    wins = sum(one < -margin for one, margin in pairs)
    losses = sum(one > margin for one, margin in pairs)
    return Tally(wins, losses, len(pairs) - wins - losses)


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
