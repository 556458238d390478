"""`Timeline`: what became of each item, call by call, and when it was out of the context.

A replay keeps the text of items (`SeenItem`) only for a report that shows it; everything else about
a session is numbers.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Item, Message
from policyctx.errors import present
from policyctx.messages.json_text import compact_json
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Decision, Reason
from policyctx.planning.plan import Plan
from policyctx.policy.lookup import RulePath
from policyctx.replay.recording import RecordedItems
from policyctx.replay.simulated import Absence, KeptItem, Removal, SeenItem, TypeTokens
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.turns.result import Compacted

Replies: TypeAlias = Sequence[tuple[int, int]]
"""The positions of what a model wrote, each with the number of the call that it replied to."""


@dataclass(frozen=True, slots=True)
class SessionPart:
    """A part of a session: the list that it kept until the recording began another one."""

    items: Sequence[Item]
    """As they were recorded, in the order in which a model reads them."""
    partners: Mapping[int, int]
    """By position: of a call that of its result, of a result that of its call."""
    first_call: int
    """The number of the call that the list was begun for."""
    known: Sequence[int]
    """How many items each call had, from the first on; the last number is of those after it."""
    absences: Mapping[int, Sequence[Absence]] = field(default_factory=dict)
    """By position, in the order of time; an item without is there all the time."""
    beside: Sequence[str] = ()
    """What was sent along with the messages: system prompts and schemas of tools, as JSON."""

    @property
    def last_call(self) -> int:
        """The number of the last call that was made with the list."""
        return self.first_call + len(self.known) - 2

    def arrived(self, position: int) -> int:
        """Return the number of the first call that had the item; one more than any, after them."""
        return self.first_call + bisect_right(self.known, position)

    def had(self, call: int) -> int:
        """Return how many items a call had; those from there on arrived later."""
        return self.known[call - self.first_call]

    def absence(self, position: int, call: int) -> Absence | None:
        """Return how the item was absent at a call, None where it was there."""
        number = self.absence_number(position, call)
        return None if number is None else self.absences[position][number]

    def absence_number(self, position: int, call: int) -> int | None:
        """Return which absence of the item, from 0 on, a call is in; None where it was there."""
        for number, absence in enumerate(self.absences.get(position, ())):
            if absence.since <= call < absence.until:
                return number
        return None

    def replies(self, since: int) -> Iterator[tuple[int, int]]:
        """Yield each item that a model wrote in reply to a call from this one on, and the call.

        What the part began with is no reply: who wrote it did not see this list.
        """
        for i, count in enumerate(self.known[:-1]):
            call = self.first_call + i
            if call < since:
                continue
            for position in range(count, self.known[i + 1]):
                item = self.items[position]
                if item.role == "assistant" and item.kind in {"assistant_message", "tool_call"}:
                    yield position, call


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
        return present(self._plan)

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
            is_other = before is None or (before.action, before.step) != (fate.action, fate.step)
            if fate.position in new and is_other:
                yield self._removal(call, position, new[fate.position], plan)
        if compaction is not None and plan.compaction is not None:
            yield from self._summarised(call, plan, plan.compaction, compaction)

    def part(self, after: Sequence[Message] = ()) -> SessionPart:
        """Return the part as it was in the end; `after` came behind its last call."""
        conversation = self.plan.conversation
        conversation.extend(conversation.reading.checked(after))
        self.recorded.take(conversation)
        items = self.recorded.items(conversation)
        return SessionPart(
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
            stays = (p for p, fate in self._out.items() if not fate.action.takes_messages)
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
        written = compaction.replacement.written
        text = "\n".join(message.text for message in written)
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
            fate = Decision(place, item, Action.SUMMARISE, reason, replacing.step, rule)
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
            taken=decision.reason.code not in {"with_call", "with_result", "emptied_with_result"},
            on_arrival=any(
                step.name == decision.step for step in plan.conversation.policy.steps("arrival")
            ),
        )


def place_of(policy: OffloadPolicy, rule: RulePath) -> str:
    """Return `file:line` of what says so; empty when nothing in a file does."""
    place = policy.place(rule)
    return "" if place is None else f"{place.file}:{place.line}"


def seen_items(
    number: int, part: SessionPart, plan: Plan, recorded: RecordedItems, *, limit: int
) -> Iterator[SeenItem]:
    """Yield the items of a part; `plan` is its last, and texts are cut after `limit` characters."""
    facts, kept = plan.facts, dict(_kept(part, plan, recorded))
    for position, item in enumerate(part.items):
        text = item.counted
        absences = part.absences.get(position, ())
        yield SeenItem(
            part=number,
            position=position,
            message=item.message,
            role=item.role,
            item_type=item.type,
            tool=item.tool,
            item_id=item.item_id,
            error=item.error,
            tokens=facts.tokens(item),
            chars=len(text),
            media=len(item.media),
            arrived=part.arrived(position),
            inside=item.inside is not None,
            text=text[:limit],
            absences=tuple(replace(one, left=one.left[:limit]) for one in absences),
            kept=kept.get(position),
        )


def _kept(part: SessionPart, plan: Plan, recorded: RecordedItems) -> Iterator[tuple[int, KeptItem]]:
    """Yield what a step might have taken and did not, by position, as the last plan explains it."""
    policy = plan.conversation.policy
    for decision in plan.decisions:
        position = recorded.position(plan.conversation, decision.position)
        if position is None or _is_out(part, position):
            continue
        reason, place = decision.reason, place_of(policy, decision.rule_path)
        told = decision.step, reason.code, reason.sentence, decision.rule, place
        yield position, KeptItem(part.last_call, *told)


def _is_out(part: SessionPart, position: int) -> bool:
    """Was the item out at the last call, by itself or with the result that it is in."""
    around = part.items[position].inside
    places = (position,) if around is None else (position, around)
    return any(part.absence(place, part.last_call) is not None for place in places)
