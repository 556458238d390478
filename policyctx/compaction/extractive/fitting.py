"""The limits of a summary, and the longest prefix of an order of units that fits within them.

A limit counts headings, labels and the line that says what was left out. Only the last unit may be
shortened, and only a long one: half of a short sentence says something else than the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from policyctx.compaction.extractive.ranking import Unit
from policyctx.compaction.extractive.texts import CUT
from policyctx.compaction.extractive.writing import Group, Layout, LeftOut
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.encoders import CJK, words_in

# Words of the shortest unit that may be shortened, and the share of it that has to stay.
_LONG, _LEAST_SHARE = 30, 0.5
# Units that are measured at once.
_MEASURED_AT_ONCE = 64
_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})\S)+")
_PART_OF_WORD = re.compile(r"[A-Za-z0-9_]+$")
_QUOTES = (Group.USER, Group.AGENT, Group.LAST, Group.EARLIER)


class Limit(NamedTuple):
    """A number of words, tokens or characters that a summary may have at most."""

    most: int
    sizes: Callable[[Sequence[str]], list[int]]
    """The size of each text."""
    start: Callable[[str, int], str]
    """The start of a text that has at most this size."""

    def lines(self, texts: Sequence[str]) -> list[int]:
        """Return the sizes of texts that are written as lines."""
        return self.sizes([f"{text}\n" for text in texts])

    def without(self, text: str) -> Limit:
        """Return what the text leaves of the limit, at least 1."""
        return self._replace(most=max(1, self.most - self.sizes([text])[0])) if text else self

    def holds(self, text: str) -> bool:
        """Whether the text is within the limit."""
        return self.sizes([text])[0] <= self.most


def words_limit(most: int) -> Limit:
    """Return a limit of words; a CJK character is one."""
    return Limit(most, lambda texts: [words_in(text) for text in texts], first_words)


def chars_limit(most: int) -> Limit:
    """Return a limit of characters."""
    return Limit(most, lambda texts: [len(text) for text in texts], lambda text, most: text[:most])


def tokens_limit(most: int, counter: TokenCounter) -> Limit:
    """Return a limit of tokens, as the counter counts them."""
    return Limit(most, counter.count_many, counter.truncate)


def first_words(text: str, most: int) -> str:
    """Return the text up to its `most`-th word."""
    if words_in(text) <= most:
        return text
    ends = [found.end() for found in _WORD.finditer(text)]
    return text[: ends[most - 1]] if most > 0 else ""


class SummaryLine(NamedTuple):
    """A line of a summary, or an entry of two lines; a heading or a label has no unit."""

    text: str
    unit: Unit | None = None


def lines_of(units: Sequence[Unit], layout: Layout, left_out: LeftOut) -> Iterator[SummaryLine]:
    """Yield the lines of a summary of these units, section by section."""
    sections: dict[int, list[Unit]] = {}
    for unit in sorted(units, key=lambda one: one.place):
        if (place := layout.place_of(unit.group, unit.text)) is not None:
            sections.setdefault(place, []).append(unit)
    for i, place in enumerate(sorted(sections)):
        if i:
            yield SummaryLine("")
        if heading := layout.heading(place):
            yield SummaryLine(heading)
        label: Group | None = None
        for unit in sections[place]:
            if unit.group is not label:
                label = unit.group
                yield SummaryLine(str(label))
            yield SummaryLine(unit.text, unit)
    if left_out.lines:
        yield SummaryLine(str(left_out))


def fitted(
    order: Sequence[Unit], limits: Sequence[Limit], layout: Layout, before: LeftOut, archive: str
) -> list[SummaryLine]:
    """Return the lines of the longest prefix of the order that fits within all limits.

    `before` is what earlier summaries left out; `archive` names what holds the messages.
    """
    prefix = _Prefix(order, limits, layout, before, archive)
    kept = prefix.longest()
    units = [*order[:kept]]
    if kept < len(order) and (shortened := prefix.shortened(kept)) is not None:
        units.append(shortened)
    while units:
        lines = list(lines_of(units, layout, prefix.left_out(kept)))
        # Of tokens the whole can have more than its lines, as where two lines meet.
        text = "\n".join(line.text for line in lines)
        if all(limit.holds(text) for limit in limits):
            return lines
        units.pop()
    return []


class _Prefix:
    """The sizes of the prefixes of an order, measured only as far as one fits."""

    def __init__(
        self,
        order: Sequence[Unit],
        limits: Sequence[Limit],
        layout: Layout,
        before: LeftOut,
        archive: str,
    ) -> None:
        self._order, self._limits, self._layout = order, limits, layout
        self._before, self._archive = before, archive
        self._users = sum(unit.user for unit in order)
        self._used: list[list[int]] = [[0] * len(limits)]
        self._users_kept = [0]
        most = LeftOut(before.lines + self._users, (archive,) * 3 if archive else ())
        self._note = [sum(limit.lines([str(most)])) if self._users else 0 for limit in limits]

    def left_out(self, kept: int) -> LeftOut:
        """Return the lines of the user that a summary of the first `kept` units leaves out."""
        new = self._users - self._users_kept[kept]
        if not new:
            return self._before
        archives = (*self._before.archives, *((self._archive,) if self._archive else ()))
        return LeftOut(self._before.lines + new, tuple(dict.fromkeys(archives)))

    def longest(self) -> int:
        """Return the length of the longest prefix that fits."""
        longest, seen = 0, set[object]()
        measured = iter(self._order)
        while chunk := list(islice(measured, _MEASURED_AT_ONCE)):
            sizes = [limit.lines([unit.text for unit in chunk]) for limit in self._limits]
            for i, unit in enumerate(chunk):
                around = self._around(unit, seen)
                sums = zip(self._used[-1], sizes, around, strict=True)
                used = [before + size[i] + more for before, size, more in sums]
                if any(use > limit.most for use, limit in zip(used, self._limits, strict=True)):
                    return longest
                self._used.append(used)
                self._users_kept.append(self._users_kept[-1] + unit.user)
                if self._fits(len(self._used) - 1):
                    longest = len(self._used) - 1
        return longest

    def _fits(self, kept: int) -> bool:
        notes = self._note if self.left_out(kept).lines else [0] * len(self._limits)
        sizes = zip(self._used[kept], notes, self._limits, strict=True)
        return all(use + note <= limit.most for use, note, limit in sizes)

    def _around(self, unit: Unit, seen: set[object]) -> list[int]:
        """Return the sizes of the heading and the label that this unit is the first to need."""
        place = self._layout.place_of(unit.group, unit.text)
        if place is None or (place, unit.group) in seen:
            return [0] * len(self._limits)
        lines = [str(unit.group)]
        if place not in seen:
            lines += [line for line in ("", self._layout.heading(place)) if line or seen]
        seen |= {place, (place, unit.group)}
        return [sum(limit.lines(lines)) for limit in self._limits]

    def shortened(self, kept: int) -> Unit | None:
        """Return the unit behind the first `kept` in the room that is left; None if it is short."""
        unit = self._order[kept]
        line, _, _ = unit.text.partition("\n")
        if unit.group not in _QUOTES or words_in(line) < _LONG:
            return None
        seen: set[object] = set()
        for one in self._order[:kept]:
            self._around(one, seen)
        around = self._around(unit, seen)
        text = line
        for limit, *used in zip(self._limits, self._used[kept], around, self._note, strict=True):
            room = limit.most - sum(used)
            if limit.lines([text])[0] > room:
                room -= limit.lines([CUT])[0]
                text = limit.start(text, max(0, room))
        if len(text) < _LEAST_SHARE * len(line):
            return None
        if text != line:
            text = _PART_OF_WORD.sub("", text) if line[len(text)].isalnum() else text
            text = text.rstrip() + CUT
        return unit._replace(text=text)
