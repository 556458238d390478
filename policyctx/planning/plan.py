"""`Plan`: the decisions for one message list, and every step's verdict on each item.

Nothing has happened yet. The decision on an item that stays is found when it is asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Item
from policyctx.messages.editing import Edit
from policyctx.paths import File
from policyctx.planning.compact import Replacing
from policyctx.planning.conversation import Checkpoint, Conversation
from policyctx.planning.decisions import Decision, ItemVerdict, Reason, Refused
from policyctx.planning.facts import Facts
from policyctx.planning.gates import GateVerdict
from policyctx.planning.select import Candidates
from policyctx.planning.take import expected_file, left_in_place
from policyctx.policy.lookup import RulePath

_NOTHING: Mapping[int, ItemVerdict] = {}  # a read-only view of it could not be pickled


class StepVerdict(NamedTuple):
    """One step's verdict on one item: whether it is taken, why, and the key that decides it."""

    step: str
    taken: bool
    reason: Reason
    rule_path: RulePath

    @property
    def rule(self) -> str:
        """The key as text: `tools.mcp__*.min_tokens`."""
        return ".".join(self.rule_path)


class Outcome(NamedTuple):
    """The outcome of one step in a plan: its gates, what it took, and why it stopped early."""

    step: str
    gates: tuple[GateVerdict, ...] = ()
    is_open: bool = True
    took: Mapping[int, ItemVerdict] = _NOTHING
    """What it took and why, by position; a later step may have taken some of that further."""
    stopped: Reason | None = None
    """Why the items stay that were ready and not taken."""
    left: tuple[tuple[int, Reason], ...] = ()
    """Items that were ready and stay for a reason of their own, by position."""
    replaces: Replacing | None = None
    """What a summary is to replace; None for a step that makes none."""


