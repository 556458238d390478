"""The units of a summary in one order, what is kept longest first, and those that fit.

Each unit belongs to a stream, such as the user's orders or the changed files, and each stream has a
rate. Within a stream the heaviest unit comes first. The streams are merged as packets are by
weighted fair queueing: a unit's place is the size of its stream up to and with it, divided by the
rate. So any prefix of the order holds each stream in about the proportion of its rate, a stream
that has ended leaves its room to the others, and a larger limit never loses a unit.
"""

from __future__ import annotations

from typing import NamedTuple

from policyctx.compaction.extractive.files import FileState
from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.said import Quote, weight_of
from policyctx.compaction.extractive.state import Fact
from policyctx.compaction.extractive.texts import NAME, values_in
from policyctx.compaction.extractive.writing import Contents, Group, written


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
    streams: dict[tuple[Group, float], list[Unit]] = {}
    place = 0
    for group in Group:
        entries = contents.of(group)
        for position, one in enumerate(entries):
            rate, unit = _rated(one, group, position, len(entries), cues)
            streams.setdefault((group, rate), []).append(unit._replace(place=place))
            place += 1
    order: list[tuple[float, int, Unit]] = []
    for (_, rate), units in streams.items():
        size = _ABOVE
        for unit in sorted(units, key=_by_weight):
            size += size_of(unit.text) + _AROUND
            order.append((size / rate, unit.place, unit))
    return tuple(unit for *_, unit in sorted(order))


def size_of(text: str) -> float:
    """Return about how many tokens a text has; a character beyond ASCII is one."""
    ascii_chars = len(text.encode("ascii", "ignore"))
    return ascii_chars / _CHARS_PER_TOKEN + len(text) - ascii_chars


def _by_weight(unit: Unit) -> tuple[float, int]:
    return -unit.weight, -unit.place


def _rated(
    one: Quote | Fact | FileState, group: Group, position: int, count: int, cues: Cues
) -> tuple[float, Unit]:
    """Return the rate of an entry's stream, and the entry as a unit."""
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
        return _EARLIER, unit._replace(weight=weight + recency, hard=hard)
    if unit.group is Group.AGENT:
        rate = _TELLING if weight >= _LEAST_TELLING else _TALK
        return rate, unit._replace(weight=weight + recency)
    if weight < 0:
        return _LITTLE, unit._replace(weight=weight + recency)
    unit = unit._replace(weight=weight + recency, hard=hard)
    if hard:
        return _ORDERS, unit
    is_fact = values_in(quote.text) or NAME.search(quote.text)
    return (_USERS_FACTS if is_fact else _USERS_REST), unit
