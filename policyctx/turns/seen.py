"""`SeenList`: by what a session that is opened again recognises the list of the turn before.

The beginning of a list is recognised by its number of messages and a sum over their contents, which
also knows the order of a list that was given: words that were dropped may be said again behind the
list that was returned, and then both have the same messages. The record has both of the list as the
caller gave it and as it was returned, and which of the dropped items each of them lacks, so that
equal items after a restart are the ones that they were before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from policyctx.definitions.items import Item, Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import Shapes
from policyctx.planning.ledger import ItemKey, Ledger
from policyctx.planning.placeholders import content_hash
from policyctx.turns.known_list import KnownList

_DIGITS = 32
"""Hexadecimal digits of a sum."""


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

    def gone_from(
        self, messages: Sequence[Message], ledger: Ledger, shapes: Shapes
    ) -> tuple[frozenset[ItemKey], bool] | None:
        """Return what `KnownList.gone_from` returned for this list in the earlier session."""
        if self.drops != len(ledger.drops):
            return None
        try:
            reading = Reading(shapes, messages)
        except MessagesError:  # raised again, with its place in the whole list, when it is read
            return None
        known = range(min(len(messages), max(self.given.length, self.left.length)))
        contents = [content_of(reading, i) for i in known]
        if self.given.begins([_placed(of, i) for i, of in enumerate(contents)]):
            form = self.given
        elif self.left.begins(contents):
            form = self.left
        else:
            return None
        more = (item for item in reading.items if item.message >= form.length)
        follows, drops = [*map(ledger.as_decided, more)], list(ledger.drops)
        is_known = any(ledger.may_know(item) or ledger.rendered(item) for item in follows)
        is_wrong = is_known and self.is_guess and self.given.gone
        if is_wrong or (form is self.left and _has_any(follows, _of_runs(self.ended, drops))):
            return None
        return frozenset(_of_runs(form.gone, drops)), self.is_guess


class Sums:
    """The sums of a list that grows, each message added when they are asked for first.

    `before` are those of the list before, which has read the messages that are the same objects.
    """

    def __init__(self, known: KnownList, before: Sums | None = None) -> None:
        self.known, self._before = known, before
        self._contents: list[int] = []
        """Of each message as it is left, 0 for one that was removed."""
        self._given, self._left = 0, 0
        drops, gone = known.conversation.ledger.drops, known.conversation.gone_before
        self._lacked = _Numbers(sorted(drops[key] for key in gone if key in drops))
        self._gone = _Numbers()
        self._gone.bounds = [*self._lacked.bounds]
        self._changes = -1

    def record(self) -> Iterator[dict[str, Any]]:
        """Yield the record of the list, if its fates have changed since the last record."""
        conversation = self.known.conversation
        if self._changes == len(conversation.history):
            return
        shapes, changed = conversation.reading.shapes, conversation.history[max(0, self._changes) :]
        self._changes = len(conversation.history)
        before, self._before = self._before, None
        known = {} if before is None else before.by_object()
        for message in range(len(self._contents), conversation.reading.message_count):
            content = known.get(id(self.known.given[message]))
            if content is None:
                content = content_of(conversation.reading, message)
            self._contents.append(content)
            self._given += _placed(content, message)
            self._left += content
        for message in {conversation.items[position].message for position, _ in changed}:
            left = self.known.left[message]
            content = 0 if left is None else content_of(Reading(shapes, [left]), 0)
            self._left += content - self._contents[message]
            self._contents[message] = content
        for number in self._numbers(position for position, _ in changed):
            self._gone.add(number)
        count = len(self._contents)
        yield SeenList(
            Beginning(count, _hex(self._given), (*self._lacked.bounds,)),
            Beginning(count - len(conversation.removed), _hex(self._left), (*self._gone.bounds,)),
            len(conversation.ledger.drops),
            (*_Numbers(sorted(self._numbers(self._ended()))).bounds,),
            self.known.is_guess,
        ).record()

    def by_object(self) -> dict[int, int]:
        """Return the content of each message as it is left, by the identity of its object."""
        return {id(one): of for one, of in zip(self.known.left, self._contents, strict=False)}

    def _numbers(self, positions: Iterable[int]) -> Iterator[int]:
        """Yield the numbers of the items at these positions that were dropped."""
        conversation = self.known.conversation
        for i in positions:
            fate = conversation.fates.get(i)
            if fate is not None and fate.action.leaves_nothing:
                number = conversation.ledger.drops.get(conversation.identities.key(i))
                if number is not None:
                    yield number

    def _ended(self) -> Iterator[int]:
        """Yield the items of the messages that were removed behind all that is left."""
        for message in range(len(self._contents) - 1, -1, -1):
            if message not in self.known.conversation.removed:
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


def _has_any(items: Iterable[Item], keys: Iterable[ItemKey]) -> bool:
    """Return whether an item is equal to one with a key of these."""
    equal = {key[:3] for key in keys}
    return any((i.kind, i.tool_use_id, content_hash(i.identity)) in equal for i in items if equal)
