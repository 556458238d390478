"""`Study`: from recordings to a policy that earns its place on projects that it has not seen.

The settings are searched over all sessions. Whether the choice holds is tested by folds: the same
search and choice over the other projects, judged by the sessions of those left out. The incumbent
stays unless these save more than one standard error beyond it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policyctx.policy.sources import preset_names
from policyctx.policy.writing import document_yaml
from policyctx.tuning import search
from policyctx.tuning.evaluating import Evaluator, Tried, TunedSession, tried
from policyctx.tuning.outcomes import (
    Interval,
    SessionOutcome,
    SessionTally,
    bootstrap_interval,
    influence,
    tally,
)
from policyctx.tuning.settings import SUMMARISE_ONLY, Incumbent, Setting, space_for, tool_rules

# With fewer projects no setting can be tested on projects that it was not chosen on.
MIN_PROJECTS = 8
# The name of each policy that is tried, so that equal ones have the same digest.
_NAME = "setting"


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How a study is made."""

    seed: int = 0
    folds: int = 5
    constraints: search.Constraints = field(default_factory=search.Constraints)
    effort: search.Effort = field(default_factory=search.Effort)

    @property
    def most_batches(self) -> int:
        """How many batches of settings are replayed at most: in each search, and around it."""
        of_search = (len(self.effort.shares) + 1) * (1 + self.effort.rounds)
        return 2 + of_search + self.folds * (of_search + 2)


