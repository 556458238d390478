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
from itertools import chain, islice
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.frames import ADMITTED, CLEAR, frame_of
from policyctx.compaction.extractive.lexicon import lexicon_of
from policyctx.compaction.extractive.likeness import may_be_meant
from policyctx.compaction.extractive.sentences import one_line, shortened, words_of
from policyctx.compaction.extractive.statements import USER
from policyctx.compaction.extractive.updates import (
    Effect,
    Update,
    is_without_subject,
    units_in,
    update_of,
    values_replaced,
)
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Statement
    from policyctx.compaction.extractive.frames import Frame
    from policyctx.compaction.extractive.lexicon import Lexicon
    from policyctx.compaction.extractive.statements import Said, Value
    from policyctx.definitions.items import Item

GONE = "…"

_ASCII_WORD = re.compile(r"[A-Za-z][A-Za-z']+")
# A letter that names one of several, such as "server B".
_LETTER = re.compile(r"(?<=[a-z] )[A-HJ-Z]\b")
_CJK_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
# Statements that are looked at as the one that may be meant.
_LIKELIEST = 6
# Words of a statement by which earlier ones are looked up.
_WORDS_LOOKED_UP = 8
_LONGEST_NOTE, _LONGEST_MARK = 300, 60
# Statements looked back at for each word, and by one that has no subject of its own.
_LOOKED_BACK, _LOOKED_BACK_FOR_ANY = 24, 100
# The statements, and the words or CJK characters of each, in a message that may have a note.
_FEW_STATEMENTS, _SHORT = 3, 40
_ASKING = ("?", "？")
# Statements of the same message that tell what one is about.
_AROUND = 4


class Told(NamedTuple):
    """A statement in its place: who said it, and in which message (-1: in an earlier summary)."""

    statement: Statement
    message: int
    user: bool
    values: tuple[Value, ...]
    """Those in its text."""


def revised(told: Sequence[Told], cues: Cues) -> list[Told]:
    """Return the statements without those taken back, in order, each said once.

    What is in an earlier summary takes back nothing: that was decided when it was written.
    """
    standing = _Standing(_said_once(told), cues)
    for i in range(len(standing.told)):
        standing.add(i)
    return standing.left()


_NONE, _REPLACES = Effect.NONE, Effect.REPLACES


