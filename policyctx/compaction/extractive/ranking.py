"""The units of a summary in one order: what is kept longest comes first.

A unit is an entry of the summary: it is kept whole or left out. Each unit belongs to a stream, such
as the user's orders or the files that were changed, and each stream has a rate. Within a stream the
heaviest unit comes first. The streams are merged as packets are by weighted fair queueing: a unit's
place is the size of its stream up to and with it, divided by the rate; the heading and the label
above its group count as the stream's first. So any prefix of the order
holds each stream in about the proportion of its rate, a stream that has ended leaves its room to
the others, and no limit is needed to find the order.

Within a stream:

- of the user's words those come first that bind, have an exact value or tell a lasting wish, the
  part of a person, an aim or a decision, and the first and the last of them: the task, and what it
  has become;
- of the files those that were changed, the one used last first;
- of the rest those that tell most, of equals the newest.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Group, Statement, is_done
from policyctx.compaction.extractive.reports import is_heading, is_row, leads
from policyctx.compaction.extractive.statements import values_in, weight_of
from policyctx.compaction.extractive.work import CHANGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import DigestEntry

_SENTENCES = (Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED)


class Unit(NamedTuple):
    """An entry of a summary, and what its rank depends on."""

    text: str
    """As it is written: one line or, with notes, several."""
    group: Group
    message: int
    """0-based position of the message that it is from; -1 if it is of an earlier summary."""
    user: bool
    """Whether the user said it."""
    hard: bool
    """Whether it binds later work: the user's orders, limits and corrections."""
    weight: float
    """Among the units of its group."""
    place: int
    """Its position in the order of the conversation, group after group."""
    aside: bool = False
    """Whether it is a file outside of the folders of the work."""


# Rates of the streams. The user's orders have the largest, because nobody else can repeat them.
# What another writer's summary holds may be all that is left of what the user said before it.
_ORDERS, _USERS_FACTS, _USERS_REST, _LITTLE = 130.0, 30.0, 10.0, 8.0
_LAST_TURN, _TELLING, _TALK = 24.0, 24.0, 2.0
_OPEN_FAILURE, _RESOLVED_FAILURE = 8.0, 2.0
_CHANGED_FILE, _OTHER_FILE, _FILE_ASIDE = 16.0, 2.0, 2.0
_RATES = {
    Group.PASTED: 2.0,
    Group.FOUND: 5.0,
    Group.CARRIED: 40.0,
    Group.TOOLS: 0.7,
    Group.REPOSITORY: 8.0,
    Group.RUNNING: 10.0,
    Group.EDITS: 6.0,
    Group.CHECKS: 8.0,
    Group.TASKS: 4.0,
    Group.DONE: 8.0,
    Group.NEXT: 10.0,
    Group.OPEN: 16.0,
}
# The newest report, and those before it.
_NEWEST_REPORT, _OTHER_REPORT = 20.0, 4.0
_LEAST_TELLING = 2.0
# The task is in the first of the user's words; the last are what it has become.
_FIRST, _LAST, _AT_AN_END = 2, 4, 0.5
# What each further word of an order weighs: "must never" binds more than "please".
_STRONGER, _MOST_STRONGER = 1.5, 3
# What an agent's sentence weighs more that tells what did not work, or what is not done.
_SETBACK, _UNFINISHED = 4.0, 2.0
# What an agent's sentence weighs more that says where the work stands.
_STATE = 4.0
# What a sentence of the user weighs more that tells a lasting wish, the part of a person, an aim or
# a decision, and less if it only asks for one act.
_WISH, _ROLE, _AIM, _DECIDED, _ERRAND = 1.0, 1.0, 2.0, 1.0, 1.0
# What a sentence of another writer's summary weighs more that has the words of an order or an aim.
_BINDING = 2.0
# What an errand of the user weighs that was carried out.
_CARRIED_OUT = -2.0
# What a name weighs: nobody can guess it.
_NAMED = 2.0
# How much the size of a sentence takes from its weight: with 1 what counts is weight by token.
_BY_SIZE, _EVEN_SIZE = 0.125, 12.0
# The tokens of a message of the user of which half is worth little without the rest.
_SHORT_MESSAGE = 20.0
# A label at the beginning of a sentence.
_LABEL = re.compile(r"[^:：,，.。]{1,24}[:：]")
# The tokens of the heading above a group; its label has its own.
_HEADING = 5.0
# Characters to a token, and the tokens that an entry takes beside its text.
_CHARS_PER_TOKEN, _AROUND = 4, 2