@dataclass(frozen=True, slots=True)
class CandidateComparison:
    """A candidate against something else, over the same sessions; $ below 0 are in its favour."""

    against: str
    difference: float
    interval: Interval | None
    """Of 95 %, by bootstrap over projects; over sessions where the projects are few."""
    is_by_project: bool
    regret_tokens: int
    """By how many tokens more must be read again."""
    tally: SessionTally
    """Sessions that cost less, more and about the same."""
    largest: str
    """The session whose absence changes the difference most; empty without sessions."""
    without_largest: float
    """The difference without that session."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What the search and the choice come to on projects that they have not seen."""

    comparison: CandidateComparison
    """Against the incumbent."""
    settings: tuple[Setting, ...]
    """The choice of each fold."""
    holds: bool
    """Whether it saves more than one standard error beyond the incumbent."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A preset, or the incumbent, over all sessions."""

    name: str
    candidate: search.Candidate
    violates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of a study."""

    sessions: tuple[TunedSession, ...]
    """Those with prices, over which everything is summed."""
    projects: int
    incumbent: search.Candidate
    summarise_only: search.Candidate | None
    """The steps of the incumbent that summarise, alone; None if it was not tried in time."""
    front: tuple[search.Candidate, ...] = ()
    judged: tuple[search.Candidate, ...] = ()
    """Every setting that was tried in all the sessions and violates nothing."""
    best: search.Candidate | None = None
    """The choice over all sessions, before it is tested."""
    winner: search.Candidate | None = None
    """The choice that holds: `best` or the incumbent. None where presets are ranked only."""
    tested: Tested | None = None
    comparisons: tuple[CandidateComparison, ...] = ()
    """The best setting against the incumbent, nothing, and summarise-only."""
    presets: tuple[Ranked, ...] = ()
    """With too few projects: the presets, the cheapest first."""
    settings: int = 0
    """Different settings that were tried."""
    replays: int = 0
    is_interrupted: bool = False


class Study:
    """Sessions with prices, and the settings that were tried in them."""

    def __init__(
        self,
        incumbent: Incumbent,
        sessions: Sequence[TunedSession],
        evaluator: Evaluator,
        options: StudyOptions,
    ) -> None:
        """Take sessions that have an outcome under the incumbent; see `incumbent_policy`."""
        self.sessions = tuple(sessions)
        self._by_number = {one.number: one for one in sessions}
        self._incumbent = incumbent
        self._evaluator = evaluator
        self._options = options
        self._policies: dict[Setting, Tried | None] = {}
        self._projects = [one.project for one in sessions]
        self._all = tuple(one.number for one in sessions)

    def tuned(self) -> Tuned:
        """Search, choose, and test the choice; Ctrl-C ends that with the best so far."""
        if len(set(self._projects)) < MIN_PROJECTS:
            return self._ranked()
        is_interrupted = False
        tested = None
        try:
            self.of([SUMMARISE_ONLY], self._all)
            candidates = self._candidates(self._all)
            tested = self._tested()
        except KeyboardInterrupt:
            is_interrupted = True
            candidates = self._known()
        incumbent, valid = self._valid(candidates)
        best = search.chosen(valid, self._projects)
        holds = tested.holds if tested is not None else is_interrupted
        winner = best if holds else incumbent
        summarise_only = self._known_candidate(SUMMARISE_ONLY)
        return Tuned(
            sessions=self.sessions,
            projects=len(set(self._projects)),
            incumbent=incumbent,
            summarise_only=summarise_only,
            front=tuple(search.front(valid)),
            judged=tuple(valid),
            best=best,
            winner=winner,
            tested=tested,
            comparisons=tuple(self._comparisons(best, incumbent, summarise_only)),
            settings=len({p.digest for p in self._policies.values() if p is not None}),
            replays=self._evaluator.replays,
            is_interrupted=is_interrupted,
        )

    def of(
        self, settings: Sequence[Setting], sessions: Sequence[int]
    ) -> Mapping[Setting, tuple[SessionOutcome, ...]]:
        """Return the outcomes of settings, as `search.Outcomes` says."""
        by_digest: dict[str, tuple[Setting, Tried]] = {}
        for setting in sorted(settings, key=lambda one: (one.changes, str(one))):
            if (policy := self._policy(setting)) is not None:
                by_digest.setdefault(policy.digest, (setting, policy))
        self._evaluator.evaluate([policy for _, policy in by_digest.values()], sessions)
        found = {
            setting: self._outcomes(policy.digest, sessions)
            for setting, policy in by_digest.values()
        }
        return {setting: outcomes for setting, outcomes in found.items() if outcomes is not None}

    def _policy(self, setting: Setting) -> Tried | None:
        if setting not in self._policies:
            self._policies[setting] = tried(self._incumbent.text(setting, name=_NAME))
        return self._policies[setting]

    def _outcomes(self, digest: str, sessions: Sequence[int]) -> tuple[SessionOutcome, ...] | None:
        """Return the outcomes of a policy; None if it failed in a session."""
        found: list[SessionOutcome] = []
        for session in sessions:
            outcome = self._evaluator.outcome(digest, session)
            if not isinstance(outcome, SessionOutcome):
                return None
            found.append(outcome)
        return tuple(found)

    def _candidates(self, numbers: Sequence[int]) -> list[search.Candidate]:
        """Return the settings that a search over these sessions judges by all of them."""
        sessions = [self._by_number[number] for number in numbers]
        [incumbents] = self.of([Setting()], self._all).values()
        costly = search.costly(self.sessions, [one.without for one in incumbents])
        ordered = search.stratified(costly, seed=self._options.seed)
        shares = self._options.effort.shares
        rungs = [search.subset(ordered, share, among=numbers) or numbers for share in shares]
        rungs.append(numbers)
        searched = search.Search(
            space_for(self._incumbent), self.of, self._options.constraints, self._options.effort
        )
        found = searched.candidates(rungs, tool_rules(one.tools for one in sessions))
        outcomes = self.of([one.setting for one in found], numbers)
        return [search.Candidate(setting, outcomes[setting]) for setting in outcomes]

    def _valid(
        self, candidates: Sequence[search.Candidate]
    ) -> tuple[search.Candidate, list[search.Candidate]]:
        """Return the incumbent, and with it the candidates that violate nothing."""
        [incumbent] = [one for one in candidates if one.setting == Setting()]
        constraints = self._options.constraints
        others = [one for one in candidates if one is not incumbent]
        valid = [one for one in others if not search.violated(one, incumbent, constraints)]
        return incumbent, [incumbent, *valid]

    def _known(self) -> list[search.Candidate]:
        """Return the settings that were tried in all the sessions so far."""
        found = map(self._known_candidate, dict.fromkeys([Setting(), *self._policies]))
        return [one for one in found if one is not None]

    def _tested(self) -> Tested:
        """Choose in each fold by the other projects, and judge by those left out."""
        outcomes: dict[int, SessionOutcome] = {}
        settings = []
        for fold in search.folds(self.sessions, self._options.folds, seed=self._options.seed):
            choice = self._choice(fold)
            judged = self.of([choice.setting], fold.test)
            # A choice that fails in a session left out gives way to the incumbent.
            [of_choice] = (judged or self.of([Setting()], fold.test)).values()
            outcomes.update(zip(fold.test, of_choice, strict=True))
            settings.append(choice.setting)
        one = tuple(outcomes[number] for number in self._all)
        other = self.of([Setting()], self._all)[Setting()]
        comparison = self._comparison("incumbent", one, other)
        holds = search.is_beyond_one_error(one, other, self._projects)
        return Tested(comparison, tuple(settings), holds)

    def _choice(self, fold: search.StudyFold) -> search.Candidate:
        _, valid = self._valid(self._candidates(fold.train))
        projects = [self._by_number[number].project for number in fold.train]
        return search.chosen(valid, projects)

    def _known_candidate(self, setting: Setting) -> search.Candidate | None:
        """Return a setting with its outcomes; None if it was not tried in all sessions."""
        policy = self._policy(setting)
        if policy is None or not self._evaluator.knows(policy.digest, self._all):
            return None
        outcomes = self._outcomes(policy.digest, self._all)
        return None if outcomes is None else search.Candidate(setting, outcomes)

    def _comparisons(
        self,
        best: search.Candidate,
        incumbent: search.Candidate,
        summarise_only: search.Candidate | None,
    ) -> Iterable[CandidateComparison]:
        nothing = tuple(one.unedited for one in best.outcomes)
        yield self._comparison("incumbent", best.outcomes, incumbent.outcomes)
        yield self._comparison("nothing", best.outcomes, nothing)
        if summarise_only is not None:
            yield self._comparison("summarise-only", best.outcomes, summarise_only.outcomes)

    def _comparison(
        self, against: str, one: Sequence[SessionOutcome], other: Sequence[SessionOutcome]
    ) -> CandidateComparison:
        found = search.differences(one, other)
        is_by_project = len(set(self._projects)) >= MIN_PROJECTS
        clusters = search.by_project(found, self._projects) if is_by_project else found
        largest = influence(found)
        return CandidateComparison(
            against=against,
            difference=math.fsum(found),
            interval=bootstrap_interval(clusters, seed=self._options.seed),
            is_by_project=is_by_project,
            regret_tokens=sum(
                a.regret_tokens - b.regret_tokens for a, b in zip(one, other, strict=True)
            ),
            tally=tally(found, [session.margin for session in other]),
            largest="" if largest is None else self.sessions[largest.position].name,
            without_largest=0.0 if largest is None else largest.without,
        )

    def _ranked(self) -> Tuned:
        """Rank the presets under the incumbent's model; too few projects allow no more."""
        incumbent = search.Candidate(Setting(), self.of([Setting()], self._all)[Setting()])
        is_interrupted = False
        found = [Ranked(self._incumbent.label, incumbent, ())]
        try:
            self.of([SUMMARISE_ONLY], self._all)
            found += [
                ranked
                for name in preset_names()
                if name != self._incumbent.name
                if (ranked := self._preset(name, incumbent)) is not None
            ]
        except KeyboardInterrupt:
            is_interrupted = True
        return Tuned(
            sessions=self.sessions,
            projects=len(set(self._projects)),
            incumbent=incumbent,
            summarise_only=self._known_candidate(SUMMARISE_ONLY),
            presets=tuple(sorted(found, key=lambda one: (bool(one.violates), one.candidate.point))),
            settings=len(found) + 1,
            replays=self._evaluator.replays,
            is_interrupted=is_interrupted,
        )

    def _preset(self, name: str, incumbent: search.Candidate) -> Ranked | None:
        policy = tried(document_yaml(self._incumbent.on_preset(name, called=_NAME)))
        if policy is None:
            return None
        self._evaluator.evaluate([policy], self._all)
        if (outcomes := self._outcomes(policy.digest, self._all)) is None:
            return None
        candidate = search.Candidate(Setting(), outcomes)
        return Ranked(
            name, candidate, search.violated(candidate, incumbent, self._options.constraints)
        )


def incumbent_policy(incumbent: Incumbent) -> Tried | None:
    """Return the policy under which it shows which sessions have prices."""
    return tried(incumbent.text(Setting(), name=_NAME))
