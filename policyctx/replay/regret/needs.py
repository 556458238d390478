"""What shows that an agent needed an item: it asked again, or it used what only the item held."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from policyctx.errors import present
from policyctx.replay.regret.asked import Input, asked_again
from policyctx.replay.regret.holders import (
    COMMON,
    RARE,
    SMALL,
    Holders,
    Replies,
    SentText,
    TextPlace,
    Texts,
    phrases,
)
from policyctx.replay.regret.strings import (
    HINT,
    SURE,
    Distinct,
    Lines,
    Memo,
    Range,
    stands_in,
    starts_of,
    without,
)
from policyctx.replay.regret.vocabulary import (
    SentWords,
    Takeover,
    fact_in,
    is_common,
    may_be_fact,
    takeovers,
)
from policyctx.replay.simulated import Need
from policyctx.replay.timeline import SessionPart

_FILE = r"([\w.-]*\w\.[A-Za-z]\w{0,4})"
_LINES = r"(\d{2,6})(?:\s?[-\u2013]\s?(\d{2,6}))?"
_FIELD = r"[\"']?,?\s(?:--|[\"'])?line(?:[\"']?[=:])?\s?"
_IN_TEXT = re.compile(rf"{_FILE}(?::|#L|\(| L|`?,? \(?lines? |:? ?~|{_FIELD})~?{_LINES}")
_BEFORE_FILE = re.compile(rf"\blines? {_LINES} (?:of|in) `?(?:[\w.-]*/)*{_FILE}")
# As `nl` and `grep -n` write the number of a line.
_BEFORE_LINE = r"(?:^|\n|\\n|\\\"|\"|[:-])[ \t]*({})(?:[\t\u2192:|-]|\\t)"
_ROUND = 5
# A diff names the new file, and the number that the first line of each hunk has in it.
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@|\+\+\+ (.+)")
# An edit shows a need by a line with so many letters and digits; so many lines are looked at.
_TELLING, _REPLACED = 6, 20
# What a program says of its options is asked for by one of these words.
_HELP = re.compile(r"(?:^|\s)(?:--?h(?:elp)?|\S*help)(?=\s|$)")
_OPTION = re.compile(r"(?<=\s)--\w[\w-]+")


class Cited(NamedTuple):
    """A line that a reply took from a removed item: its number, or what it says."""

    position: int
    """Of the item."""
    text: str
    """The file and the number, or the line."""
    start: int
    """Where it is in the item's text."""
    end: int


