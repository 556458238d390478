"""The lines of a large file that come back: those read last, and those around its last edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from policyctx.compaction.file_access import Lines, header
from policyctx.tokens.counter import TokenCounter

# Lines shown before and behind an edit.
_AROUND_EDIT = 5
# Tokens of the line that leads a range, about.
_HEADER_TOKENS = 16


class Windows(NamedTuple):
    """Ranges of the lines of a file, as text."""

    text: str
    """Each range behind a line with its numbers; "" for none."""
    ranges: tuple[tuple[int, int], ...] = ()
    """In the order of the file; first and last line, from 1."""


def windows(
    content: str, seen: Iterable[Lines | str], max_tokens: int, counter: TokenCounter
) -> Windows:
    """Return the lines of `content` that were seen, the newest of them, in `max_tokens` tokens.

    `seen` has the newest first: ranges of lines, and texts whose place is looked up. A range that
    does not fit is cut at its end; what is older is left out.
    """
    lines = content.splitlines(keepends=True)
    chosen: set[int] = set()
    left = max_tokens
    for range_ in _ranges(content, len(lines), seen):
        new = [at for at in range_ if at not in chosen]
        if not new:
            continue
        left -= _HEADER_TOKENS
        taken = _fitting(new, lines, left, counter)
        chosen.update(taken)
        left -= sum(counter.count_many([lines[at] for at in taken]))
        if len(taken) < len(new):
            break
    return _shown(lines, chosen, max_tokens, counter)


def _ranges(content: str, count: int, seen: Iterable[Lines | str]) -> Iterator[range]:
    """Yield the indices of the lines of each piece that is in the file."""
    for one in seen:
        if isinstance(one, Lines):
            yield range(
                min(one.first - 1, count), count if one.last is None else min(one.last, count)
            )
        elif (at := content.find(one)) >= 0:
            first = content.count("\n", 0, at)
            last = first + one.rstrip("\n").count("\n")
            yield range(max(0, first - _AROUND_EDIT), min(count, last + 1 + _AROUND_EDIT))


def _fitting(
    indices: Sequence[int], lines: Sequence[str], room: int, counter: TokenCounter
) -> list[int]:
    """Return the first of these lines that fit into so many tokens together."""
    taken: list[int] = []
    step = 200  # a range may be a whole large file: only as many lines are counted as may fit
    for start in range(0, len(indices), step):
        part = indices[start : start + step]
        for at, tokens in zip(part, counter.count_many([lines[i] for i in part]), strict=True):
            if tokens > room:
                return taken
            taken.append(at)
            room -= tokens
    return taken


def _shown(
    lines: Sequence[str], chosen: set[int], max_tokens: int, counter: TokenCounter
) -> Windows:
    """Return the chosen lines; lines counted together may have a few tokens more than alone."""
    while chosen:
        ranges = _runs(chosen)
        text = "".join(_written(lines, first, last) for first, last in ranges).removesuffix("\n")
        if counter.count(text) <= max_tokens:
            return Windows(text, tuple(ranges))
        chosen = chosen - {max(chosen)}
    return Windows("")


def _runs(chosen: set[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive indices, as first and last line from 1."""
    runs = groupby(enumerate(sorted(chosen)), key=lambda pair: pair[1] - pair[0])
    found = ([at for _, at in run] for _, run in runs)
    return [(run[0] + 1, run[-1] + 1) for run in found]


def _written(lines: Sequence[str], first: int, last: int) -> str:
    text = "".join(lines[first - 1 : last])
    end = "" if text.endswith("\n") else "\n"
    return f"{header(Lines(first, last), len(lines))}\n{text}{end}"
