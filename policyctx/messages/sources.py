"""Sources: which message of one list each message of another comes from, as ranges.

Most messages of an edited list follow each other as they did before. Sources are therefore ranges
of consecutive indices in the earlier list, with None for one message that was inserted. They are
ascending, and ranges that follow each other without a gap are joined, so equal sources are equal
values.
"""

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, count
from operator import attrgetter, ne
from typing import Any, TypeAlias

from policyctx.definitions.items import Message, Path
from policyctx.messages.markers import bare, is_plain, unmarked, with_markers
from policyctx.messages.shapes.built_in import Shapes

_START = attrgetter("start")


class Staying:
    """The places of a list that grows whose messages were not removed, as ascending ranges."""

    def __init__(self, ranges: Iterable[range] = ()) -> None:
        self._ranges = list(ranges)

    def copy(self) -> "Staying":
        """Return these places, to remove others from them."""
        return Staying(self._ranges)

    def grow(self, places: range) -> None:
        """Add the messages at these places, which follow those known so far."""
        if self._ranges and self._ranges[-1].stop == places.start:
            places = range(self._ranges.pop().start, places.stop)
        if places:
            self._ranges.append(places)

    def remove(self, place: int) -> None:
        """Remove the message at a place; it may be removed already."""
        i = bisect_right(self._ranges, place, key=_START) - 1
        if i >= 0 and place in (found := self._ranges[i]):
            parts = range(found.start, place), range(place + 1, found.stop)
            self._ranges[i : i + 1] = filter(None, parts)

    def after(self, place: int) -> Iterator[int]:
        """Yield the places behind this one, in order."""
        first = bisect_right(self._ranges, place, key=_START)
        if first and (left := range(place + 1, self._ranges[first - 1].stop)):
            yield from left
        for i in range(first, len(self._ranges)):
            yield from self._ranges[i]

    def before(self, place: int) -> Iterator[int]:
        """Yield the places before this one, the nearest first."""
        for i in range(bisect_left(self._ranges, place, key=_START) - 1, -1, -1):
            found = self._ranges[i]
            yield from range(min(place, found.stop) - 1, found.start - 1, -1)

    @property
    def sources(self) -> tuple[range, ...]:
        """The sources of the list that is left."""
        return tuple(self._ranges)


Sources: TypeAlias = tuple[range | None, ...]
# Lists are compared in slices: a difference costs a visit to the messages of its slice alone.
_SLICE = 128


def whole(count: int) -> Sources:
    """Return the sources of a list of so many messages that was not edited."""
    return (range(count),) if count else ()


def indices(sources: Sources) -> tuple[int | None, ...]:
    """Return the index of each message, None for one that was inserted."""
    return tuple(chain.from_iterable((None,) if one is None else one for one in sources))


def part(sources: Sources, places: range) -> Sources:
    """Return the sources of the messages at consecutive places."""
    return through((places,), sources)


def through(later: Iterable[range | None], earlier: Sources) -> Sources:
    """Return the sources of a list two edits later: `later` names places in the list between."""
    if len(earlier) == 1 and earlier[0] is not None and earlier[0].start == 0:
        return joined(later)  # the usual case: nothing was edited first
    ends = list(accumulate(1 if one is None else len(one) for one in earlier))
    return joined(chain.from_iterable(_through(one, earlier, ends) for one in later))


def _through(one: range | None, earlier: Sources, ends: Sequence[int]) -> Iterator[range | None]:
    if one is None:
        yield None
        return
    at = one.start
    for i in range(bisect_right(ends, at), len(earlier)):
        if at >= one.stop:
            return
        found, end = earlier[i], min(ends[i], one.stop)
        offset = at - (ends[i - 1] if i else 0)
        yield None if found is None else found[offset : offset + end - at]
        at = end


def within(sources: Sources, bounds: range) -> Sources:
    """Return the sources that are in a range of consecutive indices."""
    ranges = (one for one in sources if one is not None)
    return joined(range(max(one.start, bounds.start), min(one.stop, bounds.stop)) for one in ranges)


def position_of(sources: Sources, index: int) -> int | None:
    """Return the position of the message with this source, None if there is none."""
    position = 0
    for one in sources:
        if one is not None and index in one:
            return position + index - one.start
        position += 1 if one is None else len(one)
    return None


def joined(sources: Iterable[range | None]) -> Sources:
    """Return sources without empty ranges, those joined that follow each other without a gap."""
    found: list[range | None] = []
    for one in sources:
        last = found[-1] if found else None
        if one is None:
            found.append(None)
        elif not one:
            continue
        elif last is not None and last.stop == one.start:
            found[-1] = range(last.start, one.stop)
        else:
            found.append(one)
    return tuple(found)


def differences(
    messages: list[Message], others: list[Message] | list[Message | None], shapes: Shapes
) -> list[int] | None:
    """Return where a list differs from the `others` that it begins with, though they are alike.

    Returns None if the messages at some position are not alike, see `are_alike`.
    """
    found: list[int] = []
    known = len(others)
    if have_same_ends(messages, others):
        try:
            others += messages[known:]  # lists of one length are compared without a copy of either
            if messages == others:
                return found
        finally:
            del others[known:]
    for first in range(0, known, _SLICE):
        there = others[first : first + _SLICE]
        some = messages[first : first + len(there)]
        if some == there:
            continue
        for i in compress(count(first), map(ne, some, there)):
            if not are_alike(messages[i], others[i], shapes):
                return None
            found.append(i)
    return found


def have_same_ends(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether the first and the last of `others` are the objects that `some` have there."""
    last = len(others) - 1
    return last >= 0 and some[0] is others[0] and some[last] is others[last]


def are_alike(one: Message, other: Message | None, shapes: Shapes) -> bool:
    """Whether two messages are equal without their markers.

    An SDK's object equals the dict that was saved of it, and a lone text block a text.
    """
    if one == other:
        return True
    if other is None:
        return False
    if is_plain(one) and is_plain(other):
        return bool(bare(one) == bare(other))
    return comparable(one, shapes) == comparable(other, shapes)


def moved(
    message: Message, markers: Mapping[Path, Any], places: Mapping[Path, Path], shapes: Shapes
) -> Message:
    """Return a message with copies of these markers, each at its place in this message."""
    found = {places[path]: marker for path, marker in markers.items() if path in places}
    return with_markers(shapes.shaped(message).message, copy.deepcopy(found))


def without_markers(message: Message, shapes: Shapes) -> Message:
    """Return a message, which may be an SDK's object, as a dict without its markers."""
    return unmarked(shapes.shaped(message).message)


def comparable(message: Message, shapes: Shapes) -> object:
    """Return what is equal for two messages that are alike."""
    return bare(shapes.comparable(without_markers(message, shapes)))
