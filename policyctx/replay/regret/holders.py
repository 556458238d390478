"""Which items hold a string, found by a rare word of it, in time that is linear."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.words import plain, stands_in, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.part import Part
    from policyctx.replay.regret.strings import Distinct

# A word in more items than this tells nothing apart.
COMMON = 16


class Place(NamedTuple):
    """Where a text stands: in an item, or in its place in an absence of it."""

    position: int
    """Of the item; below 0 for what was sent beside the messages."""
    absence: int = -1


class Texts:
    """What the items of a part say, and the placeholders in it, as a person would read them."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._plain: dict[int, str] = {}
        self._words: dict[Place, frozenset[str]] = {}
        self._keys: dict[tuple[str, ...], str] = {}

    def at(self, place: Place) -> str:
        """Return what stands at a place."""
        position, absence = place
        if absence >= 0:
            return self._part.absences[position][absence].left
        text = self._plain.get(position)
        if text is None:
            beside = self._part.beside
            text = self._part.items[position].counted if position >= 0 else beside[-1 - position]
            text = self._plain[position] = plain(text)
        return text

    def places(self) -> Iterator[Place]:
        """Yield where anything stands, in the order of the items."""
        absences = self._part.absences
        yield from (Place(-1 - i) for i in range(len(self._part.beside)))
        for position, item in enumerate(self._part.items):
            if item.counted:
                yield Place(position)
            for i, absence in enumerate(absences.get(position, ())):
                if absence.left:
                    yield Place(position, i)

    @cached_property
    def lost(self) -> frozenset[str]:
        """The words of all items that were out at any time."""
        return frozenset(self._lost)

    def rare(self, most: int) -> frozenset[str]:
        """The words that are in at most so many of the items that were out at any time."""
        if len(self._part.absences) <= most:
            return self.lost
        return frozenset(word for word, count in self._lost.items() if count <= most)

    def key(self, known: tuple[str, ...]) -> str:
        """Return the word by which to look for a string with these: likely the rarest."""
        if len(known) == 1:
            return known[0]
        found = self._keys.get(known)
        if found is None:
            counts = self._lost
            found = self._keys[known] = min(known, key=lambda word: (counts[word], -len(word)))
        return found

    @cached_property
    def _lost(self) -> Counter[str]:
        """In how many of the items that were out each word stands."""
        absences = self._part.absences
        return Counter(chain.from_iterable(self.words(Place(position)) for position in absences))

    def words(self, place: Place, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return the words at a place, or those `among` some; of what was out, found only once."""
        if place.position not in self._part.absences:
            found = words(self.at(place))
            return frozenset(found) if among is None else among.intersection(found)
        if place not in self._words:
            self._words[place] = frozenset(words(self.at(place)))
        return self._words[place] if among is None else among & self._words[place]


class Holders:
    """The places of a part by the words in them, of those words that are `wanted`."""

    def __init__(self, texts: Texts, wanted: frozenset[str]) -> None:
        self._texts = texts
        self._by_word: dict[str, list[Place]] = defaultdict(list)
        for place in texts.places() if wanted else ():
            for word in texts.words(place, among=wanted):
                # One more than may be is enough to know that there are too many.
                if len(found := self._by_word[word]) <= COMMON:
                    found.append(place)

    def with_word(self, word: str, *, most: int = COMMON) -> Sequence[Place]:
        """Return the places that have a word, in order; none where there are more than `most`."""
        found = self._by_word.get(word, ())
        return () if len(found) > most else found

    def of(self, one: Distinct) -> Sequence[Place]:
        """Return the places that may hold a string, in order; see `Texts.key`."""
        return self.with_word(self._texts.key(one.words))

    def holds(self, place: Place, one: Distinct) -> bool:
        """Does the text at one of these places hold the string."""
        return one.words == (one.text,) or stands_in(one.text, self._texts.at(place))
