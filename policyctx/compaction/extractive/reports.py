"""The reports with which the agent closed its tasks, line by line, and a line for each other task.

A long last message of a turn is what the user asked for: a plan, a review, an account of the work.
Its headings, entries and tables say what belongs together, so it stands as it was written. Where
there is not room for all of it, each of its sections loses its last lines first.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.lines import BULLET, SAYS
from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened
from policyctx.compaction.extractive.statements import PROGRAM, USER, values_in, weight_of
from policyctx.tokens.words import CJK

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Digest
    from policyctx.compaction.extractive.revisions import Told
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call
    from policyctx.definitions.items import Item

# Words of a message that is a report; fewer are enough for one of several lines.
_LONG, _LONG_IN_LINES, _LINES = 120, 100, 6
_CJK_PER_WORD = 2
_MOST_REPORTS, _MOST_LINES, _MOST_TASKS = 4, 300, 20
_LONGEST_LINE, _LONGEST_TASK, _LONGEST_RESULT = 480, 60, 200
# Words of a reply that says nothing of what it agrees to.
_SHORT_REPLY = 2
# What is between a task and its result, and what the result weighs more if it says the end.
_RESULT, _ENDED = " => ", 3.0
_CUT = " …"
_NO_RESULT = ("?", "？", ":", "：", "…")
_ENDS_SENTENCE = (".", "!", "。", "！")
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


class Closed(NamedTuple):
    """What the agent closed: the lines of its newest reports, and a line for each other task."""

    report: tuple[Statement, ...]
    tasks: tuple[Statement, ...]


def closed_of(  # noqa: PLR0917 - all that a conversation holds
    earlier: Digest,
    items: Sequence[Item],
    said: Sequence[Said],
    calls: Sequence[Call],
    cues: Cues,
    rejected: Container[int] = (),
) -> Closed:
    """Return the newest reports and the finished tasks, the newest of each first.

    The first line of each report has as a note the words of the user that it answers. What the user
    `rejected`, by message, is none. `earlier` is what earlier summaries hold. A task that closed
    with fewer words than a report, or whose report is too old, is one line.
    """
    closing = [item for item in _closing(items, calls) if item.message not in rejected]
    asked = earlier.told[-1].text if earlier.told else ""
    long = [item for item in reversed(closing) if _is_long(item.text)]
    new = [list(_lines_of(item, said, asked)) for item in long]
    # What is reported twice in the same words stands once.
    known: dict[str, None] = {}
    reports: list[list[Statement]] = []
    tasks: list[Statement] = []
    for report in [*new, *reports_in(earlier.report)]:
        lines = [one for one in report if one.text not in known]
        if lines and len(reports) < _MOST_REPORTS:
            reports.append(lines)
            known |= dict.fromkeys(one.text for one in lines)
        elif lines and lines[0].answers:
            tasks += _task(lines[0].answers, lines, lines[0].source, cues)
    tasks += _short_tasks(closing, said, calls, asked, cues)
    tasks += _left_task(earlier, items, cues)
    tasks.sort(key=lambda one: -one.source)
    once = {one.text: one for one in [*tasks, *earlier.tasks]}
    lines = [line for report in reports for line in report]
    return Closed(tuple(lines), tuple(once.values())[:_MOST_TASKS])


def _short_tasks(
    closing: Sequence[Item],
    said: Sequence[Said],
    calls: Iterable[Call],
    asked: str,
    cues: Cues,
) -> Iterator[Statement]:
    """Yield the tasks that the agent worked on and closed with a few words, except the last."""
    by_message: dict[int, list[Said]] = {}
    for one in said:
        by_message.setdefault(one.message, []).append(one)
    asking = [one.message for one in said if one.speaker == USER]
    calling = sorted(call.message for call in calls)
    for item in closing:
        at = bisect_left(asking, item.message)
        start = asking[at - 1] if at else -1
        worked = bisect_left(calling, item.message) > bisect_left(calling, start)
        if _is_long(item.text) or not worked or at == len(asking):
            continue
        task = _task_words(by_message[start], asked) if at else asked
        lines = [one.statement for one in by_message.get(item.message, ()) if not one.plans]
        yield from _task(task, lines, item.message, cues)


def _left_task(earlier: Digest, items: Sequence[Item], cues: Cues) -> Iterator[Statement]:
    """Yield the task that an earlier summary ends with, if the user went on after it."""
    is_left = bool(items) and items[0].kind == "user_message" and items[0].author != PROGRAM
    words = [one for one in earlier.done if one.text.endswith(_ENDS_SENTENCE)]
    if is_left and words and earlier.told and not (earlier.next or earlier.open):
        yield from _task(earlier.told[-1].text, words, -1, cues)


def _task(asked: str, lines: Iterable[Statement], source: int, cues: Cues) -> Iterator[Statement]:
    """Yield a line with a task and its result, the line that says most; none if none says it."""
    task = _begun(asked)
    said = [
        (weight + (_ENDED if _ends(one.text, cues) else 0), one.text)
        for one in lines
        if task and not one.text.endswith(_NO_RESULT) and not is_heading(one.text)
        and (weight := weight_of(one, cues, values_in(one.text), agent=True)) >= 0
    ]  # fmt: skip
    weight, result = max(said, key=lambda pair: pair[0], default=(0.0, ""))
    if weight > 0:
        text = f"{task}{_RESULT}{shortened(one_line(result), _LONGEST_RESULT)}"
        yield Statement(text, source=source)


def still_true(
    tasks: Iterable[Statement], told: Sequence[Told], standing: Sequence[Told]
) -> tuple[Statement, ...]:
    """Return the tasks without those that were asked or closed with what no longer holds.

    `told` are all statements, `standing` those that hold.
    """
    stand = {one.statement.text for one in standing}
    taken = [one for one in told if one.statement.text not in stand]
    if not taken:
        return tuple(tasks)
    held = {value.text for text in stand for value in values_in(text)}
    stale = {value.text for one in taken for value in one.values} - held
    texts = tuple(one.statement.text for one in taken)

    def holds(task: Statement) -> bool:
        asked, _, result = task.text.partition(_RESULT)
        begun = asked.removesuffix(_CUT)
        repeated = any(text.startswith(begun) for text in texts) or result in texts
        return not repeated and stale.isdisjoint(value.text for value in values_in(task.text))

    return tuple(filter(holds, tasks))


def _begun(text: str) -> str:
    """Return the beginning of what was asked."""
    line = one_line(text).replace(_RESULT, " = > ")
    return line if len(line) <= _LONGEST_TASK else line[:_LONGEST_TASK].rstrip() + _CUT


def _ends(text: str, cues: Cues) -> bool:
    return cues.finished.found_in(text) or cues.remedies.found_in(text)


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
    task = _task_words([one for one in before if one.message == before[-1].message], asked)
    for i, text in enumerate(_structured(item.text)):
        if i == _MOST_LINES:
            return
        line = shortened(one_line(text), _LONGEST_LINE)
        words = "" if i else shortened(one_line(task), _LONGEST_TASK)
        yield Statement(line, answers=words, source=item.message)


def _task_words(said: Sequence[Said], asked: str) -> str:
    """Return what the user asked first in a message; of a short reply what it agrees to."""
    typed = [one for one in said if not one.pasted] or said
    if not typed:
        return asked
    first = typed[0]
    is_reply = first.statement.answers and len(first.text.split()) <= _SHORT_REPLY
    return first.statement.answers if is_reply else first.text


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
