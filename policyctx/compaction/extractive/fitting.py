"""The order of units by weight, and the longest prefix of it that fits within the limits.

A limit counts headings, labels and the line that says what was left out. Only the last unit may be
shortened, and only a long one: half of a short sentence says something else than the whole.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from policyctx.compaction.extractive.files import FileState
from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.said import Quote, weight_of
from policyctx.compaction.extractive.state import NEWEST_CALLS
from policyctx.compaction.extractive.texts import CUT, GAP, NAME, values_in
from policyctx.compaction.extractive.writing import (
    ENTRY,
    MARK,
    NOTE,
    SAID,
    Contents,
    Entry,
    Group,
    Layout,
    left_out_line,
    written,
)
from policyctx.tokens.encoders import CJK, words_in


class Unit(NamedTuple):
    """An entry of a summary, and what its rank depends on."""

    text: str
    """As it is written: one line."""
    group: Group
    message: int
    """0-based position of the message that it is from; negative if it is of an earlier summary."""
    hard: bool
    """Whether it binds later work: the user's orders and limits."""
    weight: float
    """Among the units of its stream."""
    place: int
    """Its position in the order of writing."""
    depth: int = 0
    """How many titles and leads of its message it is under."""
    leads: bool = False
    """Whether it says what the next one is under, and nothing without it."""

    @property
    def user(self) -> bool:
        """Whether the user said it."""
        return self.group is Group.USER


# Rates of the streams. What another writer's summary holds may be all that is left of what the
# user said before it.
_ORDERS, _USERS_FACTS, _USERS_REST, _LITTLE = 180.0, 60.0, 12.0, 4.0
_CHANGED_FILE, _OTHER_FILE, _EARLIER = 16.0, 2.0, 40.0
_OF_WORK = 0.5
_RATES = {Group.AGENT: 8.0, Group.TASKS: 60.0, Group.STEPS: 12.0, Group.RESULTS: 0.25}
_LAST = 12.0
# What a word of news weighs against coming last.
_NEWS = 0.4
# Characters of a result that is kept before longer ones.
_SHORT_RESULT = 300
# So many of its pieces are kept before its beginning.
_END_OF_LAST = 4
# Tokens of the label above a group, of the heading, and around an entry.
_ABOVE, _AROUND, _CHARS_PER_TOKEN = 10.0, 2, 4


def ranked(contents: Contents, cues: Cues) -> tuple[Unit, ...]:
    """Return the entries as units, the one that is kept longest first.

    The order depends on the contents alone.
    """
    rated = [
        _rated(one, group, position, len(contents.of(group)), cues)
        for group in Group
        for position, one in enumerate(contents.of(group))
    ]
    rated.sort(key=_by_place)
    rated.reverse()
    streams: dict[tuple[Group, float], list[Unit]] = {}
    place = 0
    for _ in range(len(rated)):
        rate, unit = rated.pop()  # so that no unit is held twice
        place += 1 + unit.place  # a place stays free for lines without a unit
        streams.setdefault((unit.group, rate), []).append(unit._replace(place=place))
    order: list[tuple[float, int, Unit]] = []
    for (_, rate), units in streams.items():
        size = _ABOVE
        for unit in sorted(units, key=lambda one: (-one.weight, -one.place)):
            # About how many tokens it has; a character beyond ASCII is one.
            ascii_chars = len(unit.text.encode("ascii", "ignore"))
            size += ascii_chars / _CHARS_PER_TOKEN + len(unit.text) - ascii_chars + _AROUND
            order.append((size / rate, unit.place, unit))
    streams.clear()
    order.sort()
    units = [unit for *_, unit in order]
    order.clear()
    return tuple(_framed(units))


_GROUPS = [*Group]


def _by_place(rated: tuple[float, Unit]) -> tuple[int, bool, int]:
    """Return what the order of writing goes by: what user and agent said is in one order."""
    group, message = rated[1].group, rated[1].message
    if group in SAID:
        return 0, message >= 0, abs(message)
    return _GROUPS.index(group), False, 0


