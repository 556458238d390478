"""The order of units by weight, and the longest prefix of it that fits within the limits.

A limit counts headings, labels and the line that says what was left out. Only the last unit may be
shortened, and only a long one: half of a short sentence says something else than the whole.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, groupby, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from policyctx.compaction.extractive.files import FileState, command_parts
from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.said import Quote, place_of, replies_in, weight_of
from policyctx.compaction.extractive.state import NEWEST_CALLS
from policyctx.compaction.extractive.texts import GAP, NAME, is_printed, shortened, values_in
from policyctx.compaction.extractive.writing import (
    BEFORE_COMMIT,
    ENTRY,
    MARK,
    NOTE,
    SAID,
    Contents,
    Entry,
    Group,
    Layout,
    left_out_line,
    with_archive,
    written,
)
from policyctx.tokens.encoders import CJK, WORD_CHARS, words_in


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
_OF_WORK = 4.0
_RATES = {Group.AGENT: 8.0, Group.TASKS: 60.0, Group.STEPS: 8.0, Group.RESULTS: 0.25}
_LAST = 12.0
# What a word of news weighs against coming last.
_NEWS = 0.4
# Characters of a result that is kept before longer ones.
_SHORT_RESULT = 300
# So many of its pieces are kept before its beginning.
_END_OF_LAST = 4
# Quotes from which on those without room are not kept.
_MOST_HELD = 250
# Tokens of the label above a group, of the heading, and around an entry.
_ABOVE, _AROUND, _CHARS_PER_TOKEN = 10.0, 2, 4


def entries_of(contents: Contents) -> list[tuple[Group, Entry]]:
    """Return the entries in the order of writing: what user and agent said is in one order."""
    said = [(group, one) for group in SAID for one in contents.said.get(group, ())]
    said.sort(key=lambda entry: place_of(entry[1]))
    others = (group for group in Group if group not in SAID)
    return [*said, *((group, one) for group in others for one in contents.of(group))]


def ranked(entries: list[tuple[Group, Entry]], cues: Cues) -> tuple[Unit, ...]:
    """Return the entries as units, the one that is kept longest first.

    The order depends on the entries alone. They leave the list, so that few are held twice.
    """
    counts, positions = Counter[Group](), Counter[Group]()
    for group, one in entries:
        counts[group] += _size(one)
    entries.reverse()
    streams: dict[tuple[Group, float], list[Unit]] = {}
    place, heads = 0, _Heads(cues)
    while entries:
        group, one = entries.pop()
        text, depth, below = written(one, group), 0, (0, 0)
        if isinstance(one, Quote):
            depth, place = one.depth, place + one.gap  # for the lines without a unit
            below = heads.over(one)
        positions[group] += _size(one)
        at = {"position": positions[group] - 1, "count": counts[group]}
        rate, weight, hard = _rated(one, group, cues, text, **at, below=below)
        place += 1
        # Made in one go: what `_replace` makes on the way stays allocated.
        unit = Unit(text, group, one.message, hard, weight, place, depth)
        streams.setdefault((group, rate), []).append(unit)
    order = merge(*(_by_rank(units, rate) for (_, rate), units in streams.items()))
    return tuple(_framed([unit for *_, unit in order], cues))


class _Heads:
    """The titles and leads over the quotes of a message, which are read in order."""

    message: int | None = None
    titles = told = 0

    def __init__(self, cues: Cues) -> None:
        self._above = cues.conclusions, cues.troubles
        self._depths: list[int | None] = [None, None]
        """Of the conclusion and of the trouble that the quote is under."""

    def over(self, one: Quote) -> tuple[int, int]:
        """Return how far below the titles a quote is, and how many came before it there.

        A conclusion is above all others, what is wrong or not done above that, and code below what
        is said of it.
        """
        if one.message != self.message:
            self.message, self.titles, self.told = one.message, 0, 0
            self._depths = [None, None]
        if title := _OWN_TITLE.match(one.text):
            self.titles, self.told = len(title[1]), -1
        # A title may begin with a number or a picture.
        lead, is_lead, _ = _BEFORE_LEAD.sub("", one.text).replace("：", ":").partition(":")
        is_head = (title or is_lead) and words_in(lead) <= _WORDS_OF_HEAD
        for i, cues in enumerate(self._above):
            depth = self._depths[i]
            depth = None if depth is not None and one.depth <= depth else depth
            is_new = depth is None and is_head and cues.begins(lead)
            self._depths[i] = one.depth if is_new else depth
        if self._depths != [None, None]:
            return -1 - (self._depths[1] is not None), 0
        is_code = is_printed(one.text) and not _LINK.search(one.text)
        self.told += not is_code
        return max(0, one.depth - self.titles) + is_code, self.told


def _by_rank(units: list[Unit], rate: float) -> Iterator[tuple[float, int, Unit]]:
    """Yield the units of a stream in order, each behind its rank and its place."""
    size = _ABOVE
    units.reverse()
    units.sort(key=attrgetter("weight"), reverse=True)
    for unit in units:
        # About how many tokens it has; a character beyond ASCII is one.
        ascii_chars = len(unit.text.encode("ascii", "ignore"))
        size += ascii_chars / _CHARS_PER_TOKEN + len(unit.text) - ascii_chars + _AROUND
        yield size / rate, unit.place, unit


def _size(one: Entry) -> int:
    """Return 1, and more for the quotes before it that have no room."""
    return (isinstance(one, Quote) and one.gap) or 1


_Kind: TypeAlias = "tuple[bool, float, float]"


def with_room(quotes: Iterable[Quote], room: int, cues: Cues) -> list[Quote]:
    """Return the quotes, of many without those that a summary of `room` words cannot have.

    These have newer ones of their stream before them that weigh no less and fill the summary. The
    quote behind them counts them in its gap.
    """
    found, kinds, known = list[Quote](), list[_Kind](), dict[_Kind, _Kind]()
    most = _MOST_HELD
    for new in chain(quotes, (None,)):
        if new is not None:
            found.append(new)
        if len(found) > most or (new is None and kinds):
            for one in found[len(kinds) :]:
                kind = one.user, *_rated(one, SAID[one.user], cues)[:2]
                kinds.append(known.setdefault(kind, kind))
            repeated = _repeated(found)
            lost = _lost(found, kinds, room, repeated, cues)
            newest = {one.user: one.message for one in found}.values()
            repeated = {i for i in repeated if found[i].message not in newest}
            kinds = [kind for i, kind in enumerate(kinds) if i not in lost and i not in repeated]
            found = [*_without(found, lost, repeated)]
            most = len(found) + max(_MOST_HELD, len(found)) // 2
    return found


def _repeated(quotes: Sequence[Quote]) -> set[int]:
    """Return which quotes are of messages that say nothing new."""
    known, found, before = (set[str](), set[str]()), set[int](), list[int]()
    replies = replies_in(quotes)
    for (_, user), group in groupby(range(len(quotes)), lambda i: quotes[i][1:3]):
        for i in before:
            known[quotes[i].user].add(quotes[i].text)
        before = [*group]
        if all(
            one.text in known[user] and not one.last and one.message not in replies
            for one in map(quotes.__getitem__, before)
        ):
            found.update(before)
    return found


def _lost(
    quotes: Sequence[Quote],
    kinds: Sequence[_Kind],
    room: int,
    repeated: Container[int],
    cues: Cues,
) -> set[int]:
    """Return which quotes have no room. Titles, leads and what is pointed at stay with theirs."""
    words = Counter[_Kind]()
    lost, message, depth, is_needed = set[int](), -1, 0, False
    for i in (i for i in reversed(range(len(quotes))) if i not in repeated):
        one, (*stream, weight) = quotes[i], kinds[i]
        ahead = (n for (*other, least), n in words.items() if other == stream and least >= weight)
        leads = one.message == message and (one.depth < depth or is_needed)
        if one.last or leads or sum(ahead) <= room:
            words[kinds[i]] += 0 if one.last else words_in(one.text)
            message, depth = one.message, one.depth
            is_needed = _points_back(one.text, cues)
            if i + 1 in lost and quotes[i + 1].message == message and quotes[i + 1].depth > depth:
                lost.remove(i + 1)  # a lead stays one
        else:
            lost.add(i)
            is_needed = False
    return lost


def _without(
    quotes: Sequence[Quote], lost: Container[int], repeated: Container[int]
) -> Iterator[Quote]:
    missing = [0, 0]
    for i, one in enumerate(quotes):
        if i in lost:
            missing[one.user] += one.gap or 1
        elif i in repeated:
            missing[one.user] += one.gap if one.gap > 1 else 0
        else:
            more, missing[one.user] = missing[one.user], 0
            yield one._replace(gap=(one.gap or 1) + more) if more else one


_OWN_TITLE, _LINK = re.compile(r"(#+) "), re.compile(r"\]\(")
# Words of a title or lead over conclusions, and what may be before them.
_WORDS_OF_HEAD, _BEFORE_LEAD = 4, re.compile(r"^[\W\d_]+")
_TITLE = re.compile(rf"{ENTRY}(?:\[agent[^]]*\] )?#")
_LEAD = re.compile(rf"{_TITLE.pattern}|.*[:：][*_]*$")


def _framed(order: Sequence[Unit], cues: Cues) -> Iterator[Unit]:
    """Yield the units, each behind the titles and leads that it is under.

    A title or a lead comes with the first unit that is under it. A sentence that points back comes
    behind the one before it, the agent's behind a list before it; it is left out where a part of
    that is missing.
    """
    over: dict[int, list[Unit]] = {}
    behind: dict[int, list[Unit]] = {}
    alone, opened = set[int](), list[Unit]()
    near = list[Unit]()  # of its message
    for unit in sorted(order, key=lambda one: one.place):
        is_within = near and (near[-1].group, near[-1].message) == (unit.group, unit.message)
        near = near if is_within else []
        if near and _points_back(_bare(unit.text), cues):
            pointed = near[-1:] if unit.user else _pointed_at(near, unit.depth)
            is_whole = near[-1].place + 1 == unit.place
            if not is_whole or any(one.place in alone for one in pointed):
                alone.update((unit.place,) * (not unit.user))
            elif near[-1].depth >= unit.depth:
                behind[unit.place] = pointed
        near.append(unit)
        same = (one for one in opened if (one.group, one.message) == (unit.group, unit.message))
        above = (one for one in same if one.depth < unit.depth)
        opened = [one for one in above if _TITLE.match(one.text) or not _TITLE.match(unit.text)]
        if opened:
            over[unit.place] = [*opened]
        opened.append(unit)
    above_any = (one for above in over.values() for one in above)
    leads = {one.place for one in above_any if _LEAD.match(one.text)}
    given: set[int] = set()
    for first in order:
        needed = [first] * (first.place not in leads and first.place not in alone)
        known = {first.place}
        for unit in needed:
            before = (one for one in behind.get(unit.place, ()) if one.place not in given)
            new = [one for one in before if one.place not in known]
            known.update(one.place for one in new)
            needed += new
        for unit in sorted(needed, key=lambda one: one.place):
            if unit.place in given:
                continue
            # What the user says of an entry stands by itself, so that more of it has room.
            above = (one for one in over.get(unit.place, ()) if one.place not in given)
            left = [one for one in above if not unit.user or one.place in leads]
            given.update(one.place for one in left)
            yield from (one._replace(leads=True) for one in left)
            given.add(unit.place)
            yield unit


def _pointed_at(near: Sequence[Unit], depth: int) -> list[Unit]:
    """Return the unit before one of this depth and, in a list, its entries, the last first."""
    entries = [*takewhile(lambda one: one.depth > depth, reversed(near))]
    top = min((one.depth for one in entries), default=0)
    return [near[-1], *(one for one in entries[1:] if one.depth == top)]


def _points_back(text: str, cues: Cues) -> bool:
    """Whether a sentence says little without the one before it."""
    return cues.pointers.begins(text.lstrip("*_`\"'([>"))


def _rated(
    one: Entry,
    group: Group,
    cues: Cues,
    text: str = "",
    *,
    position: int = 0,
    count: int = 1,
    below: tuple[int, int] = (0, 0),
) -> tuple[float, float, bool]:
    """Return the rate of an entry's stream, its weight, and whether it binds later work.

    `text` is how it is written, and `position` its place in its group of `count` entries. `below`
    is what `_Heads.over` says of it.
    """
    if isinstance(one, FileState):
        return _CHANGED_FILE if one.is_changed else _OTHER_FILE, -position, False
    if group in {Group.USER, Group.EARLIER}:
        return _weighed(one, group, position / count, cues)
    rate, weight = _RATES[group], float(position)
    if one.last:
        # The heads of all items come before what is said of each.
        is_end = position >= count - _END_OF_LAST
        weight = weight if is_end else -weight - count * below[1]
        rate, weight = _LAST, weight - 2 * count * count * below[0]
    elif one.working:
        rate = _OF_WORK
    elif group is Group.RESULTS:
        is_early = position >= count - NEWEST_CALLS or text.startswith("- git status")
        rate = _RATES[Group.STEPS] if is_early else rate
        weight += count * (len(text) <= _SHORT_RESULT) + count * text.startswith("- git ")
    elif group is Group.TASKS:
        weight = -weight
    elif group is Group.AGENT:
        news = min(max(cues.news.count_in(one.text), -below[0]), 2)
        weight = _NEWS * news + weight / count
    return rate, weight, False


def _weighed(one: Quote, group: Group, recency: float, cues: Cues) -> tuple[float, float, bool]:
    if one.pasted or (one.inner and group is Group.USER):
        return _LITTLE, recency, False
    weight, hard = weight_of(one.text, cues)
    if one.inner:
        # An aim without all that is done already would look open.
        return _RATES[Group.AGENT], recency - one.last, hard and one.last
    if hard or group is Group.EARLIER:
        return _EARLIER if group is Group.EARLIER else _ORDERS, weight + recency, hard
    is_fact = values_in(one.text) or NAME.search(one.text)
    rate = _LITTLE if weight < 0 else _USERS_FACTS if is_fact else _USERS_REST
    return rate, weight + recency, False


# Words of the shortest unit that may be shortened, and the share of it that has to stay.
_LONG, _LEAST_SHARE = 30, 0.5
# Units that are tried first; then twice as many, as long as they fit.
_TRIED_FIRST = 64
_WORD = re.compile(rf"{CJK}|(?:(?!{CJK})\S){{1,{WORD_CHARS}}}")
# The groups whose messages have lines below their first.
_QUOTES = (Group.USER, Group.AGENT, Group.EARLIER)
_CUT = (*_QUOTES, Group.STEPS, Group.RESULTS)


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
    ends = [0, *(found.end() for found in _WORD.finditer(text))]
    end = ends[max(0, most)]
    # A part of a long word may look like another one.
    is_within = end and not text[end].isspace() and words_in(text[end - 1 : end + 1]) == 1
    return text[: text.rfind(" ", 0, end) if is_within and " " in text[:end] else end]


class SummaryLine(NamedTuple):
    """A line of a summary; a heading or a label has no unit."""

    text: str
    unit: Unit | None = None


def lines_of(
    units: Sequence[Unit], layout: Layout, left_out: Sequence[str]
) -> Iterator[SummaryLine]:
    """Yield the lines of a summary of these units, section by section."""
    sections: dict[int, list[Unit]] = {}
    for unit in sorted(_untold(units), key=lambda one: one.place):
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
    if left_out:
        yield SummaryLine(left_out_line(left_out))


# What git says of a commit, and of a push, if a command did no more; and a line with the names of
# files that were changed since the last commit.
_COMMITS = re.compile(r"git (?:add|commit|push)\b")
_MADE = re.compile(
    r"(?:exit code 0[^:]*: )?(?:\[\S+ (?:\([^)]*\) )?(?P<hash>[0-9a-f]{7,40})\] (?P<subject>.+?)"
    r"|[0-9a-f]{7,40}\.\.(?P<last>[0-9a-f]{7,40}) \S+ -> (?P<branch>\S+))(?: [/…] .*)?"
)
_NAMES = re.compile(rf"{ENTRY}(?:git status|(?!{BEFORE_COMMIT}).*: (?!read)\w+$)")


def _untold(units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units without the commits, pushes and names of changed files that others tell."""
    told = [one for one in units if one.group in {Group.AGENT, Group.FILES, Group.RESULTS}]
    listed = (one.text for one in told if one.group is not Group.AGENT and _NAMES.match(one.text))
    paths = [f"/{word}" for word in re.split(r"[\s:]+", " ".join(listed))]
    for unit in units:
        command, _, outcome = _bare(unit.text).partition(" => ")
        if unit.group is Group.RESULTS and command == "git diff --name-only":
            names = outcome.split(" / ")
            is_told = all(any(path.endswith(f"/{name}") for path in paths) for name in names)
        else:
            made = _MADE.fullmatch(outcome) if unit.group is Group.STEPS else None
            is_told = made is not None and any(_tells(one.text, made) for one in told)
            is_told = is_told and all(map(_COMMITS.match, command_parts(command)))
        if not is_told:
            yield unit


