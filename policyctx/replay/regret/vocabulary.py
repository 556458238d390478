"""Words of a reply that nothing which its call was sent has, and the removed items that have them.

A reply may say in other words what only a removed item said: the words that it takes over from one
narrow place there show it. A word weighs the more the less common it is; how common it is, the
vocabulary of a tokenizer says, whose tokens are numbered by how often they occur.

A number of three digits, a measure or an id may coincide by chance. It is a fact where words that
stand near it in the reply stand near it in the item too, as in `HAT005 costs $166`. These words may
be known: the number is what the call was not sent.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from policyctx.replay.regret.holders import TextPlace, Texts
from policyctx.replay.regret.strings import Memo, starts_of
from policyctx.replay.regret.strings import words as words_of
from policyctx.replay.timeline import SessionPart
from policyctx.tokens.encoders import common_words

# The words of one place stand within so many characters.
WINDOW = 1_500
# A word may be in an item more often than is looked at.
_PLACES = 16
# A word in more removed items than this tells nothing apart.
_MANY = 8
# So much the words of one place must weigh, and more in a reply with many new words, where more of
# them coincide by chance.
_BASE, _SHARE = 2.0, 0.03
_COMMONNESS = ((3_000, 0.0), (10_000, 0.25), (30_000, 0.5), (80_000, 0.75))
_VOCABULARY = "o200k_base"
# Its tokens do not end where a capital letter begins.
_NAMES = "cl100k_base"

# Shorter words stand everywhere.
_SHORTEST = 4
_HUMPS = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}(?![a-z])")


class Takeover(NamedTuple):
    """Words that a reply took over from one place of a removed item."""

    position: int
    """Of the item."""
    words: tuple[str, ...]
    """The rarest first."""
    start: int
    """Where the place begins in the item's text, in characters."""
    end: int
    share: float
    """What the words weigh, of what shows by itself where they come from: from `LEAST` on."""


# A place whose words weigh less than this share is not looked at.
LEAST = 0.5


class SentWords:
    """The words that each call was sent, followed from call to call."""

    def __init__(
        self, part: SessionPart, texts: Texts, replies: Iterable[tuple[int, int]], memo: Memo
    ) -> None:
        self._part, self._texts = part, texts
        self._bases, self._bases_in = memo.of(_bases), memo.of(_bases_in)
        self._counts: Counter[str] = Counter()
        self._of_place: dict[TextPlace, frozenset[str]] = {}
        self._had = 0
        self._call = part.first_call - 1
        self._now: dict[int, int | None] = {}
        """By position of an item that was ever out: its absence now, None where it is there."""
        self._changes: dict[int, set[int]] = defaultdict(set)
        for position, absences in part.absences.items():
            for absence in absences:
                self._changes[absence.since].add(position)
                if absence.until != float("inf"):
                    self._changes[int(absence.until)].add(position)
        self._written = {reply: self._bases_in(texts.written(reply)) for reply, _ in replies}
        # Only what replies say is counted.
        said = frozenset(chain.from_iterable(self._written.values()))
        self._said = frozenset(filter(weight_of, said))
        self._holders: dict[str, list[int]] = defaultdict(list)
        for position in sorted(part.absences):
            # What an agent did once it can do again: its calls are no source of words.
            if part.items[position].kind == "tool_call":
                continue
            for word in self.at(TextPlace(position)):
                self._holders[word].append(position)
        for i in range(len(part.beside)):
            self._counts.update(self.at(TextPlace(-1 - i)))

    def at(self, place: TextPlace) -> frozenset[str]:
        """Return the words at a place that replies say and that weigh something."""
        found = self._of_place.get(place)
        if found is None:
            found = self._of_place[place] = self._said & self._bases_in(self._texts.at(place))
        return found

    def is_new(self, names: Iterable[str], call: int) -> bool:
        """Whether one of these names has a word that a call was not sent."""
        self._go_to(call)
        counts, said = self._counts, self._said
        return any(
            counts[word] <= 0 for name in names for word in self._bases(name) if word in said
        )

    def new_in(self, reply: int, call: int) -> dict[str, float]:
        """Return the words of a reply that its call was not sent, with what they weigh.

        Left out is what is in no removed item, or in many, which tells nothing apart.
        Calls are asked about in their order.
        """
        self._go_to(call)
        counts = self._counts
        return {
            word: weight_of(word)
            for word in self._written[reply]
            if counts[word] <= 0 and 0 < len(self.holders(word)) <= _MANY and weight_of(word)
        }

    def new_weight(self, reply: int, call: int) -> float:
        """Return what all words of a reply weigh that its call was not sent."""
        self._go_to(call)
        counts = self._counts
        return sum(weight_of(word) for word in self._written[reply] if counts[word] <= 0)

    def holders(self, word: str) -> Sequence[int]:
        """Return the positions of the items with a word that were out at any time."""
        return self._holders.get(word, ())

    def _go_to(self, call: int) -> None:
        while self._call < call:
            self._call += 1
            for position in sorted(self._changes.get(self._call, ())):
                if position < self._had:
                    self._change(position)
            had = self._part.had(self._call)
            for position in range(self._had, had):
                self._change(position)
            self._had = had

    def _change(self, position: int) -> None:
        now = None
        if position in self._part.absences:
            before = self._now.get(position, -1)
            now = self._part.absence_number(position, self._call)
            if before != -1:
                self._counts.subtract(self.at(_place(position, before)))
            self._now[position] = now
        self._counts.update(self.at(_place(position, now)))


