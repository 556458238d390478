"""What in the replies of a part may come from what was lost; each word is looked at once."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.phrases import CHARS, MARKS, WORDS, Run, may_anchor
from policyctx.replay.regret.strings import (
    SURE,
    Distinct,
    distinct_grams,
    distinct_in,
    may_be_distinct,
    tokens_in,
)
from policyctx.replay.regret.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

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
        self._in_token: dict[str, Sequence[Distinct]] = {}
        self._anchors: dict[str, str] = {}
        """The bare word of each that may anchor a phrase."""
        self._unknown: set[str] = set()
        """What is in nothing that was lost, and so parts runs."""
        self._stands: dict[str, int] = {}
        """By string and line: in reply to which call it was said first, where that reply stays."""

    def read(self, text: str, call: int, *, stays: bool) -> Said:
        """Return what of a text, which replies to a call, may come from what was lost.

        Replies are read in their order. What one of them said that `stays` in the list is had by
        all that come after it.
        """
        spaced = text if text.isascii() else _WIDE_MARKS.sub(" ", text)
        said = dict.fromkeys(spaced.split())
        self._look_at(said.keys() - self._seen)
        lines = [
            (line.strip(), in_it)
            for line, parted in zip(text.split("\n"), spaced.split("\n"), strict=True)
            if len(line) >= CHARS and len(in_it := parted.split()) >= _LINE_WORDS
        ]
        strings = chain.from_iterable(self._strings[s] for s in said if s in self._strings)
        found = dict.fromkeys(chain(strings, self._whole_lines(lines)))
        new = [one for one in found if self._stands.get(one.text, call) >= call]
        if stays:
            for one in new:
                self._stands.setdefault(one.text, call)
        return Said(new, [run for _, line in lines for run in self._runs(line)])

    def _look_at(self, new: AbstractSet[str]) -> None:
        """Find out once what each is; most are bare words, of which sets say it together."""
        self._seen |= new
        bare = {said for said in new if said.isascii() and said.isalnum()}
        self._unknown |= bare - self._lost
        self._anchors.update((word, word) for word in bare & self._anchoring if may_anchor(word))
        for said in new - bare:
            word = said.strip(MARKS)
            if word in self._anchoring and may_anchor(word):
                self._anchors[said] = word
            elif not self._is_known(word):
                self._unknown.add(said)
        for said in filter(may_be_distinct, new):
            if found := self._distinct_in(said):
                self._strings[said] = found

    def _distinct_in(self, said: str) -> Sequence[Distinct]:
        found: list[Distinct] = []
        for token in tokens_in(said):
            if (known := self._in_token.get(token)) is None:
                known = self._in_token[token] = list(distinct_in(token, self._may_come))
            found += known
        return found if said.isascii() else [*found, *distinct_grams(said, self._may_come)]

    def _may_come(self, known: Sequence[str]) -> bool:
        return self._lost.issuperset(known) and not self._rare.isdisjoint(known)

    def _is_known(self, word: str) -> bool:
        """Was this lost, or was all that an index cuts it into; what is no word is in no index."""
        if word in self._lost or not word.isalnum():
            return True
        return not word.isascii() and self._lost.issuperset(words(word))

    def _whole_lines(self, lines: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Distinct]:
        """Yield the lines of which every word was lost."""
        for line, said in lines:
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