@dataclass(frozen=True)
class Plan:
    """The result of planning: each step's gates, and for every item what happens to it and why.

    `new` are the decisions that this plan makes. `decisions` also has those of earlier plans and
    the items that stay; it is computed on first use.
    """

    new: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...]
    facts: Facts
    at: Checkpoint
    conversation: Conversation
    candidates: Mapping[str, Candidates] = field(repr=False, compare=False)
    """Of each step, by its name; they grow with the conversation."""
    comes_back: bool = False
    """Whether the list was given as it was handed out in the turn before."""
    judged: int = 0
    """Number of arriving items that the steps on arrival have judged in this plan."""

    @property
    def refused(self) -> Iterator[Refused]:
        """The steps on arrival that have judged items and left them, with why."""
        arrival = {step.name for step in self.conversation.policy.steps("arrival")}
        judging = (o for o in self.outcomes if self.judged and o.step in arrival)
        return ((o.step, *one) for o in judging for one in o.left)

    @property
    def items(self) -> Sequence[Item]:
        """The items of the list, in its order."""
        return self.conversation.items[: self.at.items]

    @cached_property
    def fates(self) -> Mapping[int, Decision]:
        """The decisions on what is out after this plan, by position."""
        before = self.conversation.fates_at(self.at)
        return before | {decision.position: decision for decision in self.new}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The decision on each item that is out or is a candidate of a step, in order."""
        record = _Record(self)
        found = (record.decision(position) for position in range(self.at.items))
        return tuple(d for d in found if d.step or d.action is not Action.KEEP)

    def decision(self, position: int) -> Decision:
        """Return the decision on one item; kept, with no step, if it is not a step's candidate."""
        return _Record(self).decision(position)

    @property
    def compaction(self) -> Replacing | None:
        """What a summary is to replace, after all other decisions; None for nothing."""
        for outcome in self.outcomes:
            if outcome.replaces is not None:
                return outcome.replaces
        return None

    @property
    def gates(self) -> tuple[GateVerdict, ...]:
        """Every comparison that the gates made, step by step."""
        return tuple(verdict for outcome in self.outcomes for verdict in outcome.gates)

    def verdicts(self, position: int) -> tuple[StepVerdict, ...]:
        """Return what each step says of one item, in the order of the steps."""
        return tuple(_Record(self).verdicts(position))

    @property
    def to_save(self) -> tuple[Decision, ...]:
        """The decisions whose content is not on disk yet."""
        return tuple(decision for decision in self.new if decision.saves)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What the new decisions change in the messages."""
        return tuple(Edit(d.item, d.placeholder) for d in self.new)

    @property
    def tokens_before(self) -> int:
        """Tokens of the context as it was given: messages, system prompt, tool schemas."""
        return _tokens_at(self, self.conversation.fates_at(self.at) if self.comes_back else {})

    @property
    def tokens_after(self) -> int:
        """Tokens of the context once the decisions have been carried out.

        A compaction is not deducted: how long its summary will be is not known.
        """
        return _tokens_at(self, self.fates)

    @property
    def freed_chars(self) -> int:
        """Characters of all that newly leaves, without deducting the placeholders."""
        return sum(decision.item.chars for decision in self.new if decision.saves)

    @property
    def net_freed_chars(self) -> int:
        """Characters of all that newly leaves, less those of the placeholders."""
        return self.freed_chars - sum(len(d.placeholder or "") for d in self.new if d.saves)

    def settled(self, files: Sequence[File]) -> Plan:
        """Return the plan with the files as written, one for each decision of `to_save`."""
        written = dict(zip((d.position for d in self.to_save), files, strict=True))
        return replace(self, new=tuple(self._at(d, written.get(d.position)) for d in self.new))

    def saved_anew(self, lost: Collection[int]) -> Plan:
        """Return the plan in which the items at these positions are saved, not read back.

        The file that each was read from has lost its content.
        """
        return replace(
            self, new=tuple(self._saved_anew(d) if d.position in lost else d for d in self.new)
        )

    def _saved_anew(self, decision: Decision) -> Decision:
        file = expected_file(decision.wanted_path, self.facts)
        saved = replace(decision, is_read_back=False, saves=True)
        return self._at(saved, file)

    def unsaved(self, error: str) -> Plan:
        """Return the plan with everything kept that needed saving, and the error as the reason."""
        return self._keeping(Reason("not_saved", {"error": error}), even_cleared=False)

    def unsummarised(self, reason: Reason) -> Plan:
        """Return the plan without a compaction, with the reason why none was made."""
        outcomes = (
            o if o.replaces is None else o._replace(replaces=None, stopped=reason)
            for o in self.outcomes
        )
        return replace(self, outcomes=tuple(outcomes))

    def followed_by(self, later: Plan) -> Plan:
        """Return the plan with what its waiting steps took after it was carried out."""
        saved = {d.position for d in self.new if d.saves}
        new = {d.position: d for d in self.new}
        new |= {d.position: replace(d, saves=d.saves or d.position in saved) for d in later.new}
        ran = {outcome.step: outcome for outcome in later.outcomes}
        outcomes = tuple(ran.get(outcome.step, outcome) for outcome in self.outcomes)
        return replace(self, new=tuple(new[i] for i in sorted(new)), outcomes=outcomes)

    def without_decisions(self, problem: str) -> Plan:
        """Return the plan with everything kept, since a provider would refuse its result."""
        return self._keeping(Reason("invalid", {"problem": problem}), even_cleared=True)

    def _keeping(self, reason: Reason, *, even_cleared: bool) -> Plan:
        saving = {step.name for step in self.conversation.policy.all_steps if step.saves}
        made = tuple(
            d for d in self.new if (d.step not in saving or not d.action.saves) and not even_cleared
        )
        kept = [d for d in self.new if d not in made]
        outcomes = tuple(
            o._replace(left=(*o.left, *((d.position, reason) for d in kept if d.step == o.step)))
            for o in self.outcomes
        )
        return replace(self, new=made, outcomes=outcomes, judged=0)

    def _at(self, decision: Decision, file: File | None) -> Decision:
        if file is None or file == decision.file:
            return decision
        if decision.wording is None:
            return replace(decision, file=file)
        text = left_in_place(
            decision.item, decision.wording, file, self.facts, decision.unit, planned=decision.file
        )
        return replace(decision, file=file, placeholder=text)


class _Record:
    """The explanation of a plan: the verdict of each step on each item."""

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
        # The verdict of a step that summarises counts only where there is no other.
        said = [v for v in said if v.taken or v.step not in self._in.policy.compacting] or said
        item = self._in.items[position]
        if not said:
            return Decision(position, item, Action.KEEP, Reason("not_selected"))
        # A step whose gate is closed counts only where no other judged the item; the first does.
        is_open = {outcome.step: outcome.is_open for outcome in self._plan.outcomes}
        judged = [v for v in said if is_open[v.step] and v.reason.code != "arrived_before"]
        closed = [v for v in said if not is_open[v.step]]
        step, taken, reason, rule = judged[-1] if judged else (closed or said)[0]
        return Decision(
            position, item, Action.SUMMARISE if taken else Action.KEEP, reason, step, rule
        )

    def _is_emptied(self, position: int) -> bool:
        """Whether a result stays while all that it held is dropped."""
        item, fates = self._in.items[position], self._plan.fates
        if not item.is_media_alone:
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

    def _verdict(self, position: int, outcome: Outcome) -> ItemVerdict:
        new, fate = self._new.get(position), self._fates.get(position)
        if new is not None and new.step == outcome.step:
            return ItemVerdict(taken=True, reason=new.reason, rule=new.rule_path)
        if (took := outcome.took.get(position)) is not None and new is not None:
            return took
        restored = self._in.held_back.get(position)
        if restored is not None and restored.values["step"] == outcome.step:
            return ItemVerdict(taken=False, reason=restored)
        return self._verdict_of_candidates(position, outcome, fate)

    def _verdict_of_candidates(
        self, position: int, outcome: Outcome, fate: Decision | None
    ) -> ItemVerdict:
        """Return why a step left an item that none of its decisions is about."""
        inner = self._in.items[position].inside
        plan, candidates = self._plan, self._plan.candidates[outcome.step]
        verdict = candidates.verdict(position, plan.at, plan.fates.get)
        if verdict is None:
            select = ("steps", outcome.step, "select")
            return ItemVerdict(taken=False, reason=Reason("not_selected"), rule=select)
        if fate is not None and not (
            fate.gives_way_to(candidates.step)
            and (verdict.taken or candidates.step.select.placeholders)
        ):
            return ItemVerdict(taken=False, reason=Reason("decided", {"step": fate.step}))
        if inner is not None and (inner in self._fates or inner in self._new):
            return ItemVerdict(taken=False, reason=Reason("inside"))
        return self._left(position, outcome) if verdict.taken else verdict

    def _summarised(self, position: int, outcome: Outcome) -> ItemVerdict:
        """Return the verdict of a `compact` step, which takes whole messages."""
        rule: RulePath = ("steps", outcome.step)
        if outcome.replaces is None:
            return self._left(position, outcome)
        parts = outcome.replaces.parts
        item = self._in.items[position]
        taken = item.message in parts
        if item.message == parts.carried:
            rule = self._keeping(outcome, "keep_newest_user_message")
            return ItemVerdict(taken=False, reason=Reason("carried"), rule=rule)
        if item.kind == "system_prompt" and item.message in parts.kept:
            rule = self._keeping(outcome, "keep_system_messages")
            return ItemVerdict(taken=False, reason=Reason("system_stays"), rule=rule)
        numbers = {"first": parts.start, "last": parts.end - 1}
        reason = Reason("summarised" if taken else "not_replaced", numbers)
        return ItemVerdict(taken=taken, reason=reason, rule=rule)

    def _keeping(self, outcome: Outcome, key: str) -> RulePath:
        """Return the key by which a message stays: the step's own, or the policy's."""
        steps = self._in.policy.all_steps
        own = next((step.compaction for step in steps if step.name == outcome.step), None)
        is_own = own is not None and key in own.model_fields_set
        return ("steps", outcome.step, "compaction", key) if is_own else ("compaction", key)

    def _left(self, position: int, outcome: Outcome) -> ItemVerdict:
        """Return why a step left an item that it could have taken."""
        own = next((reason for left, reason in outcome.left if left == position), None)
        if own is not None:
            return ItemVerdict(taken=False, reason=own)
        if not outcome.is_open and outcome.stopped is None:
            closed = [verdict for verdict in outcome.gates if not verdict.opens]
            gate = "; ".join(verdict.sentence for verdict in closed)
            reason = Reason("gate_closed", {"gate": gate})
            return ItemVerdict(taken=False, reason=reason, rule=closed[0].rule)
        if outcome.stopped is not None:
            until: RulePath = ("steps", outcome.step, "select", "until")
            until = until if outcome.is_open else (*until[:2], "on")
            until = until[:2] if outcome.step in self._in.policy.compacting else until
            return ItemVerdict(taken=False, reason=outcome.stopped, rule=until)
        decided = self._plan.fates.get(position)
        if decided is not None:
            return ItemVerdict(taken=False, reason=Reason("decided", {"step": decided.step}))
        if waits := self._in.arrivals.waiting.get(position, {}).get(outcome.step):
            return ItemVerdict(taken=False, reason=waits)
        rule = ("steps", outcome.step, "on")
        return ItemVerdict(taken=False, reason=Reason("arrived_before"), rule=rule)


def _tokens_at(plan: Plan, fates: Mapping[int, Decision]) -> int:
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


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did in one turn."""

    step: str
    is_open: bool
    items: Mapping[Action, int]
    """Number of items that it newly took, by what was done with them."""
    freed_tokens: int
    """Tokens of these items, less those of their placeholders."""
    why: str
    """Why it took nothing, or stopped early; empty if neither."""

    def __str__(self) -> str:
        taken = ", ".join(f"{n:,} {action.past}" for action, n in self.items.items())
        done = f"{taken}, {self.freed_tokens:,} tokens freed" if taken else "nothing taken"
        return f"{done}; {self.why}" if self.why else done


