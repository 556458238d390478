"""Which items hold a string, found by its rarest word, in time that is linear."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.words import plain, stands_in, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.part import Part
    from policyctx.replay.regret.strings import Distinct

# A word in more items than this tells nothing apart.
_COMMON = 16


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

    def at(self, place: Place) -> str:
        """Return what stands at a place."""
        position, absence = place
        if absence >= 0:
            return self._part.absences[position][absence].left
        beside = self._part.beside
        text = self._part.items[position].counted if position >= 0 else beside[-1 - position]
        if not text.startswith(("{", "[")):
            return text
        if position not in self._plain:
            self._plain[position] = plain(text)
        return self._plain[position]

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
        return frozenset().union(*(self.words(Place(i)) for i in self._part.absences))

    def words(self, place: Place) -> frozenset[str]:
        """Return the words at a place; those of what was out are found only once."""
        if (known := self._words.get(place)) is not None:
            return known
        found = frozenset(words(self.at(place)))
        if place.position in self._part.absences:
            self._words[place] = found
        return found


class Holders:
    """The places of a part by the words in them, of those words that are `wanted`."""

    def __init__(self, texts: Texts, wanted: frozenset[str]) -> None:
        self._texts = texts
        self._by_word: dict[str, list[Place]] = defaultdict(list)
        for place in texts.places() if wanted else ():
            for word in wanted & texts.words(place):
                # One more than may be is enough to know that there are too many.
                if len(found := self._by_word[word]) <= _COMMON:
                    found.append(place)

    def with_word(self, word: str, *, most: int = _COMMON) -> Sequence[Place]:
        """Return the places that have a word, in order; none where there are more than `most`."""
        found = self._by_word.get(word, ())
        return () if len(found) > most else found

    def of(self, one: Distinct) -> Sequence[Place]:
        """Return the places that may hold a string, in order: those of its rarest word."""
        found = min((self._by_word.get(word, ()) for word in one.words), key=len, default=())
        return () if len(found) > _COMMON else found

    def holds(self, place: Place, one: Distinct) -> bool:
        """Does the text at one of these places hold the string."""
        return one.words == (one.text,) or stands_in(one.text, self._texts.at(place))
