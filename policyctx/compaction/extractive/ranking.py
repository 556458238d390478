"""The units of a summary in one order: what is kept longest comes first.

A unit is an entry of the summary: it is kept whole or left out. Each unit belongs to a stream, such
as the user's orders or the files that were changed, and each stream has a rate. Within a stream the
heaviest unit comes first. The streams are merged as packets are by weighted fair queueing: a unit's
place is the size of its stream up to and with it, divided by the rate. So any prefix of the order
holds each stream in about the proportion of its rate, a stream that has ended leaves its room to
the others, and no limit is needed to find the order.

Within a stream:

- of the user's words those come first that bind or have an exact value, and the first and the last
  of them: the task, and what it has become;
- of the files those that were changed, the one used last first;
- of the rest those that tell most, of equals the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Group, Statement
from policyctx.compaction.extractive.statements import values_in, weight_of
from policyctx.compaction.extractive.work import CHANGED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import DigestEntry


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


# Rates of the streams. The user's orders have the largest, because nobody else can repeat them.
# What another writer's summary holds may be all that is left of what the user said before it.
_ORDERS, _USERS_FACTS, _USERS_REST, _LITTLE = 45.0, 20.0, 6.0, 1.0
_TELLING, _TALK = 12.0, 3.0
_OPEN_FAILURE, _RESOLVED_FAILURE = 5.0, 2.0
_CHANGED_FILE, _OTHER_FILE = 6.0, 1.5
_RATES = {
    Group.PASTED: 2.0,
    Group.FOUND: 8.0,
    Group.CARRIED: 25.0,
    Group.TOOLS: 0.7,
    Group.REPOSITORY: 4.0,
    Group.RUNNING: 6.0,
    Group.DONE: 8.0,
    Group.NEXT: 6.0,
    Group.OPEN: 8.0,
}
_LEAST_TELLING = 2.0
# The task is in the first of the user's words; the last are what it has become.
_FIRST, _LAST, _AT_AN_END = 2, 4, 3.0
# Characters to a token, and the tokens that an entry takes beside its text.
_CHARS_PER_TOKEN, _AROUND = 4, 2


def ranked(entries: Sequence[DigestEntry], cues: Cues) -> tuple[Unit, ...]:
    """Return the entries as units, the one that is kept longest first.

    The order depends on the entries alone.
    """
    groups: dict[Group, list[tuple[int, DigestEntry]]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault(entry.group, []).append((place, entry))
    streams: dict[tuple[Group, float], list[Unit]] = {}
    for members in groups.values():
        for position, (place, entry) in enumerate(members):
            unit = _unit(entry, place, position, len(members), cues)
            streams.setdefault((entry.group, _rate(unit)), []).append(unit)
    order: list[tuple[float, int, Unit]] = []
    for (_, rate), units in streams.items():
        size = 0.0
        for unit in sorted(units, key=lambda one: (-one.weight, len(one.text), -one.place)):
            size += size_of(unit.text) + _AROUND
            order.append((size / rate, unit.place, unit))
    return tuple(unit for _, _, unit in sorted(order))


def size_of(text: str) -> float:
    """Return about how many tokens a text has; a character beyond ASCII is one."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars / _CHARS_PER_TOKEN + len(text) - ascii_chars


def _unit(entry: DigestEntry, place: int, position: int, count: int, cues: Cues) -> Unit:
    """Return the entry at `position` of the `count` in its group as a unit."""
    group = entry.group
    is_users = group is Group.TOLD
    weight, hard = _weighed(entry, position, count, cues)
    return Unit(entry.text, group, entry.source, is_users, hard, weight, place)


def _weighed(entry: DigestEntry, position: int, count: int, cues: Cues) -> tuple[float, bool]:
    """Return the weight of an entry in its group, and whether it is an order of the user."""
    line, _, notes = entry.text.partition("\n")
    recency = position / count
    match entry.group:
        case Group.FILES | Group.TOOLS | Group.NEXT:
            return -position, False
        case Group.DONE | Group.OPEN | Group.REPOSITORY | Group.RUNNING:
            return recency, False
        case Group.FAILURES:
            return recency - (1 if notes else 0), False
    statement = Statement(line[2:], answers=notes, replaces=notes)
    values = values_in(line)
    weight = weight_of(statement, cues, values, agent=entry.group is Group.AGENT)
    if entry.group is not Group.TOLD:
        return weight + recency, False
    at_an_end = position < _FIRST or position >= count - _LAST
    hard = bool(notes) or cues.orders.found_in(line)
    return weight + (_AT_AN_END if at_an_end else 0) + recency, hard


def _rate(unit: Unit) -> float:
    line, _, notes = unit.text.partition("\n")
    match unit.group:
        case Group.TOLD:
            return _users_rate(unit, line)
        case Group.AGENT:
            return _TELLING if unit.weight >= _LEAST_TELLING else _TALK
        case Group.FILES:
            return _CHANGED_FILE if any(verb in line for verb in CHANGED) else _OTHER_FILE
        case Group.FAILURES:
            return _RESOLVED_FAILURE if notes else _OPEN_FAILURE
    return _RATES[unit.group]


def _users_rate(unit: Unit, line: str) -> float:
    if unit.weight < 0:
        return _LITTLE
    if unit.hard:
        return _ORDERS
    return _USERS_FACTS if values_in(line) else _USERS_REST
