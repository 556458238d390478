"""Which earlier removals apply again to a list that is read anew.

A list may return in another form: cut off at either end, mixed from the caller's own list and one
that was handed out, or with other results. The earlier removals must not make this list invalid,
so some are held back: a call and its result are removed together or not at all, the newest user
message stays, and so do messages without which the order of the roles would be wrong.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyctx.definitions.items import Item, Message, call_key, call_keys
from policyctx.errors import MessagesError
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision, Reason
from policyctx.planning.identities import Identities
from policyctx.planning.ledger import ItemKey, Ledger, Mark, RenderedKey
from policyctx.planning.placeholders import content_hash

_NEWEST = "no newer message of the user is in this list"
_NO_CALL = "its result would have no call"
_NO_RESULT = "its call would have no result"
_LONE_THINKING = "only thinking would be left of its message"
_SIGNS = "the later calls of its message would lack its signature"
_BOUND = "what it led to is still there"
_FIRST = "an assistant message would come first"
_LAST = "an assistant message would come last"
_EMPTY = "no message would be left"
_INVALID = "a provider would refuse the list"
# What any further message may change.
_UNTIL_MORE = (_LAST, _EMPTY, _INVALID)


def all_held_back(remembered: Mapping[int, Decision]) -> dict[int, Reason]:
    """Return every removal among the fates, for a list that would not be valid otherwise."""
    drops = (i for i, fate in remembered.items() if fate.action.leaves_nothing)
    return {i: _reason(remembered[i], _INVALID) for i in drops}


def may_apply_with(reading: Reading, held: Mapping[int, Reason], more: Sequence[Item]) -> bool:
    """Return whether a removal that is held back may apply once these items follow."""
    is_newest = any(item.kind == "user_message" for item in more)
    answered = {call_key(item) for item in more if item.kind == "tool_result"}
    for position, reason in held.items():
        what = reason.values["what"]
        is_answered = not answered.isdisjoint(call_keys(reading.items[position]))
        if what in _UNTIL_MORE or (is_newest if what == _NEWEST else is_answered):
            return True
        if what == _LONE_THINKING and reading.thought_of(position).stop == len(reading.items):
            return True
    return False


def _reason(fate: Decision, what: str) -> Reason:
    return Reason("restored", {"step": fate.step, "what": what})


class HeldBack:
    """The removals among the `remembered` fates that do not apply, found by repetition.

    `before` are the fates of the items before these, by which the messages `removed` are empty.
    `newest_user` is the position of the newest message of the user there, -1 without one.
    """

    def __init__(
        self,
        reading: Reading,
        remembered: Mapping[int, Decision],
        before: Mapping[int, Decision],
        removed: set[int],
        newest_user: int,
    ) -> None:
        self._in, self._remembered, self._before = reading, remembered, before
        self._removed, self._known_user = removed, newest_user
        self._items = reading.items
        self._drops = {i for i, fate in remembered.items() if fate.action.leaves_nothing}
        self._why: dict[int, str] = {}

    def reasons(self) -> dict[int, Reason]:
        """Return the reason of each, by position."""
        while self._drops and self._finds_more():
            pass
        return {i: _reason(self._remembered[i], what) for i, what in self._why.items()}

    def _finds_more(self) -> bool:
        """Hold back what each rule requires; return whether there was anything."""
        before = len(self._why)
        self._newest_user_message()
        self._pairs()
        self._lone_thinking()
        if len(self._why) == before:
            self._edges()
        return len(self._why) > before

    def _hold(self, positions: Iterable[int], why: str) -> None:
        for position in positions:
            if position in self._drops:
                self._drops.remove(position)
                self._why[position] = why

    def _is_dropped(self, position: int) -> bool:
        fate = self._before.get(position)
        return position in self._drops or (fate is not None and fate.action.leaves_nothing)

    def _newest_user_message(self) -> None:
        new = range(min(self._drops, default=len(self._items)), len(self._items))
        said = [i for i in new if self._items[i].kind == "user_message"]
        newest = max((self._items[i].message for i in said), default=-1)
        if newest >= self._known_user:
            self._hold((i for i in said if self._items[i].message == newest), _NEWEST)

    def _pairs(self) -> None:
        for position in sorted(self._drops):
            kind, bound = self._items[position].kind, [*self._in.bound_to(position)]
            stands = not all(map(self._is_dropped, bound))
            if not all(map(self._is_dropped, self._in.signed_with(position))):
                self._hold([position], _SIGNS)
            elif kind == "tool_call" and (not bound or stands):
                self._hold([position], _NO_CALL)
            elif kind == "tool_result" and stands:
                self._hold([position], _NO_RESULT)

    def _lone_thinking(self) -> None:
        for thought in dict.fromkeys(map(self._in.thought_of, sorted(self._drops))):
            outermost = [i for i in thought if self._items[i].inside is None]
            left = [i for i in outermost if not self._is_dropped(i)]
            others = [i for i in outermost if self._items[i].kind != "thinking"]
            if left and others and all(self._items[i].kind == "thinking" for i in left):
                self._hold(others[:1], _LONE_THINKING)
            elif left:
                self._hold(filter(self._in.is_bound, outermost), _BOUND)

    def _edges(self) -> None:
        """Hold back removals that would put an assistant message first or last where none was."""
        roles = self._in.roles
        stands = [i for i, role in enumerate(roles) if role not in SYSTEM_ROLES]
        if not stands:
            return
        first, last = stands[0], stands[-1]
        touched = {self._items[i].message for i in self._drops}
        removed = self._removed.union(filter(self._is_removed, touched))
        left = [message for message in stands if message not in removed]
        if not left:
            self._restore(reversed(stands), _EMPTY)
        elif self._opens_as_assistant(left[0]) and not self._opens_as_assistant(first):
            self._restore(range(first, left[0]), _FIRST)
        elif roles[last] != "assistant" and roles[left[-1]] == "assistant":
            self._restore(range(left[-1] + 1, last + 1), _LAST)

    def _opens_as_assistant(self, message: int) -> bool:
        return self._in.opening_roles[message] == "assistant"

    def _restore(self, messages: Iterable[int], why: str) -> None:
        """Restore the nearest message: one with words, else one not of the assistant, else any."""
        dropped = {
            message: [i for i in self._in.items_of(message) if i in self._drops]
            for message in messages
        }
        there = [message for message, items in dropped.items() if items]
        others = [message for message in there if self._in.roles[message] != "assistant"]
        said = [message for message in others if any(map(self._is_said, dropped[message]))]
        best = said or others or (there if why == _EMPTY else [])
        if best:
            self._hold(dropped[best[0]], why)

    def _is_said(self, position: int) -> bool:
        item = self._items[position]
        return item.kind != "tool_result" and item.inside is None

    def _is_removed(self, message: int) -> bool:
        positions = [i for i in self._in.items_of(message) if self._items[i].inside is None]
        return bool(positions) and all(map(self._is_dropped, positions))


class Marks:
    """The marks of the steps that count what came since, in a list that grows.

    `known` are the newest of the session by step, `counting` the names of these steps. `is_there`
    returns whether anything of an item is left in the list.
    """

    def __init__(
        self,
        known: dict[str, Mark],
        counting: Collection[str],
        reading: Reading,
        identities: Identities,
        is_there: Callable[[int], bool],
    ) -> None:
        self._known, self._counting = known, counting
        self._in, self._identities, self._is_there = reading, identities, is_there
        self._at: dict[str, int] = {}

    def message(self, step: str) -> int:
        """Return the position of the message that the list ended with; -1 if it is not known.

        That is so before the step took anything, and where the list lacks that message. Empty
        messages behind it do not count: what followed them may have been the end, and have left.
        """
        position, items = self._at.get(step), self._in.items
        if position is None:
            return -1
        behind = (
            items[i].message
            for i in range(position + 1, len(items))
            if items[i].message > items[position].message and self._is_there(i)
        )
        return next(behind, len(self._in.roles)) - 1

    def see(self, position: int) -> None:
        """Find the marks of earlier turns in an item that is read."""
        for mark in self._known.values():
            if self._identities.has_key(position, mark.key, mark.chars):
                self._at[mark.step] = position

    def after(self, decisions: Collection[Decision]) -> dict[Mark, int]:
        """Return the marks that decisions set or move, with the positions of their items.

        A step that takes something is marked at the end of the list. Where the item of another mark
        leaves, the newest item before it that still stands takes over.
        """
        if not self._counting:
            return {}
        gone = {d.position for d in decisions if d.action.leaves_nothing}
        starts = {step: at for step, at in self._at.items() if at in gone}
        newest = len(self._in.items) - 1
        starts |= {d.step: newest for d in decisions if d.step in self._counting}
        return self._marked(starts, gone)

    def at_end(self, step: str) -> dict[Mark, int]:
        """Return the mark of a step at the end of the list; none for a step that counts nothing."""
        counts = step in self._counting
        return self._marked({step: len(self._in.items) - 1}, ()) if counts else {}

    def adopt(self, marks: Mapping[Mark, int]) -> None:
        """Remember the marks of decisions that are carried out."""
        for mark, position in marks.items():
            self._known[mark.step] = mark
            self._at[mark.step] = position

    def _marked(self, starts: Mapping[str, int], gone: Collection[int]) -> dict[Mark, int]:
        found = {}
        for step, start in starts.items():
            standing = (i for i in range(start, -1, -1) if self._stands(i, gone))
            if (position := next(standing, None)) is not None:
                found[Mark(step, *self._identities.key_and_chars(position))] = position
        return found

    def _stands(self, position: int, gone: Collection[int]) -> bool:
        is_outermost = self._in.items[position].inside is None
        return is_outermost and position not in gone and self._is_there(position)


class Form(NamedTuple):
    """The list of the turn before, as it was given or returned, with which another list begins."""

    follows: Sequence[Message]
    """What the other list has behind it."""
    gone: frozenset[ItemKey]
    """The dropped items that it lacks."""
    is_guess: bool
    """Whether some of these were inferred."""
    ended: Collection[ItemKey] = ()
    """The dropped items behind all that it has. The list as it was given goes on with them."""

    def lacks(self, ledger: Ledger, shapes: Shapes) -> tuple[frozenset[ItemKey], bool] | None:
        """Return the dropped items that the other list lacks, and if that is a guess.

        None if what follows shows that it is another list.
        """
        try:
            items = [*map(ledger.as_decided, items_of(self.follows, shapes))]
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return None
        ended = {key[:3] for key in self.ended}
        first = (i for i in items if ended and i.message == 0)
        is_wrong = (self.is_guess and any(map(ledger.may_have_left, items))) or any(
            (i.kind, i.tool_use_id, content_hash(i.identity)) in ended for i in first
        )
        # Where nothing follows, the list may go on with them later, as the one that was given.
        may_go_on = bool(self.ended) and not self.follows
        return None if is_wrong else (self.gone, self.is_guess or may_go_on)


def taken_out(
    messages: Sequence[Message],
    ledger: Ledger,
    policy: OffloadPolicy,
    summarised: frozenset[ItemKey] = frozenset(),
    shapes: Shapes = BUILT_IN,
    *,
    is_unknown: bool = False,
) -> frozenset[ItemKey]:
    """Return the keys of the dropped items that are missing from an unknown list.

    A dropped item is missing when the list has fewer equal ones than the list that it was dropped
    from. So it is when its placeholder may be that of an item that was not dropped. What was
    `summarised` is in no list. Words that were said again count as those that were dropped, so a
    session recognises a list that it has seen by a record, see `SeenList`.
    """
    drops = filter(ledger.is_dropped, ledger.drops)
    dropped = {key: ledger.entries[key] for key in drops if key not in summarised}
    if not dropped:
        return frozenset()
    as_json = policy.store.blocks == "json"
    items = [ledger.as_decided(item, as_json=as_json) for item in items_of(messages, shapes)]
    identities = Identities(items, ledger)
    known = {i: identities.key(i) for i, item in enumerate(items) if ledger.may_have_left(item)}
    present = Counter(key[:3] for key in summarised)
    present.update(key[:3] for key in known.values())
    missing = {key for key, entry in dropped.items() if present[key[:3]] < entry.alike}
    settled = {*summarised, *known.values(), *dropped}
    others = dict[RenderedKey, Iterator[ItemKey]]()
    for i, key in known.items():
        if key in dropped and (left := identities.replaced(i)) is not None:
            standing = (one for one in ledger.rendered(items[i]) if one not in settled)
            if next(others.setdefault(left.place, standing), None) is not None:
                missing.add(key)
    if is_unknown and any(key.tool_use_id is None for key in missing):
        missing.update(key for key in dropped if key.tool_use_id is None)
    return frozenset(missing)


def identified(
    messages: Sequence[Message],
    ledger: Ledger,
    policy: OffloadPolicy,
    gone: frozenset[ItemKey] = frozenset(),
    shapes: Shapes = BUILT_IN,
) -> tuple[Reading, Identities]:
    """Read a list from which the items with these keys are gone; return it with its keys."""
    reading = Reading(shapes, messages)
    as_json = policy.store.blocks == "json"
    items = [ledger.as_decided(item, as_json=as_json) for item in reading.items]
    return reading, Identities(items, ledger, gone)
