"""The reports with which the agent closed its tasks, line by line.

A long last message of a turn is what the user asked for: a plan, a review, an account of the work.
Its headings, entries and tables say what belongs together, so it stands as it was written. Where
there is not room for all of it, each of its sections loses its last lines first.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.lines import BULLET, SAYS
from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened
from policyctx.compaction.extractive.statements import USER
from policyctx.tokens.words import CJK

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.digest import Digest
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call
    from policyctx.definitions.items import Item

# Words of a message that is a report; fewer are enough for one of several lines.
_LONG, _LONG_IN_LINES, _LINES = 120, 100, 6
_CJK_PER_WORD = 2
_MOST_REPORTS, _MOST_LINES = 4, 300
_LONGEST_LINE, _LONGEST_TASK = 480, 60
# Lines of code that are shown of each fence, and in a report at most.
_MOST_OF_FENCE, _MOST_CODE = 12, 24
_SAYING = ("user_message", "assistant_message")
_FENCE = ("```", "~~~")
_HEADING = re.compile(r"#{1,6}\s+\S|\*\*[^*]{1,80}\*\*[:：]?$")
_TABLE_RULE = re.compile(r"[|\s:+=-]+$")
_ROW = "|"
_NESTED = "· "
_SIGN = re.compile(r"\s*[-*+•]\s+")
_ENDS_LEAD = (":", "：")


def reports_of(
    earlier: Digest,
    items: Sequence[Item],
    said: Sequence[Said],
    calls: Iterable[Call],
    rejected: Container[int] = (),
) -> tuple[Statement, ...]:
    """Return the lines of the newest reports, the newest report first.

    The first line of each has as a note the words of the user that it answers. What the user
    `rejected`, by message, is none. `earlier` is what earlier summaries hold.
    """
    closing = [item for item in _closing(items, calls) if item.message not in rejected]
    asked = earlier.told[-1].text if earlier.told else ""
    new = [list(_lines_of(item, said, asked)) for item in reversed(closing) if _is_long(item.text)]
    # What is reported twice in the same words stands once.
    known: dict[str, None] = {}
    reports: list[list[Statement]] = []
    for report in [*new, *reports_in(earlier.report)]:
        lines = [one for one in report if one.text not in known]
        if lines and len(reports) < _MOST_REPORTS:
            reports.append(lines)
            known |= dict.fromkeys(one.text for one in lines)
    return tuple(line for report in reports for line in report)


def reports_in(lines: Iterable[Statement]) -> list[list[Statement]]:
    """Return the lines of each report: its first has a note."""
    reports: list[list[Statement]] = []
    for line in lines:
        if line.answers or not reports:
            reports.append([])
        reports[-1].append(line)
    return reports


def is_heading(text: str) -> bool:
    """Whether a line of a report is a heading."""
    return _HEADING.match(text) is not None


def leads(text: str, after: str) -> bool:
    """Whether a line of a report says little without the one after it."""
    is_head_of_table = text.startswith(_ROW) and after.startswith(_ROW)
    return is_heading(text) or is_head_of_table or text.rstrip("*_ ").endswith(_ENDS_LEAD)


def is_row(text: str) -> bool:
    """Whether a line of a report is one of a table."""
    return text.startswith(_ROW)


def _closing(items: Sequence[Item], calls: Iterable[Call]) -> Iterator[Item]:
    """Yield the agent's last words before the user spoke, if no call came after them."""
    calling = sorted(call.message for call in calls)
    spoken = [item for item in items if item.kind in _SAYING]
    at = 0
    for item, after in zip_longest(spoken, spoken[1:]):
        if item.kind != "assistant_message" or (after and after.kind == "assistant_message"):
            continue
        while at < len(calling) and calling[at] < item.message:
            at += 1
        if at == len(calling) or (after is not None and calling[at] >= after.message):
            yield item


def _is_long(text: str) -> bool:
    words = len(text.split()) + len(CJK.findall(text)) // _CJK_PER_WORD
    lines = sum(1 for line in text.split("\n") if SAYS.search(line))
    return words >= _LONG or (words >= _LONG_IN_LINES and lines >= _LINES)


def _lines_of(item: Item, said: Sequence[Said], asked: str) -> Iterator[Statement]:
    before = [one for one in said if one.speaker == USER and one.message < item.message]
    last = [one for one in before if one.message == before[-1].message]
    typed = [one for one in last if not one.pasted] or last
    task = shortened(one_line(typed[0].text if typed else asked), _LONGEST_TASK)
    for i, text in enumerate(_structured(item.text)):
        if i == _MOST_LINES:
            return
        line = shortened(one_line(text), _LONGEST_LINE)
        yield Statement(line, answers="" if i else task, source=item.message)


def _structured(text: str) -> Iterator[str]:
    """Yield the lines that say something; a paragraph as its sentences."""
    fenced, left, code = False, 0, 0
    for line in text.split("\n"):
        words = line.strip()
        if words.startswith(_FENCE):
            fenced, left = not fenced, _MOST_OF_FENCE
        elif not SAYS.search(words) or _TABLE_RULE.match(words):
            continue
        elif fenced:
            left, code = left - 1, code + 1
            if left >= 0 and code <= _MOST_CODE:
                yield words
        elif BULLET.match(line):
            nested = _NESTED if line.startswith((" ", "\t")) else ""
            yield nested + (_SIGN.sub("", line, count=1) if _SIGN.match(line) else words)
        elif words.startswith(_ROW) or _HEADING.match(words):
            yield words
        else:
            yield from (one.text for one in sentences_in(words))
