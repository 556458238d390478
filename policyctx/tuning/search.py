"""The search for the front: a coarse grid, successive halving, then steps from what is best."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from policyctx.tuning.evaluating import TunedSession, balanced
from policyctx.tuning.outcomes import SessionOutcome, layers, standard_error, sums
from policyctx.tuning.settings import Setting, Space, Values

# The outcomes of settings in sessions of these numbers, in their order. A setting that is not a
# valid policy, or fails in a session, is left out, and one of several that make the same policy
# stands for all.
Outcomes: TypeAlias = Callable[
    [Sequence[Setting], Sequence[int]], Mapping[Setting, tuple[SessionOutcome, ...]]
]
# Sessions are small, middling or large among those of their format.
_SIZES = 3
# The fewest sessions with this share of all dollars stand for all of them.
_TELLING = 0.95


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a setting must not do."""

    never_dearer: bool = False
    max_regret: float | None = None
    """The most regretted tokens, as a multiple of the incumbent's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting, and its outcomes in the same sessions as those of the others."""

    setting: Setting
    outcomes: tuple[SessionOutcome, ...]

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


def differences(one: Sequence[SessionOutcome], other: Sequence[SessionOutcome]) -> list[float]:
    """Return by how many $ the first costs more in each session; below 0 where it costs less."""
    return [a.net - b.net for a, b in zip(one, other, strict=True)]


def is_beyond_one_error(
    one: Sequence[SessionOutcome], other: Sequence[SessionOutcome], projects: Sequence[str]
) -> bool:
    """Whether the first costs less by more than one standard error of the paired difference."""
    clusters = by_project(differences(one, other), projects)
    return math.fsum(clusters) < -standard_error(clusters)


def chosen(candidates: Sequence[Candidate], projects: Sequence[str]) -> Candidate:
    """Return the incumbent, or the one nearest to it on the front, that is as good as the cheapest.

    As good is within one standard error of the paired difference. Of those with as few changes the
    cheapest is chosen.
    """
    incumbents = [one for one in candidates if not one.setting.changes]
    best, *others = front(candidates)
    as_good = [best] + [
        one
        for one in [*incumbents, *others]
        if not is_beyond_one_error(best.outcomes, one.outcomes, projects)
    ]
    return min(as_good, key=lambda one: (one.setting.changes, *one.point, str(one.setting)))


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search tries."""

    shares: tuple[float, ...] = (1 / 3, 1.0)
    """Of the sessions that cost most: what the settings of each rung are judged by.

    One more rung has all sessions.
    """
    kept: float = 1 / 3
    """The share of the settings that goes to the next rung."""
    rounds: int = 2
    """How often neighbours of the front are tried."""
    parents: int = 4
    """Of how many settings of the front."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search in a space over some sessions."""

    space: Space
    outcomes: Outcomes
    constraints: Constraints
    effort: Effort = field(default_factory=Effort)

    def candidates(
        self, rungs: Sequence[Sequence[int]], tools: Mapping[str, Values]
    ) -> list[Candidate]:
        """Return settings that violate no constraint, each judged by all of the sessions.

        `rungs` are the numbers of the sessions by which settings are judged in turn, those of all
        sessions last; `tools` the rules for one tool that may be tried. The incumbent is one of the
        candidates, whatever it violates.
        """
        found = self._halved(self.space.grid(), rungs)
        seen = set(self.space.grid())
        for _ in range(self.effort.rounds):
            parents = front(list(found.values()))[: self.effort.parents]
            # A rule for one tool is tried with the best setting alone.
            tried = [
                one
                for i, parent in enumerate(parents)
                for one in self.space.neighbours(parent.setting, {} if i else tools)
            ]
            new = [one for one in dict.fromkeys(tried) if one not in seen]
            if not new:
                break
            seen.update(new)
            found |= self._halved(new, rungs)
        return list(found.values())

    def _halved(
        self, settings: Sequence[Setting], rungs: Sequence[Sequence[int]]
    ) -> dict[Setting, Candidate]:
        """Return the candidates that are left when all the sessions have judged."""
        left = list(settings)
        for sessions in rungs:
            judged = self.judged([Setting(), *left], sessions)
            valid = [one for one in judged if one.setting != Setting()]
            count = max(self.effort.parents, math.ceil(self.effort.kept * len(valid)))
            left = [one.setting for one in promoted(valid, count)]
        return {one.setting: one for one in judged}

    def judged(self, settings: Sequence[Setting], sessions: Sequence[int]) -> list[Candidate]:
        """Return those settings as candidates that violate no constraint in these sessions.

        The first of them is the incumbent, which stays whatever it violates.
        """
        outcomes = self.outcomes([Setting(), *settings], sessions)
        incumbent = Candidate(Setting(), outcomes[Setting()])
        others = [Candidate(s, o) for s, o in outcomes.items() if s != Setting()]
        valid = [one for one in others if not violated(one, incumbent, self.constraints)]
        return [incumbent, *valid]


