"""Phrases of several words that a text has in common with what is out of the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class Runs:
    """What of texts may be a phrase: words in a row that are all `among` these."""

    def __init__(self, among: frozenset[str]) -> None:
        self._among = among
        self._known: dict[str, bool] = {}
        """By what stands between spaces; a session says the same words again and again."""

    def of(self, text: str) -> Sequence[Sequence[str]]:
        """Return the runs in a text, in order."""
        if not text.isascii():
            text = text.translate(_WIDE_MARKS)
        lines = (line.split() for line in text.split("\n"))
        return [run for line in lines if len(line) >= _WORDS for run in self._of_line(line)]

    def _of_line(self, line: list[str]) -> Iterator[list[str]]:
        start = 0
        for i, said in enumerate(line):
            known = self._known.get(said)
            if known is None:
                known = self._known[said] = self._is_known(said.strip(_MARKS))
            if not known:
                if i - start >= _WORDS:
                    yield line[start:i]
                start = i + 1
        if len(line) - start >= _WORDS:
            yield line[start:]

    def _is_known(self, word: str) -> bool:
        """Is this among the words, or cut into such by an index, or no word at all."""
        if word in self._among or not word.isalnum():
            return True
        return not word.isascii() and self._among.issuperset(words(word))


def anchors(runs: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the words by which phrases may be found, in no order."""
    for said in {said for run in runs for said in run}:
        if _may_anchor(word := said.strip(_MARKS)):
            yield word


def _may_anchor(word: str) -> bool:
    """Is this long enough, and one word to an index."""
    if len(word) < _ANCHOR:
        return False
    if word.isascii():
        return word.isalnum() or word.replace("_", "").isalnum()
    return words(word) == [word]


def phrases(
    runs: Sequence[Sequence[str]], part: Part, texts: Texts, holders: Holders, call: int
) -> Iterator[Distinct]:
    """Yield the phrases that stand in an item which a call did not have."""
    for run in runs:
        end = 0
        for i, said in enumerate(run):
            word = said.strip(_MARKS)
            if i < end or len(word) < _ANCHOR:
                continue
            for place in holders.with_word(word, most=_RARE):
                if place.absence >= 0 or part.absence(place.position, call) is None:
                    continue
                found = _longest(run, i, texts.at(place))
                if found is not None:
                    start, end = found
                    known = tuple(anchors([run[start:end]]))
                    yield Distinct(_joined(run, start, end), SURE, known)
                    break


def _longest(run: Sequence[str], i: int, text: str) -> tuple[int, int] | None:
    """Return where the longest run of words around one stands that a text holds too."""
    start, end = i, i + 1
    while end < min(len(run), i + _MOST) and _joined(run, start, end + 1) in text:
        end += 1
    while start > max(0, end - _MOST) and _joined(run, start - 1, end) in text:
        start -= 1
    is_long = end - start >= _WORDS and len(_joined(run, start, end)) >= _CHARS
    return (start, end) if is_long else None


def _joined(run: Sequence[str], start: int, end: int) -> str:
    return " ".join(run[start:end]).strip(_MARKS)
