"""What shows that an agent needed an item: it asked again, or it used what only the item held.

What it used is a rare string, or a line of a file that a reply cites by its number.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from policyctx.errors import present
from policyctx.replay.regret.asked import Input, asked_again
from policyctx.replay.regret.sent import SMALL, SentStrings, SentText, TextPlace, Texts
from policyctx.replay.regret.strings import Lines, Memo, Range, start_of, without
from policyctx.replay.simulated import Need
from policyctx.replay.timeline import Replies, SessionPart

# So many strings are shown for one item and one call.
_SHOWN = 3


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
            absence = present(part.absence_number(position, one.need.call))
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


def _asked_again(part: SessionPart, replies: Replies, memo: Memo) -> Iterator[_Found]:
    for again in asked_again(part, replies, memo):
        item = part.items[again.reply]
        need = Need("asked again", again.call, item.item_id, (item.text,), again.ranges)
        yield _Found(again.result, need, again.own)


def _used(part: SessionPart, replies: Replies, memo: Memo) -> Iterator[_Found]:
    """Yield the items that alone held what a reply says, each reply by itself."""
    texts, lines_in = Texts(part, memo), memo.of(Lines)
    knowledge, sent = SentText(part, texts, memo), SentStrings(part, texts)
    citations = Citations(part, texts, knowledge, memo)
    for reply, call in replies:
        lost: dict[int, list[str]] = defaultdict(list)
        newest: set[int] = set()
        for holders, said in sent.lost(reply, call):
            if not knowledge.has_parts(said, call):
                newest.add(max(holders))
                for holder in holders:
                    lost[holder].append(said)
        cited: dict[int, list[Cited]] = defaultdict(list)
        for found in citations.of(reply, call):
            newest.add(found[0].position)
            for line in found:
                cited[line.position].append(line)
        newer: set[str] = set()
        for holder in sorted({*lost, *cited}, reverse=True):
            lines = lines_in(texts.shown(holder))
            shared = dict(_shared(texts, lines, reply, holder))
            placed = dict(_in_blocks_of(lost[holder], shared, lines))
            lined = {line.text: lines.around(line.start, line.end) for line in cited[holder]}
            strings = [*_longest(lost[holder], placed)]
            other = [one for one in lined if not any(one in s or s in one for s in strings)]
            # One string alone shows only that the newest item that held it is needed.
            if holder not in newest and len({*strings, *other}) == 1:
                continue
            signs = (*strings, *lined)
            placed |= lined
            ranges = lines.joined(placed.values())
            own = lines.joined(placed[text] for text in placed.keys() - newer)
            newer.update(placed)
            shown = tuple(dict.fromkeys(signs))[:_SHOWN]
            yield _Found(holder, Need("used", call, part.items[reply].item_id, shown, ranges), own)


def _shared(texts: Texts, lines: Lines, reply: int, holder: int) -> Iterator[tuple[str, Range]]:
    """Yield the rare strings of a reply that an item holds, and what is to be read for each."""
    held = texts.held(TextPlace(holder))
    for key, said in texts.strings_written(reply).items():
        if key in held:
            yield said, _place(lines, held[key])


def _in_blocks_of(
    lost: Sequence[str], shared: Mapping[str, Range], lines: Lines
) -> Iterator[tuple[str, Range]]:
    """Yield the lost strings, and what else a reply says of the lines around them.

    Who reads a lost string again reads these lines too, and not what is far from it.
    """
    blocks = {lines.block_of(shared[text]) for text in lost}
    for text, place in shared.items():
        if lines.block_of(place) in blocks:
            yield text, place


def _place(lines: Lines, held: str) -> Range:
    """Return what is to be read again for a string; JSON may have it with escapes."""
    for form in (held, json.dumps(held, ensure_ascii=False)[1:-1]):
        # An escaped end of a line before it looks like a letter of it.
        start = max(start_of(form, lines.text), lines.text.find(form))
        if start >= 0:
            return lines.around(start, start + len(form))
    return lines.whole()


def _longest(lost: Sequence[str], places: Mapping[str, Range]) -> Iterator[str]:
    """Yield the strings without the parts of a longer one at the same place."""
    longest: dict[Range, str] = {}
    for text in lost:
        longest[places[text]] = max(text, longest.get(places[text], ""), key=len)
    for text in lost:
        if text == longest[places[text]] or text not in longest[places[text]]:
            yield text


_FILE = r"([\w.-]*\w\.[A-Za-z]\w{0,4})"
_LINES = r"(\d{2,6})(?:\s?[-\u2013]\s?(\d{2,6}))?"
_FIELD = r"[\"']?,?\s(?:--|[\"'])?line(?:[\"']?[=:])?\s?"
# A name is looked for where it begins, so that a long word is read once.
_IN_TEXT = re.compile(rf"(?<![\w.-]){_FILE}(?::|#L|\(| L|`?,? \(?lines? |:? ?~|{_FIELD})~?{_LINES}")
_BEFORE_FILE = re.compile(rf"\blines? {_LINES} (?:of|in) `?(?:[\w.-]*/)*{_FILE}")
# As `nl` and `grep -n` write the number of a line.
_BEFORE_LINE = r"(?:^|\n|\\n|\\\"|\"|[:-])[ \t]*({})(?:[\t\u2192:|-]|\\t)"
# Round numbers, and those behind them, end with one of these digits.
_ROUND = {0, 1, 5}
# A diff names the new file, and the number that the first line of each hunk has in it.
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@|\+\+\+ (.+)")


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
        self._results = [
            position
            for position in sorted(part.absences, reverse=True)
            if part.items[position].kind == "tool_result" and position in part.partners
        ]
        """The results of calls that were out at any time, newest first."""

    def of(self, reply: int, call: int) -> Iterator[Sequence[Cited]]:
        """Yield a line that a reply took from items which its call did not have, newest first."""
        for file, number in self._said(reply):
            found = list(self._held(file, number, call))
            if found and not self._knowledge.has_line(file, number, call):
                yield found

    def _said(self, reply: int) -> Sequence[tuple[str, int]]:
        item = self._part.items[reply]
        said = dict.fromkeys(self._numbers_in(self._texts.written(reply)))
        if item.kind == "tool_call":
            given = self._input(item.tool, item.text)
            lines = [n for n in given.line_numbers if n >= SMALL and n % 10 not in _ROUND]
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
                start = start_of(said, text)
                found = [(start, start + len(said))] if start >= 0 else []
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


def _numbers_in(text: str) -> tuple[tuple[str, int], ...]:
    """Return the files that a text names with the number of a line, and the number."""
    found = [(file, numbers) for file, *numbers in _IN_TEXT.findall(text)]
    found += [(file, numbers) for *numbers, file in _BEFORE_FILE.findall(text)]
    return tuple((file, int(number)) for file, numbers in found for number in numbers if number)


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
