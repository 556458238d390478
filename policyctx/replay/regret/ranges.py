"""Which part of an item must be read again: `Range`, and how ranges join and overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

# A line that is longer than this is data: only what is around a string is read of it.
_LONG_LINE = 400
_AROUND = 120
# Strings that are at most so many lines apart are read at once.
NEAR = 20


class Range(NamedTuple):
    """A part of an item's text, in lines and in characters."""

    first: int
    """The number of its first line; the first line of the item has the number 1."""
    last: int
    """The number of its last line."""
    start: int
    """The position of its first character, from 0 on."""
    end: int
    """The position behind its last character."""


class Lines:
    """The lines of a text, and where each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)][:-1]

    def number(self, at: int) -> int:
        """Return the number, from 1 on, of the line in which a character stands."""
        return bisect_right(self._starts, at)

    def whole(self) -> Range:
        """Return the range of the whole text."""
        return Range(1, len(self.lines), 0, len(self.text))

    def between(self, first: int, last: int) -> Range:
        """Return the range from one line to another, both included and counted from 1 on."""
        return Range(
            first, last, self._starts[first - 1], self._starts[last - 1] + len(self.lines[last - 1])
        )

    def around(self, start: int, end: int) -> Range:
        """Return the range to be read for some characters: their lines, or a part of a long one."""
        first, last = self.number(start), self.number(max(start, end - 1))
        lines = self.between(first, last)
        if lines.end - lines.start <= max(_LONG_LINE, 2 * (end - start)):
            return lines
        return Range(first, last, max(lines.start, start - _AROUND), min(lines.end, end + _AROUND))

    def joined(self, ranges: Iterable[Range]) -> tuple[Range, ...]:
        """Return ranges in their order, those that overlap or stand near each other as one."""
        found: list[Range] = []
        for one in sorted(ranges, key=lambda one: one.start):
            last = found[-1] if found else None
            if last is not None and self._is_near(last, one):
                end = max(last.end, one.end)
                found[-1] = Range(last.first, max(last.last, one.last), last.start, end)
            else:
                found.append(one)
        return tuple(found)

    @staticmethod
    def _is_near(one: Range, other: Range) -> bool:
        """May two ranges be read at once; within one long line characters decide."""
        if other.start - one.end <= _LONG_LINE:
            return True
        return one.last < other.first <= one.last + NEAR

    def text_of(self, one: Range) -> str:
        """Return what is in a range."""
        return self.text[one.start : one.end]


def without(ranges: Iterable[Range], had: Sequence[Range]) -> list[tuple[int, int]]:
    """Return the characters of some ranges that other ranges do not have, as start and end."""
    found = [(one.start, one.end) for one in ranges]
    for other in had:
        found = [
            part
            for start, end in found
            for part in ((start, min(end, other.start)), (max(start, other.end), end))
            if part[0] < part[1]
        ]
    return found
