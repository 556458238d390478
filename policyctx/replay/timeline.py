"""`Timeline`: what became of each item, call by call, told by the plans that were carried out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.part import Absence, Part
from policyctx.replay.simulated import Removal, TypeTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.messages.items import Message
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.decisions import Decision
    from policyctx.planning.plan import Plan
    from policyctx.replay.unwritten_store import UnwrittenStore


class Timeline:
    """What became of the items of one part of a session.

    A part goes on while the caller's list does, even where each call stands alone.
    """

    def __init__(self, number: int, first_call: int, store: UnwrittenStore) -> None:
        self._number, self._first_call, self._store = number, first_call, store
        self._plan: Plan | None = None
        self._changes = 0
        self._known: list[int] = []
        self._out: dict[int, Decision] = {}
        self._absences: dict[int, list[Absence]] = defaultdict(list)
        self._left: dict[int, int] = {}
        self._beside: list[object] = []

    @property
    def plan(self) -> Plan:
        """The plan that was carried out last; a part begins with one."""
        assert self._plan is not None  # noqa: S101 - a part begins with a call
        return self._plan

    def note(self, call: int, plan: Plan) -> Iterator[Removal]:
        """Take a plan that was carried out for a call; yield the removals that it made."""
        conversation = plan.conversation
        is_known = self._plan is not None and self._plan.conversation is conversation
        self._plan = plan
        self._beside += (part for part in plan.facts.beside if part not in self._beside)
        self._known.append(len(conversation.items))
        new = {decision.position: decision for decision in plan.new}
        for position in self._changed(conversation, is_known=is_known):
            fate, before = conversation.fates.get(position), self._out.get(position)
            if fate is None:
                del self._out[position]
                self._close(position, call)
                continue
            if before is not None and before.placeholder == fate.placeholder:
                continue
            self._close(position, call)
            self._absences[position].append(Absence(call, left=fate.placeholder or ""))
            self._out[position] = fate
            if position in new and (before is None or before.action != fate.action):
                yield self._removal(call, new[position], plan)

    def part(self, after: Sequence[Message] = ()) -> Part:
        """Return the part as it was in the end; `after` came behind its last call."""
        conversation = self.plan.conversation
        conversation.extend(after)
        known = (*self._known, len(conversation.items))
        return Part(
            items=conversation.items,
            partners=conversation.reading.partners,
            first_call=self._first_call,
            known=known,
            absences=self._absences,
            beside=[one if isinstance(one, str) else compact_json(one) for one in self._beside],
        )

    def types(self) -> Mapping[str, TypeTokens]:
        """Return what items of each type there were, the heaviest type first."""
        facts, types = self.plan.facts, dict[str, TypeTokens]()
        for position, item in enumerate(self.plan.conversation.items):
            if item.inside is not None:
                continue
            tokens, left = facts.tokens(item), self._left.get(position)
            one = types.get(item.type, TypeTokens())
            types[item.type] = TypeTokens(
                one.items + 1,
                one.tokens + tokens,
                one.removed + (left is not None),
                one.freed + (0 if left is None else tokens - left),
            )
        return types

    def _changed(self, conversation: Conversation, *, is_known: bool) -> Iterable[int]:
        """Return the items whose fate may be another one than at the call before, in order."""
        if is_known:
            changes = {position for position, _ in conversation.history[self._changes :]}
        else:
            changes = self._out.keys() | conversation.fates.keys()
        self._changes = len(conversation.history)
        return sorted(changes)

    def _close(self, position: int, call: int) -> None:
        if (absences := self._absences.get(position)) and absences[-1].until > call:
            absences[-1] = replace(absences[-1], until=call)

    def _removal(self, call: int, decision: Decision, plan: Plan) -> Removal:
        item, facts = decision.item, plan.facts
        tokens = facts.tokens(item)
        left = facts.length(decision.placeholder or "", "tokens")
        before = self._left.get(decision.position, tokens)
        self._left[decision.position] = left
        place = plan.conversation.policy.place(decision.rule_path)
        path = decision.file.relative_path if decision.file else None
        return Removal(
            call=call,
            part=self._number,
            position=decision.position,
            message=item.message,
            item_id=item.item_id,
            item_type=item.type,
            tool=item.tool,
            action=decision.action,
            step=decision.step,
            reason=decision.reason.sentence,
            rule=decision.rule,
            place="" if place is None else f"{place.file}:{place.line}",
            tokens=tokens,
            freed=before - left,
            path=path,
            bytes=0 if path is None else self._store.size(path),
            taken=decision.reason.code not in {"with_call", "with_result"},
        )
