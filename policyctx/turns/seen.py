"""`SeenList`: by what a session that is opened again recognises the list of the turn before.

The beginning of a list is recognised by its number of messages and a sum over their contents, which
also knows the order of a list that was given: words that were dropped may be said again behind the
list that was returned, and then both have the same messages. The record has both of the list as the
caller gave it and as it was returned, and which of the dropped items each of them lacks, so that
equal items after a restart are the ones that they were before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import Shapes
from policyctx.planning.decisions import Decision
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry
from policyctx.planning.placeholders import content_hash
from policyctx.planning.reapplying import Form
from policyctx.turns.known_list import KnownList

_DIGITS = 32
"""Hexadecimal digits of a sum."""
NO_CHANGES: Mapping[int, Message | None] = MappingProxyType({})


class _Numbers:
    """A set of whole numbers, most of which follow each other."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self.bounds: list[int] = []
        """The first number of each run, and the one behind its last."""
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> None:
        """Add a number, which may be one of the set."""
        at = bisect_right(self.bounds, number)
        if at % 2:
            return
        follows = at > 0 and self.bounds[at - 1] == number
        precedes = at < len(self.bounds) and self.bounds[at] == number + 1
        bounds = [] if follows else [number]
        bounds += [] if precedes else [number + 1]
        self.bounds[at - follows : at + precedes] = bounds


class Beginning(NamedTuple):
    """The beginning of a list in one of its two forms."""

    length: int
    """Of its messages."""
    contents: str
    """The sum over them, in hex; of a list as it was given, of each times its place."""
    gone: tuple[int, ...] = ()
    """The drops of the session that it lacks, by their numbers: the bounds of each run of them."""

    def begins(self, contents: Sequence[int]) -> bool:
        """Return whether messages with these contents begin with it."""
        is_there = 0 < self.length <= len(contents)
        return is_there and _hex(sum(contents[: self.length])) == self.contents


