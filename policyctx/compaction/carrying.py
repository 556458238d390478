"""What a host's own compaction must not lose: texts before it, right after it, and behind it.

Each text quotes points of the history, in their order. Where there is no room for all, prohibitions
come first, then other orders, exact values, open tasks and edited files, of each the newest.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, takewhile

from policyctx.compaction.extractive.texts import shortened
from policyctx.compaction.points import HistoryPoint, PointKind, Seen
from policyctx.policy.models.compaction import Carry

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
    lines = _fitting(said, _line, _BEFORE - len(_FOR_SUMMARY))
    return "\n".join([_FOR_SUMMARY, *lines]) if lines else ""


def after_compaction(points: Sequence[HistoryPoint], newest: str, transcript: str) -> str:
    """Return the prohibitions, the user's newest message, and the transcript's path."""
    last = [f"The user's newest message: {shortened(newest, _LONGEST)}"] if newest else []
    where = [f"The whole conversation is in {transcript}"]
    room = _RIGHT_AFTER - sum(len(line) + 1 for line in (_REMINDER, *last, *where))
    lines = _fitting([point for point in points if point.forbids], _line, room)
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
    ranked = _ranked([point for point in missing if point not in left_out])
    tokens = accumulate(count(f"{_line(point)}\n") for point in ranked)
    taken = {one for one, sum_ in zip(ranked, tokens, strict=True) if sum_ <= settings.max_tokens}
    return [point for point in missing if point in taken]


def delivery(
    points: Sequence[HistoryPoint], place: Callable[[HistoryPoint], str], transcript: str
) -> str:
    """Return the text that delivers points, each with its place; empty for none."""
    where = f"The whole conversation is in {transcript}"
    room = _MOST - len(_MISSING) - len(where) - 2
    lines = _fitting(points, lambda point: f"{_line(point)} [{place(point)}]", room)
    return "\n".join([_MISSING, *lines, where]) if lines else ""


def _line(point: HistoryPoint) -> str:
    state = f" ({point.state})" if point.state else ""
    return f"- {point.kind}: {shortened(point.text, _LONGEST)}{state}"


def _ranked(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """Return the points, what is kept longest first."""
    newest = sorted(points, key=lambda point: point.message, reverse=True)
    return sorted(newest, key=lambda point: 0 if point.forbids else _RANK[point.kind])


def _fitting(
    points: Sequence[HistoryPoint], line: Callable[[HistoryPoint], str], room: int
) -> list[str]:
    """Return the lines of as many points as the characters have room for, in their order."""
    ranked = _ranked(points)
    sizes = accumulate(len(line(point)) + 1 for point in ranked)
    count = sum(1 for _ in takewhile(lambda size: size <= room, sizes))
    taken = {*ranked[:count]}
    return list(dict.fromkeys(line(point) for point in points if point in taken))