class Citations:
    """The lines of files in the replies of a part."""

    def __init__(self, part: SessionPart, texts: Texts, knowledge: SentText, memo: Memo) -> None:
        self._part, self._texts, self._knowledge = part, texts, knowledge
        self._numbers_in, self._input = memo.of(_numbers_in), memo.of(Input)
        self._in_diff = memo.of(_in_diff)
        self._of_file: dict[str, Sequence[int]] = {}

    def of(self, reply: int, call: int) -> Iterator[Cited]:
        """Yield the lines that a reply took from items which its call did not have."""
        for file, number in self._said(reply):
            found = list(self._held(file, number, call))
            if found and not self._knowledge.has_line(file, number, call):
                yield from found
        item = self._part.items[reply]
        if item.kind != "tool_call" or not self._results:
            return
        given = self._input(item.tool, item.text)
        for line in given.replaced[:_REPLACED]:
            yield from self._replaced(line, given.files, call)
        yield from self._options(given.command or "", call)

    def numbers(self, reply: int) -> frozenset[str]:
        """Return the numbers of lines in a reply."""
        return frozenset(str(number) for _, number in self._said(reply))

    def _said(self, reply: int) -> Sequence[tuple[str, int]]:
        item = self._part.items[reply]
        said = dict.fromkeys(self._numbers_in(self._texts.written(reply)))
        if item.kind == "tool_call":
            given = self._input(item.tool, item.text)
            lines = [number for number in given.line_numbers if not _is_round(number)]
            said |= {(file, number): None for file in sorted(given.files) for number in lines}
        return list(said)

    def _held(self, file: str, number: int, call: int) -> Iterator[Cited]:
        said = str(number)
        for position in self._gone(file, call):
            text, asked = self._texts.shown(position), self._asked(position)
            found: list[tuple[int, int]] = []
            if file not in asked.files:
                joined = rf"{re.escape(file)}[:-]({said})(?!\d)"
                found = [one.span(1) for one in re.finditer(joined, text)][:1]
            elif number >= SMALL:
                found = [(start, start + len(said)) for start in starts_of(said, text, most=1)]
            else:
                found = [one.span(1) for one in re.finditer(_BEFORE_LINE.format(said), text)][:1]
            # A name without a dot may be that of the folder.
            line = asked.line_of(file, number) if "." in file and not found else None
            if line is not None and line <= len((lines := Lines(text)).lines):
                found = [lines.between(line, line)[2:]]
            if not found and (place := self._in_diff(text).get((file, number))) is not None:
                found = [place]
            for start, end in found:
                yield Cited(position, f"{file}:{number}", start, end)

    def _replaced(self, line: str, files: Iterable[str], call: int) -> Iterator[Cited]:
        """Yield the newest result that showed a line of these files, if nothing else does."""
        if sum(map(str.isalnum, line)) < _TELLING:
            return
        gone = {position for file in files for position in self._gone(file, call)}
        for position in sorted(gone, reverse=True):
            for start in starts_of(line, self._texts.shown(position), most=1):
                if not self._knowledge.has(Distinct(line, SURE, ()), call):
                    yield Cited(position, line, start, start + len(line))
                return

    def _options(self, command: str, call: int) -> Iterator[Cited]:
        """Yield the options of a program that only its help shows, which the call did not have."""
        said = dict.fromkeys(_OPTION.findall(command) if self._helps else ())
        for position, program in self._helps.items() if said else ():
            part, text = self._part, self._texts.shown(position)
            if position >= part.had(call) or part.absence(position, call) is None:
                continue
            for option in said if stands_in(program, command) else ():
                for start in starts_of(option, text, most=1):
                    if not self._knowledge.has(Distinct(option, SURE, ()), call):
                        yield Cited(position, option, start, start + len(option))

    @cached_property
    def _helps(self) -> Mapping[int, str]:
        """The results that say how a program is used, and its name."""
        asked = {position: self._asked(position).command or "" for position in self._results}
        return {
            position: command.split()[0]
            for position, command in asked.items()
            if _HELP.search(command)
        }

    def _gone(self, file: str, call: int) -> Iterator[int]:
        """Yield the results about a file that a call did not have, newest first."""
        part = self._part
        if file not in self._of_file:
            self._of_file[file] = [
                position
                for position in self._results
                if file in self._asked(position).files or file in self._texts.shown(position)
            ]
        for position in self._of_file[file]:
            if position < part.had(call) and part.absence(position, call) is not None:
                yield position

    def _asked(self, result: int) -> Input:
        asked = self._part.items[self._part.partners[result]]
        return self._input(asked.tool, asked.text)

    @cached_property
    def _results(self) -> Sequence[int]:
        """The results of calls that were out at any time, newest first."""
        part = self._part
        return [
            position
            for position in sorted(part.absences, reverse=True)
            if part.items[position].kind == "tool_result" and position in part.partners
        ]


def _numbers_in(text: str) -> tuple[tuple[str, int], ...]:
    """Return the files that a text names with the number of a line, and the number."""
    found = [(file, numbers) for file, *numbers in _IN_TEXT.findall(text)]
    found += [(file, numbers) for *numbers, file in _BEFORE_FILE.findall(text)]
    return tuple((file, int(number)) for file, numbers in found for number in numbers if number)


def _is_round(number: int) -> bool:
    return number < SMALL or number % _ROUND == 0 or number % (2 * _ROUND) == 1


def _in_diff(text: str) -> Mapping[tuple[str, int], tuple[int, int]]:
    """Return where the lines of the new files of a diff stand, by file and number."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    file, number, at = "", 0, 0
    for line in text.split("\n") if "@@ -" in text else ():
        if (head := _HUNK.match(line)) is not None:
            number, named = int(head[1] or 0), head[2]
            file = file if named is None else named.rstrip().rpartition("/")[2]
        elif number and line[:1] in {"+", " "}:
            found[file, number] = at, at + len(line)
            number += 1
        elif not line.startswith(("-", "\\")):
            number = 0
        at += len(line) + 1
    return found


# So many strings are shown for one item and one call.
_SHOWN = 3
# Weak signs confirm one another where they stand so near each other in the item, in characters.
_TOGETHER = 1_500
# Each of so many items might have been kept for what all of them hold.
_FEW = 3
# A string may be in an item more often than is looked at.
_PLACES = 16


class Lost(NamedTuple):
    """An item that was out of the context, and one time in which it was."""

    position: int
    absence: int
    """Which of the item's absences, from 0 on."""