_TITLE = re.compile(rf"{ENTRY}(?:\[agent[^]]*\] )?#")


def _framed(order: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units, each behind the titles and leads that it is under.

    A title or a lead comes with the first unit that is under it.
    """
    over: dict[int, list[Unit]] = {}
    opened: list[Unit] = []
    for unit in sorted(order, key=lambda one: one.place):
        same = (one for one in opened if (one.group, one.message) == (unit.group, unit.message))
        above = (one for one in same if one.depth < unit.depth)
        opened = [one for one in above if _TITLE.match(one.text) or not _TITLE.match(unit.text)]
        if opened:
            over[unit.place] = [*opened]
        opened.append(unit)
    leads = {one.place for above in over.values() for one in above}
    given: set[int] = set()
    for unit in order:
        if unit.place not in leads:
            left = [one for one in over.get(unit.place, ()) if one.place not in given]
            given.update(one.place for one in left)
            yield from (one._replace(leads=True) for one in left)
            yield unit


def _rated(one: Entry, group: Group, position: int, count: int, cues: Cues) -> tuple[float, Unit]:
    """Return the rate of an entry's stream, and the entry as a unit.

    `position` is its place in its group of `count` entries.
    """
    weight = float(position)
    unit = Unit(written(one, group), group, one.message, hard=False, weight=weight, place=0)
    if isinstance(one, Quote):
        unit = unit._replace(depth=one.depth, place=int(one.gap))
    if isinstance(one, FileState):
        rate = _CHANGED_FILE if one.is_changed else _OTHER_FILE
        return rate, unit._replace(weight=-weight)
    if group in {Group.USER, Group.EARLIER}:
        return _weighed(one, unit, position / count, cues)
    if one.last:
        is_end = position >= count - _END_OF_LAST
        return _LAST, unit if is_end else unit._replace(weight=-weight)
    if one.working:
        return _OF_WORK, unit
    if group is Group.RESULTS:
        rate = _RATES[Group.STEPS if position >= count - NEWEST_CALLS else group]
        weight += count * (len(unit.text) <= _SHORT_RESULT) + count * unit.text.startswith("- git ")
        return rate, unit._replace(weight=weight)
    if group is Group.TASKS:
        weight = -weight
    elif group is Group.AGENT:
        weight = _NEWS * min(cues.news.count_in(one.text), 2) + weight / count
    return _RATES[group], unit._replace(weight=weight)


def _weighed(one: Quote, unit: Unit, recency: float, cues: Cues) -> tuple[float, Unit]:
    if one.pasted:
        return _LITTLE, unit._replace(weight=recency)
    weight, hard = weight_of(one.text, cues)
    unit = unit._replace(weight=weight + recency, hard=hard)
    if unit.group is Group.EARLIER:
        return _EARLIER, unit
    if hard:
        return _ORDERS, unit
    is_fact = values_in(one.text) or NAME.search(one.text)
    return (_LITTLE if weight < 0 else _USERS_FACTS if is_fact else _USERS_REST), unit


# Words of the shortest unit that may be shortened, and the share of it that has to stay.
_LONG, _LEAST_SHARE = 30, 0.5
# Units that are tried first; then twice as many, as long as they fit.
_TRIED_FIRST = 64
_WORD = re.compile(rf"{CJK}|(?:(?!{CJK})\S)+")
_PART_OF_WORD = re.compile(r"[A-Za-z0-9_]+$")
# The groups whose messages have lines below their first.
_QUOTES = (Group.USER, Group.AGENT, Group.EARLIER)


class Limit(NamedTuple):
    """A number of words, tokens or characters that a summary may have at most."""

    most: int
    size: Callable[[str], int]
    start: Callable[[str, int], str]
    """The start of a text that has at most this size."""

    def without(self, text: str) -> Limit:
        """Return what the text leaves of the limit, at least 1."""
        return self._replace(most=max(1, self.most - self.size(text))) if text else self

    def holds(self, text: str) -> bool:
        """Whether the text is within the limit."""
        return self.size(text) <= self.most


def first_words(text: str, most: int) -> str:
    """Return the text up to its `most`-th word."""
    if words_in(text) <= most:
        return text
    ends = [found.end() for found in _WORD.finditer(text)]
    return text[: ends[most - 1]] if most > 0 else ""


class SummaryLine(NamedTuple):
    """A line of a summary; a heading or a label has no unit."""

    text: str
    unit: Unit | None = None


def lines_of(
    units: Sequence[Unit], layout: Layout, left_out: Sequence[str] | None
) -> Iterator[SummaryLine]:
    """Yield the lines of a summary of these units, section by section."""
    sections: dict[int, list[Unit]] = {}
    for unit in sorted(units, key=lambda one: one.place):
        sections.setdefault(layout.place_of(unit.group), []).append(unit)
    for i, place in enumerate(sorted(sections)):
        if i:
            yield SummaryLine("")
        if heading := layout.heading(place):
            yield SummaryLine(heading)
        before: Unit | None = None
        for unit in sections[place]:
            if before is None or unit.group.label != before.group.label:
                before = None
                yield SummaryLine(unit.group.label)
            yield SummaryLine(_line(unit, before), unit)
            before = unit
    if left_out is not None:
        yield SummaryLine(left_out_line(left_out))


def _line(unit: Unit, before: Unit | None) -> str:
    """Return a unit as it is written behind another: below it if both are of one message."""
    if before is None or unit.message != before.message or unit.group not in _QUOTES:
        return unit.text
    # Where lines of a message are missing, it is marked.
    gap = GAP if unit.group in SAID and unit.place != before.place + 1 else ""
    return NOTE * (1 + unit.depth) + gap + MARK.sub("", unit.text.removeprefix(ENTRY), count=1)


def fitted(
    order: Sequence[Unit], limits: Sequence[Limit], layout: Layout, contents: Contents, archive: str
) -> list[SummaryLine]:
    """Return the lines of the longest prefix of the order that fits within all limits.

    The order is that of the contents; `archive` names what holds the messages.
    """
    users = sum(unit.user for unit in order)
    is_gap = any(one.gap for one in contents.said.get(Group.USER, ()))

    def lines(units: Sequence[Unit], *cut: Unit) -> list[SummaryLine]:
        left_out = contents.left_out
        if is_gap or sum(unit.user for unit in units) < users:
            left_out = (*dict.fromkeys((*(left_out or ()), *filter(None, (archive,)))),)
        return list(lines_of((*units, *cut), layout, left_out))

    most = _TRIED_FIRST
    while most < len(order) and _fit(lines(order[:most]), limits):
        most *= 2
    units = list(order[:most])
    counts = range(len(units) + 1)
    del units[bisect(counts, False, key=lambda n: not _fit(lines(units[:n]), limits)) - 1 :]  # noqa: FBT003
    while units and (units[-1].leads or not _fit(lines(units), limits)):
        units.pop()
    if len(units) < len(order):
        unit = order[len(units)]
        cut = _shortened(unit, lines(units, unit), limits)
        if cut is not None and _fit(lines(units, cut), limits):
            return lines(units, cut)
    return lines(units) if units else []


def _fit(lines: Sequence[SummaryLine], limits: Sequence[Limit]) -> bool:
    text = "\n".join(line.text for line in lines)
    return all(limit.holds(text) for limit in limits)


def _shortened(unit: Unit, lines: Sequence[SummaryLine], limits: Sequence[Limit]) -> Unit | None:
    """Return a unit cut to the room that the other lines leave; None if it is short."""
    line = unit.text
    if unit.group not in (*_QUOTES, Group.STEPS, Group.RESULTS) or words_in(line) < _LONG:
        return None
    around = "\n".join(CUT if one.unit is unit else one.text for one in lines)
    text = line
    for limit in limits:
        text = limit.start(text, max(0, limit.most - limit.size(around)))
    if len(text) < _LEAST_SHARE * len(line):
        return None
    if text != line:
        text = _PART_OF_WORD.sub("", text) if line[len(text)].isalnum() else text
        text = text.rstrip() + CUT
    return unit._replace(text=text)
