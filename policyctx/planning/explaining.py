"""Why each item is where it is: every step's word on it, found when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.definitions.actions import Action
from policyctx.planning.decisions import Decision
from policyctx.planning.reasons import Reason
from policyctx.planning.selection import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policyctx.planning.plan import Outcome, Plan
    from policyctx.policy.lookup import RulePath


# What is counted of a result that holds nothing but media.
_NO_BLOCKS = "[]"


class StepVerdict(NamedTuple):
    """One step's word on one item: taken by it or not, why, and the key that says so."""

    step: str
    taken: bool
    reason: Reason
    rule_path: RulePath

    @property
    def rule(self) -> str:
        """The key in one word: `tools.mcp__*.min_tokens`."""
        return ".".join(self.rule_path)


def decisions_at(plan: Plan) -> Iterator[Decision]:
    """Yield the decision on each item that is out or is a candidate of a step, in order."""
    record = _Record(plan)
    for position in range(plan.at.items):
        decision = record.decision(position)
        if decision.step or decision.action is not Action.KEEP:
            yield decision


def decision_on(plan: Plan, position: int) -> Decision:
    """Return the decision on one item."""
    return _Record(plan).decision(position)


def verdicts_on(plan: Plan, position: int) -> Iterator[StepVerdict]:
    """Yield what each step says of one item, also that it does not select it."""
    return _Record(plan).verdicts(position)


def tokens_at(plan: Plan, fates: Mapping[int, Decision]) -> int:
    """Return the tokens of the list, with what is sent beside it, when these items are out."""
    facts, total = plan.facts, plan.facts.tokens_beside
    for position, item in enumerate(plan.items):
        fate = fates.get(position)
        own = 0 if item.inside is not None else facts.tokens(item)
        if fate is None:
            total += own
        elif item.inside is None:
            total += facts.length(fate.placeholder or "", "tokens")
        elif item.inside not in fates:
            total += facts.length(fate.placeholder or "", "tokens") - facts.tokens(item)
    return total


class _Record:
    """A plan beside what was decided before it, by position."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._in = plan, plan.conversation
        self._fates = plan.conversation.fates_at(plan.at)
        self._new = {decision.position: decision for decision in plan.new}

    def decision(self, position: int) -> Decision:
        found = self._plan.fates.get(position)
        if found is not None and (found.action.leaves_nothing or not self._is_replaced(position)):
            return found
        if found is None and (restored := self._in.held_back.get(position)) is not None:
            step = str(restored.values["step"])
            return Decision(position, self._in.items[position], Action.KEEP, restored, step)
        if found is None and self._is_emptied(position):
            return Decision(position, self._in.items[position], Action.KEEP, Reason("emptied"))
        said = [v for v in self.verdicts(position) if v.reason.code != "not_selected"]
        # That history is not summarised is no word on an item, unless there is no other.
        said = [v for v in said if v.taken or v.step not in self._in.policy.compacting] or said
        item = self._in.items[position]
        if not said:
            return Decision(position, item, Action.KEEP, Reason("not_selected"))
        step, taken, reason, rule = said[-1]
        return Decision(
            position, item, Action.SUMMARISE if taken else Action.KEEP, reason, step, rule
        )

    def _is_emptied(self, position: int) -> bool:
        """Whether a result stays while all that it held is dropped."""
        item, fates = self._in.items[position], self._plan.fates
        if not item.media or item.counted != _NO_BLOCKS:
            return False
        dropped = [
            i for i in self._in.inside(position) if i in fates and fates[i].action.leaves_nothing
        ]
        return len(dropped) == len(item.media)

    def _is_replaced(self, position: int) -> bool:
        replacing = self._plan.compaction
        return replacing is not None and self._in.items[position].message in replacing.parts

    def verdicts(self, position: int) -> Iterator[StepVerdict]:
        for outcome in self._plan.outcomes:
            summarises = outcome.step in self._in.policy.compacting
            say = self._summarised if summarises else self._verdict
            taken, reason, rule = say(position, outcome)
            yield StepVerdict(outcome.step, taken, reason, rule)

    def _verdict(self, position: int, outcome: Outcome) -> Verdict:
        new, fate = self._new.get(position), self._fates.get(position)
        if new is not None and new.step == outcome.step:
            return Verdict(taken=True, reason=new.reason, rule=new.rule_path)
        if (took := outcome.took.get(position)) is not None and new is not None:
            return took
        restored = self._in.held_back.get(position)
        if restored is not None and restored.values["step"] == outcome.step:
            return Verdict(taken=False, reason=restored)
        return self._verdict_of_candidates(position, outcome, fate)

    def _verdict_of_candidates(
        self, position: int, outcome: Outcome, fate: Decision | None
    ) -> Verdict:
        """Return why a step left an item that none of its decisions is about."""
        inner = self._in.items[position].inside
        plan, candidates = self._plan, self._plan.candidates[outcome.step]
        verdict = candidates.verdict(position, plan.at, plan.fates.get)
        if verdict is None:
            select = ("steps", outcome.step, "select")
            return Verdict(taken=False, reason=Reason("not_selected"), rule=select)
        if fate is not None and not (verdict.taken and not fate.action.leaves_nothing):
            return Verdict(taken=False, reason=Reason("decided", {"step": fate.step}))
        if inner is not None and (inner in self._fates or inner in self._new):
            return Verdict(taken=False, reason=Reason("inside"))
        return self._left(position, outcome) if verdict.taken else verdict

    def _summarised(self, position: int, outcome: Outcome) -> Verdict:
        """A `compact` step's word: it takes messages, whole, and knows no other candidates."""
        rule = ("steps", outcome.step)
        if outcome.replaces is None:
            return self._left(position, outcome)
        parts = outcome.replaces.parts
        taken = self._in.items[position].message in parts
        if self._in.items[position].message == parts.carried:
            return Verdict(taken=False, reason=Reason("carried"), rule=self._carrying(outcome))
        numbers = {"first": parts.start, "last": parts.end - 1}
        reason = Reason("summarised" if taken else "not_replaced", numbers)
        return Verdict(taken=taken, reason=reason, rule=rule)

    def _carrying(self, outcome: Outcome) -> RulePath:
        """The key by which the user's newest message stays: the step's own, or the policy's."""
        key, steps = "keep_newest_user_message", self._in.policy.policy.steps
        own = next(step.compaction for step in steps if step.name == outcome.step)
        is_own = own is not None and key in own.model_fields_set
        return ("steps", outcome.step, "compaction", key) if is_own else ("compaction", key)

    def _left(self, position: int, outcome: Outcome) -> Verdict:
        """Why a step left an item that it might have taken."""
        own = next((reason for left, reason in outcome.left if left == position), None)
        if own is not None:
            return Verdict(taken=False, reason=own)
        if not outcome.is_open:
            closed = [verdict for verdict in outcome.gates if not verdict.opens]
            gate = "; ".join(verdict.sentence for verdict in closed)
            reason = Reason("gate_closed", {"gate": gate})
            return Verdict(taken=False, reason=reason, rule=closed[0].rule)
        if outcome.stopped is not None:
            until: RulePath = ("steps", outcome.step, "select", "until")
            until = until[:2] if outcome.step in self._in.policy.compacting else until
            return Verdict(taken=False, reason=outcome.stopped, rule=until)
        decided = self._plan.fates.get(position)
        if decided is not None:
            return Verdict(taken=False, reason=Reason("decided", {"step": decided.step}))
        rule = ("steps", outcome.step, "on")
        return Verdict(taken=False, reason=Reason("arrived_before"), rule=rule)
