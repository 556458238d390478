"""The order of units by weight, and the longest prefix of it that fits within the limits.

A limit counts headings, labels and the line that says what was left out. Only the last unit may be
shortened, and only a long one: half of a short sentence says something else than the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from policyctx.compaction.extractive.files import FileState
from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.said import FILLER, Quote, weight_of
from policyctx.compaction.extractive.state import Fact
from policyctx.compaction.extractive.texts import CUT, NAME, values_in
from policyctx.compaction.extractive.writing import Contents, Group, Layout, LeftOut, written
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.encoders import CJK, words_in


class Unit(NamedTuple):
    """An entry of a summary, and what its rank depends on."""

    text: str
    """As it is written: one line or, with a note, two."""
    group: Group
    message: int
    """0-based position of the message that it is from; -1 if it is of an earlier summary."""
    user: bool
    """Whether the user said it."""
    hard: bool
    """Whether it binds later work: the user's orders and limits."""
    weight: float
    """Among the units of its stream."""
    place: int
    """Its position in the order of writing."""
    minor: bool = False
    """Whether it is kept only where room is plentiful."""


# Files that were only read, or are scratch, of which the newest are of use.
_MOST_OTHERS = 6
# Rates of the streams. What another writer's summary holds may be all that is left of what the
# user said before it.
_ORDERS, _USERS_FACTS, _USERS_REST, _LITTLE = 180.0, 60.0, 12.0, 4.0
_TELLING, _TALK = 24.0, 2.0
_CHANGED_FILE, _OTHER_FILE = 16.0, 2.0
_LAST, _EARLIER, _TASKS, _STATE = 8.0, 40.0, 60.0, 12.0
_LEAST_TELLING = 3.0
# More than the pieces of any message.
_MUCH = 1_000_000
# Tokens of the label above a group, of the heading, and around an entry.
_ABOVE, _AROUND, _CHARS_PER_TOKEN = 10.0, 2, 4


def ranked(contents: Contents, cues: Cues) -> tuple[Unit, ...]:
    """Return the entries as units, the one that is kept longest first.

    The order depends on the contents alone.
    """
    streams: dict[tuple[Group, float, bool], list[Unit]] = {}
    place = 0
    for group in Group:
        entries = contents.of(group)
        others = 0
        for position, one in enumerate(entries):
            rate, unit = _rated(one, group, (position, len(entries), others), cues)
            others += isinstance(one, FileState) and not one.is_changed
            streams.setdefault((group, rate, unit.minor), []).append(unit._replace(place=place))
            place += 1
    order: list[tuple[bool, float, int, Unit]] = []
    for (_, rate, minor), units in streams.items():
        size = _ABOVE
        for unit in sorted(units, key=_by_weight):
            size += size_of(unit.text) + _AROUND
            order.append((minor, size / rate, unit.place, unit))
    return tuple(unit for *_, unit in sorted(order))


def size_of(text: str) -> float:
    """Return about how many tokens a text has; a character beyond ASCII is one."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars / _CHARS_PER_TOKEN + len(text) - ascii_chars


def _by_weight(unit: Unit) -> tuple[float, int]:
    return -unit.weight, -unit.place


def _rated(
    one: Quote | Fact | FileState, group: Group, at: tuple[int, int, int], cues: Cues
) -> tuple[float, Unit]:
    """Return the rate of an entry's stream, and the entry as a unit.

    `at` is its place in its group, the size of the group, and how many lesser files come before.
    """
    position, count, others = at
    first_first = -float(position)
    unit = Unit(
        written(one), group, one.message, user=group is Group.USER, hard=False, weight=first_first,
        place=0,
    )  # fmt: skip
    match group:
        case Group.USER | Group.AGENT | Group.EARLIER:
            return _quoted(one, unit, position, count, cues)
        case Group.FILES:
            is_changed = isinstance(one, FileState) and one.is_changed
            unit = unit._replace(minor=not is_changed and others >= _MOST_OTHERS)
            return (_CHANGED_FILE if is_changed else _OTHER_FILE), unit
        case Group.LAST:
            last = one.last if isinstance(one, Quote) else 0
            # Of an earlier summary only the order of the pieces is known.
            return _LAST, unit._replace(weight=-last * _MUCH - position if last else position)
    return (_TASKS if group is Group.TASKS else _STATE), unit


def _quoted(
    one: Quote | Fact | FileState, unit: Unit, position: int, count: int, cues: Cues
) -> tuple[float, Unit]:
    recency = position / count
    quote = one if isinstance(one, Quote) else Quote(unit.text[2:], -1, user=True)
    if quote.pasted:
        return _LITTLE, unit._replace(weight=recency)
    weight, hard = weight_of(quote.text, cues, user=quote.user, asked=bool(quote.asked))
    if unit.group is Group.EARLIER:
        minor = isinstance(one, Fact) and one.minor
        return _EARLIER, unit._replace(weight=weight + recency, hard=hard, minor=minor)
    if unit.group is Group.AGENT:
        rate = _TELLING if weight >= _LEAST_TELLING else _TALK
        minor = quote.minor or weight < 1
        return rate, unit._replace(weight=weight + recency, minor=minor)
    if weight < 0:
        minor = quote.minor or bool(FILLER.fullmatch(quote.text) and position < count - 1)
        return _LITTLE, unit._replace(weight=weight + recency, minor=minor)
    unit = unit._replace(weight=weight + recency, hard=hard, minor=quote.minor)
    if hard:
        return _ORDERS, unit
    is_fact = values_in(quote.text) or NAME.search(quote.text)
    return (_USERS_FACTS if is_fact else _USERS_REST), unit


# Words of the shortest unit that may be shortened, and the share of it that has to stay.
_LONG, _LEAST_SHARE = 30, 0.5
# Units that are measured at once.
_MEASURED_AT_ONCE = 64
_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})\S)+")
_PART_OF_WORD = re.compile(r"[A-Za-z0-9_]+$")
_QUOTES = (Group.USER, Group.AGENT, Group.LAST, Group.EARLIER)


_PLENTY_OF_WORDS = 1_800


class Limit(NamedTuple):
    """A number of words, tokens or characters that a summary may have at most."""

    most: int
    sizes: Callable[[Sequence[str]], list[int]]
    """The size of each text."""
    start: Callable[[str, int], str]
    """The start of a text that has at most this size."""
    plenty: int
    """What leaves room for more than is needed to go on."""

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
    return Limit(
        most, lambda texts: [words_in(text) for text in texts], first_words, _PLENTY_OF_WORDS
    )


def chars_limit(most: int) -> Limit:
    """Return a limit of characters."""
    return Limit(
        most,
        lambda texts: [len(text) for text in texts],
        lambda text, most: text[:most],
        _PLENTY_OF_WORDS * 6,
    )


def tokens_limit(most: int, counter: TokenCounter) -> Limit:
    """Return a limit of tokens, as the counter counts them."""
    return Limit(most, counter.count_many, counter.truncate, _PLENTY_OF_WORDS * 3 // 2)


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
    users = sum(unit.user for unit in order)
    if not all(limit.most >= limit.plenty for limit in limits):
        order = [unit for unit in order if not unit.minor]
    prefix = _Prefix(order, limits, layout, before, archive, users=users)
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
        *,
        users: int,
    ) -> None:
        self._order, self._limits, self._layout = order, limits, layout
        self._before, self._archive = before, archive
        self._users = users
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
