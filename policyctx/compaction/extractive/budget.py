"""How much a summary may hold, and what yields first.

Words are counted as the policy's `max_words` means them: a CJK character is one. What does not fit
is left out line by line. Each group has a share of the words that is its own; all else is for the
user's words first, but for questions and what hardly says anything, and what they leave is for the
others, again by shares. Within a group the lines of least weight yield first, of equals the longer,
so that as many as can be are kept:

- of the user's words those that hardly say anything, then questions, then sentences without an
  order or an exact value;
- of the files those only read, the ones used longest ago; of the tools those called least;
- of the failures those that were resolved; of the rest the oldest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Group, Statement
from policyctx.compaction.extractive.statements import values_in, weight_of
from policyctx.compaction.extractive.work import CHANGED
from policyctx.tokens.words import CJK, words_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import DigestEntry

# Percent of the words that are a group's own, and of those that the user's words leave over. What
# another writer's summary holds may be all that is left of what the user said before it.
_OWN = {
    Group.TOLD: 50,
    Group.CARRIED: 20,
    Group.OPEN: 10,
    Group.DONE: 4,
    Group.NEXT: 3,
    Group.AGENT: 6,
    Group.FOUND: 2,
    Group.FAILURES: 2,
    Group.FILES: 2,
    Group.TOOLS: 1,
}
_OF_THE_REST = {
    Group.CARRIED: 30,
    Group.OPEN: 10,
    Group.AGENT: 20,
    Group.FOUND: 12,
    Group.FAILURES: 10,
    Group.FILES: 10,
    Group.TOOLS: 3,
    Group.PASTED: 5,
}
# What nobody can find again yields only to the limit of words, not to that of size.
_ONLY_HERE = (Group.TOLD, Group.CARRIED, Group.OPEN, Group.DONE, Group.NEXT)
_STATEMENTS = (Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED)
# The task is in the first of the user's words; the last are what it has become.
_FIRST, _LAST, _AT_AN_END = 2, 4, 3.0

# Of a history that is no summary the summary is to be this share, in size; of what comes after an
# earlier summary it is to add no more than that share: it must not grow round by round.
_SHARE, _SHARE_LATER = 0.15, 0.02
_LEAST_SIZE = 250
# Characters to a token, on the safe side either way.
_CHARS_PER_TOKEN, _FEW_CHARS_PER_TOKEN = 4, 3

_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})\S)+")


def size_of(text: str) -> float:
    """Return about how many tokens a text has, rather too many: characters beyond ASCII are one."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars / _FEW_CHARS_PER_TOKEN + len(text) - ascii_chars


class Room(NamedTuple):
    """What a summary may take."""

    words: int
    size: float
    """In tokens, about."""


def room_for(max_words: int, new_chars: int, earlier: Sequence[str]) -> Room:
    """Return the room for the summary of so many new characters and of earlier summaries."""
    share = _SHARE_LATER if earlier else _SHARE
    size = sum(map(size_of, earlier)) + share * new_chars / _CHARS_PER_TOKEN
    return Room(max_words, max(size, _LEAST_SIZE))


class _Ranked(NamedTuple):
    entry: DigestEntry
    weight: float
    place: int
    words: int
    size: float


def fitted(
    entries: Sequence[DigestEntry], room: Room, overhead: int, cues: Cues
) -> list[DigestEntry]:
    """Return the entries that there is room for beside `overhead` words, in their order."""
    groups: dict[Group, list[_Ranked]] = {group: [] for group in Group}
    for place, entry in enumerate(entries):
        groups[entry.group].append(_ranked(place, entry))
    groups = {group: _by_weight(ranked, cues) for group, ranked in groups.items()}
    words = room.words - overhead - sum(words_in(group) for group, one in groups.items() if one)
    filling = _Filling(words, room.size)
    for group, share in _OWN.items():
        filling.take(groups[group], words * share // 100)
    filling.take([one for one in groups[Group.TOLD] if one.weight >= 0], words)
    rest = filling.words
    for group, share in _OF_THE_REST.items():
        filling.take(groups[group], rest * share // 100)
    for group in groups:
        filling.take(groups[group], words)
    return [entry for place, entry in enumerate(entries) if place in filling.kept]


class _Filling:
    """A summary that is being filled."""

    def __init__(self, words: int, size: float) -> None:
        self.kept: set[int] = set()
        self.words = words
        """Words that are left."""
        self._size = size

    def take(self, ranked: Sequence[_Ranked], words: int) -> None:
        """Take of these, best first, what fits into so many words and into what is left."""
        for one in ranked:
            free = one.entry.group in _ONLY_HERE
            fits = one.words <= min(words, self.words) and (free or one.size <= self._size)
            if fits and one.place not in self.kept:
                self.kept.add(one.place)
                words -= one.words
                self.words -= one.words
                self._size -= one.size


def _ranked(place: int, entry: DigestEntry) -> _Ranked:
    return _Ranked(entry, 0.0, place, words_in(entry.text), size_of(entry.text))


def _by_weight(ranked: list[_Ranked], cues: Cues) -> list[_Ranked]:
    weighed = [
        one._replace(weight=_weight(one.entry, i, len(ranked), cues))
        for i, one in enumerate(ranked)
    ]
    return sorted(weighed, key=lambda one: (-one.weight, one.words, -one.place))


def _weight(entry: DigestEntry, position: int, count: int, cues: Cues) -> float:
    """Return the weight of an entry, the one at `position` of the `count` in its group."""
    line, _, notes = entry.text.partition("\n")
    recency = position / count
    match entry.group:
        case Group.FILES:
            return -position - (0 if any(verb in line for verb in CHANGED) else count)
        case Group.TOOLS | Group.DONE | Group.NEXT:
            return -position
        case Group.OPEN:
            return recency
        case Group.FAILURES:
            return recency - (1 if notes else 0)
    statement = Statement(line[2:], answers=notes, replaces=notes)
    weight = weight_of(statement, cues, values_in(line), agent=entry.group is Group.AGENT)
    if entry.group is Group.TOLD:
        at_an_end = position < _FIRST or position >= count - _LAST
        return weight + (_AT_AN_END if at_an_end else 0)
    return weight + recency


def first_words(text: str, most: int) -> str:
    """Return the text up to its `most`-th word: whole, unless nothing but headings is too much."""
    if words_in(text) <= most:
        return text
    ends = [found.end() for found in _WORD.finditer(text)]
    return text[: ends[most - 1]]
