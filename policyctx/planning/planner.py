"""`Planner`: makes plans for a conversation. Pure: nothing is read or written.

The steps of each moment run in the order of the policy; a step sees the list as the ledger and
the steps before it have left it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Literal

from policyctx.planning.compact import replacing
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import FAILED, Decision, Reason
from policyctx.planning.facts import Facts
from policyctx.planning.gates import (
    AfterReplacing,
    GateVerdict,
    Measures,
    gates_of,
    opens,
    sizes_of_selection,
)
from policyctx.planning.outlook import Outlook
from policyctx.planning.plan import Outcome, Plan
from policyctx.planning.select import Candidates
from policyctx.planning.take import Draft, Taking
from policyctx.policy.models import Step
from policyctx.policy.models.gates import Until
from policyctx.policy.values import Share

Moment = Literal["arrival", "model_call", "overflow"]
Moments = tuple[Moment, ...]
BOTH: Moments = ("arrival", "model_call")
_NOT_REFUSED = Reason("not_refused")


class Planner:
    """The plans for one conversation, and the candidates of each step.

    The candidates follow the conversation, so a plan costs what is new since the one before.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        policy = conversation.policy
        self.gates = {step.name: gates_of(step) for step in policy.all_steps}
        self.candidates = {
            step.name: Candidates(step, conversation, sizes_of_selection(step))
            for step in policy.all_steps
        }
        self.arrival = policy.steps("arrival")
        steps = (*policy.steps("model_call"), *policy.steps("overflow"))
        self.compacting = [step for step in steps if step.name in policy.compacting]
        others = [step for step in steps if step.name not in policy.compacting]
        self.before_call = [step for step in others if step.waits_for is None]
        self.waiting = [step for step in others if step.waits_for is not None]
        """Those that run behind a `compact` step that made no summary."""
        self._growing = [self.candidates[step.name] for step in others]
        conversation.watch(self._changed)

    def _changed(self, position: int, fate: Decision) -> None:
        for candidates in self._growing:
            candidates.note(position, fate)

    def plan(
        self,
        facts: Facts,
        *,
        moments: Moments = BOTH,
        demanded: Step | None = None,
        comes_back: bool = False,
    ) -> Plan:
        """Decide what becomes of each item; earlier decisions stay.

        The conversation does not change until `adopt` carries the plan out. `comes_back` says that
        the list was given as it was handed out in the turn before; it only affects the report.
        `demanded` is a `compact` step that runs last, whatever its gates say.
        """
        outlook = Outlook(self.conversation, facts)
        outcomes: list[Outcome] = []
        judged = 0
        if self.arrival and "arrival" in moments:
            judged = _arrived(outlook, with_pending="model_call" in moments)
            outcomes += [_on_arrival(self, step, outlook, judged) for step in self.arrival]
        if {*moments} != {"arrival"} and moments:
            outcomes += _before_call(self, outlook, moments)
        if demanded is not None:
            outcomes.append(_replaced(demanded, outlook, ()))
        return self._planned(outlook, outcomes, comes_back=comes_back, judged=judged)

    def plan_instead(self, planned: Plan, failed: str) -> Plan | None:
        """Decide what the steps take that wait for the failure of a step; None without such steps.

        `planned` is the plan that is carried out already, without its summary.
        """
        there = {outcome.step for outcome in planned.outcomes}
        steps = [s for s in self.waiting if s.waits_for == failed and s.name in there]
        if not steps:
            return None
        outlook = Outlook(self.conversation, planned.facts)
        outlook.failed.add(failed)
        outcomes = _taken(self, steps, outlook, {step.on for step in steps})
        return self._planned(outlook, [*outcomes])

    def _planned(
        self,
        outlook: Outlook,
        outcomes: Iterable[Outcome],
        *,
        comes_back: bool = False,
        judged: int = 0,
    ) -> Plan:
        return Plan(
            new=tuple(map(outlook.taken.__getitem__, sorted(outlook.taken))),
            outcomes=tuple(outcomes),
            facts=outlook.facts,
            at=outlook.at,
            conversation=self.conversation,
            candidates=self.candidates,
            comes_back=comes_back,
            judged=judged,
        )


def _arrived(outlook: Outlook, *, with_pending: bool) -> int:
    """Return the number of arriving items that the steps on arrival judge now.

    In a list, what is behind a call without an answer is judged when that is there. While results
    are reported one by one, calls made together with them still run.
    """
    arriving, items = outlook.conversation.arrivals.due, outlook.conversation.items
    first = (n for n, i in enumerate(arriving) if items[i].message >= outlook.at.pending)
    return next(first, len(arriving)) if with_pending else len(arriving)


