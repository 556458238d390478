"""`Replacements`: the compactions of a session, applied again to a list that was not replaced.

A caller may keep sending the full list. Each compaction that is recognised in it, also after a
restart, is applied again without another model call. The kept messages have the `cache_control`
markers of the list that is given. What follows a summary may answer a call that it replaced, or
continue a reply: that call comes back, or the result becomes a text of the user.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from policyctx.compaction.assembly import WrittenMessage
from policyctx.definitions.items import UNKNOWN, Item, Message, call_keys
from policyctx.errors import MessagesError
from policyctx.messages.markers import markers_of
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.shape import head_of
from policyctx.messages.sources import (
    Sources,
    differences,
    have_same_ends,
    indices,
    joined,
    moved,
    position_of,
    through,
    whole,
)
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.identities import Identities
from policyctx.planning.ledger import ItemKey, Ledger, Trace
from policyctx.planning.reapplying import identified, taken_out
from policyctx.turns.late_results import LateResults
from policyctx.turns.replacement import Places, Replaced, Replacement


@dataclass(slots=True)
class Replacements:
    """The compactions of a session in order, and the list to which they were applied last."""

    made: list[Replacement] = field(default_factory=list)
    shapes: Shapes = BUILT_IN
    is_anew: bool = False
    """Whether they were applied from the start to the list that was seen last."""
    back: frozenset[ItemKey] = frozenset()
    """The replaced items that are in that list all the same; see `_paired`."""
    _given: list[Message] = field(default_factory=list)
    _replaced: Replaced = field(default_factory=lambda: Replaced([], ()))
    _asked: Counter[object] | None = None
    """How many calls have no answer in the list that was seen last, by the key of each call that is
    there; None if that is not known yet."""
    _used: set[int] = field(default_factory=set)
    """The indices of those that were applied to the list seen last, or before it was given."""
    _shorter: dict[int, int] = field(default_factory=dict)
    """By how much the compactions before each one changed the length of the list; by index."""
    _away: frozenset[ItemKey] = frozenset()
    """The dropped items in the messages of the list seen last that compactions replaced."""
    _is_open: bool = False
    """Whether other messages than those that follow belong to the end of the list: the reply of a
    compaction before them, or a late result behind them."""

    def add(
        self,
        replacement: Replacement,
        given: Sequence[Message],
        made: Replaced,
        reading: Reading | None = None,
    ) -> Replaced:
        """Add a compaction of the list that was seen last, which makes this of it; return the list.

        The sources and places of `made` are those in the list seen, and `reading` is that of its
        messages, if there is one; `given` is the caller's list.
        """
        places = {}
        for position, source in enumerate(indices(made.sources)):
            before = None if source is None else self._replaced.places.get(source)
            after = made.places.get(position)
            if before is not None or after is not None:
                places[position] = _composed(before, after)
        made = Replaced(list(made.messages), self.sources_of(made.sources), places)
        self._given, self._asked = list(given), None
        self._used.add(len(self.made))
        self.made.append(replacement)
        self.back -= {*replacement.gone}
        reading = reading or Reading(self.shapes, made.messages)
        self._replaced = self._with_late_results(made, reading, Ledger())
        return self._replaced._replace(messages=self._replaced.messages[:])

    @property
    def gone(self) -> frozenset[ItemKey]:
        """The ledger's keys of all replaced items."""
        return frozenset(key for one in self.made for key in one.gone)

    def gone_from(
        self, messages: Sequence[Message], ledger: Ledger
    ) -> tuple[frozenset[ItemKey], bool]:
        """Return the keys of the replaced items that this list lacks, and if that is a guess.

        Those of a compaction that was applied to it are gone, and those of which it came with the
        summary or a later one. A list that has items of another compaction ends before that, or is
        another branch than the one that was compacted, so that all are there that it reaches. If it
        has none of them that was decided on, they may still follow, except for words that it has.
        """
        sure = [i in self._used for i in range(len(self.made))]
        if all(sure):
            return (self.gone | self._away) - self.back, False
        try:
            items = [*map(ledger.as_decided, items_of(messages, self.shapes))]
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return self.gone, True
        identities = Identities(items, ledger)
        there = Counter(identities.key(i)[:3] for i in range(len(items)))
        gone = (
            key
            for one, is_sure in zip(self.made, sure, strict=True)
            if is_sure or not any(there[key[:3]] for key in one.gone if key in ledger.entries)
            for key in one.gone
            if is_sure or there[key[:3]] <= key.occurrence
        )
        return self._away.union(gone) - self.back, True

    def _came_with(self, messages: Sequence[Message]) -> int:
        """Return how many compactions were applied to a list before the caller gave it.

        Those are the one whose summary is in it, and all before that.
        """
        texts = set(map(self.shapes.text, messages))
        came = (i for i, one in enumerate(self.made, 1) if not texts.isdisjoint(one.summaries))
        return max(came, default=0)

    @property
    def pinned(self) -> tuple[str, ...]:
        """The texts that the last summary contains verbatim."""
        return self.made[-1].pinned if self.made else ()

    @property
    def written(self) -> dict[str, str]:
        """The item types of the texts that compactions wrote, by text."""
        return {message.text: message.item_type for message in self._messages()}

    @property
    def summaries(self) -> dict[str, str]:
        """The summaries without their wording, by the text of the message."""
        return {text: one.summary for one in self.made for text in one.summaries}

    @property
    def restored(self) -> dict[str, str]:
        """The paths of restored files, by the text of the message."""
        return {message.text: message.path for message in self._messages() if message.path}

    def _messages(self) -> Iterator[WrittenMessage]:
        return (message for one in self.made for message in one.written)

    def forget(self) -> None:
        """Compare the next list as a whole, since a message was changed in place."""
        self._given, self._replaced, self._asked = [], Replaced([], ()), None

    def sources_of(self, sources: Sources) -> Sources:
        """Return the sources in the list given last; `sources` are those in the list seen last."""
        return through(sources, self._replaced.sources) if self._replaced.sources else sources

    def seen(
        self, messages: Sequence[Message], ledger: Ledger, policy: OffloadPolicy
    ) -> Sequence[Message]:
        """Return the list with all compactions applied; the same object if nothing changes.

        A late result of a call that a compaction or a step has taken is a text of the user in it.
        Of a list that continues the last one, only the new messages are visited, and those in which
        a marker has moved.
        """
        known = len(self._given)
        is_cut = len(messages) < known or (self._is_open and len(messages) > known)
        given = messages if type(messages) is list else list(messages)
        new = given[known:]
        differing = None if not known or is_cut else differences(given, self._given, self.shapes)
        is_anew = (
            differing is None
            or self._complete_history(new)
            or self._answer_absent_calls(new, ledger)
            or self._continue_reply(new)
        )
        self.is_anew = is_anew and bool(self.made)
        if differing is None or is_anew:
            self._asked, self._given = None, given[:]
            self._replaced = self._applied(given[:], ledger, policy)
        else:
            self._continue(given, differing)
        last = self._replaced
        if last.sources == whole(len(given)) and not last.places:
            return messages
        return last.messages[:] if differing is None or is_anew else self._continued(given)

    def _continue(self, given: list[Message], differing: Collection[int]) -> None:
        """Add the continuation of the last list, and the markers that moved in edited messages."""
        last, new = self._replaced, given[len(self._given) :]
        sources = joined([*last.sources, range(len(self._given), len(given))])
        edited = {}
        for source in differing:
            at = position_of(sources, source)
            if at is not None and (places := last.places.get(at)) is not None:
                markers = markers_of(self.shapes.shaped(given[source]).message)
                edited[at] = moved(last.messages[at], markers, places, self.shapes)
        for at, message in edited.items():
            last.messages[at] = message
        last.messages.extend(new)
        if differing or not have_same_ends(given, self._given):
            self._given = given[:]
        else:
            self._given += new
        self._replaced = Replaced(last.messages, sources, last.places)

    def _continued(self, given: list[Message]) -> list[Message]:
        """Return the last list with the messages of this one, which are as those were."""
        last, messages = self._replaced, given[:]
        at, end = len(last.messages), len(given)
        for one in reversed(last.sources):
            if one is None:
                at -= 1
                messages.insert(end, last.messages[at])
            else:
                at -= len(one)
                del messages[one.stop : end]
                end = one.start
        del messages[:end]
        for at in last.places:
            messages[at] = last.messages[at]
        return messages

    def _applied(self, messages: list[Message], ledger: Ledger, policy: OffloadPolicy) -> Replaced:
        self._is_open, self._used = False, set(range(self._came_with(messages)))
        replaced = Replaced(messages, whole(len(messages)))
        if not self.made:
            return self._paired(replaced, messages, ledger)
        try:
            gone = taken_out(messages, ledger, policy, self.gone, self.shapes)
            gone = gone.union(*(self.made[i].gone for i in self._used))
            reading, identities = identified(messages, ledger, policy, gone, self.shapes)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return replaced

        def traces(read: Reading, keys: Identities) -> list[Trace]:
            return [keys.trace(read.items_of(i)) for i in range(read.message_count)]

        known = traces(reading, identities)

        def dropped_in(left: Collection[int | None]) -> frozenset[ItemKey]:
            """Return the dropped items in all messages but these.

            What was dropped after a compaction was equal to what that one replaced.
            """
            away = ((taken.get(i), trace) for i, trace in enumerate(known) if i not in left)
            return frozenset(
                key
                for drops, trace in away
                for key, drop in trace
                if drop is not None and (drops is None or drop < drops)
            )

        def traces_of(one: Replaced) -> list[Trace]:
            places = indices(one.sources)
            pairs = [*zip(places, one.messages, strict=True)]
            # Those that a compaction wrote, and what a late result has left.
            new = [m for source, m in pairs if source is None or m is not messages[source]]
            read, keys = identified(new, ledger, policy, shapes=self.shapes)
            if any(map(ledger.may_have_left, read.items)):
                # The list may have equal items, or a compaction replaced them.
                there = {key for i in places if i is not None for key, _ in known[i]}
                away = dropped_in({*places}).union(*(self.made[i].gone for i in self._used))
                found = identified(one.messages, ledger, policy, gone | away - there, self.shapes)
                return traces(*found)
            new_traces = iter(traces(read, keys))
            return [
                known[source] if source is not None and m is messages[source] else next(new_traces)
                for source, m in pairs
            ]

        taken = dict[int | None, int | None]()
        paired: Replaced | None = None
        for i, one in enumerate(self.made):
            self._shorter[i] = len(replaced.messages) - len(messages)
            found = one.applied(replaced, traces_of(replaced), self.shapes)
            if found is None:
                paired = paired or self._paired(replaced, messages, ledger)
                is_same = paired is replaced
                found = None if is_same else one.applied(paired, traces_of(paired), self.shapes)
            if found is not None:
                now = {*indices((paired or replaced).sources)} - {*indices(found.sources)}
                taken |= dict.fromkeys(now, one.drops)
                replaced, paired = found, None
                self._used.add(i)
                last = self.shapes.text(found.messages[-1])
                self._is_open |= not one.ends_list and last == one.unanswered[-1].text
        replaced = paired or self._paired(replaced, messages, ledger)
        left = set(indices(replaced.sources))
        self._away = dropped_in(left)
        back = (reading.items_of(i) for i in taken.keys() & left if i is not None)
        self.back = frozenset(map(identities.key, chain(*back)))
        return replaced

    def _complete_history(self, new: Sequence[Message]) -> bool:
        """Whether new messages may complete the history of a compaction that was not applied."""
        seen = self._replaced.messages
        head = head_of(map(self.shapes.role, chain(seen, new)))
        unused = ((i, one) for i, one in enumerate(self.made) if i not in self._used)
        for i, one in unused:
            end = head + one.skipped + one.count
            known = len(self._given) + self._shorter.get(i, 0)
            # Messages of which nothing was left then may be in this list.
            if known <= end + (one.drops or 0) and end <= known + len(new):
                return True
        return False

    def _continue_reply(self, new: Sequence[Message]) -> bool:
        """Whether new messages continue a reply of which the end seen so far was replaced."""
        around = [*self._given[-1:], *new[:1]]
        is_reply = len(around) > 1 and set(map(self.shapes.role, around)) == {"assistant"}
        return is_reply and position_of(self._replaced.sources, len(self._given) - 1) is None

    def _answer_absent_calls(self, new: Sequence[Message], ledger: Ledger) -> bool:
        """Whether new messages answer a call that is not in the list any more: late, or again."""
        if self._asked is None:
            self._asked = Counter()
            self._answered(self._replaced.messages, self._asked, ledger)
        return self._answered(new, self._asked, ledger)

    def _answered(
        self, messages: Sequence[Message], asked: Counter[object], ledger: Ledger
    ) -> bool:
        """Count the calls that wait, and return whether an answer has none, or a dropped one."""
        is_absent = False
        for item in self._pairs(messages):
            if item.is_call:
                asked.update(call_keys(item))
            else:
                waiting = [key for key in call_keys(item) if key in asked]
                is_again = item.tool_use_id in ledger.dropped_calls
                is_absent |= not waiting or (is_again and all(asked[key] <= 0 for key in waiting))
                asked.subtract(waiting)
        return is_absent

    def _pairs(self, messages: Sequence[Message]) -> Iterator[Item]:
        """Yield the calls and answers."""
        try:
            items = items_of(messages, self.shapes)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return
        yield from (item for item in items if item.tool_use_id and (item.is_call or item.is_answer))

    def _paired(self, replaced: Replaced, given: Sequence[Message], ledger: Ledger) -> Replaced:
        """Return the list with what messages around the summary may not be without.

        The ledger drops both halves of a pair or none: the results of calls come back, and so do
        the calls of other answers than results. The beginning of a reply comes back if it has the
        thinking that led to its rest. A result whose call was replaced becomes a text of the user.
        The same object comes back if nothing changes.
        """
        places = indices(replaced.sources)
        begun: set[int] = set()
        try:
            left = Reading(self.shapes, replaced.messages)
            alone = [
                (place, item)
                for i, item in enumerate(left.items)
                if (item.is_call or item.is_answer) and i not in left.partners
                and (place := places[item.message]) is not None
            ]  # fmt: skip
            parted = [*self._parted(places, given)]
            if not (alone or parted):
                return self._with_late_results(replaced, left, ledger)
            whole = Reading(self.shapes, given)
            lone = {place for place, item in alone if item.is_answer and item.kind == UNKNOWN}
            calls = {(place, item.path) for place, item in alone if item.is_call}
            # Of the calls only those with a result in the given list: others wait for theirs.
            lone |= {
                item.message
                for i, item in enumerate(whole.items)
                if i in whole.partners and (item.message, item.path) in calls
            }
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return replaced
        for at, place in parted:
            here = {places[message] for message in _thinking_of(at, left)}
            if not _thinking_of(place, whole) <= here:
                begun |= {m for m in _led_to_with(place, whole) if m < place}
        begun = whole.bound_messages(begun)
        back = deque(sorted(begun | whole.bound_messages(lone).difference(places)))
        if not back:
            return self._with_late_results(replaced, left, ledger)
        found: list[tuple[int | None, Message]] = []
        for place, message in zip(places, replaced.messages, strict=True):
            if place not in begun:
                while place is not None and back and back[0] < place:
                    found.append((back[0], given[back.popleft()]))
                found.append((place, message))
        found += [(i, given[i]) for i in back]
        sources = joined(None if i is None else range(i, i + 1) for i, _ in found)
        replaced = Replaced([message for _, message in found], sources)
        left = Reading(self.shapes, replaced.messages)
        return self._with_late_results(replaced, left, ledger)

    def _with_late_results(self, replaced: Replaced, reading: Reading, ledger: Ledger) -> Replaced:
        gone = frozenset[ItemKey]().union(*(self.made[i].gone for i in self._used))
        told, is_open = LateResults(replaced, reading, ledger, gone, self.summaries).told()
        self._is_open |= is_open
        return told

    def _parted(
        self, places: Sequence[int | None], given: Sequence[Message]
    ) -> Iterator[tuple[int, int]]:
        """Yield each message that may continue a reply of which the beginning was replaced.

        As its position in the list and in the given list.
        """
        for at, (before, place) in enumerate(pairwise((None, *places))):
            if place and before != place - 1:
                roles = set(map(self.shapes.role, given[place - 1 : place + 1]))
                if roles == {"assistant"}:
                    yield at, place


def _thinking_of(message: int, reading: Reading) -> set[int]:
    """Return the messages with the thinking that led to a message and may not be apart from it."""
    positions = reading.items_of(message)
    found = reading.thought_of(positions.start) if positions else ()
    return {reading.items[i].message for i in found if reading.is_bound(i)}


def _led_to_with(message: int, reading: Reading) -> set[int]:
    """Return the messages of the stretch of thinking that a message belongs to."""
    return {reading.items[i].message for i in reading.thought_of(reading.items_of(message).start)}


def _composed(before: Places | None, after: Places | None) -> Places:
    """Return where places are left after two edits; None stands for an edit not made."""
    if before is None or after is None:
        return before or after or {}
    return {path: after[there] for path, there in before.items() if there in after}
