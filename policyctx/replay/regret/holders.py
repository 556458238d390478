"""`Holders`: which items hold a string, found by its rarest word, in time that is linear."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from policyctx.replay.regret.words import GRAM, grams, plain, stands_in, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.replay.part import Part

# A word in more items than this tells nothing apart.
_COMMON = 16


class Place(NamedTuple):
    """Where a text stands: in an item, or in its place in an absence of it."""

    position: int
    absence: int = -1


class Holders:
    """The items of a part, and the placeholders in it, by the words that were asked for."""

    def __init__(self, part: Part, wanted: Iterable[str]) -> None:
        self._part = part
        self._wanted = {word for text in wanted for word in _words_of(text)}
        self._plain: dict[Place, str] = {}

    def with_word(self, word: str) -> Sequence[Place]:
        """Return the places that hold a word that was asked for; none where it is too common."""
        found = self._by_word.get(word, ())
        return () if len(found) > _COMMON else found

    def of(self, text: str) -> Sequence[Place]:
        """Return the places that hold a string, in order; none where it is too common to tell."""
        rarest = min((self._by_word.get(word, ()) for word in _words_of(text)), key=len, default=())
        if len(rarest) > _COMMON:
            return ()
        if len(text) == GRAM and grams(text):
            return rarest
        return [place for place in rarest if stands_in(text, self.text(place))]

    @cached_property
    def _by_word(self) -> dict[str, list[Place]]:
        by_word: dict[str, list[Place]] = defaultdict(list)
        for place, text in self._places():
            for word in self._wanted.intersection(words(text)):
                if len(found := by_word[word]) <= _COMMON:
                    found.append(place)
        return by_word

    def _places(self) -> Iterator[tuple[Place, str]]:
        for position, item in enumerate(self._part.items):
            if item.counted:
                place = Place(position)
                yield place, self.text(place)
            for i, absence in enumerate(self._part.absences.get(position, ())):
                if absence.left:
                    place = Place(position, i)
                    yield place, self.text(place)

    def text(self, place: Place) -> str:
        """Return what stands at a place, as a person would read it."""
        if place.absence >= 0:
            return self._part.absences[place.position][place.absence].left
        text = self._part.items[place.position].counted
        if not text.startswith(("{", "[")):
            return text
        if place not in self._plain:
            self._plain[place] = plain(text)
        return self._plain[place]


def _words_of(text: str) -> list[str]:
    return [text] if len(text) == GRAM and grams(text) else words(text)
