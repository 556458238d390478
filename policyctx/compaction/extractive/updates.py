"""What a later statement does to an earlier one: take it back, perhaps take it back, or nothing.

The two are compared clause by clause:

1. A question, an addition and an exception take nothing back.
2. An opposite order about the same thing takes the earlier one back.
3. Another value of the same kind takes the earlier one back if the slots are the same, or if a
   word of revision shows that something changed and nothing in the later slot is new.
4. What remains similar, with a word of revision or a value of the same kind, may take it back.
5. Nothing of this holds for slots that name different things: two months, two environments, two
   names, two words before the same noun ("admin port", "web port").
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.clauses import LETTER, PLAIN, PROPER
from policyctx.compaction.extractive.frames import ADMITTED, BORDER, CLEAR
from policyctx.compaction.extractive.meanings import IMPLIED, KINDS
from policyctx.compaction.extractive.statements import NAME, NUMBER, PATH, QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.compaction.extractive.clauses import Clause, Token
    from policyctx.compaction.extractive.frames import Frame

_NAMES = frozenset((NAME, PATH, PROPER, QUOTED))
# Shares of the words of the later slot that the earlier statement has.
_SAME_THING, _SIMILAR = 0.6, 0.34


class Effect(IntEnum):
    """What a later statement does to an earlier one."""

    NONE = 0
    MAY_REPLACE = 1
    REPLACES = 2


class _Values(IntEnum):
    """How the values of two clauses compare."""

    NONE = 0
    WORDS = 1
    """Other words, of which no one can say that they exclude each other."""
    SAME_KIND = 2


# An attribute of an enumeration takes longer to read than a name of the module.
_NO_VALUES, _OTHER_WORDS, _SAME_KIND = _Values


class Update(NamedTuple):
    """What a later statement does to an earlier one, and the parts that hold no longer."""

    effect: Effect
    gone: tuple[tuple[int, int], ...] = ()
    """Where they begin and end in the earlier statement, in characters."""
    opposite: bool = False
    """Whether the one allows or demands what the other forbids."""
    partly: bool = False
    """Whether the earlier statement says more of what it is about than the later one."""
    in_clause: Clause | None = None
    """The earlier clause that it changes, where it is one."""
    values: _Values = _NO_VALUES
    """How the values of that clause and of the later one compare."""


class _Match(NamedTuple):
    """A clause of the later statement and one of the earlier, compared."""

    values: _Values
    shared: int
    """How many words both have that show what they are about."""
    weight: int
    """The same, an exact value or a name counted twice."""
    only_new: int
    """How many words of the later slot the earlier statement lacks."""
    only_old: int
    overlap: float


_NOTHING = Update(Effect.NONE)


def update_of(new: Frame, old: Frame) -> Update:
    """Return what the later statement does to the earlier one."""
    if new.excepts:
        return _NOTHING
    if new.denied and (named := _denied_values(new, old)):
        update = Update(Effect.REPLACES, _spans(named))
    else:
        update = _NOTHING
        for later in new.clauses:
            for before in old.clauses:
                found = _update(later, before, new, old)
                if found is not _NOTHING and found.effect > update.effect:
                    update = found
    if update is _NOTHING or are_apart(new, old):
        return _NOTHING
    # Most similar statements are apart, so that what is gone is found last.
    return update if update.in_clause is None else _with_gone(update, update.in_clause, new)


def _update(later: Clause, before: Clause, new: Frame, old: Frame) -> Update:
    flipped = later.negative != before.negative
    # Without a word of revision, only an opposite order or another value changes something.
    gives = (later.sets and before.sets) or (later.gives_member and before.gives_member)
    if not flipped and (later.adds or not (new.cue or gives)):
        return _NOTHING
    if flipped:
        shared, slot, held = later.words & before.words, later.telling, before.telling
    else:
        shared = later.words & before.words & (later.topics | before.topics)
        slot, held = later.slot, before.slot
        if not slot:
            # "Ads: make it $750": the subject is in another clause.
            slot = new.content
            shared |= slot & before.words
    if not shared:
        alike = (
            later.is_elided and not flipped and not later.adds and _is_of_one_kind(later, before)
        )
        return Update(Effect.MAY_REPLACE) if alike else _NOTHING
    only_new, only_old = len(slot - old.words - IMPLIED), len(held - new.words - IMPLIED)
    weight = len(shared) + sum([word in shared for word in later.exact])
    overlap = weight / (weight + only_new)
    if overlap < _SIMILAR:
        return _NOTHING
    values = _compared(later, before, old)
    match = _Match(values, len(shared), weight, only_new, only_old, overlap)
    effect = (
        _effect_of_opposite(match, later, before)
        if flipped
        else _effect_of_change(match, later, before, new, old)
    )
    if not effect:
        return _NOTHING
    if _misread(later, shared) or _begin_with_one_kind(later, before):
        effect = Effect.MAY_REPLACE
    return Update(effect, opposite=flipped, partly=bool(only_old), in_clause=before, values=values)


def _with_gone(update: Update, before: Clause, new: Frame) -> Update:
    """Return the update with what of the earlier clause holds no longer."""
    if update.opposite or update.values is _NO_VALUES:
        return update._replace(gone=((before.tokens[0].start, before.tokens[-1].end),))
    return update._replace(gone=_gone(update.values, before, new))


def _misread(clause: Clause, shared: frozenset[str]) -> bool:
    """Whether what a clause is about stands in what was read as its value, before a number."""
    if not (clause.sets and clause.is_elided):
        return False
    number = next((i for i, one in enumerate(clause.given) if one.kind == NUMBER), 0)
    return any(one.kind == PLAIN and one.word in shared for one in clause.given[:number])


def _begin_with_one_kind(later: Clause, before: Clause) -> bool:
    """Whether both begin with another member of one kind, which may be what they are about."""
    kinds = {one.word: one.kind for one in (*later.tokens, *before.tokens)}
    kind = kinds.get(later.topic, PLAIN)
    differ = later.topic != before.topic and kind == kinds.get(before.topic)
    return differ and kind in KINDS and not (later.is_elided or before.is_elided)


def _is_of_one_kind(later: Clause, before: Clause) -> bool:
    """Whether both give members of one kind, such as two colours."""
    kinds = {one.kind for one in before.given if one.kind in KINDS}
    return any(one.kind in kinds and one.word not in before.words for one in later.given)


def _effect_of_opposite(match: _Match, later: Clause, before: Clause) -> Effect:
    """Return the effect of an order on an opposite one."""
    if match.values is _SAME_KIND:
        return Effect.NONE
    if not (match.only_new or match.only_old):
        return Effect.REPLACES
    both_differ = match.only_new and match.only_old and match.overlap < _SAME_THING
    return Effect.NONE if both_differ or _other_topics(later, before) else Effect.MAY_REPLACE


def _effect_of_change(
    match: _Match, later: Clause, before: Clause, new: Frame, old: Frame
) -> Effect:
    if later.adds:
        return Effect.NONE
    if match.values is _SAME_KIND:
        return _effect_of_value(match, later, before, new.cue)
    return _effect_of_words(match, new, old)


def _effect_of_value(match: _Match, later: Clause, before: Clause, cue: int) -> Effect:
    """Return the effect of another value of the same kind."""
    both_set = later.sets and before.sets
    if not cue and not both_set:
        same = not match.only_new and not match.only_old and _is_of_one_kind(later, before)
        return Effect.MAY_REPLACE if same else Effect.NONE
    if not match.only_new:
        same = both_set and not match.only_old
        most = cue and later.sets and match.shared >= match.only_old
        certain = same or most or cue >= CLEAR
        return Effect.REPLACES if certain else Effect.MAY_REPLACE if cue else Effect.NONE
    if _other_topics(later, before) and cue < ADMITTED:
        return Effect.NONE
    if cue >= CLEAR:
        certain = not match.only_old and match.overlap >= _SAME_THING
        return Effect.REPLACES if certain else Effect.MAY_REPLACE
    similar = cue or match.overlap >= _SAME_THING
    return Effect.MAY_REPLACE if similar and both_set else Effect.NONE


def _effect_of_words(match: _Match, new: Frame, old: Frame) -> Effect:
    """Return the effect where no value of the same kind is given."""
    cue = new.cue
    if match.values is _OTHER_WORDS and not match.only_new and (cue or not match.only_old):
        certain = cue and match.only_old < cue and match.only_old <= match.shared
        return Effect.REPLACES if certain else Effect.MAY_REPLACE
    if cue == ADMITTED:
        return Effect.REPLACES if match.shared > 1 else Effect.MAY_REPLACE
    similar = cue >= CLEAR and match.weight > 1 and new.words - old.words
    return Effect.MAY_REPLACE if similar else Effect.NONE


def _other_topics(later: Clause, before: Clause) -> bool:
    """Whether the first word of each clause is one that the other lacks."""
    return later.topic not in before.words and before.topic not in later.words


def _compared(later: Clause, before: Clause, old: Frame) -> _Values:
    # A plain word is of no kind.
    for one in later.special:
        if one.word not in old.words:
            for other in before.special:
                if other.word not in later.words and _same_kind(one, other):
                    return _SAME_KIND
    if not (later.sets and before.sets):
        return _NO_VALUES
    given = [one for one in later.given if one.word not in old.words]
    held = [one for one in before.given if one.word not in later.words]
    if not (given and held):
        return _NO_VALUES
    # A day does not replace a place.
    special = any(one.kind in KINDS or one.kind == NUMBER for one in (*given, *held))
    return _NO_VALUES if special else _OTHER_WORDS


def _same_kind(one: Token, other: Token) -> bool:
    if PLAIN in (one.kind, other.kind) or one.kind == LETTER:
        return False
    if one.kind == NUMBER and other.kind == NUMBER:
        return one.unit == other.unit or not one.unit or not other.unit
    if one.kind in _NAMES and other.kind in _NAMES:
        return one.in_value or other.in_value or one.kind == other.kind != PROPER
    return one.kind == other.kind


def _gone(values: _Values, before: Clause, new: Frame) -> tuple[tuple[int, int], ...]:
    """Return where the values of the earlier clause stand that hold no longer."""
    kept = {one.word for one in new.tokens if one.in_value and not one.denied}
    given = [one for one in new.tokens if one.word not in before.words]
    return _spans(
        one
        for one in before.given
        if one.word not in kept
        and (
            any(_same_kind(other, one) for other in given)
            if one.kind != PLAIN
            else values is _OTHER_WORDS and one.in_value
        )
    )


def _spans(tokens: Iterable[Token]) -> tuple[tuple[int, int], ...]:
    return tuple((one.start, one.end) for one in tokens)


def _denied_values(new: Frame, old: Frame) -> list[Token]:
    """Return the earlier tokens that the later statement says hold no longer, giving others."""
    named = [one for one in old.tokens if one.word in new.denied]
    given = [one for one in new.tokens if one.word not in old.words and not one.denied]
    gives = any(
        one.in_value or one.kind == PROPER or _same_kind(one, other)
        for one in given
        for other in named
    )
    return named if gives else []


def are_apart(new: Frame, old: Frame) -> bool:
    """Whether the slots of two statements name different things of one sort."""
    return _name_different_things(new, old) or _have_other_neighbours(new, old)


def _name_different_things(new: Frame, old: Frame) -> bool:
    """Whether each has, outside its values, a name, a value or a member of a kind of its own.

    Where nothing is given a value, an exact word may be the value itself: then a word of revision
    says that it changed.
    """
    every = new.cue < CLEAR or any(one.sets or one.negative for one in new.clauses)
    return _names_of_its_own(new, old, every=every) and _names_of_its_own(old, new, every=every)


def _names_of_its_own(frame: Frame, other: Frame, *, every: bool) -> bool:
    return not (frame.named if every else frame.named_beside_values) <= other.words


def _have_other_neighbours(new: Frame, old: Frame) -> bool:
    """Whether a shared word has, in both, another word before it, or between it and the next."""
    later = {(after, one) for one, after in new.befores if _splits(one, after, old)}
    if later:
        before = {(after, one) for one, after in old.befores if _splits(one, after, new)}
        if _all_differ(later, before):
            return True
    between = {
        (first + "\n" + last, middle)
        for first, middle, last in new.betweens
        if middle not in old.words and first in old.words and (last in old.words or last == BORDER)
    }
    if not between:
        return False
    others = {
        (first + "\n" + last, middle)
        for first, middle, last in old.betweens
        if middle not in new.words and first in new.words and (last in new.words or last == BORDER)
    }
    return _all_differ(between, others)


def _splits(one: str, after: str, other: Frame) -> bool:
    return after in other.words and one not in other.words


def _all_differ(later: set[tuple[str, str]], before: set[tuple[str, str]]) -> bool:
    """Whether one place holds words in both, none of them the same."""
    places = {place for place, _ in later} & {place for place, _ in before}
    return any(
        not {word for at, word in later if at == place}
        & {word for at, word in before if at == place}
        for place in places
    )


def is_without_subject(frame: Frame) -> bool:
    """Whether a statement gives a value and does not say to what."""
    if any(clause.negative for clause in frame.clauses):
        return False
    return any(one.kind != PLAIN or one.in_value for one in frame.tokens) and all(
        clause.is_elided or not clause.telling for clause in frame.clauses
    )


def values_replaced(new: Frame, old: Frame) -> tuple[tuple[int, int], ...]:
    """Return where the earlier statement has values of the kinds that the later one gives."""
    given = [
        one
        for one in new.tokens
        if one.word not in old.words
        and not one.denied
        and (one.in_value or one.kind == NUMBER or one.kind in KINDS)
    ]
    kept = {one.word for one in given}
    return _spans(
        other
        for clause in old.clauses
        if not clause.negative
        for other in clause.tokens
        if other.word not in kept and any(_same_kind(one, other) for one in given)
    )


def units_in(text: str, frame: Frame) -> frozenset[str]:
    """Return the units of a statement's numbers, as they are written, or what they count."""
    numbers = (one for one in frame.tokens if one.kind == NUMBER)
    units = (text[one.end : one.until].strip().casefold() or one.unit for one in numbers)
    return frozenset(unit.removesuffix("s") for unit in units if unit)
