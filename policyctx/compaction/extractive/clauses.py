"""The clauses of a statement: in each, what it is about and the value that it gives.

A token stands either in the slot, which says what the clause is about, or in the value, which is
what comes after a word that gives one ("is", "use", "改成"). Differences in the slot tell two
things apart; differences in the value are the old and the new value of one thing.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.lexicon import COLON, STOP, Role
from policyctx.compaction.extractive.meanings import KIND_OF, KINDS
from policyctx.compaction.extractive.measures import MEASURES, dimension_of
from policyctx.compaction.extractive.statements import NAME, NUMBER, PATH, QUOTED, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.compaction.extractive.lexicon import Lexicon

PROPER, LETTER, PLAIN = "proper", "letter", "plain"
EXACT = frozenset((NUMBER, PATH, NAME, QUOTED))
_NAMED = EXACT | {PROPER, LETTER}
_MEASURED = frozenset((NUMBER, *KINDS))
# The place of a word with a capital letter that need not be a name.
_BEGINS = re.compile(r"(?:^|(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})[.!?]\s)\W*\Z")
_ONE = re.compile(r"一(?=个?(?:月|小时|星期|礼拜|季度)|[天年周晚次米斤元块倍]|分钟|公斤)")
# Characters of a person's name in a language without capital letters.
_LENGTHS_OF_NAMES = (2, 3)


class Token(NamedTuple):
    """A word or an exact value of a statement."""

    word: str
    kind: str
    """That of an exact value, a kind of `KINDS`, `proper`, `letter` or `plain`."""
    unit: str
    """The dimension of a number, or what it counts; empty without one."""
    tells_apart: bool
    """Whether it makes a difference to what the statement is about, which a verb does not."""
    tells_topic: bool
    """Whether two statements that have it may be about one thing."""
    in_value: bool
    denied: bool
    """Whether it is named as what no longer holds."""
    place: str
    """The preposition that it comes after; empty without one."""
    joined: bool
    """Whether nothing stands between it and the token before."""
    start: int
    end: int
    until: int
    """Where its unit ends."""


class Clause(NamedTuple):
    """A part of a statement between two stops; the words are without those denied."""

    tokens: tuple[Token, ...]
    negative: bool
    sets: bool
    """Whether it gives a value."""
    adds: bool
    """Whether it adds to what holds, by a word such as `also`."""
    words: frozenset[str]
    topics: frozenset[str]
    """The words that show what it is about, verbs with a meaning of their own among them."""
    telling: frozenset[str]
    """The words that tell it apart from others."""
    slot: frozenset[str]
    """Those outside of its value."""
    given: tuple[Token, ...]
    """The value that it gives; without a word that gives one, what could be a value."""
    topic: str
    """The first word that tells it apart; empty without one."""
    is_elided: bool
    """Whether it gives a value and does not say to what."""
    named: frozenset[str]
    """The names, values and members of kinds in its slot."""
    special: tuple[Token, ...]
    """What it gives but for plain words: what another value of its kind may replace."""
    gives_member: bool
    """Whether it gives a member of a kind, such as a day."""
    exact: tuple[str, ...]
    """The exact values, names and letters in it, each as often as it occurs."""


class _Draft(NamedTuple):
    """A token before its place in the slot or the value is known."""

    word: str
    kind: str
    unit: str
    roles: int
    start: int
    end: int
    until: int
    is_token: bool
    """Whether it is a word of content or a value, and no word of grammar."""


_GRAMMAR = Role.PARTICLE | Role.NEGATION | Role.CORRECTION | Role.UPDATE | Role.EXCEPTION
# A verb with a meaning of its own, which a verb of change has not.
_TOPIC = Role.MEANING | Role.REVISION
_CHANGES = Role.REVISION | Role.UPDATE | Role.CORRECTION
_MAY_DENY = Role.DENIAL | Role.NEGATION | Role.PARTICLE | Role.PLACE | Role.REVISION | Role.UPDATE


class ClauseReader:
    """Reads the clauses of one statement; `roles` are those of all words read so far."""

    def __init__(self, text: str, values: Sequence[Value], lexicon: Lexicon) -> None:
        self._text = text
        self._is_ascii = text.isascii()
        ones = () if self._is_ascii else _ones_in(text)
        self._values = sorted((*values, *ones), key=lambda value: value.start)
        self._lexicon = lexicon
        self.roles = 0

    def clauses(self) -> Iterator[Clause]:
        """Yield the clauses in order."""
        drafts = self._drafts()
        gathered: list[_Draft] = []
        for i, draft in enumerate(drafts):
            # All that may be a stop has a role.
            is_stop = (
                draft.roles
                and (
                    draft.word == STOP
                    or (draft.word == COLON and _ends_clause(gathered, drafts[i + 1 :]))
                    # "Use it and never open it" is an order and a prohibition.
                    or (draft.roles & Role.JOIN and _forbids(drafts[i + 1 : i + 2]))
                )
            )
            if not is_stop:
                gathered.append(draft)
                continue
            if gathered:
                yield self._clause(gathered)
            gathered = []
        if gathered:
            yield self._clause(gathered)

    def _drafts(self) -> list[_Draft]:
        """Return the words outside of exact values, and the values, in order."""
        drafts: list[_Draft] = []
        at, used = 0, 0
        for value in self._values:
            if value.start < at:
                continue
            if at < value.start:
                self._add_words(drafts, at, value.start, used)
            at = value.end
            unit, used = dimension_of(self._text, value)
            word = value.text.casefold()
            # A day of the week has a name in one language and a numeral in another.
            name = self._lexicon.meaning_of(word) if value.kind == NUMBER else word
            kind = KIND_OF.get(name, NUMBER) if value.kind == NUMBER else value.kind
            drafts.append(_Draft(name, kind, unit, 0, value.start, value.end, used, is_token=True))
        self._add_words(drafts, at, len(self._text), used)
        return drafts

    def _add_words(self, drafts: list[_Draft], at: int, to: int, used: int) -> None:
        for name, roles, start, end, raw in self._lexicon.words_in(self._text[at:to]):
            if start + at < used:
                continue
            kind = KIND_OF.get(name)
            if kind is None:
                kind = self._kind_of(raw, roles, start + at) if raw[0].isupper() else PLAIN
            is_token = not roles or _is_token(roles)
            drafts.append(_Draft(name, kind, "", roles, start + at, end + at, end + at, is_token))

    def _kind_of(self, raw: str, roles: int, start: int) -> str:
        """Return the kind of a word with a capital letter."""
        if len(raw) == 1 and raw != "I":
            return LETTER
        if roles or (raw[1:].islower() and _BEGINS.search(self._text, 0, start)):
            return PLAIN
        return PROPER

    def _clause(self, drafts: list[_Draft]) -> Clause:
        start, end = _value_span(drafts)
        given = drafts[start:end]
        if self._is_person(given):
            name = "".join(one.word for one in given)
            person = given[0]._replace(word=name, kind=PROPER, end=given[-1].end)
            drafts = [*drafts[:start], person, *drafts[end:]]
            end = start + 1
        tokens, negative = _tokens(drafts, (start, end), may_begin_with_verb=self._is_ascii)
        adds = False
        article = 0
        if _changes_to_value(drafts):
            self.roles |= Role.UPDATE
        for draft in drafts:
            roles = draft.roles
            if not roles:
                article = 0
                continue
            adds = adds or bool(roles & Role.ADDITION)
            # "Do not change the port" is no change, and "the change" need not be one of this.
            verb = negative and roles & (Role.ACTION | Role.MEANING)
            self.roles |= roles & ~Role.REVISION if verb or article else roles
            article = roles & Role.ARTICLE
        return _made(tokens, negative=negative, sets=start < end, adds=adds)

    def _is_person(self, given: Sequence[_Draft]) -> bool:
        """Whether a value is the name of a person in a language without capital letters."""
        return (
            len(given) in _LENGTHS_OF_NAMES
            and given[0].word in self._lexicon.surnames
            and all(one.is_token and len(one.word) == 1 and not one.roles for one in given)
        )


def _ones_in(text: str) -> Iterator[Value]:
    """Yield the numerals for one that come before a measure; elsewhere it is an article."""
    for one in _ONE.finditer(text):
        yield Value(one[0], one.start(), one.end(), NUMBER)


def _is_token(roles: int) -> bool:
    if not roles:
        return True
    if roles & _GRAMMAR:
        return False
    return bool(roles & Role.MEANING) or not roles & ~Role.ACTION


def _changes_to_value(drafts: Sequence[_Draft]) -> bool:
    """Whether a clause brings something to a value, by whatever verb: "cut the dose to 1 ml"."""
    has_word = False
    for one, after in pairwise(drafts):
        if one.roles & Role.TARGET and has_word and after.kind in _MEASURED:
            return True
        # "9 to 5" is a range.
        has_word = (one.is_token and one.kind not in _MEASURED) or (has_word and not one.is_token)
    return False


def _forbids(next_words: Sequence[_Draft]) -> bool:
    return any(one.roles & Role.NEGATION for one in next_words)


def _ends_clause(before: Sequence[_Draft], after: Sequence[_Draft]) -> bool:
    """Whether a colon ends a clause, since what follows gives a value by another word."""
    if any(one.roles & (Role.REVISION | Role.CORRECTION) for one in before):
        return True
    for i, one in enumerate(after):
        if one.word in (STOP, COLON):
            return False
        if one.roles & Role.SETTER and not one.roles & Role.MEANING:
            return i + 1 < len(after) and after[i + 1].is_token
    return False


def _tokens(
    drafts: Sequence[_Draft], value: tuple[int, int], *, may_begin_with_verb: bool
) -> tuple[tuple[Token, ...], bool]:
    """Return the tokens of a clause, and whether it forbids or denies."""
    tokens: list[Token] = []
    place, negative, denied, joined, has_noun = "", False, False, False, False
    first, after = value
    for i, one in enumerate(drafts):
        roles = one.roles
        if roles & Role.DENIAL and _denies(drafts, i):
            denied = True
        elif roles & (Role.TARGET | Role.SETTER) and not one.is_token:
            denied = False
        if roles & Role.NEGATION and not denied:
            negative = True
        has_noun = has_noun or bool(roles & (Role.ARTICLE | Role.SETTER))
        if not one.is_token:
            joined = False
            if roles & (Role.PLACE | Role.TARGET):
                place = one.word
            elif roles & (Role.SETTER | Role.NEGATION):
                place = ""
            continue
        word, kind, unit, _, begin, end, until, _ = one
        verb = bool(roles & Role.ACTION) and not (i and drafts[i - 1].roles & Role.ARTICLE)
        begins = may_begin_with_verb and not (tokens or place or roles or has_noun)
        if begins and kind == PLAIN:
            verb = _is_imperative(drafts, i)
        topic = not verb or roles & _TOPIC == Role.MEANING
        if kind == NUMBER and not unit:
            unit = _counted(drafts, i)
        in_value = first <= i < after and not verb
        tokens.append(
            Token(
                word, kind, unit, not verb, topic, in_value, denied, place, joined,
                begin, end, until,
            )
        )  # fmt: skip
        joined = not verb
    return tuple(tokens), negative


def _made(tokens: tuple[Token, ...], *, negative: bool, sets: bool, adds: bool) -> Clause:
    stated = [one for one in tokens if not one.denied]
    telling = [one for one in stated if one.tells_apart]
    slot = [one for one in telling if not one.in_value] if sets else telling
    given = [one for one in stated if one.in_value] if sets else []
    words = frozenset([one.word for one in stated])
    # "Write it in German": the last word is the value, though no word gives it.
    last = tokens[-1] if tokens and tokens[-1].place and tokens[-1].kind in KINDS else None
    gives = given if sets else stated
    bare = not sets and all(one.kind in KINDS or one.kind in EXACT for one in slot)
    return Clause(
        tokens,
        negative,
        sets,
        adds,
        words=words,
        topics=frozenset([one.word for one in stated if one.tells_topic]),
        telling=words if len(telling) == len(stated) else frozenset([one.word for one in telling]),
        slot=frozenset(
            [one.word for one in slot if sets or (one.kind not in EXACT and one is not last)]
        ),
        given=tuple(gives),
        topic=telling[0].word if telling else "",
        is_elided=bool(given or slot) and (not slot or bare),
        named=frozenset(
            [one.word for one in slot if one.kind != PLAIN and (sets or one is not last)]
        ),
        special=tuple([one for one in gives if one.kind != PLAIN]),
        gives_member=any(one.kind in KINDS for one in gives),
        exact=tuple([one.word for one in tokens if one.kind in _NAMED]),
    )


def _denies(drafts: Sequence[_Draft], i: int) -> bool:
    """Whether the word at `i` says that the value after it holds no longer.

    A word with another use too, such as `not` and `from`, does so only before an exact value.
    """
    one = drafts[i]
    if one.roles & ~_MAY_DENY:
        return False
    after = next((draft for draft in drafts[i + 1 :] if draft.is_token), None)
    if after is None or (after.kind == PLAIN and after.roles & Role.ACTION):
        return False
    if one.roles & Role.PLACE and not any(
        draft.roles & (Role.TARGET | Role.SETTER | Role.REVISION) for draft in drafts
    ):
        # "Sail from Split" names a place, "move from Split to Zadar" one that holds no longer.
        return False
    return after.kind != PLAIN or not one.roles & (Role.NEGATION | Role.PLACE)


def _counted(drafts: Sequence[_Draft], i: int) -> str:
    """Return what a number counts: the noun right after it."""
    after = drafts[i + 1] if i + 1 < len(drafts) else None
    return after.word if after is not None and after.is_token and after.kind == PLAIN else ""


def _is_imperative(drafts: Sequence[_Draft], i: int) -> bool:
    """Whether the first word is followed by what a verb has: an article or a preposition."""
    after = drafts[i + 1].roles if i + 1 < len(drafts) else 0
    follows = Role.PARTICLE | Role.PLACE | Role.TARGET
    return bool(after & follows) and not after & Role.SETTER


def _value_span(drafts: Sequence[_Draft]) -> tuple[int, int]:
    """Return where the value of a clause begins and ends."""
    if drafts[0].roles & Role.MAKER and (made := _made_value(drafts)):
        return made
    setter = _last_setter(drafts)
    if setter < 0:
        return _measure(drafts)
    start, end = setter + 1, _end_of_value(drafts, setter + 1)
    if _is_reversed(drafts, start, end):
        return 0, start
    # "Keep backups for 30 days" gives 30 days, not backups.
    if all(one.kind == PLAIN for one in drafts[start:end]):
        for i in range(end, len(drafts)):
            if drafts[i].kind == NUMBER:
                return i, _end_of_value(drafts, i)
    return start, end


def _made_value(drafts: Sequence[_Draft]) -> tuple[int, int] | None:
    """Return the span of the last word, and of the number before it: "make the title dark"."""
    last = max((i for i, one in enumerate(drafts) if one.is_token), default=0)
    if not any(one.is_token for one in drafts[1:last]):
        return None
    while last > 1 and drafts[last - 1].kind in _MEASURED:
        last -= 1
    return last, len(drafts)


def _measure(drafts: Sequence[_Draft]) -> tuple[int, int]:
    """Return the span of a number with a unit after its subject: "server budget 3,000 €"."""
    subject = False
    for i, one in enumerate(drafts):
        if one.kind == NUMBER and one.unit in MEASURES and subject:
            return i, i + 1
        subject = subject or one.is_token
    return len(drafts), len(drafts)


def _last_setter(drafts: Sequence[_Draft]) -> int:
    """Return the position of the last word that gives a value; -1 without one."""
    changes = any(one.roles & _CHANGES for one in drafts)
    last_token = len(drafts) - 1
    while last_token > 0 and not drafts[last_token].is_token:
        last_token -= 1
    setter, has_value = -1, False
    for i, one in enumerate(drafts[:last_token]):
        has_value = has_value or (setter >= 0 and one.kind in _MEASURED)
        if one.roles & Role.SETTER or (changes and not has_value and one.roles & Role.TARGET):
            setter, changes, has_value = i, True, False
    return setter


def _is_reversed(drafts: Sequence[_Draft], start: int, end: int) -> bool:
    """Whether a name stands alone before the word that gives a value, and plain words after it.

    "Kim is the release manager" gives the value Kim.
    """
    before: list[str] = []
    place = False
    for one in drafts[:start]:
        place = bool(one.roles & Role.PLACE) or (place and one.kind != PROPER)
        if one.is_token and not place and one.kind not in KINDS:
            before.append(one.kind)
    given = [one.kind for one in drafts[start:end] if one.is_token]
    return bool(before and given) and {*before} == {PROPER} and {*given} == {PLAIN}


def _end_of_value(drafts: Sequence[_Draft], start: int) -> int:
    has_token = False
    for i in range(start, len(drafts)):
        if drafts[i].roles & Role.PLACE and has_token:
            return i
        has_token = has_token or drafts[i].is_token
    return len(drafts)
