"""Finding text in contents of any length, in memory that does not grow with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.store.streaming import pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree

# How many characters of a long line are shown before and after what was found in it.
_AROUND = 120


@dataclass(frozen=True, slots=True)
class Match:
    """A line in which a text was found."""

    entry: Entry
    line: int
    """From 1 on; a line ends with a line feed."""
    text: str
    """The line, or what is around the match where it is long."""


def matches(
    tree: Tree, entries: Iterable[Entry], text: str, *, ignore_case: bool
) -> Iterator[Match]:
    """Yield every line of these contents that has the text, each file once.

    A text of several lines is found where it begins. Raises `ValueError` for an empty text, and
    `OSError`; what has gone meanwhile is passed over.
    """
    if not text:
        raise ValueError("an empty text is everywhere")
    seen: set[str] = set()
    for entry in entries:
        if entry.path in seen:
            continue
        seen.add(entry.path)
        finder = Finder(text, ignore_case=ignore_case)
        try:
            for piece in pieces(tree, entry.path, entry.format):
                for line, shown in finder.found(piece):
                    yield Match(entry, line, shown)
            for line, shown in finder.found(None):
                yield Match(entry, line, shown)
        except FileNotFoundError:
            continue


class Finder:
    """Takes a text piece by piece and keeps only as much as a match and its line need."""

    def __init__(self, wanted: str, *, ignore_case: bool) -> None:
        self._wanted = wanted
        self._pattern = re.compile(re.escape(wanted), re.IGNORECASE) if ignore_case else None
        self._window = ""
        self._searched = 0
        self._line = 1
        self._shown_line = 0

    def found(self, piece: str | None) -> Iterator[tuple[int, str]]:
        """Yield line and excerpt of what a piece brings to light; None ends the text."""
        self._window += piece or ""
        behind = 0 if piece is None else len(self._wanted) + _AROUND
        limit = max(len(self._window) - behind, self._searched)
        line, counted = self._line, 0
        for start in self._starts(limit):
            line += self._window.count("\n", counted, start)
            counted = start
            if line != self._shown_line:
                self._shown_line = line
                yield line, self._excerpt(start)
        kept = max(limit - _AROUND, 0)
        self._line += self._window.count("\n", 0, kept)
        self._window = self._window[kept:]
        self._searched = limit - kept

    def _starts(self, limit: int) -> Iterator[int]:
        if self._pattern is not None:
            for match in self._pattern.finditer(self._window, self._searched):
                if match.start() >= limit:
                    return
                yield match.start()
            return
        start = self._window.find(self._wanted, self._searched)
        while 0 <= start < limit:
            yield start
            start = self._window.find(self._wanted, start + len(self._wanted))

    def _excerpt(self, start: int) -> str:
        end = start + len(self._wanted)
        begin = max(self._window.rfind("\n", 0, start) + 1, start - _AROUND)
        line_end = self._window.find("\n", end)
        line_end = line_end if line_end >= 0 else len(self._window)
        return self._window[begin : min(line_end, end + _AROUND)]
