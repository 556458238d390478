"""`Timeline`: what became of each item, call by call, told by the plans that were carried out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.planning.decisions import Decision
from policyctx.planning.reasons import Reason
from policyctx.replay.part import Absence, Part
from policyctx.replay.recorded_items import RecordedItems
from policyctx.replay.simulated import Removal, TypeTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.messages.items import Message
    from policyctx.planning.compacting import Replacing
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.offload_policy import OffloadPolicy
    from policyctx.planning.plan import Plan
    from policyctx.policy.lookup import RulePath
    from policyctx.replay.unwritten_store import UnwrittenStore
    from policyctx.turns.compacting import Compacted


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
        self.recorded = RecordedItems()

    @property
    def plan(self) -> Plan:
        """The plan that was carried out last; a part begins with one."""
        assert self._plan is not None  # noqa: S101 - a part begins with a call
        return self._plan

    def note(self, call: int, plan: Plan, compaction: Compacted | None) -> Iterator[Removal]:
        """Take a plan that was carried out for a call; yield the removals that it made."""
        conversation = plan.conversation
        is_known = self._plan is not None and self._plan.conversation is conversation
        self._plan = plan
        for part in plan.facts.beside:
            if part not in self._beside:
                self._beside.append(part)
        self.recorded.take(conversation)
        self._known.append(len(self.recorded.items(conversation)))
        if is_known and compaction is None and len(conversation.history) == self._changes:
            return
        new = {decision.position: decision for decision in plan.new}
        for position, fate in self._changed(conversation, is_known=is_known):
            before = self._out.get(position)
            if fate is None:
                del self._out[position]
                self._close(position, call)
                continue
            if before is not None and before.placeholder == fate.placeholder:
                continue
            self._leave(position, call, fate, fate.placeholder or "")
            if fate.position in new and (before is None or before.action != fate.action):
                yield self._removal(call, position, new[fate.position], plan)
        if compaction is not None and plan.compaction is not None:
            yield from self._summarised(call, plan, plan.compaction, compaction)

    def part(self, after: Sequence[Message] = ()) -> Part:
        """Return the part as it was in the end; `after` came behind its last call."""
        conversation = self.plan.conversation
        conversation.extend(after)
        self.recorded.take(conversation)
        items = self.recorded.items(conversation)
        return Part(
            items=items,
            partners=self.recorded.partners(conversation),
            first_call=self._first_call,
            known=(*self._known, len(items)),
            absences=self._absences,
            beside=[one if isinstance(one, str) else compact_json(one) for one in self._beside],
        )

    def types(self) -> Mapping[str, TypeTokens]:
        """Return what items of each type there were, the heaviest type first."""
        facts = self.plan.facts
        types: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        items = self.recorded.items(self.plan.conversation)
        for position, (item, tokens) in enumerate(zip(items, facts.tokens_of(items), strict=True)):
            if item.inside is not None:
                continue
            left = self._left.get(position)
            sums = types[item.type]
            sums[0] += 1
            sums[1] += tokens
            if left is not None:
                sums[2] += 1
                sums[3] += tokens - left
        return {name: TypeTokens(*sums) for name, sums in types.items()}

    def _changed(
        self, conversation: Conversation, *, is_known: bool
    ) -> Iterable[tuple[int, Decision | None]]:
        """Return the items whose fate may be another one than at the call before, in order."""
        changed: Iterable[int] = conversation.fates
        if is_known:
            changed = {position for position, _ in conversation.history[self._changes :]}
        self._changes = len(conversation.history)
        found: dict[int, Decision | None] = {}
        if not is_known:
            # What a summary stands for is in no later list, and does not come back.
            stays = (p for p, fate in self._out.items() if fate.action != "summarise")
            found = dict.fromkeys(stays)
        for position in changed:
            recorded = self.recorded.position(conversation, position)
            if recorded is not None:
                found[recorded] = conversation.fates.get(position)
        return sorted(found.items(), key=itemgetter(0))

    def _summarised(
        self, call: int, plan: Plan, replacing: Replacing, compaction: Compacted
    ) -> Iterator[Removal]:
        """Yield what a summary took the place of; its text stands where the first item was."""
        conversation, parts = plan.conversation, replacing.parts
        written = compaction.replacement.messages
        text = "\n".join(str(message.get("content")) for message in written)
        items = self.recorded.items(conversation)
        replaced = [
            (position, place)
            for message in parts
            for place in conversation.items_of(message)
            if (position := self.recorded.position(conversation, place)) is not None
            and conversation.is_there(place)
        ]
        messages = [items[position].message for position, _ in replaced] or [0]
        reason = Reason("summarised", {"first": min(messages), "last": max(messages)})
        rule = ("steps", replacing.step)
        for position, place in replaced:
            item = conversation.items[place]
            fate = Decision(place, item, "summarise", reason, replacing.step, rule)
            self._leave(position, call, fate, text)
            text = ""
            yield self._removal(call, position, fate, plan)
        self.recorded.compacted(conversation, parts, len(written))

    def _leave(self, position: int, call: int, fate: Decision, left: str) -> None:
        self._close(position, call)
        self._absences[position].append(Absence(call, left=left))
        self._out[position] = fate

    def _close(self, position: int, call: int) -> None:
        if (absences := self._absences.get(position)) and absences[-1].until > call:
            absences[-1] = replace(absences[-1], until=call)

    def _removal(self, call: int, position: int, decision: Decision, plan: Plan) -> Removal:
        item, facts = decision.item, plan.facts
        tokens = facts.tokens(item)
        left = facts.length(decision.placeholder or "", "tokens")
        before = self._left.get(position, tokens)
        self._left[position] = left
        path = decision.file.relative_path if decision.file else None
        return Removal(
            call=call,
            part=self._number,
            position=position,
            message=self.recorded.items(plan.conversation)[position].message,
            item_id=item.item_id,
            item_type=item.type,
            tool=item.tool,
            action=decision.action,
            step=decision.step,
            code=decision.reason.code,
            reason=decision.reason.sentence,
            rule=decision.rule,
            place=place_of(plan.conversation.policy, decision.rule_path),
            tokens=tokens,
            freed=before - left,
            path=path,
            bytes=0 if path is None else self._store.size(path),
            taken=decision.reason.code not in {"with_call", "with_result"},
        )


def place_of(policy: OffloadPolicy, rule: RulePath) -> str:
    """Return `file:line` of what says so; empty when nothing in a file does."""
    place = policy.place(rule)
    return "" if place is None else f"{place.file}:{place.line}"