class StudyFold(NamedTuple):
    """Numbers of sessions; no project is in both."""

    train: tuple[int, ...]
    test: tuple[int, ...]


def costly(sessions: Sequence[TunedSession], dollars: Sequence[float]) -> list[TunedSession]:
    """Return the fewest sessions with most of the dollars; nothing in the others weighs much."""
    order = sorted(range(len(sessions)), key=lambda i: (-dollars[i], i))
    before = accumulate((dollars[i] for i in order), initial=0.0)
    enough = _TELLING * math.fsum(dollars)
    chosen = {i for i, sum_ in zip(order, before, strict=False) if sum_ < enough}
    return [one for i, one in enumerate(sessions) if i in chosen or not enough]


def stratified(sessions: Sequence[TunedSession], *, seed: int) -> list[int]:
    """Return the numbers of the sessions so that each beginning of the list has all kinds.

    The kinds are formats, and small, middling and large sessions in each. The order within a kind
    is drawn.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    by_format: dict[str, list[TunedSession]] = defaultdict(list)
    for session in sessions:
        by_format[session.format].append(session)
    places: list[tuple[float, float, int]] = []
    for _, of_format in sorted(by_format.items()):
        ordered = sorted(of_format, key=lambda one: (one.calls, one.number))
        for size in range(_SIZES):
            bounds = (len(ordered) * i // _SIZES for i in (size, size + 1))
            kind = ordered[slice(*bounds)]
            chance.shuffle(kind)
            places += [
                ((i + 0.5) / len(kind), chance.random(), one.number) for i, one in enumerate(kind)
            ]
    return [number for *_, number in sorted(places)]


def subset(ordered: Sequence[int], share: float, among: Collection[int]) -> tuple[int, ...]:
    """Return those of the first share of a stratified list that are among some, at least one.

    So the subsets of a fold are parts of the subsets of all: what was replayed in the ones is not
    replayed for the others.
    """
    found = ordered[: max(1, math.ceil(share * len(ordered)))]
    wanted = [number for number in ordered if number in among]
    return tuple(number for number in found if number in among) or tuple(wanted[:1])


def folds(sessions: Sequence[TunedSession], count: int, *, seed: int) -> list[StudyFold]:
    """Return folds in which each project is tested once, with about as many calls in each.

    There are as many folds as projects if there are fewer of these.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    by_project: dict[str, list[TunedSession]] = defaultdict(list)
    for session in sessions:
        by_project[session.project].append(session)
    projects = [*by_project]  # by their first sessions; a name may be a path of this machine
    chance.shuffle(projects)
    calls = {name: sum(1 + one.calls for one in by_project[name]) for name in projects}
    return [
        StudyFold(
            tuple(one.number for one in sessions if one.project not in group),
            tuple(one.number for one in sessions if one.project in group),
        )
        for group in balanced(calls, count)
    ]
