"""Phrases of several words that a text has in common with what is out of the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.strings import SURE, Distinct
from policyctx.replay.regret.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.part import Part
    from policyctx.replay.regret.holders import Holders, Texts

# So many words in a row are no chance, when they are no shorter than this together.
_WORDS, _CHARS = 5, 28
# Longer ones are shown up to here; a line may have a whole file in it.
_MOST = 40
# A phrase that nothing else holds has a word that hardly anything else holds.
_RARE = 4
# Shorter words stand everywhere.
_ANCHOR = 5
# Between sentences and words that are written without spaces.
_WIDE_MARKS = str.maketrans(
    dict.fromkeys(
        "\u3001\u3002\u300c\u300d\u300e\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f", " "
    )
)
_MARKS = "\"'`.,;:!?()[]{}<>*_“”«»\u2018\u2019"


class Run(NamedTuple):
    """What of a text may be a phrase: words in a row that all stand in what was lost."""

    said: Sequence[str]
    """The words, with the marks around them."""
    anchors: Sequence[tuple[int, str]]
    """The words by which it may be found, without their marks, and where in it they stand."""


class Runs:
    """The runs in the texts of one part."""

    def __init__(self, texts: Texts) -> None:
        self._lost, self._rare = texts.lost, texts.rare(_RARE)
        self._known: dict[str, str | None] = {}
        """By a word with its marks: the word if it is rare, nothing if not, None if it is new."""

    def of(self, text: str) -> Sequence[Run]:
        """Return the runs in a text, in order."""
        if not text.isascii():
            text = text.translate(_WIDE_MARKS)
        lines = (line.split() for line in text.split("\n"))
        return [run for line in lines if len(line) >= _WORDS for run in self._of_line(line)]

    def _of_line(self, line: list[str]) -> Iterator[Run]:
        start, anchors = 0, list[tuple[int, str]]()
        for i, said in enumerate(line):
            if said not in self._known:
                self._known[said] = self._judged(said.strip(_MARKS))
            word = self._known[said]
            if word:
                anchors.append((i - start, word))
            elif word is None:
                if anchors and i - start >= _WORDS:
                    yield Run(line[start:i], anchors)
                start, anchors = i + 1, []
        if anchors and len(line) - start >= _WORDS:
            yield Run(line[start:], anchors)

    def _judged(self, word: str) -> str | None:
        if word in self._rare and _may_anchor(word):
            return word
        return "" if self._is_known(word) else None

    def _is_known(self, word: str) -> bool:
        """Was this lost, or was all that an index cuts it into; what is no word is in no index."""
        if word in self._lost or not word.isalnum():
            return True
        return not word.isascii() and self._lost.issuperset(words(word))


def _may_anchor(word: str) -> bool:
    """Is this long enough, and one word to an index."""
    if len(word) < _ANCHOR:
        return False
    if word.isascii():
        return word.isalnum() or word.replace("_", "").isalnum()
    return words(word) == [word]


def phrases(
    runs: Sequence[Run], part: Part, texts: Texts, holders: Holders, call: int
) -> Iterator[Distinct]:
    """Yield the phrases that stand in an item which a call did not have."""
    for said, anchors in runs:
        end = 0
        for i, word in anchors:
            if i < end:
                continue
            for place in holders.with_word(word, most=_RARE):
                if place.absence >= 0 or part.absence(place.position, call) is None:
                    continue
                found = _longest(said, i, texts.at(place))
                if found is not None:
                    start, end = found
                    known = tuple(word for at, word in anchors if start <= at < end)
                    yield Distinct(_joined(said, start, end), SURE, known)
                    break


def _longest(said: Sequence[str], i: int, text: str) -> tuple[int, int] | None:
    """Return where the longest run of words around one stands that a text holds too."""
    start, end = i, i + 1
    while end < min(len(said), i + _MOST) and _joined(said, start, end + 1) in text:
        end += 1
    while start > max(0, end - _MOST) and _joined(said, start - 1, end) in text:
        start -= 1
    is_long = end - start >= _WORDS and len(_joined(said, start, end)) >= _CHARS
    return (start, end) if is_long else None


def _joined(said: Sequence[str], start: int, end: int) -> str:
    return " ".join(said[start:end]).strip(_MARKS)
