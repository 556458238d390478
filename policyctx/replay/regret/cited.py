"""Numbers of lines by which a reply refers to a file, and the removed items that show them.

A call that views lines 1,037 to 1,074 of a file, or a text that says `ledger.py:642`, rests on
something that shows these numbers. Round numbers are chosen without it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from policyctx.replay.regret.asked import Input
from policyctx.replay.regret.holders import Texts
from policyctx.replay.regret.knowledge import Knowledge
from policyctx.replay.regret.memo import Memo
from policyctx.replay.regret.strings import starts_of
from policyctx.replay.timeline import SessionPart

_IN_TEXT = re.compile(
    r"([\w.-]*\w\.[A-Za-z]\w{0,4})(?::|#L|\(|,? lines? |:? ?~)~?"
    r"(\d{3,6})(?:\s?[-\u2013]\s?(\d{3,6}))?"
)
# Smaller numbers are guessed, and stand everywhere.
_LEAST = 100
_ROUND = 5


class Cited(NamedTuple):
    """The number of a line that a reply took from a removed item."""

    position: int
    """Of the item."""
    text: str
    """The file and the number."""
    start: int
    """Where the number is in the item's text."""
    end: int


class Citations:
    """The numbers of lines in the replies of a part."""

    def __init__(self, part: SessionPart, texts: Texts, knowledge: Knowledge, memo: Memo) -> None:
        self._part, self._texts, self._knowledge = part, texts, knowledge
        self._numbers_in, self._input = memo.of(_numbers_in), memo.of(Input)

    def of(self, reply: int, call: int) -> Iterator[Cited]:
        """Yield the numbers that a reply took from items which its call did not have."""
        for file, number in self._said(reply):
            found = list(self._held(file, number, call))
            if found and not self._knowledge.has_line(file, number, call):
                yield from found

    def numbers(self, reply: int) -> frozenset[str]:
        """Return the numbers of lines in a reply."""
        return frozenset(str(number) for _, number in self._said(reply))

    def _said(self, reply: int) -> Sequence[tuple[str, int]]:
        item = self._part.items[reply]
        said = dict.fromkeys(self._numbers_in(self._texts.written(reply)))
        if item.kind == "tool_call":
            given = self._input(item.tool, item.text)
            lines = [number for number in given.line_numbers if not _is_round(number)]
            said |= {(file, number): None for file in sorted(given.files) for number in lines}
        return list(said)

    def _held(self, file: str, number: int, call: int) -> Iterator[Cited]:
        part = self._part
        for position in self._results.get(file, ()):
            if position >= part.had(call) or part.absence(position, call) is None:
                continue
            said = str(number)
            for start in starts_of(said, self._texts.shown(position), most=1):
                yield Cited(position, f"{file}:{number}", start, start + len(said))

    @cached_property
    def _results(self) -> Mapping[str, Sequence[int]]:
        """By the last part of a path: results of calls that name it, out at any time."""
        found: dict[str, list[int]] = defaultdict(list)
        part = self._part
        for position in sorted(part.absences, reverse=True):
            asked = part.partners.get(position)
            if part.items[position].kind == "tool_result" and asked is not None:
                call = part.items[asked]
                for file in self._input(call.tool, call.text).files:
                    found[file].append(position)
        return found


def _numbers_in(text: str) -> tuple[tuple[str, int], ...]:
    """Return the files that a text names with the number of a line, and the number."""
    return tuple(
        (file, int(number))
        for file, *numbers in _IN_TEXT.findall(text)
        for number in numbers
        if number
    )


def _is_round(number: int) -> bool:
    return number < _LEAST or number % _ROUND == 0 or number % (2 * _ROUND) == 1