def needs_of(
    part: SessionPart, tokens: Callable[[str], int], memo: Memo | None = None
) -> Mapping[Lost, Sequence[Need]]:
    """Return what was needed of a part's items while they were out; `tokens` counts a text.

    `memo` has what was found in the texts of the same recording before.
    """
    memo = memo or Memo()
    since = min((a.since for of_one in part.absences.values() for a in of_one), default=None)
    if since is None:
        return {}
    replies = list(part.replies(since))
    found: dict[int, list[_Found]] = defaultdict(list)
    for one in (*_asked_again(part, replies, memo), *_used(part, replies, memo)):
        found[one.position].append(one)
    needs: dict[Lost, list[Need]] = defaultdict(list)
    for position, of_item in found.items():
        text = part.items[position].counted
        had: list[Range] = []
        for one in sorted(of_item, key=lambda one: one.need.call):
            absence = part.absence_number(position, one.need.call)
            absence = present(absence)
            left = without(one.own, had)
            had += one.own
            counted = sum(tokens(text[start:end]) for start, end in left)
            needs[Lost(position, absence)].append(replace(one.need, tokens=counted))
    return needs


class _Found(NamedTuple):
    """A need of the item at a position, and which of its ranges no newer item has."""

    position: int
    need: Need
    own: tuple[Range, ...]


def _asked_again(
    part: SessionPart, replies: Sequence[tuple[int, int]], memo: Memo
) -> Iterator[_Found]:
    for again in asked_again(part, replies, memo):
        item = part.items[again.reply]
        need = Need("asked again", again.call, item.item_id, (item.text,), again.ranges)
        yield _Found(again.result, need, again.own)


def _used(part: SessionPart, replies: Sequence[tuple[int, int]], memo: Memo) -> Iterator[_Found]:
    """Yield the items that alone held what a reply says, each reply by itself."""
    texts = Texts(part, memo)
    replies_of = Replies(texts.lost, memo, rare=texts.rare(COMMON), anchors=texts.rare(RARE))
    said = {
        reply: replies_of.read(texts.written(reply), call, stays=reply not in part.absences)
        for reply, call in replies
    }
    wanted = {texts.key(one.words) for of_one in said.values() for one in of_one.strings}
    wanted.update(
        word for of_one in said.values() for run in of_one.runs for _, word in run.anchors
    )
    holders = Holders(texts, frozenset(wanted))
    knowledge = SentText(part, texts, memo)
    citations = Citations(part, texts, knowledge, memo)
    evidence = _Evidence(texts, memo)
    sent = SentWords(part, texts, replies, memo)
    for reply, call in replies:
        held: dict[int, list[Distinct]] = defaultdict(list)
        strings, runs = said[reply]
        for one in dict.fromkeys((*strings, *phrases(runs, part, texts, holders, call))):
            of_one = _holders_of(part, holders, one, call)
            for holder in of_one:
                held[holder].append(one)
        words = {one.position: one for one in takeovers(sent, part, texts, reply, call)}
        cited: dict[int, list[Cited]] = defaultdict(list)
        for line in citations.of(reply, call):
            cited[line.position].append(line)
        known: dict[Distinct, bool] = {}
        newer: set[str] = set()
        for holder in sorted({*held, *words, *cited}, reverse=True):
            found = [one for one in held[holder] if one.weight > HINT]
            takeover = words.get(holder)
            share = 0.0 if takeover is None else takeover.share
            is_sure = sum(one.weight for one in found) + share >= SURE
            facts = evidence.facts(holder, held[holder], texts.written(reply))
            for one in (*(found if is_sure else ()), *facts):
                if one not in known:
                    known[one] = not sent.is_new(one.words, call) and knowledge.has(one, call)
            found = [one for one in found if is_sure and not known[one]]
            cites = citations.numbers(reply) if facts else ()
            facts = {
                one: start
                for one, start in facts.items()
                if not known[one] and one.text not in cites
            }
            signs = evidence.of(holder, found, takeover, cited[holder], facts)
            if not signs:
                continue
            shown = tuple(dict.fromkeys(sign.text for sign in signs))
            own = [sign.range for sign in signs if sign.text not in newer]
            newer.update(shown)
            joined = evidence.lines_of(holder).joined
            yield _Found(
                holder,
                Need(
                    "used",
                    call,
                    part.items[reply].item_id,
                    shown[:_SHOWN],
                    joined(sign.range for sign in signs),
                ),
                joined(own),
            )


class _Sign(NamedTuple):
    """A string that shows a need, and what must be read again for it."""

    text: str
    range: Range


