"""Which statement replaces an earlier one, and which line of a result a statement refers to.

A later statement in another message replaces an earlier one when it gives another value of the same
kind to the same thing. Shared words show that the thing is the same; where the later statement has
few words ("make it 3 days"), the unit of its value does. Without a word of revision, both must give
a number in the same words ("the limit is …"): commands of one form ("fix #12", "fix #13") do not
replace each other. The earlier statement stays as a note on the later one with its value removed,
so that nothing else in it is lost. In doubt, both stay, in order.

A reference ("keep the renewal date of that plan") does not repeat the value, so its line is found
by shared words: at least two, and shared by few lines of the result.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from functools import cached_property
from heapq import nlargest
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.sentences import one_line, shortened
from policyctx.compaction.extractive.statements import NUMBER, USER
from policyctx.compaction.extractive.work import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Statement
    from policyctx.compaction.extractive.statements import Said, Value
    from policyctx.definitions.items import Item

GONE = "…"

_ASCII_WORD = re.compile(r"[A-Za-z][A-Za-z']+")
# A letter that names one of several, such as "server B".
_LETTER = re.compile(r"(?<=[a-z] )[A-HJ-Z]\b")
_CJK_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
# Shares of the later statement's words that both must have, less where it names the old number and
# where it has all the words of the earlier one; and of those of the longer one.
_SAME_THING, _NAMED_IT, _ALL_OF_IT, _SAME_WORDS = 0.6, 0.5, 0.4, 0.7
# Statements that are looked at as the one that may be meant.
_LIKELIEST = 8
# A word in more statements than this says nothing of what one is about.
_COMMON = 12
_LONGEST_NOTE = 300
# Characters between a value and the word before it that says that something is given it.
_REACH = 40
# Statements looked back at by one that has no subject of its own.
_LOOKED_BACK = 100


class Told(NamedTuple):
    """A statement in its place: who said it, and in which message (-1: in an earlier summary)."""

    statement: Statement
    message: int
    user: bool
    values: tuple[Value, ...]
    """Those in its text."""


class _Subject(NamedTuple):
    words: frozenset[str]
    values: tuple[Value, ...]
    given: frozenset[str]
    """The values as texts."""
    found_by: frozenset[str]
    """The words and values that it is found by."""
    revises: bool = False
    sets: frozenset[str] = frozenset()
    """The values that something is given, by a word before them."""


# A statement without a value neither takes back nor is taken back, whatever it is about.
_NO_VALUE = _Subject(frozenset(), (), frozenset(), frozenset())


def revised(told: Sequence[Told], cues: Cues) -> list[Told]:
    """Return the statements without those taken back, in order, each said once.

    What is in an earlier summary takes back nothing: that was decided when it was written.
    """
    standing = _Standing(_said_once(told), cues)
    for i in range(len(standing.told)):
        standing.add(i)
    return standing.left()


class _Standing:
    """The statements that hold so far."""

    def __init__(self, told: Sequence[Told], cues: Cues) -> None:
        self.told = told
        self._subjects = [_subject(one, cues) for one in told]
        self._counts = Counter(word for subject in self._subjects for word in subject.found_by)
        self._common = max(_COMMON, len(told) // 8)
        self._held: dict[int, Statement] = {}
        self._by_word: dict[str, list[int]] = defaultdict(list)

    def left(self) -> list[Told]:
        """Return the statements that hold, in order."""
        return [self.told[i]._replace(statement=held) for i, held in self._held.items()]

    def add(self, i: int) -> None:
        """Take statement `i` in, and out those that it takes back."""
        statement, subject = self.told[i].statement, self._subjects[i]
        if self.told[i].message >= 0 and (subject.revises or subject.sets):
            for old in self._taken_back_by(i):
                left = _left_of(self._held.pop(old), self._subjects[old], subject)
                statement = _with_notes(statement, left)
        self._held[i] = statement
        for word in subject.found_by:
            self._by_word[word].append(i)

    def _taken_back_by(self, i: int) -> list[int]:
        new, subject = self.told[i], self._subjects[i]
        shared: Counter[int] = Counter()
        for word in subject.found_by:
            if self._counts[word] <= self._common:
                shared.update(self._by_word[word])
        # Of equals the newest, so that the order of a set decides nothing.
        likeliest = nlargest(_LIKELIEST, zip(shared.values(), shared, strict=True))
        found = [
            old
            for _, old in likeliest
            if old in self._held
            and self._may_revise(i, old)
            and _is_revision(subject, self._subjects[old], by_user=new.user)
        ]
        if not found and subject.revises and new.user:
            return self._last_with_unit_of(i)
        return found

    def _may_revise(self, i: int, old: int) -> bool:
        """Whether `i` may take `old` back: the agent may not what the user said.

        Within one message that takes a word of revision.
        """
        new, before = self.told[i], self.told[old]
        other = new.message != before.message or self._subjects[i].revises
        return other and (new.user or not before.user)

    def _last_with_unit_of(self, i: int) -> list[int]:
        """Return the newest statement with a number of a unit that this one has too.

        Only for one that has no subject of its own, but for the words beside its number.
        """
        subject = self._subjects[i]
        units = _units(self.told[i].statement.text, subject)
        if not units:
            return []
        own = subject.words - {_singular(unit) for unit in units}
        for old in islice(reversed(self._held), _LOOKED_BACK):
            before = self._subjects[old]
            if own <= before.words and units & _units(self.told[old].statement.text, before):
                return [old]
        return []


def _units(text: str, subject: _Subject) -> frozenset[str]:
    """Return the words beside a statement's numbers."""
    numbers = (value for value in subject.values if value.kind == NUMBER)
    return frozenset[str]().union(*(value.neighbours(text) for value in numbers))


