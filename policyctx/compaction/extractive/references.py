"""Lines of results that were spoken of in other words: "keep the renewal date of that plan".

The value itself is not said again, so the line is found by the words that it shares with what was
said right after it. Two words must be shared, and only few lines of the result may share them.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.calls import words_of
from policyctx.compaction.extractive.revisions import all_words, subject_words
from policyctx.compaction.extractive.sentences import one_line
from policyctx.compaction.extractive.statements import USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.messages.items import Item

# The results before a statement that it may speak of, and the lines of each that are looked at.
_RESULTS, _LINES, _MOST_READ = 6, 300, 60_000
_LONGEST_LINE = 240
_SHARED, _MOST_LIKE_IT = 2, 2

# Lines, and the members of an object or a row, since a result may well be one line of JSON.
_LINE_END = re.compile(r"\n|(?<=[\"}\]\d]),\s*(?=[\"{])")
_HAS_VALUE = re.compile(r"\d")
_PARTS_OF_NAME = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


class Reference(NamedTuple):
    """A line of a result that something said later speaks of."""

    message: int
    line: str
    by_user: bool


class _Line(NamedTuple):
    text: str
    words: frozenset[str]


class _Result:
    """A result, and its lines once they are asked for."""

    def __init__(self, item: Item) -> None:
        self.message = item.message
        self._text = words_of(item.text)[:_MOST_READ]
        self._lower = self._text.lower()

    def may_hold(self, words: frozenset[str]) -> bool:
        """Whether enough of the words are in it at all, by a quick test."""
        return sum(word in self._lower for word in words) >= _SHARED

    @cached_property
    def lines(self) -> list[_Line]:
        pieces = _LINE_END.split(self._text, maxsplit=_LINES)[:_LINES]
        return [
            _Line(one_line(piece), all_words(_PARTS_OF_NAME.sub(" ", piece)))
            for piece in pieces
            if len(piece) <= _LONGEST_LINE and _HAS_VALUE.search(piece)
        ]


def references_to(results: Iterable[Item], said: Sequence[Said], cues: Cues) -> Iterator[Reference]:
    """Yield the lines that the user, or a finding in the agent's last words, speaks of."""
    recent: deque[_Result] = deque(maxlen=_RESULTS)
    coming = deque(results)
    for one in said:
        while coming and coming[0].message < one.message:
            recent.append(_Result(coming.popleft()))
        speaks = one.speaker == USER or (one.last and one.tells)
        if not recent or one.pasted or not speaks:
            continue
        words = subject_words(one.text, cues)
        for result in recent:
            line = _spoken_of(words, result.lines) if result.may_hold(words) else ""
            if line:
                yield Reference(result.message, line, one.speaker == USER)


def _spoken_of(words: frozenset[str], lines: Sequence[_Line]) -> str:
    """Return the line that shares most words, where hardly another one shares as many."""
    shared = [len(words & line.words) for line in lines]
    most = max(shared, default=0)
    if most < _SHARED or Counter(shared)[most] > _MOST_LIKE_IT:
        return ""
    return lines[shared.index(most)].text