class _Evidence:
    """Where in the removed items the strings of a reply stand, and which of them count."""

    def __init__(self, texts: Texts, memo: Memo) -> None:
        self._texts = texts
        self._lines = memo.of(Lines)

    def of(
        self,
        holder: int,
        found: Sequence[Distinct],
        takeover: Takeover | None,
        cited: Sequence[Cited],
        facts: Mapping[Distinct, int],
    ) -> list[_Sign]:
        """Return what shows a need of an item, the surest first.

        A weak sign counts only near another one: names that coincide by chance stand apart.
        `facts` have where they are in the item.
        """
        lines = self.lines_of(holder)
        placed = [
            (start, one)
            for one in found
            if not is_common(one.text)
            for start in _starts(lines.text, one)
        ]
        placed.sort(key=lambda place: place[0])
        counted = [(start, one) for start, one in placed if one.weight >= SURE]
        weak = [(start, one) for start, one in placed if one.weight < SURE]
        counted += _confirmed(weak)
        counted += ((start, one) for one, start in facts.items())
        if takeover is not None and takeover.share < SURE:
            near = [
                (start, one)
                for start, one in weak
                if takeover.start - _TOGETHER <= start <= takeover.end + _TOGETHER
            ]
            weight = sum(one.weight for one in {one for _, one in near})
            if weight + takeover.share >= SURE:
                counted += near
            else:
                takeover = None
        first: dict[Distinct, int] = {}
        for start, one in counted:
            first.setdefault(one, start)
        signs = [
            _Sign(
                one.text, lines.whole() if start < 0 else lines.around(start, start + len(one.text))
            )
            for one, start in sorted(first.items(), key=lambda place: -place[0].weight)
        ]
        signs += [_Sign(one.text, lines.around(one.start, one.end)) for one in cited]
        if takeover is not None:
            place = self._place(holder, takeover)
            signs += [_Sign(word, place) for word in takeover.words]
        return signs

    def facts(self, holder: int, held: Iterable[Distinct], reply: str) -> dict[Distinct, int]:
        """Return the short facts of a reply among what an item held, and where they are in it."""
        text = self.lines_of(holder).text
        found: dict[Distinct, int] = {}
        for one in held:
            if one.weight < SURE and may_be_fact(one.text):
                starts = [start for start in _starts(text, one) if start >= 0]
                if (start := fact_in(one.text, reply, text, starts)) is not None:
                    found[one] = start
        return found

    def lines_of(self, holder: int) -> Lines:
        """Return the lines of an item."""
        return self._lines(self._texts.shown(holder))

    def _place(self, holder: int, takeover: Takeover) -> Range:
        """Return the range of what was taken over; the words of JSON may stand elsewhere in it."""
        lines = self.lines_of(holder)
        if self._texts.at(TextPlace(holder)) == lines.text:
            return lines.around(takeover.start, takeover.end)
        low = lines.text.lower()
        starts = [start for word in takeover.words if (start := low.find(word)) >= 0]
        return lines.around(min(starts), max(starts)) if starts else lines.whole()


def _starts(text: str, one: Distinct) -> Sequence[int]:
    """Return where a string is in an item; -1 for what is only in it as JSON reads it."""
    for form in (one.text, json.dumps(one.text, ensure_ascii=False)[1:-1]):
        found = starts_of(form, text, most=_PLACES)
        if found:
            return found
    return [-1]


def _confirmed(weak: Sequence[tuple[int, Distinct]]) -> list[tuple[int, Distinct]]:
    """Return the weak signs that weigh enough together with others near them."""
    found: dict[int, tuple[int, Distinct]] = {}
    first = 0
    for i, (start, _) in enumerate(weak):
        while start - weak[first][0] > _TOGETHER:
            first += 1
        near = {one: (at, one) for at, one in weak[first : i + 1]}
        if sum(one.weight for one in near) >= SURE:
            found.update((id(place), place) for place in near.values())
    return list(dict.fromkeys(found.values()))


def _holders_of(part: SessionPart, holders: Holders, one: Distinct, call: int) -> Sequence[int]:
    """Return the items that held a string, the newest first, when nothing that the call had did.

    Of many that held it only the newest is returned.
    """
    had, absences = part.had(call), part.absences
    places = [place for place in holders.of(one) if place.position < had]
    gone = [
        place
        for place in places
        if place.absence < 0 and place.position in absences and part.absence(place.position, call)
    ]
    if not gone or any(
        holders.holds(place, one) for place in reversed(places) if _is_there(place, part, call)
    ):
        return ()
    held = [place.position for place in reversed(gone) if holders.holds(place, one)]
    return held if len(held) <= _FEW else held[:1]


def _is_there(place: TextPlace, part: SessionPart, call: int) -> bool:
    """Did a call have what is at a place: the item, or what was left of it."""
    position, number = place
    now = part.absence(position, call)
    return now is None if number < 0 else now is part.absences[position][number]
