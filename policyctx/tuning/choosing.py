"""The choice among settings: constraints, the front, and the rule towards the incumbent."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policyctx.tuning.outcomes import Outcome, sums
from policyctx.tuning.settings import Setting
from policyctx.tuning.statistics import layers, standard_error


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a setting must not do."""

    never_dearer: bool = False
    """No session may get dearer."""
    max_regret: float | None = None
    """The most regretted tokens, as a multiple of the incumbent's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting, and its outcomes in the same sessions as those of the others."""

    setting: Setting
    outcomes: tuple[Outcome, ...]

    @property
    def net(self) -> float:
        """$ less than without a policy, as a number below 0."""
        return math.fsum(one.net for one in self.outcomes)

    @property
    def regret_tokens(self) -> int:
        """Tokens that must be read again."""
        return sum(one.regret_tokens for one in self.outcomes)

    @property
    def point(self) -> tuple[float, float]:
        """What it is judged by: net dollars and regretted tokens, the less the better."""
        return self.net, self.regret_tokens


def violated(
    candidate: Candidate, incumbent: Candidate, constraints: Constraints
) -> tuple[str, ...]:
    """Return the constraints that a candidate violates, each as a word."""
    found = sums(candidate.outcomes)
    most = constraints.max_regret
    broken = {
        "over the window": found.over_window > 0,
        "dearer": constraints.never_dearer and found.dearer > 0,
        "regret": most is not None and found.regret_tokens > most * incumbent.regret_tokens,
    }
    return tuple(word for word, is_broken in broken.items() if is_broken)


def promoted(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Return the first `count` candidates, front by front, in each the cheapest first."""
    layer_of = layers([candidate.point for candidate in candidates])
    order = sorted(
        range(len(candidates)),
        key=lambda i: (layer_of[i], *candidates[i].point, candidates[i].setting.changes, i),
    )
    return [candidates[i] for i in order[:count]]


def front(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that none dominates, the cheapest first; of equal ones the nearest."""
    layer_of = layers([candidate.point for candidate in candidates])
    best: dict[tuple[float, float], Candidate] = {}
    for candidate, layer in zip(candidates, layer_of, strict=True):
        known = best.get(candidate.point)
        if layer == 0 and (known is None or candidate.setting.changes < known.setting.changes):
            best[candidate.point] = candidate
    return [best[point] for point in sorted(best)]


def by_project(differences: Sequence[float], projects: Sequence[str]) -> list[float]:
    """Return the sum of the differences of each project, in the order of their first sessions."""
    found: Mapping[str, list[float]] = defaultdict(list)
    for difference, project in zip(differences, projects, strict=True):
        found[project].append(difference)
    return [math.fsum(of_one) for of_one in found.values()]


def differences(one: Sequence[Outcome], other: Sequence[Outcome]) -> list[float]:
    """Return by how many $ the first costs more in each session; below 0 where it costs less."""
    return [a.net - b.net for a, b in zip(one, other, strict=True)]


def is_beyond_one_error(
    one: Sequence[Outcome], other: Sequence[Outcome], projects: Sequence[str]
) -> bool:
    """Whether the first costs less by more than one standard error of the paired difference."""
    clusters = by_project(differences(one, other), projects)
    return math.fsum(clusters) < -standard_error(clusters)


def chosen(candidates: Sequence[Candidate], projects: Sequence[str]) -> Candidate:
    """Return the candidate nearest to the incumbent of those as good as the cheapest.

    As good is within one standard error of the paired difference. Of those with as few changes the
    cheapest is chosen, then the one with less regret.
    """
    best = min(candidates, key=lambda one: (*one.point, one.setting.changes, str(one.setting)))
    as_good = [
        one for one in candidates if not is_beyond_one_error(best.outcomes, one.outcomes, projects)
    ]
    return min(as_good, key=lambda one: (one.setting.changes, *one.point, str(one.setting)))
