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
from policyctx.planning.outlook import Outlook, StepNumbers
from policyctx.planning.plan import Outcome, Plan
from policyctx.planning.reasons import Reason
from policyctx.planning.taking import Taking

if TYPE_CHECKING:
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.facts import Facts
    from policyctx.planning.selection import Candidates
    from policyctx.planning.snapshot import Snapshot
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
        for step in conversation.policy.steps("model_call"):
            run = _compacted if step.do == "compact" else _before_call
            outcomes.append(run(step, outlook))
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
        candidates, taking = (
            conversation.candidates[step.name],
            Taking(self._outlook, step, self._at),
        )
        for position in conversation.arriving[: self.judged]:
            item = conversation.items[position]
            treatment = conversation.policy.treatment(step, item.type, item.tool)
            if treatment is None or taking.is_out(position):
                continue
            if candidates.refusal(item, treatment) is None:
                verdict = candidates.verdict(position, self._at)
                if verdict is not None and verdict.taken:
                    draft = drafted(conversation, position, step, treatment)
                    assert isinstance(draft, Draft)  # noqa: S101 - the verdict has seen to it
                    taking.take(position, draft, treatment, verdict)
        return Outcome(step.name, took=taking.took, left=tuple(taking.left))


def _before_call(step: Step, outlook: Outlook) -> Outcome:
    """Run one step before a model call."""
    conversation = outlook.conversation
    candidates = conversation.candidates[step.name]
    candidates.settle()
    gates, numbers = conversation.policy.gates[step.name], StepNumbers(outlook, candidates)
    verdicts = gate_verdicts(step.name, gates, numbers)
    if not opens(verdicts):
        return Outcome(step.name, verdicts, is_open=False)
    at = outlook.at
    taking, until = Taking(outlook, step, at), Until(step, outlook)
    stopped = None
    waiting = [
        position
        for position in candidates.ready
        if not taking.is_out(position)
        and not candidates.is_small(position, outlook.taken.get(position))
    ]
    waiting += candidates.grown(outlook.taken)
    portions = in_order(waiting, step, outlook)
    while portions and stopped is None:
        before = len(outlook.taken)
        for portion in portions:
            if (stopped := until.reached()) is not None:
                break
            for position in portion:
                _take(position, candidates, taking, at)
        # What would have left the list without a beginning may go once more of it is gone.
        made_room = stopped is None and len(outlook.taken) > before
        portions = [[position] for position in taking.put_off()] if made_room else []
    left = tuple(taking.left)
    return Outcome(step.name, verdicts, took=taking.took, stopped=stopped, left=left)


def _compacted(step: Step, outlook: Outlook) -> Outcome:
    """Say what a summary is to stand for, in the list as the steps before leave it."""
    conversation = outlook.conversation
    numbers = StepNumbers(outlook, conversation.candidates[step.name])
    verdicts = gate_verdicts(step.name, conversation.policy.gates[step.name], numbers)
    if not opens(verdicts):
        return Outcome(step.name, verdicts, is_open=False)
    found = replacing(step, outlook)
    if isinstance(found, Reason):
        return Outcome(step.name, verdicts, stopped=found)
    return Outcome(step.name, verdicts, replaces=found)


def _take(position: int, candidates: Candidates, taking: Taking, at: Snapshot) -> None:
    if not taking.is_out(position):
        treatment = candidates.treatment(position)
        draft = candidates.ready.get(position)
        taking.take(position, draft, treatment, candidates.taken(position, at))
