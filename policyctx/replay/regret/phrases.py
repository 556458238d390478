"""Phrases of several words that a text has in common with what is out of the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.regret.strings import SURE, Distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.part import Part
    from policyctx.replay.regret.holders import Holders

# So many words in a row are no chance, when they are no shorter than this together.
_WORDS, _CHARS = 6, 28
# Longer ones are shown up to here; a line may have a whole file in it.
_MOST = 40
# Shorter words stand everywhere.
_ANCHOR = 5
_MARKS = "\"'`.,;:!?()[]{}<>*_“”«»\u2018\u2019"


def anchors(text: str) -> Iterator[str]:
    """Yield the words by which a phrase of a text may be found."""
    for line in text.split("\n"):
        said = line.split()
        if len(said) >= _WORDS:
            yield from (word for one in said if len(word := one.strip(_MARKS)) >= _ANCHOR)


def phrases(text: str, part: Part, holders: Holders, call: int) -> Iterator[Distinct]:
    """Yield the phrases of a text that stand in an item which a call did not have."""
    for line in text.split("\n"):
        said = line.split()
        end = 0
        for i in range(len(said) if len(said) >= _WORDS else 0):
            word = said[i].strip(_MARKS)
            if i < end or len(word) < _ANCHOR:
                continue
            for place in holders.with_word(word):
                if place.absence >= 0 or part.absence(place.position, call) is None:
                    continue
                found = _longest(said, i, holders.text(place))
                if found is not None:
                    start, end = found
                    yield Distinct(" ".join(said[start:end]).strip(_MARKS), SURE)
                    break


def _longest(said: Sequence[str], i: int, text: str) -> tuple[int, int] | None:
    """Return where the longest run of words around one stands that a text holds too."""
    start = end = i
    while end < min(len(said), i + _MOST) and _joined(said, start, end + 1) in text:
        end += 1
    if end == start:
        return None
    while start > max(0, end - _MOST) and _joined(said, start - 1, end) in text:
        start -= 1
    is_long = end - start >= _WORDS and len(_joined(said, start, end)) >= _CHARS
    return (start, end) if is_long else None


def _joined(said: Sequence[str], start: int, end: int) -> str:
    return " ".join(said[start:end]).strip(_MARKS)