class SeenList(NamedTuple):
    """What is recorded of the list of a turn."""

    given: Beginning
    left: Beginning
    drops: int
    """How many the session had, which number them: another session may have added some."""
    ended: tuple[int, ...] = ()
    """The drops behind all that was left of it, as `Beginning.gone` has them."""
    is_guess: bool = False
    """See `KnownList`."""

    def record(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return {"record": "list", **self._asdict()}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> SeenList | None:
        """Return what a record was made of, None if no session has written it."""
        try:
            given, left = (Beginning(*record[form]) for form in ("given", "left"))
            seen = cls(given, left, record["drops"], record["ended"], record["is_guess"])
            runs = [seen.ended, given.gone, left.gone]
            numbers = [*runs, (given.length, left.length, seen.drops)]
            is_whole = all(type(n) is int and n >= 0 for one in numbers for n in one)
            is_sorted = all(a < b for bounds in runs for a, b in pairwise(bounds))
            are_pairs = not any(len(bounds) % 2 for bounds in runs)
        except (KeyError, TypeError):
            return None
        return seen if is_whole and is_sorted and are_pairs else None

    def form_of(self, messages: Sequence[Message], ledger: Ledger, shapes: Shapes) -> Form | None:
        """Return what `KnownList.form_of` returned for this list in the earlier session."""
        try:
            reading = Reading(shapes, messages)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return None
        known = range(min(len(messages), max(self.given.length, self.left.length)))
        contents = [content_of(reading, i) for i in known]
        is_given = self.given.begins([_placed(of, i) for i, of in enumerate(contents)])
        if not is_given and not self.left.begins(contents):
            return None
        form, drops = self.given if is_given else self.left, [*ledger.drops]
        # What the list lacked when it was given may have been before what ended it.
        ended = () if is_given or not self.ended else (*self.ended, *self.given.gone)
        gone, last = (frozenset(_of_runs(runs, drops)) for runs in (form.gone, ended))
        is_guess = self.is_guess and bool(self.given.gone)
        return Form(messages[form.length :], gone, is_guess, last)


def last_seen(records: Sequence[Mapping[str, Any]], ledger: Ledger) -> SeenList | None:
    """Return what these records tell of the list seen last, None if it is not certain.

    A turn writes its list before its decisions. If some of the decisions are missing, the turn was
    not written whole and has returned nothing: the list before it counts. If there are more drops,
    another session has made them.
    """
    lists = (i for i in range(len(records) - 1, -1, -1) if records[i].get("record") == "list")
    if (at := next(lists, None)) is None:
        return None
    seen, drops = SeenList.of(records[at]), ledger.drops.keys()
    if seen is not None and seen.drops > len(drops) and (before := next(lists, None)) is not None:
        entries = filter(None, map(LedgerEntry.of, records[:at]))
        seen, drops = SeenList.of(records[before]), Ledger(entries).drops.keys()
    return seen if seen is not None and seen.drops == len(drops) else None


class Sums:
    """The sums of a list that grows, each message added when they are asked for first.

    `before` are those of the list before, which has read the messages that are the same objects.
    """

    def __init__(self, known: KnownList, before: Sums | None = None) -> None:
        self.known, self._before = known, before
        self._contents: list[int] = []
        """Of each message as it is left, 0 for one that was removed."""
        self._given, self._left, self._there = 0, 0, 0
        drops, gone = known.conversation.ledger.drops, known.conversation.gone_before
        self._lacked = _Numbers(sorted(drops[key] for key in gone if key in drops))
        self._gone = _Numbers()
        self._gone.bounds = [*self._lacked.bounds]
        self._changes = -1

    def seen(
        self,
        decisions: Sequence[Decision] = (),
        changes: Mapping[int, Message | None] = NO_CHANGES,
        entries: Iterable[LedgerEntry] = (),
    ) -> SeenList | None:
        """Return what is recorded of the list, None if its fates are those of the last record.

        It is the list that decisions will leave, with these `changes` of its messages and these
        `entries` in the ledger, so that all is written together.
        """
        conversation = self.known.conversation
        history, drops = conversation.history, conversation.ledger.drops
        if self._changes == len(history) + len(decisions):
            return None
        changed = {position for position, _ in history[max(0, self._changes) :]}
        changed.update(decision.position for decision in decisions)
        self._changes = len(history) + len(decisions)
        fates = ChainMap({one.position: one for one in decisions}, conversation.fates)
        numbers = ChainMap(conversation.ledger.drops_after(entries), drops)
        self._read()
        for message in {conversation.items[position].message for position in changed}:
            left = changes.get(message, self.known.left[message])
            shapes = conversation.reading.shapes
            content = 0 if left is None else content_of(Reading(shapes, [left]), 0)
            self._left += content - self._contents[message]
            self._there += (content > 0) - (self._contents[message] > 0)
            self._contents[message] = content

        def dropped(positions: Iterable[int]) -> Iterator[int]:
            """Yield the numbers of the items at these positions that were dropped."""
            for i in positions:
                if i in fates and fates[i].action.leaves_nothing:
                    number = numbers.get(conversation.identities.key(i))
                    if number is not None:
                        yield number

        for number in dropped(changed):
            self._gone.add(number)
        return SeenList(
            Beginning(len(self._contents), _hex(self._given), (*self._lacked.bounds,)),
            Beginning(self._there, _hex(self._left), (*self._gone.bounds,)),
            len(drops) + len(numbers.maps[0]),
            (*_Numbers(sorted(dropped(self._ended()))).bounds,),
            self.known.is_guess,
        )

    def _read(self) -> None:
        """Add the messages that are new."""
        before, self._before = self._before, None
        known = {} if before is None else before.by_object()
        reading = self.known.conversation.reading
        for message in range(len(self._contents), reading.message_count):
            content = known.get(id(self.known.given[message]))
            if content is None:
                content = content_of(reading, message)
            self._contents.append(content)
            self._given += _placed(content, message)
            self._left += content
            self._there += 1

    def by_object(self) -> dict[int, int]:
        """Return the content of each message as it is left, by the identity of its object."""
        return {id(one): of for one, of in zip(self.known.left, self._contents, strict=False)}

    def _ended(self) -> Iterator[int]:
        """Yield the items of the messages that were removed behind all that is left."""
        for message in range(len(self._contents) - 1, -1, -1):
            if self._contents[message]:
                return
            yield from self.known.conversation.items_of(message)


def content_of(reading: Reading, message: int) -> int:
    """Return a number for the content of a message, equal for an SDK's object and its dict."""
    items = (reading.items[i] for i in reading.items_of(message))
    outermost = (item for item in items if item.inside is None)
    parts = (f"{one.kind} {one.tool_use_id} {content_hash(one.whole)}" for one in outermost)
    return int(content_hash("\n".join([reading.roles[message], *parts]))[:_DIGITS], 16)


def _placed(content: int, message: int) -> int:
    """Return the number of a message for a sum that knows the order."""
    return content * (message + 1)


def _hex(total: int) -> str:
    return f"{total % 16**_DIGITS:0{_DIGITS}x}"


def _of_runs(bounds: Sequence[int], drops: Sequence[ItemKey]) -> Iterator[ItemKey]:
    """Yield the drops with the numbers in these runs."""
    for first, end in zip(*[iter(bounds)] * 2, strict=True):
        yield from drops[first:end]
