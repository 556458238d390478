"""What in the replies of a part may come from what was lost; each word is looked at once."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.phrases import MARKS, WORDS, Run, may_anchor
from policyctx.replay.regret.strings import SURE, Distinct, distinct_strings
from policyctx.replay.regret.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LINE_LENGTH, _LINE_WORDS = 30, 4
# Between sentences and words that are written without spaces.
_WIDE_MARKS = re.compile("[\u3001\u3002\u300c-\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]")


class Said(NamedTuple):
    """What of a reply may come from what was lost."""

    strings: Sequence[Distinct]
    """Each once; lines last."""
    runs: Sequence[Run]


class Replies:
    """Reads the replies of one part, which mostly say what others said before them.

    `lost` are the words of all that was out at any time. What has no `rare` one of them is not
    looked for, nor a phrase without one by which phrases are found, the `anchors`.
    """

    def __init__(
        self, lost: frozenset[str], *, rare: frozenset[str], anchors: frozenset[str]
    ) -> None:
        self._lost, self._rare, self._anchoring = lost, rare, anchors
        self._seen: set[str] = set()
        """What stood between spaces so far; the others are of these."""
        self._strings: dict[str, Sequence[Distinct]] = {}
        self._anchors: dict[str, str] = {}
        """The bare word of each that may anchor a phrase."""
        self._with_rare: set[str] = set()
        self._unknown: set[str] = set()
        """What is in nothing that was lost, and so parts runs."""

    def read(self, text: str) -> Said:
        """Return what of a text may come from what was lost."""
        spaced = text if text.isascii() else _WIDE_MARKS.sub(" ", text)
        lines = list(map(str.split, spaced.split("\n")))
        said = dict.fromkeys(chain.from_iterable(lines))
        for new in said.keys() - self._seen:
            self._look_at(new)
        strings = chain.from_iterable(self._strings[s] for s in said if s in self._strings)
        telling = [
            (number, line)
            for number, line in enumerate(lines)
            if len(line) >= _LINE_WORDS and not self._with_rare.isdisjoint(line)
        ]
        if not telling:
            return Said(list(dict.fromkeys(strings)), ())
        whole = self._whole_lines(telling, text.split("\n"))
        runs = [run for _, line in telling for run in self._runs(line)]
        return Said(list(dict.fromkeys(chain(strings, whole))), runs)

    def _look_at(self, said: str) -> None:
        self._seen.add(said)
        if not self._rare.isdisjoint(words(said)):
            self._with_rare.add(said)
            if found := list(distinct_strings(said, self._may_come)):
                self._strings[said] = found
        word = said.strip(MARKS)
        if word in self._anchoring and may_anchor(word):
            self._anchors[said] = word
        elif not self._is_known(word):
            self._unknown.add(said)

    def _may_come(self, known: Sequence[str]) -> bool:
        return self._lost.issuperset(known) and not self._rare.isdisjoint(known)

    def _is_known(self, word: str) -> bool:
        """Was this lost, or was all that an index cuts it into; what is no word is in no index."""
        if word in self._lost or not word.isalnum():
            return True
        return not word.isascii() and self._lost.issuperset(words(word))

    def _whole_lines(
        self, found: Sequence[tuple[int, Sequence[str]]], lines: Sequence[str]
    ) -> Iterator[Distinct]:
        """Yield the lines of which every word was lost."""
        for number, said in found:
            line = lines[number].strip()
            if len(line) >= _LINE_LENGTH and self._unknown.isdisjoint(said):
                known = tuple(words(line))
                if self._may_come(known):
                    yield Distinct(line, SURE, known)

    def _runs(self, line: Sequence[str]) -> Iterator[Run]:
        """Yield the words in a row that were all lost, of those rows that have an anchor."""
        if self._anchors.keys().isdisjoint(line):
            return
        start = 0
        parted = (i for i, said in enumerate(line) if said in self._unknown)
        for end in chain(parted, (len(line),)):
            if end - start >= WORDS:
                said = line[start:end]
                anchors = [(i, self._anchors[s]) for i, s in enumerate(said) if s in self._anchors]
                if anchors:
                    yield Run(said, anchors)
            start = end + 1