# A name in the middle of a sentence, or a word in Latin letters among others.
_NAME = re.compile(
    r"(?<=[a-z,;:] )[A-Z][\w'-]+|(?<=[\u3400-\u9fff，：、“「])\s?[A-Z][\w-]+|“[^”]+”|「[^」]+」"
)


def ranked(entries: Sequence[DigestEntry], cues: Cues) -> tuple[Unit, ...]:
    """Return the entries as units, the one that is kept longest first.

    The order depends on the entries alone.
    """
    groups: dict[Group, list[tuple[int, DigestEntry]]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault(entry.group, []).append((place, entry))
    streams: dict[tuple[Group, float], list[_Bundle]] = {}
    for group, members in groups.items():
        if group is Group.REPORT:
            streams |= _report_streams(members, cues)
            continue
        last = max(entry.source for _, entry in members) if group is Group.AGENT else -1
        units = [
            _unit(entry, place, position, len(members), cues)
            for position, (place, entry) in enumerate(members)
        ]
        for together in _bundles(units) if group is Group.TOLD else ([unit] for unit in units):
            rates = [_LAST_TURN if unit.message == last >= 0 else _rate(unit) for unit in together]
            streams.setdefault((group, max(rates)), []).append(_bundled(together))
    order: list[tuple[float, int, int, Unit]] = []
    for (group, rate), bundles in streams.items():
        size = size_of(str(group)) + _HEADING
        for bundle in sorted(bundles, key=_by_value if group in _SENTENCES else _by_weight):
            size += bundle.size
            # A heading without the line below it says nothing, so the line comes first.
            turn = -1 if group is Group.REPORT else 1
            order += [
                (size / rate, bundle.place, turn * i, unit) for i, unit in enumerate(bundle.units)
            ]
    return tuple(unit for *_, unit in sorted(order))


def _report_streams(
    members: Sequence[tuple[int, DigestEntry]], cues: Cues
) -> dict[tuple[Group, float], list[_Bundle]]:
    """Return the lines of the newest report, and of the others, as streams.

    What tells most comes first, as of all that the agent says. Of the rest the first lines of all
    sections come before the second ones: what is cut, is cut evenly.
    """
    streams: dict[tuple[Group, float], list[_Bundle]] = {}
    rate, depth, together = _NEWEST_REPORT, 0, list[Unit]()
    for i, (place, entry) in enumerate(members):
        line, _, notes = entry.text.removeprefix("- ").partition("\n")
        if notes and i:
            rate, depth = _OTHER_REPORT, 0
        if is_heading(line):
            depth = 0
        after = members[i + 1][1].text.removeprefix("- ") if i + 1 < len(members) else ""
        weight = -depth - i / len(members)
        unit = _unit(entry, place, i, len(members), cues)
        together.append(unit._replace(weight=weight))
        is_first_row = is_row(line) and not (i and is_row(members[i - 1][1].text[2:]))
        if after and leads(line, after) and (is_first_row or not is_row(line)):
            continue
        if rate == _NEWEST_REPORT and unit.weight >= _LEAST_TELLING:
            heavy = [one._replace(weight=unit.weight) for one in together]
            streams.setdefault((Group.REPORT, _TELLING), []).append(_bundled(heavy))
        else:
            streams.setdefault((Group.REPORT, rate), []).append(_bundled(together))
        depth, together = depth + 1, []
    return streams


class _Bundle(NamedTuple):
    """Units that come one after the other in the order, because they say something together."""

    units: Sequence[Unit]
    weight: float
    size: float
    place: int


def _bundled(units: Sequence[Unit]) -> _Bundle:
    size = sum(size_of(unit.text) + _AROUND for unit in units)
    return _Bundle(units, max(unit.weight for unit in units), size, units[0].place)


def _bundles(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Yield the user's sentences, those of a short message together."""
    for message, said in groupby(units, key=_message_of):
        together = list(said)
        if message >= 0 and sum(size_of(unit.text) for unit in together) <= _SHORT_MESSAGE:
            yield together
        else:
            yield from ([unit] for unit in together)


def _message_of(unit: Unit) -> int:
    return unit.message


def _by_weight(one: _Bundle) -> tuple[float, float, int]:
    return -one.weight, one.size, -one.place


def _by_value(one: _Bundle) -> tuple[float, float, int]:
    """Order by weight, less for what is long; what has no weight comes last by its weight."""
    size = (one.size + _EVEN_SIZE) ** _BY_SIZE
    return -(one.weight / size if one.weight > 0 else one.weight), one.size, -one.place


def size_of(text: str) -> float:
    """Return about how many tokens a text has; a character beyond ASCII is one."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars / _CHARS_PER_TOKEN + len(text) - ascii_chars


def _unit(entry: DigestEntry, place: int, position: int, count: int, cues: Cues) -> Unit:
    """Return the entry at `position` of the `count` in its group as a unit."""
    group = entry.group
    is_users = group is Group.TOLD
    weight, hard = _weighed(entry, position, count, cues)
    return Unit(entry.text, group, entry.source, is_users, hard, weight, place, entry.aside)


def _weighed(entry: DigestEntry, position: int, count: int, cues: Cues) -> tuple[float, bool]:
    """Return the weight of an entry in its group, and whether it is an order of the user."""
    line, _, notes = entry.text.partition("\n")
    recency = position / count
    match entry.group:
        case Group.FILES | Group.TOOLS | Group.NEXT | Group.TASKS:
            return -position, False
        case (
            Group.DONE | Group.OPEN | Group.REPOSITORY | Group.RUNNING | Group.EDITS | Group.CHECKS
        ):
            return recency, False
        case Group.FAILURES:
            return recency - (1 if notes else 0), False
    if is_done(entry.text):
        return _CARRIED_OUT + recency, False
    statement = Statement(line[2:], answers=notes, replaces=notes)
    values = values_in(line)
    is_agents = entry.group in (Group.AGENT, Group.REPORT)
    weight = weight_of(statement, cues, values, agent=is_agents)
    if _NAME.search(line):
        weight += _NAMED
    if entry.group is not Group.TOLD:
        weight += _SETBACK if cues.setbacks.found_in(line) else 0
        weight += _UNFINISHED if cues.unfinished.found_in(line) else 0
        label = _LABEL.match(line)
        weight += _STATE if label is not None and cues.states.found_in(label[0]) else 0
        if entry.group is Group.CARRIED:
            weight += _BINDING if cues.orders.found_in(line) or cues.aims.found_in(line) else 0
        return weight + recency, False
    strength = cues.orders.count_in(line)
    weight += _STRONGER * min(strength - 1, _MOST_STRONGER) if strength else 0
    if strength and cues.errands.count_in(line) >= strength:
        weight -= _ERRAND
    weight += _WISH if cues.wishes.found_in(line) else 0
    weight += _ROLE if cues.roles.found_in(line) else 0
    weight += _AIM if cues.aims.found_in(line) else 0
    weight += _DECIDED if cues.choices.found_in(line) else 0
    at_an_end = weight > 0 and (position < _FIRST or position >= count - _LAST)
    return weight + (_AT_AN_END if at_an_end else 0) + recency, bool(notes) or strength > 0


def _rate(unit: Unit) -> float:
    line, _, notes = unit.text.partition("\n")
    match unit.group:
        case Group.TOLD:
            return _users_rate(unit, line)
        case Group.AGENT:
            return _TELLING if unit.weight >= _LEAST_TELLING else _TALK
        case Group.FILES:
            if unit.aside:
                return _FILE_ASIDE
            return _CHANGED_FILE if any(verb in line for verb in CHANGED) else _OTHER_FILE
        case Group.FAILURES:
            return _RESOLVED_FAILURE if notes else _OPEN_FAILURE
    return _RATES[unit.group]


def _users_rate(unit: Unit, line: str) -> float:
    if unit.weight < 0:
        return _LITTLE
    if unit.hard:
        return _ORDERS
    return _USERS_FACTS if values_in(line) or _NAME.search(line) else _USERS_REST