def _said_once(told: Sequence[Told]) -> list[Told]:
    """Leave each text where it stands last; a note that it had stays on it."""
    latest: dict[str, Told] = {}
    for one in told:
        key = one.statement.text.casefold().rstrip(".。!！ ")
        before = latest.pop(key, None)
        if before is not None and not one.statement.replaces and not one.statement.answers:
            notes = before.statement._replace(text=one.statement.text)
            one = one._replace(statement=notes)  # noqa: PLW2901
        latest[key] = one
    return list(latest.values())


def _subject(one: Told, cues: Cues) -> _Subject:
    text, values = one.statement.text, one.values
    if not values:
        return _NO_VALUE
    words = subject_words(_blotted(text, values), cues)
    given = frozenset(value.text for value in values)
    sets = frozenset(value.text for value in values if _is_set(text, value, cues))
    return _Subject(words, values, given, words | given, cues.revisions.found_in(text), sets)


def _is_set(text: str, value: Value, cues: Cues) -> bool:
    before = text[max(0, value.start - _REACH) : value.start]
    return before.rstrip().endswith((":", "=", "：")) or cues.settings.found_in(before)


def subject_words(text: str, cues: Cues) -> frozenset[str]:
    """Return what a text is about: its words, and of CJK each two characters in a row."""
    letters = _LETTER.findall(text)
    return all_words(cues.subjectless.sub(" ", text.casefold())) | set(letters)


def all_words(text: str) -> frozenset[str]:
    """Return the words of a text, in the singular, and of CJK each two characters in a row."""
    words = {_singular(word) for word in _ASCII_WORD.findall(text.lower())}
    for run in _CJK_RUN.findall(text):
        words.update(map(add, run, run[1:]))
    return frozenset(words)


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _blotted(text: str, values: Iterable[Value]) -> str:
    """Return the text with these values blotted out."""
    for value in sorted(values, key=lambda value: -value.start):
        text = f"{text[: value.start]}{GONE}{text[value.end :]}"
    return text


def _is_revision(new: _Subject, old: _Subject, *, by_user: bool) -> bool:
    """Whether the new statement gives another value to the thing that the old one is about."""
    changed = _changed(new, old)
    if not changed:
        return False
    numbers = all(value.kind == NUMBER for value in changed)
    named = new.given & old.given
    both = len(new.words & old.words) + len(named)
    if not both:
        return False
    news, olds = len(new.words) + len(named), len(old.words) + len(named)
    if new.revises and (numbers or by_user):
        # What the new one speaks of besides would be another thing of the same sort.
        named_it = numbers and named.issuperset(value.text for value in changed)
        least = _ALL_OF_IT if both >= olds else _NAMED_IT if named_it else _SAME_THING
        return both >= least * news
    if not numbers or any(value.text not in old.sets for value in changed):
        return False
    return both >= _SAME_WORDS * max(news, olds)


