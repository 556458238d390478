"""The limits of a summary, and the units that it has room for.

The units come in one order, and a summary holds a prefix of it: a larger limit never loses a unit
that a smaller one kept. A limit counts headings, labels and the line that says what was left out.
Only the last unit may be shortened, and only one that is long: half of a short sentence says
something else than the whole.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Group, label_of
from policyctx.tokens.words import CJK, words_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policyctx.compaction.extractive.digest import LeftOut
    from policyctx.compaction.extractive.layout import Layout
    from policyctx.compaction.extractive.ranking import Unit
    from policyctx.tokens.counter import TokenCounter

# Words of the shortest unit that may be shortened, and the share of it that has to stay.
_LONG, _LEAST_SHARE = 30, 0.5
_SHORTENED = " …"
_SENTENCES = (
    Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED, Group.REPORT,
)  # fmt: skip
_PART_OF_WORD = re.compile(r"[A-Za-z0-9_]+$")
# Units that are measured at once.
_MEASURED_AT_ONCE = 64

_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})\S)+")


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


class Fitted(NamedTuple):
    """The units that fit, the last of them shortened where that made room, and what is left out."""

    units: tuple[Unit, ...]
    left_out: LeftOut


def fitted(
    order: Sequence[Unit], limits: Sequence[Limit], layout: Layout, before: LeftOut, archive: str
) -> Fitted:
    """Return the longest prefix of the order that fits within all limits.

    `before` is what earlier summaries left out; `archive` names what holds the messages of this
    one.
    """
    prefix = _Prefix(order, limits, layout, before, archive)
    kept = prefix.longest()
    units = tuple(order[:kept])
    if kept < len(order) and (shortened := prefix.shortened(kept)) is not None:
        units += (shortened,)
    return Fitted(units, prefix.left_out(kept))


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
        self._hard = sum(unit.hard for unit in order)
        self._used: list[list[int]] = [[0] * len(limits)]
        """By number of units: what they take by each limit, without what is said of others."""
        self._hard_kept = [0]
        self._notes: dict[int, list[int]] = {}
        places = {layout.place_of(one) for one in order if one.group is Group.TOLD}
        self._places = len(places)

    def left_out(self, kept: int) -> LeftOut:
        """Return the orders that a summary of the first `kept` units leaves out."""
        new = self._hard - self._hard_kept[kept]
        if not new:
            return self._before
        archives = (*self._before.archives, *((self._archive,) if self._archive else ()))
        return self._before._replace(
            orders=self._before.orders + new, archives=tuple(dict.fromkeys(archives))
        )

    def longest(self) -> int:
        """Return the length of the longest prefix that fits."""
        longest, seen = 0, set[object]()
        measured = iter(self._order)
        while chunk := list(islice(measured, _MEASURED_AT_ONCE)):
            sizes = [limit.lines([unit.text for unit in chunk]) for limit in self._limits]
            for i, unit in enumerate(chunk):
                around = self._around(unit, seen)
                used = [
                    before + size[i] + more
                    for before, size, more in zip(self._used[-1], sizes, around, strict=True)
                ]
                if any(use > limit.most for use, limit in zip(used, self._limits, strict=True)):
                    return longest
                self._used.append(used)
                self._hard_kept.append(self._hard_kept[-1] + unit.hard)
                if self._fits(len(self._used) - 1):
                    longest = len(self._used) - 1
        return longest

    def _fits(self, kept: int) -> bool:
        """Whether the first `kept` units fit, with what is said of the others."""
        sizes = zip(self._used[kept], self._note_sizes(kept), self._limits, strict=True)
        return all(use + note <= limit.most for use, note, limit in sizes)

    def _around(self, unit: Unit, seen: set[object]) -> list[int]:
        """Return the sizes of the heading and the label that this unit is the first to need."""
        place = self._layout.place_of(unit)
        if place is None or (place, unit.group) in seen:
            return [0] * len(self._limits)
        lines = [str(unit.group)]
        if place not in seen:
            lines += [line for line in ("", self._layout.heading(place)) if line or seen]
        seen |= {place, (place, unit.group)}
        return [sum(limit.lines(lines)) for limit in self._limits]

    def _note_sizes(self, kept: int) -> list[int]:
        """Return what it takes more to say which orders a summary of `kept` units leaves out."""
        left_out = self.left_out(kept)
        if left_out.orders not in self._notes:
            plain, said = str(Group.TOLD), label_of(Group.TOLD, left_out)
            sizes = (limit.lines([plain, said]) for limit in self._limits)
            self._notes[left_out.orders] = [(b - a) * self._places for a, b in sizes]
        return self._notes[left_out.orders]

    def shortened(self, kept: int) -> Unit | None:
        """Return the unit behind the first `kept` in the room that is left; None if it is short."""
        unit = self._order[kept]
        line, _, _ = unit.text.partition("\n")
        if unit.group not in _SENTENCES or words_in(line) < _LONG:
            return None
        seen: set[object] = set()
        for one in self._order[:kept]:
            self._around(one, seen)
        around, note = self._around(unit, seen), self._note_sizes(kept)
        text = line
        for limit, *used in zip(self._limits, self._used[kept], around, note, strict=True):
            room = limit.most - sum(used)
            if limit.lines([text])[0] > room:
                room -= limit.lines([_SHORTENED])[0]
                text = limit.start(text, max(0, room))
        if len(text) < _LEAST_SHARE * len(line):
            return None
        if text != line:
            text = _PART_OF_WORD.sub("", text) if line[len(text)].isalnum() else text
            text = text.rstrip() + _SHORTENED
        return unit._replace(text=text)


def first_words(text: str, most: int) -> str:
    """Return the text up to its `most`-th word."""
    if words_in(text) <= most:
        return text
    ends = [found.end() for found in _WORD.finditer(text)]
    return text[: ends[most - 1]] if most > 0 else ""
