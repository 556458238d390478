"""What a step makes of an item that it takes: a decision, and those on what goes with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.planning.decisions import Decision
from policyctx.planning.drafts import (
    NO_FILE,
    expected_file,
    left_in_place,
    not_shrinking,
    unit_of,
    wanted_path,
)
from policyctx.planning.reasons import Reason
from policyctx.planning.removal import messages_without, removed_with

if TYPE_CHECKING:
    from policyctx.messages.items import Item
    from policyctx.planning.drafts import Draft
    from policyctx.planning.facts import Unit
    from policyctx.planning.offload_policy import Treatment
    from policyctx.planning.outlook import Outlook
    from policyctx.planning.paths import File
    from policyctx.planning.placeholders import Wording
    from policyctx.planning.selection import Verdict
    from policyctx.planning.snapshot import Checkpoint
    from policyctx.policy.models import Step


class Taking:
    """What a step makes of an item that it takes."""

    def __init__(self, outlook: Outlook, step: Step, at: Checkpoint) -> None:
        self._outlook, self._step, self._at = outlook, step, at
        self._in, self._facts = outlook.conversation, outlook.facts
        self.left: list[tuple[int, Reason]] = []
        """What was ready and stays, by position."""
        self.took: dict[int, Verdict] = {}
        """What the step took and why, by position; what went along is not among it."""

    def is_out(self, position: int) -> bool:
        """Is there nothing of the item for this step to take."""
        return self._outlook.is_out(position, even_of_placeholders=self._step.action.leaves_nothing)

    def take(self, position: int, draft: Draft, treatment: Treatment, verdict: Verdict) -> None:
        """Decide that the item leaves, with what has to leave with it; or note why it stays."""
        if self._step.action.leaves_nothing:
            self._drop(position, verdict)
            return
        unit = unit_of(treatment)
        decision = self._replaced(position, draft.wanted_path, treatment.wording, unit)
        item = self._in.items[position]
        refused = not_shrinking(item, self._step, decision.placeholder, unit, self._facts)
        if refused is not None:
            self.left.append((position, refused))
            return
        self._outlook.take(replace(decision, reason=verdict.reason, rule_path=verdict.rule))
        self.took[position] = verdict
        call = self._in.reading.partners.get(position) if item.kind == "tool_result" else None
        if treatment.with_input and call is not None:
            self._shorten(call, unit)

    def put_off(self) -> list[int]:
        """Forget, and return, what stayed for the sake of the rest of the list."""
        found = [position for position, reason in self.left if reason.code == "without_it"]
        self.left = [(p, reason) for p, reason in self.left if reason.code != "without_it"]
        return found

    def _replaced(self, position: int, wanted: str, wording: Wording, unit: Unit) -> Decision:
        item = self._in.items[position]
        file = self._outlook.file(wanted) if wanted else None
        text = left_in_place(item, wording, file or NO_FILE, self._facts, unit)
        return Decision(
            position,
            item,
            self._step.action,
            Reason("selected"),
            self._step.name,
            placeholder=text,
            wording=wording,
            unit=unit,
            file=file,
            wanted_path=wanted,
            saves=file is not None,
        )

    def _shorten(self, call: int, unit: Unit) -> None:
        """Let the input of a call share the fate of its result."""
        item = self._in.items[call]
        if self.is_out(call) or not self._in.policy.goes_along(item.type, item.tool):
            return
        wording = self._in.policy.wording(self._step, item.type, item.tool)
        saves = self._step.action.saves
        wanted = wanted_path(item, self._in.policy, self._facts) if saves else ""
        # No name is used up for what would stay under any.
        if not self._shortens(item, wording, expected_file(wanted, self._facts), unit):
            return
        decision = self._replaced(call, wanted, wording, unit)
        if self._shortens(item, wording, decision.file or NO_FILE, unit):
            rule = ("steps", self._step.name, "select", "with_input")
            self._outlook.take(replace(decision, reason=Reason("with_result"), rule_path=rule))

    def _shortens(self, item: Item, wording: Wording, file: File, unit: Unit) -> bool:
        text = left_in_place(item, wording, file, self._facts, unit)
        return text is not None and self._facts.length(text, unit) < self._facts.size(item, unit)

    def _drop(self, position: int, verdict: Verdict) -> None:
        going = removed_with(position, self._step, self._outlook, self._at)
        if isinstance(going, Reason):
            self.left.append((position, going))
            return
        self.took[position] = verdict
        self._outlook.removed.update(messages_without(going, self._outlook))
        for member, reason in going.items():
            item, fate = self._in.items[member], self._outlook.fate(member)
            saved = fate is not None and fate.file is not None
            wanted = wanted_path(item, self._in.policy, self._facts)
            self._outlook.take(
                Decision(
                    member,
                    item,
                    self._step.action,
                    reason or verdict.reason,
                    self._step.name,
                    verdict.rule,
                    file=fate.file if fate and saved else self._outlook.file(wanted),
                    wanted_path=fate.wanted_path if fate and saved else wanted,
                    saves=fate.saves if fate and saved else True,
                )
            )
