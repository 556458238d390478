"""Which lines of which file a call reads, and which results a later one shows again.

A result is superseded by a later one that stands whole: one of the same call with the same text, or
one that shows all of its lines of a file. An edit between the two may have moved the lines, so only
a read of the whole file counts then. An edit alone supersedes nothing: the old text and the edit
are all that the agent knows.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any, NamedTuple, TypeAlias, get_args

from policyctx.definitions.items import Item
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.placeholders import content_hash, line_count
from policyctx.policy.models.compaction import FileSource
from policyctx.policy.models.rules import LineFields

PathFields: TypeAlias = "str | Sequence[str]"
"""The field of a call's input that holds a path, or several: the first that a call has."""

# The headers of a patch, of the form that agents write and of a unified diff.
PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update) File:|\+\+\+ (?:b/)?)\s*(?P<path>[^\s/][^\r\n\t]*|/[^\r\n\t]+)",
    re.MULTILINE,
)


class ShownLines(NamedTuple):
    """A range of lines, counted from 1, both ends included."""

    first: int
    last: int | None = None
    """None for the last line of the file."""


def paths_in(value: str) -> list[str]:
    """Return the path in the field of a path, or the paths of a patch."""
    if "\n" not in value:
        return [value]
    return list(dict.fromkeys(match["path"].strip() for match in PATCHED.finditer(value)))


def lines_read(given: Mapping[str, Any], fields: LineFields | None) -> ShownLines:
    """Return the lines that a call reads; all where it names none."""
    if fields is None:
        return ShownLines(1)
    ends = next((given[name] for name in fields.range or () if name in given), None)
    if isinstance(ends, list) and len(ends) == 2:  # noqa: PLR2004 - a first and a last line
        numbers = {"first": ends[0], "last": ends[1]}
        return _range(_number(numbers, ("first",)), _number(numbers, ("last",)))
    first, last = _number(given, fields.first), _number(given, fields.last)
    if last is None and (count := _number(given, fields.count)) is not None:
        last = max(1, first or 1) + count - 1
    return _range(first, last)


def _range(first: int | None, last: int | None) -> ShownLines:
    start = max(1, first or 1)
    return ShownLines(start, None if last is None or last < start else last)


def _number(given: Mapping[str, Any], names: Sequence[str] | None) -> int | None:
    value = next((given[name] for name in names or () if name in given), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def path_in(given: Mapping[str, Any], fields: PathFields | None) -> str | None:
    """Return the path that a call's input holds in the first of the fields that it has."""
    for name in (fields,) if isinstance(fields, str) else fields or ():
        if name in given:
            path = given[name]
            return path if isinstance(path, str) and path else None
    return None


class _ReadLines(NamedTuple):
    """A result that shows lines of a file; they are in order of their first line."""

    first: int
    last: int
    position: int
    is_whole: bool
    """Whether the call names no lines."""

    @classmethod
    def of(cls, position: int, asked: ShownLines, text: str) -> _ReadLines:
        shown = asked.first + max(line_count(text), 1) - 1
        last = shown if asked.last is None else min(asked.last, shown)
        return cls(asked.first, last, position, asked == ShownLines(1))


class Superseded:
    """The results that a later one shows again, in a list that grows."""

    def __init__(
        self, policy: OffloadPolicy, items: Sequence[Item], partners: Mapping[int, int]
    ) -> None:
        self._policy, self._items, self._partners = policy, items, partners
        self.found: list[int] = []
        """Their positions, in the order in which they were found."""
        self.replaces: defaultdict[int, list[int]] = defaultdict(list)
        """Those that each result shows again."""
        self._by: dict[int, int] = {}
        self._reads: defaultdict[str, list[_ReadLines]] = defaultdict(list)
        """Of each file, those that no later one shows."""
        self._edited: dict[str, int] = {}
        self._same: dict[tuple[str, str, str], int] = {}
        self._looked_at = 0

    def extend(self, fate_of: Callable[[int], object]) -> None:
        """Look at what is new in the list; what has a fate no longer stands there whole."""
        for position in range(self._looked_at, len(self._items)):
            item = self._items[position]
            if item.tool is not None and item.inside is None:
                if item.kind == "tool_call":
                    self._note_edit(item, position)
                elif item.kind == "tool_result" and fate_of(position) is None:
                    self._note_result(item, position)
        self._looked_at = len(self._items)

    def by(self, position: int, fate_of: Callable[[int], object]) -> int | None:
        """Return the later result that stands and shows this one again, if this one stands."""
        found = self._by.get(position) if fate_of(position) is None else None
        while found is not None and fate_of(found) is not None:
            found = self._by.get(found)
        return found

    def shown_by(self, position: int) -> Iterator[int]:
        """Yield the results that this one shows again, also by one that it shows again."""
        todo = [position]
        while todo:
            found = self.replaces.get(todo.pop(), ())
            yield from found
            todo += found

    def _note_result(self, result: Item, position: int) -> None:
        call = self._partners.get(position)
        if call is None or result.media:
            return
        asked = self._items[call]
        self._note_edit(asked, position)
        same = asked.tool or "", content_hash(asked.text), content_hash(result.text)
        if (earlier := self._same.get(same)) is not None:
            self._supersede(earlier, position)
        self._same[same] = position
        fields = self._policy.path_fields(asked.tool or "")
        path = path_in(asked.input, fields) if fields and not result.error else None
        if path is not None:
            lines = lines_read(asked.input, self._policy.line_fields(asked.tool or ""))
            self._note_read(normpath(path), _ReadLines.of(position, lines, result.text))

    def _note_read(self, path: str, new: _ReadLines) -> None:
        reads, edited = self._reads[path], self._edited.get(path, -1)
        at = bisect_left(reads, (new.first,))
        shown = []
        while at < len(reads) and reads[at].first <= new.last:
            old = reads[at]
            is_as_before = edited < old.position or new.is_whole
            is_all = old.last <= new.last or (old.is_whole and new.is_whole)
            if is_as_before and is_all:
                shown.append(reads.pop(at))
            else:
                at += 1
        for old in sorted(shown, key=lambda one: one.position):
            self._supersede(old.position, new.position)
        insort(reads, new)

    def _supersede(self, earlier: int, later: int) -> None:
        if earlier not in self._by:
            self._by[earlier] = later
            self.found.append(earlier)
            self.replaces[later].append(earlier)

    def _note_edit(self, call: Item, position: int) -> None:
        """Note that a call changes files, with it and with its result."""
        given: dict[str, Any] | None = None
        for source in get_args(FileSource):
            fields = () if source == "read" else self._policy.path_fields(call.tool or "", source)
            if fields:
                given = call.input if given is None else given
                for path in paths_in(path_in(given, fields) or ""):
                    self._edited[normpath(path)] = position