def _on_arrival(planner: Planner, step: Step, outlook: Outlook, judged: int) -> Outcome:
    """Run a step on arrival over what is new, and of which no earlier turn left a placeholder."""
    candidates = planner.candidates[step.name]
    taking = Taking(outlook, step, outlook.at)
    for position in outlook.conversation.arrivals.due[:judged]:
        if position in outlook.conversation.fates or outlook.is_out_for(position, step):
            continue
        draft = candidates.draft_on_arrival(position, outlook.at)
        if isinstance(draft, Draft):
            verdict = candidates.taken(position, outlook.at)
            taking.take(position, candidates.treatment(position), verdict, draft)
        elif draft is not None and draft.until:
            taking.left.append((position, draft))
    return Outcome(step.name, took=taking.took, left=tuple(taking.left))


def _before_call(planner: Planner, outlook: Outlook, moments: Moments) -> Iterator[Outcome]:
    """Run the steps before a model call in order, and last those that wait for a failed summary.

    Those on overflow only run if the call was refused, and their `compact` replaces any other.
    """
    yield from _taken(planner, planner.before_call, outlook, moments)
    newest = [step for step in planner.compacting if step.on in moments][-1:]
    for step in planner.compacting:
        if step in newest:
            outcome = _compacted(planner, step, outlook)
            if outcome.stopped is not None and outcome.stopped.code in FAILED:
                outlook.failed.add(step.name)
            yield outcome
        elif step.on == "overflow":
            yield Outcome(step.name, is_open=False, stopped=_NOT_REFUSED)
    yield from _taken(planner, planner.waiting, outlook, moments)


def _taken(
    planner: Planner, steps: Iterable[Step], outlook: Outlook, moments: Collection[str]
) -> Iterator[Outcome]:
    """Run steps that take items; each goes on where later ones made room."""
    begun: list[Outcome | _BeforeCall] = []
    for step in steps:
        if step.on not in moments:
            if step.on == "overflow":
                begun.append(Outcome(step.name, is_open=False, stopped=_NOT_REFUSED))
            continue
        candidates = planner.candidates[step.name]
        candidates.settle()
        verdicts = Measures(outlook, candidates).verdicts(planner.gates[step.name])
        if opens(verdicts):
            begun.append(running := _BeforeCall(step, outlook, candidates, verdicts))
            running.run()
        else:
            begun.append(Outcome(step.name, verdicts, is_open=False))
    while outlook.gone and any(isinstance(each, _BeforeCall) and each.go_on() for each in begun):
        pass
    for each in begun:
        yield each.outcome() if isinstance(each, _BeforeCall) else each


class _BeforeCall:
    """A step whose gates are open: what it takes now, and what when later steps made room."""

    def __init__(
        self,
        step: Step,
        outlook: Outlook,
        candidates: Candidates,
        verdicts: tuple[GateVerdict, ...],
    ) -> None:
        self._step, self._outlook, self._candidates = step, outlook, candidates
        self._verdicts = verdicts
        self._taking = Taking(outlook, step, outlook.at, self._held)
        self._until = StopConditions(step, outlook)
        self._stopped: Reason | None = None
        self._gone = 0

    def run(self) -> None:
        """Take what is ready."""
        self._take(in_order(self._waiting(), self._step, self._outlook))
        self.go_on()

    def go_on(self) -> bool:
        """Take what items held that have left the list since; return whether it took anything."""
        took = len(self._taking.took)
        while self._stopped is None and self._gone < self._outlook.gone:
            freed = {*self._taking.put_off(), *self._released()}
            self._take(in_order(freed, self._step, self._outlook))
        return len(self._taking.took) > took

    def outcome(self) -> Outcome:
        """Return what became of the step."""
        return Outcome(
            self._step.name,
            self._verdicts,
            took=self._taking.took,
            stopped=self._stopped,
            left=tuple(self._taking.left),
        )

    def _held(self, position: int) -> Reason | None:
        return self._candidates.why_kept(position, self._outlook.at, self._outlook.fate)

    def _waiting(self) -> list[int]:
        candidates, taken = self._candidates, self._outlook.taken
        waiting = [
            position
            for position in candidates.ready
            if not self._outlook.is_out_for(position, self._step)
            and not candidates.is_small(position, taken.get(position))
            and candidates.is_superseded(position, self._outlook.fate)
        ]
        return [*waiting, *candidates.grown(taken, self._outlook.fate), *self._released()]

    def _released(self) -> Iterator[int]:
        """Yield what only items held that the plan has taken out of the list."""
        if self._outlook.gone:
            yield from self._candidates.released(self._outlook.fate)

    def _take(self, portions: list[list[int]]) -> None:
        """Take portion by portion until enough is done."""
        self._gone = self._outlook.gone
        self._until.resume()
        for portion in portions:
            if (stopped := self._until.reached()) is not None:
                self._stopped = stopped
                return
            for position in portion:
                draft = self._candidates.draft(position)
                is_out = self._outlook.is_out_for(position, self._step)
                if isinstance(draft, Draft) and not is_out:
                    treatment = self._candidates.treatment(position)
                    fate = self._outlook.fate(position)
                    verdict = self._candidates.taken(position, self._outlook.at, fate)
                    self._taking.take(position, treatment, verdict, draft)
        self._until.pause()


