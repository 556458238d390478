"""The replacements that compactions made, to apply them again to a list that was not replaced.

A caller may keep sending the full list. The messages that a compaction replaced are recognised by
their position behind the head and by their hash, also after a restart. They are replaced by the
same messages again, byte for byte and without another model call. What earlier decisions left of a
message counts as the message, and `cache_control` markers are no part of what is recognised: the
kept messages have those of the list that is given.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise, repeat
from operator import is_, is_not, itemgetter
from typing import Any, TypeAlias

from policyctx.compaction.assembly import WrittenMessage
from policyctx.definitions.items import Item, Message, Path
from policyctx.errors import MessagesError
from policyctx.messages.editing import Edit, edited_message
from policyctx.messages.json_text import json_pieces
from policyctx.messages.markers import bare, markers_of
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.shape import SYSTEM_ROLES, call_keys
from policyctx.planning.compact import Around, head_of
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.ledger import ItemKey, Ledger, Trace
from policyctx.planning.placeholders import content_hash
from policyctx.planning.reapplying import taken_out, traced
from policyctx.turns.sources import (
    Sources,
    differences,
    indices,
    joined,
    moved,
    part,
    position_of,
    through,
    whole,
    without_markers,
)

# By the path of a marker in a message: its path in the edited message.
Places: TypeAlias = "Mapping[Path, Path]"


@dataclass(frozen=True, slots=True)
class Replaced:
    """A list in which compactions replaced messages."""

    messages: list[Message]
    sources: Sources
    """Of the messages in the list that the caller gave."""
    places: Mapping[int, Places] = field(default_factory=dict)
    """For each kept message that was edited, by its position: where its markers are left."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One compaction: the messages that it replaced, and the messages that it wrote instead."""

    skipped: int
    """The number of messages between the head and the first replaced one."""
    count: int
    """The number of replaced messages, including one among them that was carried over."""
    sha256: str
    """Of the replaced messages, by `digest_of_traces`."""
    written: tuple[WrittenMessage, ...]
    summary: str
    """The summary without the wording around it."""
    pinned: tuple[str, ...] = ()
    """Texts that the summary contains verbatim."""
    gone: tuple[ItemKey, ...] = ()
    """The ledger's keys of the replaced items."""
    step: str = ""
    archive: str | None = None
    """The path of the archive below the store's root."""
    carried: int | None = None
    """The 0-based index of the replaced message that follows those written unchanged, if any."""
    kept: tuple[int, ...] = ()
    """The 0-based indices of the replaced messages that stay; see `Around`."""
    ends_list: bool = True
    """Whether nothing followed the replaced messages, so that the list may end with a reply."""
    drops: int | None = None
    """The number of items that had been dropped in the session; messages of which nothing was left
    do not count. None for a record of earlier versions: all messages count there, and `sha256` is
    that of the messages as they were given."""
    held: tuple[ItemKey, ...] = ()
    """The dropped items that were in the list all the same, up to the end of what was replaced."""

    def record(self) -> dict[str, Any]:
        """Return the replacement as a record for the store."""
        return {
            "record": "compaction",
            "step": self.step,
            "skipped": self.skipped,
            "count": self.count,
            "sha256": self.sha256,
            "messages": [{"role": one.role, "content": one.text} for one in self.written],
            "types": [one.item_type for one in self.written],
            "paths": [one.path for one in self.written],
            "summary": self.summary,
            "pinned": list(self.pinned),
            "gone": [list(key) for key in self.gone],
            "archive": self.archive,
            "carried": self.carried,
            "ends_list": self.ends_list,
            **({"kept": list(self.kept)} if self.kept else {}),
            **({} if self.drops is None else {"drops": self.drops}),
            **({"held": [list(key) for key in self.held]} if self.held else {}),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Replacement | None:
        """Return the replacement of a record, None for a record of another kind."""
        if record.get("record") != "compaction":
            return None
        texts = map(itemgetter(*_MESSAGE_KEYS), record["messages"])
        columns = record["types"], record["paths"]
        return cls(
            skipped=record["skipped"],
            count=record["count"],
            sha256=record["sha256"],
            written=tuple(
                WrittenMessage(role, text, item_type, path)
                for (role, text), item_type, path in zip(texts, *columns, strict=True)
            ),
            summary=record["summary"],
            pinned=tuple(record["pinned"]),
            gone=tuple(ItemKey(*key) for key in record["gone"]),
            step=record["step"],
            archive=record["archive"],
            carried=record.get("carried"),
            ends_list=record.get("ends_list", True),
            kept=tuple(record.get("kept", ())),
            drops=record.get("drops"),
            held=tuple(ItemKey(*key) for key in record.get("held", ())),
        )

    def applied(self, given: Replaced, traces: Sequence[Trace], shapes: Shapes) -> Replaced | None:
        """Return the list with the messages replaced; None if it does not contain them.

        `traces` are those of its messages.

        If the list ends with them, and did not when it was compacted, the reply at the end of the
        written messages is left out: a provider rejects an assistant message at the end.
        """
        messages, sources = given.messages, given.sources
        places = self._places(messages, traces, shapes)
        replaced = [messages[i] for i in places]
        if not replaced or not self._is_of(replaced, [traces[i] for i in places], shapes):
            return None
        start, end = places[0], places[-1] + 1
        while start and self._is_gone(traces[start - 1]):
            start -= 1
        while end < len(messages) and self._is_gone(traces[end]):
            end += 1
        systems = [i for i in self.kept if shapes.role(replaced[i]) in SYSTEM_ROLES]
        kept, after, carried = (
            [range(places[i], places[i] + 1) for i in indexes]
            for indexes in Around.of(self.kept, self.carried, systems)
        )
        before, behind = (range(start), *kept), (*carried, range(end, len(messages)))
        written = self.written if any(behind) or self.ends_list else self.unanswered
        shape = shapes.writing(replaced)
        first, *more = (shape.written(one.role, one.text) for one in written)
        new = [
            *(messages[i] for i in chain(*before)),
            first,
            *(messages[i] for i in chain(*after)),
            *more,
            *(messages[i] for i in chain(*behind)),
        ]
        if end == len(messages) and any(behind):
            last, message = shapes.shaped(new[-1])
            if last.role(message) == "assistant" and not last.stays(message):
                return None  # a call that waits for its output, and nothing behind it any more
        groups = (before, after, behind)
        earlier, middle, later = ([part(sources, one) for one in places] for places in groups)
        return Replaced(
            new, joined(chain(*earlier, [None], *middle, repeat(None, len(more)), *later))
        )

    @property
    def summaries(self) -> list[str]:
        """The texts of the messages with the summary."""
        return [one.text for one in self.written if one.item_type == "compaction_summary"]

    @property
    def unanswered(self) -> tuple[WrittenMessage, ...]:
        """The written messages without a reply at the end."""
        last = max(i for i, message in enumerate(self.written) if message.role == "user")
        return self.written[: last + 1]

    def _places(
        self, messages: Sequence[Message], traces: Sequence[Trace], shapes: Shapes
    ) -> Sequence[int]:
        """Return where the replaced messages would be in a list, empty if it is too short."""
        there: Sequence[int] = range(len(messages))
        if self.drops is not None:
            drops, held = self.drops, self.held
            there = [i for i in there if not traces[i] or left_of(traces[i], drops, held)]
        start = head_of(shapes.role(messages[i]) for i in there) + self.skipped
        found = there[start : start + self.count]
        return found if len(found) == self.count else ()

    def _is_gone(self, trace: Trace) -> bool:
        """Whether nothing was left of a message beside the others that were replaced."""
        return bool(trace) and all(key in self.gone for key, _ in trace)

    def _is_of(self, replaced: Sequence[Message], traces: Sequence[Trace], shapes: Shapes) -> bool:
        """Whether these are the replaced messages, as SDK objects or as dicts saved of them."""
        if self.drops is not None:
            return self.sha256 == digest_of_traces(traces, self.drops, self.held)
        if self.sha256 in (digest(replaced, shapes), loose_digest(replaced, shapes)):
            return True
        # Earlier versions hashed a lone text block as it was, and before that the markers too.
        as_given = [without_markers(message, shapes) for message in replaced]
        if any(map(is_not, as_given, map(bare, as_given))):
            earlier = _digest(as_given), _digest([*map(shapes.comparable, as_given)])
            if self.sha256 in earlier:
                return True
        if all(map(is_, as_given, replaced)):
            return False
        return self.sha256 in (_digest(replaced), _digest([*map(shapes.comparable, replaced)]))


# The keys of a message in a record, which is written alike for all shapes.
_MESSAGE_KEYS = ("role", "content")


def left_of(trace: Trace, drops: int, held: Collection[ItemKey]) -> list[list[str | int | None]]:
    """Return what tells the items of a message from others, without those that were dropped.

    The first so many `drops` of the session count, except for those `held` in the list.
    """
    there = (key for key, drop in trace if drop is None or drop >= drops or key in held)
    return [list(key[:3]) for key in there]


def digest_of_traces(traces: Iterable[Trace], drops: int, held: Collection[ItemKey]) -> str:
    """Return the SHA-256, in hex, of what `left_of` returns for each message."""
    return _digest([left_of(trace, drops, held) for trace in traces])


def digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the hash of messages without their markers as compact JSON, for earlier versions.

    A lone text block counts as its text, since a marker makes a block of a text.
    If an SDK's message object is among them, it is the hash that `loose_digest` returns.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages, shapes)
    return _digest([bare(message) for message in messages])


def loose_digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the SHA-256, in hex, of messages without their markers and fields that are None.

    It is equal for an SDK's message object and for the dict that was saved of it.
    """
    found = (shapes.comparable(without_markers(message, shapes)) for message in messages)
    return _digest([*map(bare, found)])


def _digest(values: Sequence[object]) -> str:
    found = hashlib.sha256()
    for value in values:
        for piece in json_pieces(value):
            found.update(piece.encode("utf-8", "surrogatepass"))
        found.update(b"\n")
    return found.hexdigest()


@dataclass(slots=True)
class Replacements:
    """The compactions of a session in order, and the list to which they were applied last."""

    made: list[Replacement] = field(default_factory=list)
    shapes: Shapes = BUILT_IN
    _given: list[Message] = field(default_factory=list)
    _replaced: Replaced = field(default_factory=lambda: Replaced([], ()))
    _asked: Counter[object] | None = None
    """The keys of the calls in the list that was seen last; None if they are not known yet."""
    _hidden: frozenset[object] = frozenset()
    """The keys of calls that are not in that list any more, but in the one that was given."""
    _used: set[int] = field(default_factory=set)
    """The indices of those that were applied to the list seen last."""
    _shorter: dict[int, int] = field(default_factory=dict)
    """By how much the compactions before each one changed the length of the list; by index."""
    _away: frozenset[ItemKey] = frozenset()
    """The dropped items in the messages of the list seen last that compactions replaced."""
    _is_open: bool = False
    """Whether other messages than those that follow belong to the end of the list: the reply of a
    compaction before them, or a late result behind them."""

    def add(self, replacement: Replacement, given: Sequence[Message], made: Replaced) -> Replaced:
        """Add a compaction of the list that was seen last, which makes this of it; return the list.

        The sources and places of `made` are those in the list seen; `given` is the caller's list.
        """
        places = {}
        for position, source in enumerate(indices(made.sources)):
            before = None if source is None else self._replaced.places.get(source)
            after = made.places.get(position)
            if before is not None or after is not None:
                places[position] = _composed(before, after)
        made = Replaced(list(made.messages), self.sources_of(made.sources), places)
        self._given, self._is_open, self._asked = list(given), False, None
        self._used.add(len(self.made))
        self.made.append(replacement)
        reading = Reading(self.shapes)
        reading.extend(made.messages)
        self._replaced = self._with_late_results(made, reading)
        return self._replaced

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
        has none of them, they may still follow.
        """
        texts = set(map(self.shapes.text, self._given))
        came = (i for i, one in enumerate(self.made) if not texts.isdisjoint(one.summaries))
        last = max(came, default=-1)
        sure = [i <= last or i in self._used for i in range(len(self.made))]
        if all(sure):
            return self.gone | self._away, False
        try:
            items = map(ledger.as_decided, items_of(messages, self.shapes))
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return self.gone, True
        there = {(one.kind, one.tool_use_id, content_hash(one.identity)) for one in items}
        gone = (
            key
            for one, is_sure in zip(self.made, sure, strict=True)
            if is_sure or there.isdisjoint(key[:3] for key in one.gone)
            for key in one.gone
        )
        return self._away.union(gone), True

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
        return through(sources, self._replaced.sources) if self.made else sources

    def seen(
        self, messages: Sequence[Message], ledger: Ledger, policy: OffloadPolicy
    ) -> Sequence[Message]:
        """Return the list with all compactions applied; the same object if none applies.

        Of a list that continues the last one, only the new messages are visited, and those in which
        a marker has moved.
        """
        if not self.made:
            return messages
        known = len(self._given)
        is_cut = len(messages) < known or (self._is_open and len(messages) > known)
        given = list(messages)
        differing = (
            None if not known or is_cut else differences(given[:known], self._given, self.shapes)
        )
        new = given[known:]
        asks = (self._complete_history, self._answer_absent_calls, self._continue_reply)
        if differing is None or any(ask(new) for ask in asks):
            self._asked = None
            self._replaced = self._applied(given, ledger, policy)
        else:
            self._replaced = self._continued(given, differing)
        self._given = given
        is_same = self._replaced.sources == whole(len(given)) and not self._replaced.places
        return messages if is_same else list(self._replaced.messages)

    def _continued(self, given: list[Message], differing: Iterable[int]) -> Replaced:
        """Return the last list with the messages, markers and continuation of this one."""
        last, known = self._replaced, len(self._given)
        sources = joined([*last.sources, range(known, len(given))])
        messages = last.messages + given[known:]
        position = 0
        for one in sources:
            if one is not None:
                messages[position : position + len(one)] = given[one.start : one.stop]
            position += 1 if one is None else len(one)
        for position in last.places:
            messages[position] = last.messages[position]
        for source in differing:
            at = position_of(sources, source)
            if at is not None and (places := last.places.get(at)) is not None:
                markers = markers_of(self.shapes.shaped(given[source]).message)
                messages[at] = moved(messages[at], markers, places, self.shapes)
        return Replaced(messages, sources, last.places)

    def _applied(self, messages: list[Message], ledger: Ledger, policy: OffloadPolicy) -> Replaced:
        self._is_open, self._used = False, set()
        replaced = Replaced(messages, whole(len(messages)))
        trace = partial(traced, ledger=ledger, policy=policy, shapes=self.shapes)
        try:
            gone = taken_out(messages, ledger, policy, self.gone, self.shapes)
            known = trace(messages, gone=gone)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return replaced

        def traces_of(one: Replaced) -> list[Trace]:
            return [
                # A late result may have left the message.
                trace([m])[0] if source is None or m is not messages[source] else known[source]
                for source, m in zip(indices(one.sources), one.messages, strict=True)
            ]

        paired: Replaced | None = None
        for i, one in enumerate(self.made):
            self._shorter[i] = len(replaced.messages) - len(messages)
            found = one.applied(replaced, traces_of(replaced), self.shapes)
            if found is None:
                paired = paired or self._paired(replaced, messages)
                is_same = paired is replaced
                found = None if is_same else one.applied(paired, traces_of(paired), self.shapes)
            if found is not None:
                replaced, paired = found, None
                self._used.add(i)
                last = self.shapes.text(found.messages[-1])
                self._is_open = not one.ends_list and last == one.unanswered[-1].text
        replaced = paired or self._paired(replaced, messages)
        left = set(indices(replaced.sources))
        away = chain(*(trace for i, trace in enumerate(known) if i not in left))
        self._away = frozenset(key for key, drop in away if drop is not None)
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

    def _answer_absent_calls(self, new: Sequence[Message]) -> bool:
        """Whether new messages answer a call that is not in the list any more: late, or again."""
        if self._asked is None:
            self._asked = Counter(self._keys(self._replaced.messages))
            self._hidden = frozenset(Counter(self._keys(self._given)) - self._asked)
        is_absent = False
        for item in self._pairs(new):
            if item.is_call:
                self._asked.update(call_keys(item))
            elif self._asked.keys().isdisjoint(keys := call_keys(item)):
                is_absent = True
            else:
                is_absent = is_absent or not self._hidden.isdisjoint(keys)
        return is_absent

    def _keys(self, messages: Sequence[Message]) -> Iterator[object]:
        calls = (item for item in self._pairs(messages) if item.is_call)
        return chain.from_iterable(map(call_keys, calls))

    def _pairs(self, messages: Sequence[Message]) -> Iterator[Item]:
        """Yield the calls and answers."""
        try:
            items = items_of(messages, self.shapes)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return
        yield from (item for item in items if item.tool_use_id and (item.is_call or item.is_answer))

    def _paired(self, replaced: Replaced, given: Sequence[Message]) -> Replaced:
        """Return the list with what messages behind the summary may not be without.

        Those are the calls that they answer, late or a second time, with the other results of
        these; and the beginning of their reply, if it has the thinking that led to them. A result
        whose call is not in the given list either becomes a text of the user. The same object comes
        back if nothing changes.
        """
        left, whole = Reading(self.shapes), Reading(self.shapes)
        places = indices(replaced.sources)
        begun: set[int] = set()
        try:
            left.extend(replaced.messages)
            lone = {
                place
                for i, item in enumerate(left.items)
                if item.is_answer and i not in left.partners
                and (place := places[item.message]) is not None
            }  # fmt: skip
            parted = [*self._parted(places, given)]
            if not (lone or parted):
                return replaced
            whole.extend(given)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return replaced
        for at, place in parted:
            here = {places[message] for message in _thinking_of(at, left)}
            if not _thinking_of(place, whole) <= here:
                begun |= {m for m in _led_to_with(place, whole) if m < place}
        begun = whole.bound_messages(begun)
        back = deque(sorted(begun | whole.bound_messages(lone).difference(places)))
        if not back:
            return self._with_late_results(replaced, left)
        found: list[tuple[int | None, Message]] = []
        for place, message in zip(places, replaced.messages, strict=True):
            if place not in begun:
                while place is not None and back and back[0] < place:
                    found.append((back[0], given[back.popleft()]))
                found.append((place, message))
        found += [(i, given[i]) for i in back]
        sources = joined(None if i is None else range(i, i + 1) for i, _ in found)
        replaced, left = Replaced([message for _, message in found], sources), Reading(self.shapes)
        left.extend(replaced.messages)
        return self._with_late_results(replaced, left)

    def _with_late_results(self, replaced: Replaced, reading: Reading) -> Replaced:
        """Return the list in which results without a call are texts of the user.

        Only behind a summary, which stands for the call: a provider rejects the result alone. A
        text follows the results beside it, which belong to calls. Results with media stay.
        """
        late: dict[int, list[Item]] = {}
        for i, item in enumerate(reading.items):
            is_lone = item.kind == "tool_result" and i not in reading.partners
            if is_lone and item.takes_text and not item.media and item.tool_use_id:
                late.setdefault(item.message, []).append(item)
        summaries, texts = self.summaries, map(self.shapes.text, replaced.messages)
        if not late or not any(text in summaries for text in texts):
            return replaced
        found: list[tuple[range | None, Message]] = []
        places, said, beside = dict[int, Places](), list[str](), None
        for i, source in enumerate(indices(replaced.sources)):
            message, items = replaced.messages[i], reading.items_of(i)
            if said and not any(reading.items[k].kind == "tool_result" for k in items):
                found.append((None, self._said(said, beside)))
                said = []
            if i in late:
                beside, edits = message, [Edit(one, None) for one in late[i]]
                said += (f"Result of the call {one.tool_use_id}:\n{one.text}" for one in late[i])
                message = edited_message(message, edits, self.shapes)
            if message is not None:
                found.append((None if source is None else range(source, source + 1), message))
                if i in late or i in replaced.places:
                    places[len(found) - 1] = {} if i in late else replaced.places[i]
        if said:
            self._is_open = True
            found.append((None, self._said(said, beside)))
        return Replaced([one for _, one in found], joined(one for one, _ in found), places)

    def _said(self, texts: Sequence[str], beside: Message) -> Message:
        return self.shapes.writing([beside]).written("user", "\n\n".join(texts))

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
