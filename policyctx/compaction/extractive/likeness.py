"""Whether a later statement may mean an earlier one, where their words do not decide it.

A note that a statement may replace another one costs little, and an old value that stands without
one misleads. So it takes less than what takes a statement back: two different values of one type,
and words that link what they are about, in the statement or in the rest of its message. The less
the type and a word of revision say, the more words there must be.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.clauses import PLAIN
from policyctx.compaction.extractive.frames import CLEAR
from policyctx.compaction.extractive.meanings import KINDS
from policyctx.compaction.extractive.statements import NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from policyctx.compaction.extractive.clauses import Clause, Token
    from policyctx.compaction.extractive.frames import Frame

# How much must speak for it: a shared word counts 1, a word of revision 1, a type 1 or 2.
_ENOUGH = 3.0
_ONE_CHARACTER, _IN_OTHER_SENTENCE = 0.5, 0.5
_SAME_UNIT, _PERHAPS_ONE_TYPE = 2, 1
# Shared words of an order and its opposite.
_OPPOSITE = 1.0


def may_be_meant(new: Frame, old: Frame, around: Sequence[Frame], *, is_next: bool) -> bool:
    """Whether `new` may give another value to what `old` is about.

    `around` are the other statements of its message; `is_next` says that `old` was said in the
    message before it.
    """
    if new.excepts:
        return False
    cue = max([new.cue, *(one.cue for one in around)])
    shared = new.about & old.about
    others = frozenset[str]().union(*(one.about for one in around)) & old.about - shared
    link = _weight(shared) + _IN_OTHER_SENTENCE * _weight(others)
    if not link and not (is_next and cue >= CLEAR):
        return False
    link += min(cue, 1)
    return any(
        _compared(later, before, new, old, link)
        for later in range(len(new.clauses))
        if not new.clauses[later].adds
        for before in range(len(old.clauses))
    )


def _compared(i: int, k: int, new: Frame, old: Frame, link: float) -> bool:
    later, before = new.clauses[i], old.clauses[k]
    if later.negative != before.negative:
        shared = later.topics & before.topics
        opposite = _weight(shared) >= _OPPOSITE + (not later.negative)
        return opposite and not _apart(_slot(new, i), _slot(old, k), new, old)
    for one in _values(later):
        if one.word in old.words:
            continue
        for other in _values(before):
            closeness = _closeness(one, other)
            if not closeness or link + closeness < _ENOUGH:
                continue
            # Who repeats the old value, and gives one to something else, adds to it.
            if other.word in new.words and not new.cue and not later.topics & before.topics:
                continue
            mine = [token for token in _slot(new, i) if token is not one]
            its = [token for token in _slot(old, k) if token is not other]
            if not _apart(mine, its, new, old):
                return True
    return False


def _values(clause: Clause) -> list[Token]:
    """Return what may be a value: not the first word, which says what the clause is about."""
    named = clause.sets or clause.is_elided
    return [one for one in clause.given if not one.denied and (named or one.word != clause.topic)]


def _slot(frame: Frame, i: int) -> list[Token]:
    """Return the words of a clause outside its value, and of the one before it."""
    clauses = frame.clauses[max(0, i - 1) : i + 1]
    return [one for clause in clauses for one in clause.tokens if not one.in_value]


def _weight(words: AbstractSet[str]) -> float:
    """Return how much shared words say; one character of a longer word says less."""
    return sum(_ONE_CHARACTER if len(one) == 1 and not one.isascii() else 1.0 for one in words)


def _closeness(one: Token, other: Token) -> int:
    """Return how surely two different values are of one type, 0 if they are not."""
    if one.kind == NUMBER and other.kind == NUMBER:
        if one.unit and one.unit == other.unit:
            return _SAME_UNIT
        return 0 if one.unit and other.unit else _PERHAPS_ONE_TYPE
    if one.kind != other.kind or one.kind == PLAIN:
        return 0
    if one.kind in KINDS:
        return _SAME_UNIT
    return _PERHAPS_ONE_TYPE if one.in_value or other.in_value else 0


def _apart(mine: Sequence[Token], its: Sequence[Token], new: Frame, old: Frame) -> bool:
    """Whether each has a word of its own that tells what it is about from other things."""
    own = [one for one in mine if one.word not in old.words]
    others = [one for one in its if one.word not in new.words]
    if any(map(_is_name, own)) and any(map(_is_name, others)):
        return True
    places = {one.place for one in own if one.place and one.tells_apart}
    if any(one.place in places for one in others if one.tells_apart):
        return True
    return _differ(_beside(mine, old), _beside(its, new))


def _is_name(one: Token) -> bool:
    """Whether it names one of several: a name, a member of a kind, a number without a unit."""
    return one.kind != PLAIN and not one.unit


def _beside(tokens: Sequence[Token], other: Frame) -> dict[tuple[str, str], str]:
    """Return for each word that both have its own neighbour before it and after it."""
    found: dict[tuple[str, str], str] = {}
    for one, after in pairwise(tokens):
        if not (after.joined and one.tells_apart and after.tells_apart):
            continue
        if after.word in other.words and one.word not in other.words:
            found["before", after.word] = one.word
        elif one.word in other.words and after.word not in other.words:
            found["after", one.word] = after.word
    return found


def _differ(mine: dict[tuple[str, str], str], its: dict[tuple[str, str], str]) -> bool:
    return any(mine[place] != its[place] for place in mine.keys() & its.keys())