class _Standing:
    """The statements that hold so far."""

    def __init__(self, told: Sequence[Told], cues: Cues) -> None:
        self.told = told
        lexicon = lexicon_of(cues.languages)
        self._frames = list(_frames_of(told, lexicon))
        self._message_before = list(_messages_before(told))
        self._counts = Counter(one.message for one in told if one.user)
        self._offers = cues.proposals
        self._asking = tuple(word for one in cues.languages for word in one.requests)
        self._held: dict[int, Statement] = {}
        # For each word the standing statements that have it, the newest last.
        self._by_word: dict[str, dict[int, None]] = defaultdict(dict)

    def left(self) -> list[Told]:
        """Return the statements that hold, in order."""
        return [self.told[i]._replace(statement=held) for i, held in self._held.items()]

    def add(self, i: int) -> None:
        """Take statement `i` in, and out those that it takes back."""
        statement = self.told[i].statement
        if self.told[i].message >= 0:
            similar: list[int] = []
            for old, update in self._updated_by(i):
                if update.effect is _REPLACES:
                    left = _left_of(self._held[old], self._frames[old], self._frames[i], update)
                    self._remove(old)
                    statement = _with_notes(statement, left)
                else:
                    similar.append(old)
            similar = [old for old in similar if self._is_plain(i) and self._is_plain(old)]
            if similar and not statement.replaces:
                text = self._held[max(similar)].text
                statement = statement._replace(unresolved=shortened(text, _LONGEST_MARK))
        self._held[i] = statement
        for word in self._frames[i].keys:
            self._by_word[word][i] = None

    def _is_plain(self, i: int) -> bool:
        """Whether a statement is all of a short message that asks and offers nothing.

        In a longer message shared words mostly come from what the message is about.
        """
        one = self.told[i]
        if one.message >= 0 and self._counts[one.message] > _FEW_STATEMENTS:
            return False
        text = one.statement.text
        asks = any(mark in text for mark in _ASKING) and not self._requests(text)
        return not asks and words_in(text) <= _SHORT and not self._offers.found_in(text)

    def _requests(self, text: str) -> bool:
        """Whether a question asks to do something."""
        return any(word in text.casefold() for word in self._asking)

    def _remove(self, old: int) -> None:
        del self._held[old]
        for word in self._frames[old].keys:
            self._by_word[word].pop(old, None)

    def _updated_by(self, i: int) -> list[tuple[int, Update]]:
        frame = self._frames[i]
        if (frame.excepts and not frame.requests) or not frame.tokens:
            return []
        if self.told[i].user and frame.cue >= CLEAR and not frame.excepts:
            found = self._newest_without_subject(i)
            if found:
                return found
        found = [
            (old, update)
            for old in dict.fromkeys((*self._likeliest(frame), *self._right_before(i)))
            if self._may_revise(i, old)
            and (update := self._update_of(i, old)).effect is not _NONE
            # An order does not refute what the agent found.
            and (self.told[old].user or frame.cue >= CLEAR or not update.opposite)
        ]
        return self._resolved(i, found)

    def _update_of(self, i: int, old: int) -> Update:
        """Return what `i` does to `old`; where its own words do not say, they may be marked."""
        frame = self._frames[i]
        update = update_of(frame, self._frames[old])
        new, before = self.told[i], self.told[old]
        # Most of what the agent says binds nothing.
        speaks = (new.user and before.user) or frame.cue >= CLEAR
        if update.effect or not speaks or new.message in (before.message, -1):
            return update
        around = [
            self._frames[k]
            for k in range(max(0, i - _AROUND), min(len(self.told), i + _AROUND + 1))
            if k != i and self.told[k].message == new.message
        ]
        is_next = self._is_next_message(old, i)
        may = may_be_meant(frame, self._frames[old], around, is_next=is_next)
        return Update(Effect.MAY_REPLACE) if may else update

    def _right_before(self, i: int) -> Iterator[int]:
        """Yield the standing statements of the user's message before that of `i`, newest first."""
        if self.told[i].user:
            for old in islice(reversed(self._held), _AROUND):
                if self._is_next_message(old, i):
                    yield old

    def _is_next_message(self, old: int, i: int) -> bool:
        """Whether the user sent no message between those of two statements of the user."""
        return self.told[old].user and self.told[old].message == self._message_before[i]

    def _resolved(self, i: int, found: list[tuple[int, Update]]) -> list[tuple[int, Update]]:
        """Return the updates; of several statements that say more, it means the one right before.

        Without such a one it may mean any of them, and all stand.
        """
        partly = [old for old, update in found if update.partly and update.effect is _REPLACES]
        if len(partly) <= 1:
            return found
        newest = max(partly)
        meant = newest if self._is_next_of_user(newest, i) else -1
        return [
            (old, update._replace(effect=Effect.MAY_REPLACE))
            if old in partly and old != meant
            else (old, update)
            for old, update in found
            if old not in partly or old == newest
        ]

    def _likeliest(self, frame: Frame) -> list[int]:
        """Return the standing statements that share most words, of equals the newest."""
        by_word = self._by_word
        standing = [(len(held), word) for word in frame.keys if (held := by_word.get(word))]
        # The rarest words first; of a word in many statements only the newest are looked at, so
        # that the cost of one more statement does not grow with their number.
        rarest = sorted(standing)[:_WORDS_LOOKED_UP]
        newest = [islice(reversed(by_word[word]), _LOOKED_BACK) for _, word in rarest]
        shared = Counter(chain.from_iterable(newest))
        return sorted(sorted(shared, reverse=True), key=shared.__getitem__, reverse=True)[
            :_LIKELIEST
        ]

    def _may_revise(self, i: int, old: int) -> bool:
        """Whether `i` may take `old` back: the agent may not what the user said.

        Within one message that takes a word of revision.
        """
        new, before = self.told[i], self.told[old]
        other = new.message != before.message or self._frames[i].cue >= CLEAR
        return other and (new.user or not before.user)

    def _newest_without_subject(self, i: int) -> list[tuple[int, Update]]:
        """Return the newest statement with a value of the kind that this one gives.

        Only for one that has no subject of its own, such as "make it 3 days".
        """
        frame = self._frames[i]
        if not is_without_subject(frame):
            return []
        found: list[tuple[int, Update]] = []
        for old in islice(reversed(self._held), _LOOKED_BACK_FOR_ANY):
            gone = values_replaced(frame, self._frames[old]) if self._may_revise(i, old) else ()
            if gone:
                found.append((old, Update(Effect.REPLACES, gone)))
        if not found:
            return []
        # Of several that it could mean, one with its unit, or the one that was said right before.
        units = units_in(self.told[i].statement.text, frame)
        of_unit = [
            pair
            for pair in found
            if units & units_in(self.told[pair[0]].statement.text, self._frames[pair[0]])
        ]
        newest, update = (of_unit or found)[0]
        is_certain = of_unit or len(found) == 1 or self._is_next_of_user(newest, i)
        return [(newest, update if is_certain else Update(Effect.MAY_REPLACE))]

    def _is_next_of_user(self, old: int, i: int) -> bool:
        """Whether the user said nothing between two statements of the user."""
        return all(not self.told[k].user for k in range(old + 1, i) if i - old < _LOOKED_BACK)


def _frames_of(told: Sequence[Told], lexicon: Lexicon) -> Iterator[Frame]:
    """Yield the frames; after the admission of a mistake the rest of its message revises too."""
    corrects = -1
    for one in told:
        follows = one.message == corrects >= 0
        frame = frame_of(one.statement.text, one.values, lexicon, corrects=follows)
        if frame.cue == ADMITTED:
            corrects = one.message
        yield frame


def _messages_before(told: Sequence[Told]) -> Iterator[int]:
    """Yield for each statement the user's last message before that of the statement."""
    last, before = -1, -1
    for one in told:
        if one.user and one.message != last:
            last, before = one.message, last
        yield before if one.message == last else last


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


def _left_of(statement: Statement, old: Frame, new: Frame, update: Update) -> tuple[str, str, str]:
    """Return what is left of a statement that was taken back: its notes and its other words."""
    left = statement.text
    for start, end in sorted(update.gone, reverse=True):
        left = f"{left[:start]}{GONE}{left[end:]}"
    gone = [range(start, end) for start, end in update.gone]
    more = [
        one
        for one in old.tokens
        if one.tells_apart
        and one.word not in new.words
        and not any(one.start in span for span in gone)
    ]
    return (statement.replaces, left if more else "", statement.answers)


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
