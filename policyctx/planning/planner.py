"""`plan`: from a conversation to decisions. Pure: nothing is read or written.

The steps of each moment run in the order of the policy; a step sees the list as the ledger and
the steps before it have left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from policyctx.planning.compacting import replacing
from policyctx.planning.drafts import Draft, drafted
from policyctx.planning.gates import gate_verdicts, opens
from policyctx.planning.ordering import Until, in_order
from policyctx.planning.outlook import Measures, Outlook
from policyctx.planning.plan import Outcome, Plan
from policyctx.planning.reasons import Reason
from policyctx.planning.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.planning.conversation import Conversation
    from policyctx.planning.facts import Facts
    from policyctx.policy.models import Step

Moment = Literal["arrival", "model_call"]
BOTH: tuple[Moment, ...] = ("arrival", "model_call")


def plan(
    conversation: Conversation,
    facts: Facts,
    *,
    moments: tuple[Moment, ...] = BOTH,
    comes_back: bool = False,
) -> Plan:
    """Decide what becomes of each item of a conversation; what was decided stays decided.

    The conversation remembers nothing of it until it adopts the plan. `comes_back` says that the
    list was given as it was handed out in the turn before; it only matters for what is reported.
    """
    outlook = Outlook(conversation, facts)
    outcomes: list[Outcome] = []
    judged = 0
    if "arrival" in moments:
        arrival = _Arrival(outlook, with_pending="model_call" in moments)
        outcomes += arrival.outcomes()
        judged = arrival.judged
    if "model_call" in moments:
        outcomes += _before_call(outlook)
    new = tuple(outlook.taken[i] for i in sorted(outlook.taken))
    return Plan(new, tuple(outcomes), facts, outlook.at, conversation, comes_back, judged)


class _Arrival:
    """The steps on arrival, over the items that are new."""

    def __init__(self, outlook: Outlook, *, with_pending: bool) -> None:
        self._outlook = outlook
        self._at = outlook.at
        arriving, items = outlook.conversation.arriving, outlook.conversation.items
        # In a list, what stands behind a call without an answer is judged when that is there.
        # While results are reported one by one, calls made together with them still run.
        first = (n for n, i in enumerate(arriving) if items[i].message >= self._at.pending)
        self.judged = next(first, len(arriving)) if with_pending else len(arriving)

    def outcomes(self) -> list[Outcome]:
        """Run the steps, each over all that is new."""
        return [self._outcome(step) for step in self._outlook.conversation.policy.steps("arrival")]

    def _outcome(self, step: Step) -> Outcome:
        conversation = self._outlook.conversation
        candidates = conversation.candidates[step.name]
        taking = Taking(self._outlook, step, self._at)
        for position in conversation.arriving[: self.judged]:
            item = conversation.items[position]
            treatment = conversation.policy.treatment(step, item.type, item.tool)
            if treatment is None or taking.is_out(position):
                continue
            if candidates.refusal(item, treatment) is None:
                verdict = candidates.verdict(position, self._at, self._outlook.fate)
                if verdict is not None and verdict.taken:
                    draft = drafted(conversation, position, step, treatment)
                    assert isinstance(draft, Draft)  # noqa: S101 - the verdict has seen to it
                    taking.take(position, draft, treatment, verdict)
        return Outcome(step.name, took=taking.took, left=tuple(taking.left))


def _before_call(outlook: Outlook) -> Iterator[Outcome]:
    """Run the steps before a model call in order, and let each go on where later ones made room."""
    steps = outlook.conversation.policy.steps("model_call")
    begun: list[_BeforeCall] = []
    for step in steps:
        if not step.action.takes_messages:
            begun.append(_BeforeCall(step, outlook))
            begun[-1].run()
    while any(each.go_on() for each in begun):
        pass
    yield from (each.outcome() for each in begun)
    yield from (_compacted(step, outlook) for step in steps if step.action.takes_messages)


class _BeforeCall:
    """A step before a model call: what it takes now, and what it takes when others made room."""

    def __init__(self, step: Step, outlook: Outlook) -> None:
        self._step, self._outlook = step, outlook
        conversation = outlook.conversation
        self._candidates = conversation.candidates[step.name]
        self._candidates.settle()
        measures = Measures(outlook, self._candidates)
        self._verdicts = gate_verdicts(step.name, conversation.policy.gates[step.name], measures.of)
        self._is_open = opens(self._verdicts)
        self._taking, self._until = Taking(outlook, step, outlook.at), Until(step, outlook)
        self._stopped: Reason | None = None
        self._gone = 0

    def run(self) -> None:
        """Take what is ready, where the gates are open."""
        if self._is_open:
            self._take(in_order(self._waiting(), self._step, self._outlook))
            self.go_on()

    def go_on(self) -> bool:
        """Take what could not go while that stood which has left the list since.

        Returns whether anything was taken.
        """
        took = len(self._taking.took)
        while self._is_open and self._stopped is None and self._gone < self._outlook.gone:
            freed = {*self._taking.put_off(), *self._released()}
            self._take(in_order(freed, self._step, self._outlook))
        return len(self._taking.took) > took

    def outcome(self) -> Outcome:
        """Return what became of the step."""
        return Outcome(
            self._step.name,
            self._verdicts,
            self._is_open,
            took=self._taking.took,
            stopped=self._stopped,
            left=tuple(self._taking.left),
        )

    def _waiting(self) -> list[int]:
        candidates, taken = self._candidates, self._outlook.taken
        waiting = [
            position
            for position in candidates.ready
            if not self._taking.is_out(position)
            and not candidates.is_small(position, taken.get(position))
        ]
        return [*waiting, *candidates.grown(taken, self._outlook.fate), *self._released()]

    def _released(self) -> Iterator[int]:
        """Yield what was held back by what the plan has taken out of the list."""
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
                if isinstance(draft, Draft) and not self._taking.is_out(position):
                    treatment = self._candidates.treatment(position)
                    verdict = self._candidates.taken(position, self._outlook.at)
                    self._taking.take(position, draft, treatment, verdict)
        self._until.pause()


def _compacted(step: Step, outlook: Outlook) -> Outcome:
    """Say what a summary is to stand for, in the list as the steps before leave it."""
    conversation = outlook.conversation
    measures = Measures(outlook, conversation.candidates[step.name])
    verdicts = gate_verdicts(step.name, conversation.policy.gates[step.name], measures.of)
    if not opens(verdicts):
        return Outcome(step.name, verdicts, is_open=False)
    found = replacing(step, outlook)
    if isinstance(found, Reason):
        return Outcome(step.name, verdicts, stopped=found)
    return Outcome(step.name, verdicts, replaces=found)
