"""Whether a later statement may mean an earlier one, where their words do not decide it.

An old value that stands without a note misleads, and so does a note on what still holds. So a note
takes a word of revision, two different values of one type, and words that link what they are about,
in the statement or in the rest of its message. The less the type says, the more words there must
be.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.clauses import PLAIN
from policyctx.compaction.extractive.frames import CLEAR
from policyctx.compaction.extractive.meanings import KINDS
from policyctx.compaction.extractive.statements import NUMBER, PATH, QUOTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from policyctx.compaction.extractive.clauses import Clause, Token
    from policyctx.compaction.extractive.frames import Frame

# How much must speak for it: a shared word counts 1, the word of revision 1, a type 1 or 2.
_ENOUGH, _REVISED = 3.0, 1.0
_ONE_CHARACTER, _IN_OTHER_SENTENCE = 0.5, 0.5
_SAME_UNIT, _PERHAPS_ONE_TYPE = 2, 1
# Shared words of an order and its opposite.
_OPPOSITE = 1.0
# Shared words of a clause and one of the message right before it, and the other sentences that the
# message may have: a long one tells much that corrects nothing.
_TOPIC, _FEW = 1.0, 2
_WRITTEN = frozenset((QUOTED, PATH))
# Shared words of a statement with a word of revision and one that it changes.
_CHANGED = 2.0


def may_be_meant(new: Frame, old: Frame, around: Sequence[Frame], *, is_next: bool) -> bool:
    """Whether `new` may give another value to what `old` is about.

    `around` are the other statements of its message; `is_next` says that `old` was said in the
    message before it.
    """
    # Without a word of revision, too many statements that only add would have a note.
    if not new.cue or old.excepts or (new.excepts and not (new.requests and new.cue >= CLEAR)):
        return False
    shared = new.about & old.about
    others = frozenset[str]().union(*(one.about for one in around)) & old.about - shared
    link = _weight(shared) + _IN_OTHER_SENTENCE * _weight(others)
    if not link and not is_next:
        return False
    said = _weight(shared) if new.cue >= CLEAR else 0.0
    link += _REVISED
    return any(
        _compared(later, before, new, old, link, is_next=is_next)
        or _changed(later, before, new, old, said)
        or (is_next and len(around) <= _FEW and _speaks_of(later, before, new, old))
        for later in range(len(new.clauses))
        if not new.clauses[later].adds
        for before in range(len(old.clauses))
    )


def _changed(i: int, k: int, new: Frame, old: Frame, said: float) -> bool:
    """Whether, with a word of revision, a clause gives a value of any type to the same thing."""
    later, before = new.clauses[i], old.clauses[k]
    if not (said and later.topics & before.topics) or later.words <= old.words:
        return False
    same = later.sets and later.slot and later.slot <= old.words
    if not (same or said >= _CHANGED):
        return False
    return not _apart(i, k, new, old)


def _speaks_of(i: int, k: int, new: Frame, old: Frame) -> bool:
    """Whether a clause says something else of what was said in the message right before.

    A correction often comes at once, in other words. Who repeats all that was said adds to it.
    """
    later, before = new.clauses[i], old.clauses[k]
    if _weight(later.topics & before.topics) < _TOPIC or later.words <= old.words:
        return False
    left = before.words - new.words
    return len(left) > 1 and not _apart(i, k, new, old)


def _compared(i: int, k: int, new: Frame, old: Frame, link: float, *, is_next: bool) -> bool:
    later, before = new.clauses[i], old.clauses[k]
    if later.negative != before.negative:
        shared = later.topics & before.topics
        opposite = _weight(shared) >= _OPPOSITE + (not later.negative)
        if opposite and not _apart(i, k, new, old):
            return True
    link += is_next and _is_bare(later)
    for one in _values(later):
        if one.word in old.words:
            continue
        for other in _values(before):
            closeness = _closeness(one, other)
            if not closeness or link + closeness < _ENOUGH:
                continue
            if not _apart(i, k, new, old, (one, other)):
                return True
    return False


def _values(clause: Clause) -> list[Token]:
    """Return what may be a value.

    The first word says what the clause is about. A number without a unit counts where something is
    given a value: "look at part 2" and "look at part 3" are two orders.
    """
    named = clause.sets or clause.is_elided
    return [
        one
        for one in clause.given
        if not one.denied
        and (named or one.unit or (one.kind != NUMBER and one.word != clause.topic))
    ]


def _is_bare(clause: Clause) -> bool:
    """Whether a clause gives a value and names nothing: "20 inches then"."""
    units = {one.unit for one in clause.tokens}
    return all(one.kind != PLAIN or one.word in units for one in clause.tokens if one.tells_apart)


def _slot(frame: Frame, i: int) -> list[Token]:
    """Return the words of a clause outside its value, and of the one before it."""
    clauses = frame.clauses[max(0, i - 1) : i + 1]
    return [one for clause in clauses for one in clause.tokens if not one.in_value]


def _weight(words: AbstractSet[str]) -> float:
    """Return how much shared words say; one character of a longer word says less."""
    return sum(_ONE_CHARACTER if len(one) == 1 and not one.isascii() else 1.0 for one in words)


def _closeness(one: Token, other: Token) -> int:
    """Return how likely two different values are of one type, 0 if they are not."""
    # "4th" may be the fourth or a day.
    if one.unit and one.unit == other.unit:
        return _SAME_UNIT
    if one.kind == NUMBER and other.kind == NUMBER:
        return 0 if one.unit and other.unit else _PERHAPS_ONE_TYPE
    if one.kind != other.kind or one.kind == PLAIN:
        return 0
    if one.kind in KINDS or (one.kind in _WRITTEN and other.in_value):
        return _SAME_UNIT
    return _PERHAPS_ONE_TYPE if one.in_value or other.in_value else 0


def _apart(i: int, k: int, new: Frame, old: Frame, values: tuple[Token, ...] = ()) -> bool:
    """Whether each clause has a word of its own that tells it apart, beside these values."""
    mine = [one for one in _slot(new, i) if one not in values]
    its = [one for one in _slot(old, k) if one not in values]
    own = [one for one in mine if one.word not in old.words]
    others = [one for one in its if one.word not in new.words]
    if any(map(_is_name, own)) and any(map(_is_name, others)):
        return True
    places = {one.place for one in own if one.place and one.tells_apart}
    if any(one.place in places for one in others if one.tells_apart):
        return True
    sets = new.clauses[i].sets and old.clauses[k].sets
    return _differ(_beside(mine, old, places_after=sets), _beside(its, new, places_after=sets))


def _is_name(one: Token) -> bool:
    """Whether it names one of several: a name, a member of a kind, a number without a unit."""
    return one.kind != PLAIN and not one.unit


def _beside(
    tokens: Sequence[Token], other: Frame, *, places_after: bool
) -> dict[tuple[str, str], str]:
    """Return for each word that both have its own neighbour before it and after it."""
    found: dict[tuple[str, str], str] = {}
    for one, after in pairwise(tokens):
        if not (after.start - one.end <= 1 and one.tells_apart and after.tells_apart):
            continue
        if after.word in other.words and one.word not in other.words:
            found["before", after.word] = one.word
        elif (
            places_after
            and one.word.isascii()
            and one.word in other.words
            and after.word not in other.words
        ):
            found["after", one.word] = after.word
    return found


def _differ(mine: dict[tuple[str, str], str], its: dict[tuple[str, str], str]) -> bool:
    return any(mine[place] != its[place] for place in mine.keys() & its.keys())