def takeovers(
    sent: SentWords, part: SessionPart, texts: Texts, reply: int, call: int
) -> Iterator[Takeover]:
    """Yield the removed items that the words of a reply come from, at most once each."""
    new = sent.new_in(reply, call)
    if sum(new.values()) < LEAST * _BASE:
        return
    wanted = _BASE + _SHARE * sent.new_weight(reply, call)
    least = LEAST * wanted
    had = part.had(call)
    of_item: dict[int, list[str]] = defaultdict(list)
    for word in new:
        for position in sent.holders(word):
            if position < had:
                of_item[position].append(word)
    for position, words in of_item.items():
        if sum(new[word] for word in words) < least or part.absence(position, call) is None:
            continue
        found = _in_window(texts.at(TextPlace(position)), {word: new[word] for word in words})
        if found is not None and found.weight >= least:
            share = found.weight / wanted
            yield Takeover(position, found.words, found.start, found.end, share)


class _Window(NamedTuple):
    weight: float
    words: tuple[str, ...]
    start: int
    end: int


def _in_window(text: str, weights: dict[str, float]) -> _Window | None:
    """Return the place of a text in which words weigh the most together."""
    low = text.lower()
    places: list[tuple[int, str]] = []
    for word in weights:
        start = low.find(word)
        for _ in range(_PLACES):
            if start < 0:
                break
            places.append((start, word))
            start = low.find(word, start + 1)
    places.sort()
    best: _Window | None = None
    first = 0
    inside: Counter[str] = Counter()
    weight = 0.0
    for start, word in places:
        inside[word] += 1
        weight += weights[word] if inside[word] == 1 else 0
        while start - places[first][0] > WINDOW:
            gone = places[first][1]
            inside[gone] -= 1
            weight -= 0 if inside[gone] else weights[gone]
            first += 1
        if best is None or weight > best.weight:
            words = sorted((one for one in inside if inside[one]), key=lambda one: -weights[one])
            best = _Window(weight, tuple(words), places[first][0], start + len(word))
    return best


def _place(position: int, absence: int | None) -> TextPlace:
    return TextPlace(position) if absence is None else TextPlace(position, absence)


def _bases(name: str) -> tuple[str, ...]:
    """Return the words that a name is made of, in lower case."""
    if name.islower() and name.isalpha():
        return (name,) if len(name) >= _SHORTEST and name.isascii() else ()
    parts = [one.lower() for one in _HUMPS.findall(name)]
    return tuple(one for one in parts if len(one) >= _SHORTEST)


def _bases_in(text: str) -> frozenset[str]:
    """Return the words of which the names in a text are made."""
    return frozenset(chain.from_iterable(map(_bases, {*words_of(text)})))


def weight_of(word: str) -> float:
    """Return how telling a word is, from 0 for a common one to 1."""
    rank = common_words(_VOCABULARY, _COMMONNESS[-1][0]).get(word)
    if rank is None:
        return 1.0
    return next(weight for most, weight in _COMMONNESS if rank < most)


def is_common(name: str) -> bool:
    """Whether a name is so common that the vocabulary has it as one token, as `getElementById`."""
    return name in _names()


@cache
def _names() -> frozenset[str]:
    """Return the names in the whole vocabulary that are made of several words."""
    tokens = common_words(_NAMES, sys.maxsize)
    return frozenset(token for token in tokens if not token.islower() or "_" in token)


# What is so near in a reply, and in an item, belongs to a fact; in characters.
IN_REPLY, IN_ITEM = 100, 200
# So much the words on which both agree weigh.
_AGREED = 0.75
_DIGITS = 2
# A number may be in a text more often than is looked at.
_FACT_PLACES = 8
# A shorter word with digits in it, such as `v1`, stands everywhere.
_SHORTEST_MIXED = 4

_WORD = re.compile(r"\w+")


def may_be_fact(text: str) -> bool:
    """Whether a string is a number, or has one."""
    return sum(map(str.isdigit, text)) >= _DIGITS


def fact_in(text: str, reply: str, item: str, starts: Sequence[int]) -> int | None:
    """Return where a string is in an item beside what is beside it in a reply.

    `starts` are its places in the item. None where both agree on too little around it.
    """
    size = len(text)
    said = [
        _around(reply, start, size, IN_REPLY) for start in starts_of(text, reply, most=_FACT_PLACES)
    ]
    for start in starts[:_FACT_PLACES]:
        held = _around(item, start, size, IN_ITEM)
        if any(sum(map(_weight, near & held)) >= _AGREED for near in said):
            return start
    return None


def _around(text: str, start: int, size: int, by: int) -> frozenset[str]:
    """Return the words around a place in a text, in lower case."""
    parts = text[max(0, start - by) : start], text[start + size : start + size + by]
    return frozenset(word.lower() for part in parts for word in _WORD.findall(part))


@cache
def _weight(word: str) -> float:
    """Return how telling a word beside a number is; other numbers are not."""
    if word.isdigit() or (not word.isalpha() and len(word) < _SHORTEST_MIXED):
        return 0.0
    return weight_of(word)
