"""The points of a history that a summary should hold, which of them a text lacks, and their texts.

A point is an order or a limit of the user, an exact value in the user's words, an open task of the
agent's list, or a changed file. Nothing is concluded: a point quotes, or names what a call did. A
text has an order if one sentence of it says the order, a task if two lines in a row have half of
its words, and exact values to the letter; of a path its last name is enough.

What a host's own compaction must not lose is quoted before it, right after it, and behind it, in
the order of the points. Where there is no room for all, prohibitions come first, then other orders,
exact values, open tasks and edited files, of each the newest.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from policyctx.compaction.assembly import History
from policyctx.compaction.comparison import Said, forbidden_in
from policyctx.compaction.extractive.files import FileState
from policyctx.compaction.extractive.languages import SHIPPED, cues_of
from policyctx.compaction.extractive.said import ASKED, Quote
from policyctx.compaction.extractive.summary import gathered
from policyctx.compaction.extractive.texts import shortened, values_in
from policyctx.compaction.extractive.writing import Group
from policyctx.policy.models.compaction import Carry

# The share of the words of a task that a text must have, and of what it is on the same as.
_ENOUGH, _SAME = 0.5, 0.6
_QUESTION = ("?", "？")
# A command of the agent's client, such as `/compact`.
_COMMAND = re.compile(r"/[\w:-]+")
_TASK = re.compile(r"\[(?P<state>[^\]]*)\] (?P<text>.*)")
_ENDED = frozenset(("completed", "complete", "done", "finished", "closed", "cancelled", "canceled"))
# A value that says something without the words around it.
_TELLING = re.compile(r"(?=.*[^\W\d_]).{4,}|\d[\d.,:]{2,}\d?|\d{4}-\d\d-\d\d")
# A size or a share that something has, not what it took.
_MEASURED = re.compile(
    r"(?:\b(?:is|are|to|of|ist|sind|beträgt)\b|[=:：是为])\s*"
    r"([$€£¥]\d[\d.,]*\d|\d[\d.,]*\s?(?:%|(?:[kKMGT]i?B|ms|s|seconds|minutes|Sekunden)\b|秒|分钟))"
)
# A name that is hardly a word of another sentence.
_COMPOUND = re.compile(r"\w[_-]\w|[a-z][A-Z]")
# A quotation of more words is a sentence.
_WORDS_OF_VALUE = 3


class PointKind(StrEnum):
    """What a point is."""

    ORDER = "order"
    VALUE = "exact value"
    TASK = "open task"
    FILE = "edited file"


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One thing that a summary should hold."""

    kind: PointKind
    text: str
    """One line: a quotation of the user, the task, or the path."""
    message: int
    """0-based position of its message in the history."""
    values: tuple[str, ...] = ()
    """The exact values in a quotation."""
    forbidden: tuple[str, ...] = ()
    """The clauses of an order that forbid something, without case and Markdown."""
    state: str = ""
    """Of a task as its list says it; of a file what was done with it last."""

    @property
    def forbids(self) -> bool:
        """Whether it is a prohibition."""
        return bool(self.forbidden)


def points_of(history: History) -> list[HistoryPoint]:
    """Return the points of a history, in order; what an earlier summary says is none.

    Raises `MessagesError` for what is no message list.
    """
    contents = gathered(history, cues_of(SHIPPED), is_stepped=False)
    found = [
        *filter(None, map(quoted, contents.said.get(Group.USER, ()))),
        *_tasks(contents.said.get(Group.TASKS, ())),
        *_files(contents.files),
    ]
    return sorted(found, key=lambda point: point.message)


def quoted(one: Quote) -> HistoryPoint | None:
    """Return the point that the user's words are; None if they neither bind nor hold a value."""
    text = one.text.partition(ASKED)[0]
    if one.pasted or one.inner or one.message < 0 or text.endswith(_QUESTION):
        return None
    if _COMMAND.fullmatch(text):
        return None
    cues = cues_of()
    # A spelled number, such as 五, is compared as a number.
    found = [v for v in dict.fromkeys(values_in(text)) if v.isdecimal() or not v.isnumeric()]
    values = tuple(v for v in found if len(v.split()) <= _WORDS_OF_VALUE and v[:1] != "[")
    if cues.standing.found_outside(cues.remarks, text):
        return HistoryPoint(PointKind.ORDER, text, one.message, values, forbidden_in(text))
    values = (*filter(_TELLING.fullmatch, values), *_MEASURED.findall(text))
    return HistoryPoint(PointKind.VALUE, text, one.message, values) if values else None


def _tasks(said: Iterable[Quote]) -> Iterator[HistoryPoint]:
    for one in said:
        found = _TASK.fullmatch(one.text)
        if found is not None and found["state"] not in _ENDED and one.message >= 0:
            yield HistoryPoint(PointKind.TASK, found["text"], one.message, state=found["state"])


def _files(states: Iterable[FileState]) -> Iterator[HistoryPoint]:
    for file in states:
        if file.is_new and file.message >= 0:
            yield HistoryPoint(PointKind.FILE, file.path, file.message, state=file.state)