def step_reports(plan: Plan) -> list[StepReport]:
    """Return what each step of a plan did, in order; a summary is reported when it is made."""
    items: defaultdict[str, Counter[Action]] = defaultdict(Counter)
    freed: Counter[str] = Counter()
    new = {decision.position for decision in plan.new}
    changes = plan.conversation.history[plan.at.changes :]
    earlier = dict(reversed(changes)) if changes else plan.conversation.fates
    for decision in plan.new:
        items[decision.step][decision.action] += 1
        if decision.item.inside not in new:
            left = plan.facts.length(decision.placeholder or "", "tokens")
            before = earlier.get(decision.position)
            shown = decision.item if before is None else before.placeholder
            freed[decision.step] += _tokens_of(shown, plan.facts) - left
    return [
        StepReport(one.step, one.is_open, items[one.step], freed[one.step], _why(one))
        for one in plan.outcomes
        if one.replaces is None
    ]


def _tokens_of(shown: Item | str | None, facts: Facts) -> int:
    return facts.tokens(shown) if isinstance(shown, Item) else facts.length(shown or "", "tokens")


def _why(outcome: Outcome) -> str:
    if not outcome.is_open and outcome.stopped is None:
        closed = "; ".join(verdict.sentence for verdict in outcome.gates if not verdict.opens)
        return f"gate closed: {closed}"
    return "" if outcome.stopped is None else str(outcome.stopped)