def _changed(new: _Subject, old: _Subject) -> list[Value]:
    """Return the values of the old statement that the new one gives another value for."""
    kinds = {value.kind for value in new.values if value.text not in old.given}
    changed = [value for value in old.values if value.kind in kinds]
    named = [value for value in changed if value.text in new.given]
    kept = [value for value in changed if value.text not in new.given]
    # "8081, not 8080" names the value that it takes back.
    return named if named and new.revises else kept


def _left_of(old: Statement, before: _Subject, after: _Subject) -> tuple[str, ...]:
    """Return what is left of a statement that was taken back: its notes and its other words."""
    changed = _changed(after, before)
    kinds = Counter(value.kind for value in changed)
    given = Counter(value.kind for value in after.values if value.text not in before.given)
    # Which of several values was meant, no one can say where fewer are given: then all stay.
    gone = [value for value in changed if kinds[value.kind] <= max(1, given[value.kind])]
    left = _blotted(old.text, gone)
    other = before.given - {value.text for value in gone}
    says_more = not gone or before.words - after.words or other - after.found_by
    return (old.replaces, left if says_more else "", old.answers)


def _with_notes(new: Statement, notes: Sequence[str]) -> Statement:
    *replaced, answers = notes
    note = " / ".join(dict.fromkeys(note for note in (new.replaces, *replaced) if note))
    return new._replace(replaces=shortened(note, _LONGEST_NOTE), answers=new.answers or answers)


# The results before a statement that it may speak of, and the lines of each that are looked at.
_RESULTS, _LINES, _MOST_READ = 6, 300, 60_000
_LONGEST_LINE = 240
_SHARED, _MOST_LIKE_IT = 2, 2

# Lines, and the members of an object or a row, since a result may well be one line of JSON.
_LINE_END = re.compile(r"\n|(?<=[\"}\]\d]),\s*(?=[\"{])")
_HAS_VALUE = re.compile(r"\d")
_PARTS_OF_NAME = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


class Reference(NamedTuple):
    """A line of a result that something said later speaks of."""

    message: int
    line: str
    by_user: bool


class _Line(NamedTuple):
    text: str
    words: frozenset[str]


class _Result:
    """A result, and its lines once they are asked for."""

    def __init__(self, item: Item) -> None:
        self.message = item.message
        self._text = words_of(item.text)[:_MOST_READ]
        self._lower = self._text.lower()

    def may_hold(self, words: frozenset[str]) -> bool:
        """Whether enough of the words are in it at all, by a quick test."""
        return sum(word in self._lower for word in words) >= _SHARED

    @cached_property
    def lines(self) -> list[_Line]:
        pieces = _LINE_END.split(self._text, maxsplit=_LINES)[:_LINES]
        return [
            _Line(one_line(piece), all_words(_PARTS_OF_NAME.sub(" ", piece)))
            for piece in pieces
            if len(piece) <= _LONGEST_LINE and _HAS_VALUE.search(piece)
        ]


def references_to(results: Iterable[Item], said: Sequence[Said], cues: Cues) -> Iterator[Reference]:
    """Yield the lines that the user, or a finding in the agent's last words, speaks of."""
    recent: deque[_Result] = deque(maxlen=_RESULTS)
    coming = deque(results)
    for one in said:
        while coming and coming[0].message < one.message:
            recent.append(_Result(coming.popleft()))
        speaks = one.speaker == USER or (one.last and one.tells)
        if not recent or one.pasted or not speaks:
            continue
        words = subject_words(one.text, cues)
        for result in recent:
            line = _spoken_of(words, result.lines) if result.may_hold(words) else ""
            if line:
                yield Reference(result.message, line, one.speaker == USER)


def _spoken_of(words: frozenset[str], lines: Sequence[_Line]) -> str:
    """Return the line that shares most words, where hardly another one shares as many."""
    shared = [len(words & line.words) for line in lines]
    most = max(shared, default=0)
    if most < _SHARED or Counter(shared)[most] > _MOST_LIKE_IT:
        return ""
    return lines[shared.index(most)].text
