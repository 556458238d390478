"""`Outlook`: the list as the decisions of a plan leave it, and what leaves together with an item.

An action that leaves nothing takes a call together with its result, and thinking together with the
last part of what it led to, since no message may hold nothing but thinking. A removal that would
leave an assistant message first or last, or no message at all, is not made.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from policyctx.definitions.items import UNKNOWN
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.messages.sources import Staying
from policyctx.paths import File, FreePaths
from policyctx.planning.conversation import Checkpoint, Conversation
from policyctx.planning.decisions import Awaited, Decision, Ending, Reason
from policyctx.planning.facts import Facts, Unit
from policyctx.policy.models import Step

Going: TypeAlias = dict[int, Reason | None]
"""What leaves together, by position, each with the reason; None for what the step itself takes."""
RemovedUnit: TypeAlias = Literal["item", "message", "group", "turn"]
_MESSAGE, _TURN = Awaited(Ending.MESSAGE_COMES), Awaited(Ending.TURN_BEGINS)
_NEWEST = Reason(
    "protected", {"why": "the newest user message stays"}, (Awaited(Ending.USER_SPEAKS),)
)
_THINKING = Reason("protected", {"why": "the thinking of the current turn stays"}, (_TURN,))
_BOUND = Reason("protected", {"why": "reasoning stays with what it led to"})
_REPLY = Reason("protected", {"why": "the reply to a summary stays until the next compaction"})
_PENDING = Reason("answer_pending")
_UNKNOWN = Reason("protected", {"why": "a part that no step may change stays"})


def _without_it(what: str, ends: str, *until: Awaited) -> Reason:
    return Reason("without_it", {"what": what, "until": ends}, until)


class Outlook:
    """A conversation, which does not change, with the decisions of a plan that is being made."""

    def __init__(self, conversation: Conversation, facts: Facts) -> None:
        self.conversation, self.facts = conversation, facts
        self.at = conversation.checkpoint()
        self.taken: dict[int, Decision] = {}
        self.removed: set[int] = set()
        """Messages that are empty after the plan."""
        self.gone = 0
        """Number of decisions after which other items may become free: those that leave no item."""
        self.failed: set[str] = set()
        """The names of the steps that were due and made no summary."""
        self._lost: dict[Unit, int] = {}

    def take(self, decision: Decision) -> None:
        """Add a decision."""
        for unit in self._lost:
            before = self.size(decision.position, unit)
            self._lost[unit] += before - self._left(decision, unit)
        self.taken[decision.position] = decision
        held = next(self.conversation.inside(decision.position), None) is not None
        self.gone += decision.action.leaves_nothing or decision.item.inside is not None or held

    def remove(self, messages: Iterable[int]) -> None:
        """Note messages that the decisions leave empty."""
        for message in messages:
            self.removed.add(message)
            self.staying.remove(message)

    @cached_property
    def staying(self) -> Staying:
        """The messages of which something is left."""
        return self.conversation.staying.copy()

    def fate(self, position: int) -> Decision | None:
        """Return the fate of an item, by this plan or before; None while it stands."""
        return self.taken.get(position) or self.conversation.fates.get(position)

    def is_out_for(self, position: int, step: Step) -> bool:
        """Return whether nothing of the item is left that this step may take."""
        fate, inside = self.fate(position), self.conversation.items[position].inside
        if inside is not None and self.fate(inside) is not None:
            return True
        return fate is not None and (fate.action.leaves_nothing or not fate.gives_way_to(step))

    def is_there(self, position: int) -> bool:
        """Return whether anything of the item is left in the list; see `Conversation.is_there`."""
        fate, inside = self.fate(position), self.conversation.items[position].inside
        if inside is not None and self.fate(inside) is not None:
            return False
        return fate is None or not fate.action.leaves_nothing

    def is_removed(self, message: int) -> bool:
        """Return whether nothing is left of a message."""
        return message in self.removed or message in self.conversation.removed

    def size(self, position: int, unit: Unit) -> int:
        """Return the size of an item in the list as it would be."""
        if (decision := self.taken.get(position)) is not None:
            return self._left(decision, unit)
        size = self.conversation.size(position, unit)
        inner = [i for i in self.conversation.inside(position) if i in self.taken]
        lost = sum(self.conversation.size(i, unit) - self.size(i, unit) for i in inner)
        return size - lost

    def total(self, unit: Unit) -> int:
        """Return the size of all messages."""
        total = self.conversation.tally(unit).total
        if not self.taken:
            return total
        if unit not in self._lost:
            self._lost[unit] = self._lost_behind(-1, unit)
        return total - self._lost[unit]

    @property
    def messages(self) -> int:
        """The number of messages of which anything is left."""
        removed = len(self.removed) + len(self.conversation.removed)
        return self.conversation.reading.message_count - removed

    def tokens_behind(self, message: int) -> int:
        """Return the tokens of all messages behind this one."""
        tally = self.conversation.tally("tokens")
        lost = self._lost_behind(message, "tokens")
        return tally.total - tally.before(message + 1) - lost

    def _lost_behind(self, message: int, unit: Unit) -> int:
        """Return by how much the decisions made the messages behind this one smaller."""
        return sum(
            self.conversation.size(position, unit) - self._left(decision, unit)
            for position, decision in self.taken.items()
            if decision.item.message > message and decision.item.inside not in self.taken
        )

    def tokens(self, *, corrected: bool = True) -> int:
        """Return the tokens of the list with what is sent beside it, corrected by usage or not."""
        facts, around = self.facts, self.facts.tokens_around(self.messages)
        counted = self.total("tokens") + facts.tokens_beside + around
        return facts.correction.corrected(counted) if corrected else counted

    def file(self, wanted_path: str) -> File:
        """Return the file expected for a path; only the store knows the names on the disk."""
        path = wanted_path
        if self.conversation.policy.store.on_conflict == "suffix":
            self.conversation.note_named_files()
            path = self._paths.take(wanted_path)
        return File(path, f"{self.facts.root}/{path}")

    @cached_property
    def _paths(self) -> FreePaths:
        return FreePaths(beyond=self.conversation.paths)

    def _left(self, decision: Decision, unit: Unit) -> int:
        return 0 if decision.placeholder is None else self.facts.length(decision.placeholder, unit)


def whole_unit(position: int, unit: RemovedUnit, outlook: Outlook) -> Going:
    """Return what is left of the unit of an item: the items by position, each with the reason.

    The item itself comes first, without a reason; for one inside a result, that is the result.
    """
    items, reading = outlook.conversation.items, outlook.conversation.reading
    around = items[position].inside
    first = position if around is None else around
    found: Going = {first: None}
    for message in sorted(_messages(items[first].message, unit, reading)):
        for i in reading.items_of(message):
            if items[i].inside is None and outlook.is_there(i):
                found.setdefault(i, Reason("with_unit", {"unit": unit}))
    return found


def stays_with(unit: RemovedUnit, reason: Reason) -> Reason:
    """Return why an item stays with its unit, in which something stays for this reason."""
    return Reason("unit_stays", {"unit": unit, "why": reason.sentence})


def _messages(message: int, unit: RemovedUnit, reading: Reading) -> set[int]:
    found: set[int] = set()
    todo = [message]
    while todo:
        new = [
            i
            for i in _bare_unit(todo.pop(), unit, reading)
            if i not in found and reading.roles[i] not in SYSTEM_ROLES
        ]
        found.update(new)
        for one in new:
            bound = (other for i in reading.items_of(one) for other in reading.bound_to(i))
            todo += {reading.items[other].message for other in bound} - found
    return found


def _bare_unit(message: int, unit: RemovedUnit, reading: Reading) -> range:
    """Return the messages of a unit without those that pairs add."""
    if unit == "group":
        return reading.reply_of(message)
    if unit == "turn":
        starts = reading.turn_starts
        turn = bisect_right(starts, message)
        first = starts[turn - 1] if turn else 0
        return range(first, starts[turn] if turn < len(starts) else reading.message_count)
    return range(message, message + 1)


def protection(
    conversation: Conversation, position: int, step: Step, at: Checkpoint
) -> Reason | None:
    """Return why the item cannot be taken yet, None when it can.

    The loop still needs the newest user message, a pending call with all after it, any call without
    an answer, and the thinking of the current turn. The reply to a summary stays with the summary.
    A call is pending while it has no answer and no later assistant message shows that the agent
    went on without one; an abandoned call stays, but nothing after it does. While results arrive
    one by one, calls made together with them still run, so on arrival only the calls themselves
    stay.
    """
    item = conversation.items[position]
    if item.kind == UNKNOWN:  # it goes with something that a step would remove
        return _UNKNOWN
    if item.message >= at.pending and step.on != "arrival":
        return _PENDING
    if item.kind == "tool_call":
        result = conversation.reading.partners.get(position)
        if result is None or result >= at.items:
            return Reason("answer_pending", until=(Awaited(Ending.ANSWER_COMES, position),))
    if item.kind == "user_message" and item.message == at.newest_user:
        return _NEWEST
    if item.kind == "thinking" and item.turn == at.turns:
        return _THINKING
    is_reply = item.kind == "assistant_message" and conversation.is_scripted_reply(position)
    return _REPLY if is_reply else None


def removed_with(position: int, step: Step, outlook: Outlook, at: Checkpoint) -> Going | Reason:
    """Return the items that leave with a removed one, each with the reason; or why it stays.

    The item itself comes first; its reason is None, since the step's verdict has it.
    """
    conversation = outlook.conversation
    if step.select.unit == "item":
        unit = _with_partner(position, outlook)
    else:
        unit = whole_unit(position, step.select.unit, outlook)
    for member in list(unit):
        rest = [i for i in _left_of_thought(member, outlook) if i not in unit]
        is_thinking = conversation.items[member].kind == "thinking"
        if rest and not is_thinking and all(conversation.items[i].kind == "thinking" for i in rest):
            unit.update(dict.fromkeys(rest, Reason("with_call")))
        elif rest and conversation.reading.is_bound(member):
            return _BOUND
        signed = (i for i in conversation.reading.signed_with(member) if i not in unit)
        if any(map(outlook.is_there, signed)):
            what = "the later calls of its message would lack its signature"
            leaves = Awaited(Ending.PART_LEAVES, conversation.items[member].message)
            return _without_it(what, "those calls leave", leaves)
    return _why_not(unit, step, outlook, at) or unit


def _with_partner(position: int, outlook: Outlook) -> Going:
    unit: Going = {position: None}
    todo, reading = [position], outlook.conversation.reading
    while todo:
        for other in reading.bound_to(todo.pop()):
            if other not in unit and outlook.is_there(other):
                is_call = reading.items[other].is_call
                unit[other] = Reason("with_result" if is_call else "with_call")
                todo.append(other)
    return unit


def _left_of_thought(position: int, outlook: Outlook) -> Iterator[int]:
    conversation = outlook.conversation
    for i in conversation.reading.thought_of(position):
        if conversation.items[i].inside is None and outlook.is_there(i):
            yield i


def _why_not(unit: Going, step: Step, outlook: Outlook, at: Checkpoint) -> Reason | None:
    conversation = outlook.conversation
    for member, reason in unit.items():
        item = conversation.items[member]
        held = protection(conversation, member, step, at)
        if held is _THINKING and reason is not None:
            # Reasoning that is a message of its own leaves with the call that it led to.
            led_to_call = any(conversation.items[i].kind == "tool_call" for i in unit)
            held = None if led_to_call and conversation.reading.is_bound(member) else held
        if held is None and conversation.policy.pinned(item.type, item.tool) is not None:
            held = Reason("pinned")
        if held is None:
            continue
        if reason is not None and reason.code == "with_unit":
            return stays_with(step.select.unit, held)
        is_thinking = item.kind == "thinking" and held.code != "pinned"
        return _lone_thinking(member, outlook) if is_thinking and reason is not None else held
    gone = set(messages_without(unit, outlook))
    return _why_messages_stay(gone, outlook) if gone else None


def _why_messages_stay(gone: set[int], outlook: Outlook) -> Reason | None:
    if not _leaves_any(gone, outlook):
        return _without_it("no message would be left", "a message follows", _MESSAGE)
    reading, staying = outlook.conversation.reading, outlook.staying
    shown = _shown_assistant(staying.after(-1), reading.opening_roles, gone)
    if shown is not None:
        what, leaves = "an assistant message would come first", Awaited(Ending.PART_LEAVES, shown)
        return _without_it(what, "that message leaves", leaves)
    shown = _shown_assistant(staying.before(reading.message_count), reading.roles, gone)
    if shown is None:
        return None
    what, leaves = "an assistant message would come last", Awaited(Ending.PART_LEAVES, shown)
    return _without_it(what, "a message follows", _MESSAGE, leaves)


def _lone_thinking(position: int, outlook: Outlook) -> Reason:
    reading = outlook.conversation.reading
    may_go_on = reading.thought_of(position).stop == len(reading.items)
    until = (_TURN, _MESSAGE) if may_go_on else (_TURN,)
    what = "only thinking would be left of its message"
    return _without_it(what, "the next turn begins", *until)


def messages_without(unit: Iterable[int], outlook: Outlook) -> Iterator[int]:
    """Yield the messages that are empty without these items."""
    going = set(unit)
    for message, member in {outlook.conversation.items[i].message: i for i in going}.items():
        left = (i for i in outlook.conversation.of_message(member) if i not in going)
        if outlook.conversation.items[member].inside is None and not any(
            map(outlook.is_there, left)
        ):
            yield message


def _leaves_any(gone: set[int], outlook: Outlook) -> bool:
    """Whether a message other than a system message stays."""
    roles = outlook.conversation.roles
    there = outlook.staying.before(len(roles))
    return any(roles[i] not in SYSTEM_ROLES and i not in gone for i in there)


def _shown_assistant(messages: Iterable[int], roles: Sequence[str], gone: set[int]) -> int | None:
    """Return the first of these to stay if it is an assistant message, which the first now is not.

    Such a message may not come first or last.
    """
    is_changed = False
    for message in messages:
        if roles[message] in SYSTEM_ROLES:
            continue
        if message not in gone:
            return message if is_changed and roles[message] == "assistant" else None
        if not is_changed and roles[message] == "assistant":
            return None
        is_changed = True
    return None
