"""`Plan`: the decisions for one message list. Nothing has happened yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from policyctx.messages.editing import Edit
from policyctx.planning.drafts import left_in_place
from policyctx.planning.explaining import decision_on, decisions_at, tokens_at, verdicts_on
from policyctx.planning.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.messages.items import Item
    from policyctx.planning.compacting import Replacing
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.decisions import Decision
    from policyctx.planning.explaining import StepVerdict
    from policyctx.planning.facts import Facts
    from policyctx.planning.gates import GateVerdict
    from policyctx.planning.paths import File
    from policyctx.planning.selection import Candidates, Verdict
    from policyctx.planning.snapshot import Checkpoint


_NOTHING: Mapping[int, Verdict] = {}  # a read-only view of it could not be pickled


class Outcome(NamedTuple):
    """What became of one step in a plan: its gates, and why it stopped before it had taken all."""

    step: str
    gates: tuple[GateVerdict, ...] = ()
    is_open: bool = True
    took: Mapping[int, Verdict] = _NOTHING
    """What it took and why, by position; a later step may have moved some of that up."""
    stopped: Reason | None = None
    """Why what is ready and was not taken stays."""
    left: tuple[tuple[int, Reason], ...] = ()
    """Items that were ready and stay for a reason of their own, by position."""
    replaces: Replacing | None = None
    """What a summary is to stand for; None for a step that makes none."""


@dataclass(frozen=True)
class Plan:
    """What a turn comes to: each step's gates, and for every item what happens to it and why.

    `new` are the decisions that this plan makes; what earlier plans decided and what stays is in
    `decisions`, which are found when they are asked for.
    """

    new: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...]
    facts: Facts
    at: Checkpoint
    conversation: Conversation
    candidates: Mapping[str, Candidates] = field(repr=False, compare=False)
    """Of each step, by its name; they grow with the conversation."""
    comes_back: bool = False
    """Was the list given as it was handed out in the turn before, and not as the caller kept it."""
    judged: int = 0
    """How many of the arriving items are no longer new after this plan."""

    @property
    def items(self) -> Sequence[Item]:
        """The items of the list, in its order."""
        return self.conversation.items[: self.at.items]

    @cached_property
    def fates(self) -> Mapping[int, Decision]:
        """The decisions on what is out once this plan was carried out, by position."""
        before = self.conversation.fates_at(self.at)
        return before | {decision.position: decision for decision in self.new}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The decision on each item that a step has as a candidate, or that is out already."""
        return tuple(decisions_at(self))

    def decision(self, position: int) -> Decision:
        """Return what becomes of one item; kept, with no step, when none has it as a candidate."""
        return decision_on(self, position)

    @property
    def compaction(self) -> Replacing | None:
        """What is to be replaced by a summary, after all else; None for nothing."""
        return next((o.replaces for o in self.outcomes if o.replaces is not None), None)

    @property
    def gates(self) -> tuple[GateVerdict, ...]:
        """Every comparison that the gates made, step by step."""
        return tuple(verdict for outcome in self.outcomes for verdict in outcome.gates)

    def verdicts(self, position: int) -> tuple[StepVerdict, ...]:
        """Return what each step says of one item, in the order of the steps."""
        return tuple(verdicts_on(self, position))

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
        return tokens_at(self, self.conversation.fates_at(self.at) if self.comes_back else {})

    @property
    def tokens_after(self) -> int:
        """Tokens of the context once the decisions have been carried out.

        A compaction is not deducted: how long its summary will be is not known.
        """
        return tokens_at(self, self.fates)

    @property
    def freed_chars(self) -> int:
        """Characters of all that newly leaves; what the placeholders take is not deducted."""
        return sum(len(decision.item.text) for decision in self.new if decision.saves)

    @property
    def net_freed_chars(self) -> int:
        """Characters of all that newly leaves, less those of the placeholders."""
        return self.freed_chars - sum(len(d.placeholder or "") for d in self.new if d.saves)

    def settled(self, files: Sequence[File]) -> Plan:
        """Return the plan with the files really written, one for each decision of `to_save`."""
        written = dict(zip((d.position for d in self.to_save), files, strict=True))
        return replace(self, new=tuple(self._at(d, written.get(d.position)) for d in self.new))

    def unsaved(self, error: str) -> Plan:
        """Return the plan with everything kept that needed saving, and the error as the reason."""
        return self._keeping(Reason("not_saved", {"error": error}), even_cleared=False)

    def unsummarised(self) -> Plan:
        """Return the plan with nothing replaced by a summary, since none was made."""
        reason = Reason("not_summarised")
        outcomes = (
            o if o.replaces is None else o._replace(replaces=None, stopped=reason)
            for o in self.outcomes
        )
        return replace(self, outcomes=tuple(outcomes))

    def without_decisions(self, problem: str) -> Plan:
        """Return the plan with everything kept, since a provider would refuse what it came to."""
        return self._keeping(Reason("invalid", {"problem": problem}), even_cleared=True)

    def _keeping(self, reason: Reason, *, even_cleared: bool) -> Plan:
        made = tuple(
            d
            for d in self.new
            if d.action.leaves_placeholder and not d.action.saves and not even_cleared
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