def _compacted(planner: Planner, step: Step, outlook: Outlook) -> Outcome:
    """Return what a summary is to replace, in the list as the steps before leave it."""
    measures, gates = Measures(outlook, planner.candidates[step.name]), planner.gates[step.name]
    verdicts = measures.verdicts(gates)
    if not opens(verdicts):
        return Outcome(step.name, verdicts, is_open=False)
    return _replaced(step, outlook, verdicts, partial(measures.left_without, gates, verdicts))


def _replaced(
    step: Step,
    outlook: Outlook,
    verdicts: tuple[GateVerdict, ...],
    left_without: Callable[[Sequence[int], int], AfterReplacing] = lambda *_: AfterReplacing(),
) -> Outcome:
    """Return what a step with open gates replaces, or why it replaces nothing."""
    found = replacing(step, outlook, left_without)
    if isinstance(found, Reason):
        return Outcome(step.name, verdicts, stopped=found)
    return Outcome(step.name, verdicts, replaces=found)


def in_order(positions: Iterable[int], step: Step, outlook: Outlook) -> list[list[int]]:
    """Return the positions in the step's order, in portions; `until` is evaluated before each.

    A portion is one item; under `by_type`, all items of one of the types.
    """
    oldest = sorted(positions)
    if step.select.order == "by_type":
        return _by_type(oldest, step, outlook)
    if step.select.order == "largest":
        unit = outlook.conversation.policy.unit(step)
        oldest.sort(key=lambda position: -outlook.size(position, unit))
    return [[position] for position in oldest]


def _by_type(oldest: Sequence[int], step: Step, outlook: Outlook) -> list[list[int]]:
    conversation = outlook.conversation
    named = step.select.types or ()
    portions: dict[int, list[int]] = {}
    for position in oldest:
        lineage = conversation.policy.types.lineage(conversation.items[position].type)
        rank = next((i for i, name in enumerate(named) if name in lineage), len(named))
        portions.setdefault(rank, []).append(position)
    return [portions[rank] for rank in sorted(portions)]


class StopConditions:
    """The conditions of `until`: any of a list ends the step, of a map all have to hold."""

    def __init__(self, step: Step, outlook: Outlook) -> None:
        self._conditions = step.select.until or ()
        self._outlook = outlook
        self._freed = self._since = 0

    def resume(self) -> None:
        """Count what is freed from here on."""
        self._since = self._total()

    def pause(self) -> None:
        """Stop counting while other steps take items."""
        self._freed += self._since - self._total()

    def reached(self) -> Reason | None:
        """Return the condition that holds, with its numbers; None while the step goes on."""
        for condition in self._conditions:
            holds = self._comparison(condition)
            if holds is not None:
                return Reason("until_reached", {"until": holds})
        return None

    def _comparison(self, condition: Until) -> str | None:
        compared = []
        if condition.tokens is not None:
            tokens, under = self._outlook.tokens(), self._exact(condition.tokens.under)
            if tokens >= under:
                return None
            compared.append(f"tokens: {tokens:,} < {float(under):,.10g}")
        if condition.messages is not None:
            messages, under = self._outlook.messages, condition.messages.under
            if messages >= under:
                return None
            compared.append(f"messages: {messages:,} < {under:,}")
        if condition.frees is not None:
            freed = self._freed + self._since - self._total()
            if freed < (least := self._exact(condition.frees.at_least)):
                return None
            compared.append(f"frees: {freed:,} >= {float(least):,.10g} tokens")
        return "; ".join(compared)

    def _exact(self, amount: int | Share) -> Fraction | int:
        if not isinstance(amount, Share):
            return amount
        window = self._outlook.facts.window(self._outlook.conversation.policy.model)
        return amount.percent * window / 100

    def _total(self) -> int:
        return self._outlook.total("tokens") if self._conditions else 0