class Seen(Said):
    """What a model was given, compared with points."""

    def lacks(self, point: HistoryPoint) -> bool:
        """Return whether the point is not in it."""
        if point.kind is PointKind.FILE:
            return not (self._has(point.text) or self._names(point.text))
        if point.kind is PointKind.TASK:
            return not self.is_about(point.text, _ENOUGH)
        if point.kind is PointKind.VALUE or self.lacked_values(point):
            return bool(self.lacked_values(point))
        # Several exact values say what a long sentence is about.
        names = [value for value in point.values if any(map(str.isalpha, value))]
        has_values = len(names) > 1 and not point.forbids
        return not (has_values or self.says(point.text))

    def lacked_values(self, point: HistoryPoint) -> tuple[str, ...]:
        """Return the exact values of a point that are not in it."""
        return tuple(value for value in point.values if not self._has(value))

    def is_on_the_same(self, point: HistoryPoint) -> bool:
        """Return whether it is on what a point is about: it has its words, or a value of it."""
        if point.kind is PointKind.VALUE:
            return len(self.lacked_values(point)) < len(point.values)
        if point.kind is PointKind.FILE:
            return not self.lacks(point)
        return self.is_about(point.text, _SAME)

    def _names(self, path: str) -> bool:
        """Return whether it has the name of a file without its suffix, as in `a_b.h and .c`."""
        name = path.rpartition("/")[2].rpartition(".")[0]
        return _COMPOUND.search(name) is not None and self.has(name)

    def _has(self, value: str) -> bool:
        name = value.rstrip("/").rpartition("/")[2] if "/" in value else value
        return self.has(value.removeprefix("@")) or (bool(name) and self.has(name))


# Characters of the text for the summary's request, of the one right after a compaction, and of what
# is delivered: of more than 10,000 Claude Code shows a preview alone.
_BEFORE, _RIGHT_AFTER, _MOST = 2_000, 1_500, 9_000
_LONGEST = 400
_RANK = {PointKind.ORDER: 1, PointKind.VALUE: 2, PointKind.TASK: 3, PointKind.FILE: 4}

_FOR_SUMMARY = "Quote these words of the user to the letter in the summary, in this order:"
_REMINDER = (
    "The conversation before was replaced by a summary. What the user forbade in it, in order; a"
    " later statement may have changed an earlier one:"
)
_MISSING = (
    "The summary of the earlier conversation lacks what is quoted here, in order; a later statement"
    " may have changed an earlier one:"
)


def before_compaction(points: Sequence[HistoryPoint]) -> str:
    """Return what is to be added to the instructions of a host's summary; empty for nothing."""
    said = [point for point in points if point.kind in {PointKind.ORDER, PointKind.VALUE}]
    lines = _lines(said, _line, _BEFORE - len(_FOR_SUMMARY))
    return "\n".join([_FOR_SUMMARY, *lines]) if lines else ""


def after_compaction(points: Sequence[HistoryPoint], newest: str, transcript: str) -> str:
    """Return the prohibitions, the user's newest message, and the transcript's path."""
    last = [f"The user's newest message: {shortened(newest, _LONGEST)}"] if newest else []
    where = [f"The whole conversation is in {transcript}"]
    room = _RIGHT_AFTER - sum(len(line) + 1 for line in (_REMINDER, *last, *where))
    lines = _lines([point for point in points if point.forbids], _line, room)
    return "\n".join([*([_REMINDER, *lines] if lines else []), *last, *where])


def carried(
    points: Iterable[HistoryPoint], seen: str, settings: Carry, count: Callable[[str], int]
) -> list[HistoryPoint]:
    """Return the points that `seen` lacks and that are delivered, in their order.

    `count` returns the tokens of a text.
    """
    given = Seen(seen)
    missing = [point for point in points if given.lacks(point)]
    files = [point for point in missing if point.kind is PointKind.FILE]
    left_out = {*files[: max(0, len(files) - settings.files)]}
    wanted = [point for point in missing if point not in left_out]
    return _fitting(wanted, lambda point: count(f"{_line(point)}\n"), settings.max_tokens)


def delivery(
    points: Sequence[HistoryPoint], place: Callable[[HistoryPoint], str], transcript: str
) -> str:
    """Return the text that delivers points, each with its place; empty for none."""
    where = f"The whole conversation is in {transcript}"
    room = _MOST - len(_MISSING) - len(where) - 2
    lines = _lines(points, lambda point: f"{_line(point)} [{place(point)}]", room)
    return "\n".join([_MISSING, *lines, where]) if lines else ""


def _line(point: HistoryPoint) -> str:
    state = f" ({point.state})" if point.state else ""
    return f"- {point.kind}: {shortened(point.text, _LONGEST)}{state}"


def _rank(point: HistoryPoint) -> tuple[int, int]:
    """Return what sorts points so that what is kept longest comes first."""
    return 0 if point.forbids else _RANK[point.kind], -point.message


def _fitting(
    points: Sequence[HistoryPoint], size: Callable[[HistoryPoint], int], room: int
) -> list[HistoryPoint]:
    """Return as many points as there is room for, in their order."""
    ranked = sorted(points, key=_rank)
    sums = zip(ranked, accumulate(map(size, ranked)), strict=True)
    taken = {point for point, sum_ in sums if sum_ <= room}
    return [point for point in points if point in taken]


def _lines(
    points: Sequence[HistoryPoint], line: Callable[[HistoryPoint], str], room: int
) -> list[str]:
    fitting = _fitting(points, lambda point: len(line(point)) + 1, room)
    return list(dict.fromkeys(map(line, fitting)))
