"""The search for the front: a coarse grid, successive halving, then steps from what is best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policyctx.tuning.choosing import Candidate, Constraints, front, promoted, violated
from policyctx.tuning.outcomes import Outcome
from policyctx.tuning.settings import Setting, Value
from policyctx.tuning.space import Space


class Outcomes(Protocol):
    """Where a search gets its outcomes."""

    def of(
        self, settings: Sequence[Setting], sessions: Sequence[int]
    ) -> Mapping[Setting, tuple[Outcome, ...]]:
        """Return the outcomes in these sessions, in their order.

        A setting that is not a valid policy, or fails in a session, is left out, and one of several
        that make the same policy stands for all.
        """


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a search tries."""

    shares: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Of the sessions: what the settings of each rung are judged by."""
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
        self, rungs: Sequence[Sequence[int]], tools: Mapping[str, tuple[Value, ...]]
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
        outcomes = self.outcomes.of([Setting(), *settings], sessions)
        incumbent = Candidate(Setting(), outcomes[Setting()])
        others = [Candidate(s, o) for s, o in outcomes.items() if s != Setting()]
        valid = [one for one in others if not violated(one, incumbent, self.constraints)]
        return [incumbent, *valid]
