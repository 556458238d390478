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
WORDS, CHARS = 5, 28
# Longer ones are shown up to here; a line may have a whole file in it.
_MOST = 40
# A phrase that nothing else holds has a word that hardly anything else holds.
RARE = 4
# Shorter words stand everywhere.
_ANCHOR = 5
# What stands around a word and is none of it.
MARKS = "\"'`.,;:!?()[]{}<>*_“”«»\u2018\u2019"


class Run(NamedTuple):
    """What of a text may be a phrase: words in a row that all stand in what was lost."""

    said: Sequence[str]
    """The words, with the marks around them."""
    anchors: Sequence[tuple[int, str]]
    """The words by which it may be found, without their marks, and where in it they stand."""


def may_anchor(word: str) -> bool:
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
            for place in holders.with_word(word, most=RARE):
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
    is_long = end - start >= WORDS and len(_joined(said, start, end)) >= CHARS
    return (start, end) if is_long else None


def _joined(said: Sequence[str], start: int, end: int) -> str:
    return " ".join(said[start:end]).strip(MARKS)