def _tells(text: str, made: re.Match[str]) -> bool:
    """Whether a line has a commit with its subject, or a push at or behind its remote branch."""
    if made["hash"]:
        return made["hash"] in text and made["subject"] in text
    before, is_in, behind = text.partition(made["last"])
    shown = before + behind.partition(" / ")[0]
    return bool(is_in and re.search(rf"[\w-]+/{re.escape(made['branch'])}[,)]", shown))


def _line(unit: Unit, before: Unit | None) -> str:
    """Return a unit as it is written behind another: below it if both are of one message."""
    if before is None or unit.message != before.message or unit.group not in _QUOTES:
        return unit.text
    # Where lines of a message are missing, it is marked.
    gap = GAP if unit.group in SAID and unit.place != before.place + 1 else ""
    return NOTE * (1 + unit.depth) + gap + _bare(unit.text)


def _bare(text: str) -> str:
    """Return what a line says, without the marks before it."""
    return MARK.sub("", text.removeprefix(ENTRY), count=1)


def fitted(
    order: Sequence[Unit],
    limits: Sequence[Limit],
    layout: Layout,
    left_out: Sequence[str],
    archive: str,
) -> Iterator[SummaryLine]:
    """Return the lines of the longest prefix of the order that fits within all limits.

    `left_out` names what holds lines that the order lacks; `archive` names what holds the messages.
    """
    users = sum(unit.user for unit in order)

    def lines(units: Sequence[Unit], *cut: Unit) -> Iterator[SummaryLine]:
        is_whole = sum(unit.user for unit in units) == users
        more = left_out if is_whole else with_archive(left_out, archive)
        return lines_of((*units, *cut), layout, more)

    most = _TRIED_FIRST
    while most < len(order) and _fit(lines(order[:most]), limits):
        most *= 2
    units = list(order[:most])
    del units[_largest(range(len(units) + 1), lambda n: _fit(lines(units[:n]), limits)) :]
    while units and (units[-1].leads or not _fit(lines(units), limits)):
        units.pop()
    unit = order[len(units)] if len(units) < len(order) else None
    if unit and unit.group in _CUT and words_in(unit.text) >= _LONG:

        def cut(size: int) -> Iterator[SummaryLine]:
            return lines(units, unit._replace(text=shortened(unit.text, size)))

        least = int(_LEAST_SHARE * len(unit.text))
        size = _largest(range(least, len(unit.text) + 1), lambda n: _fit(cut(n), limits))
        if _fit(cut(size), limits):
            return cut(size)
    return lines(units) if units else iter(())


def _largest(sizes: range, fits: Callable[[int], bool]) -> int:
    """Return the largest of the sizes that fits, or the first one."""
    return sizes[max(0, bisect(sizes, 0, key=lambda size: not fits(size)) - 1)]


def _fit(lines: Iterable[SummaryLine], limits: Sequence[Limit]) -> bool:
    text = "\n".join(line.text for line in lines)
    return all(limit.holds(text) for limit in limits)
