"""Units: what a step removes together, from an item up to a whole turn.

A unit is made of whole messages. A call and its result belong to one unit, and so do all messages
that pairs connect. System messages belong to none.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, TypeAlias

from policyctx.messages.reading import Reading
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.planning.decisions import Reason
from policyctx.planning.outlook import Outlook

RemovedUnit: TypeAlias = Literal["item", "message", "group", "turn"]


def whole_unit(position: int, unit: RemovedUnit, outlook: Outlook) -> dict[int, Reason | None]:
    """Return what is left of the unit of an item: the items by position, each with the reason.

    The item itself comes first, without a reason; for one inside a result, that is the result.
    """
    items, reading = outlook.conversation.items, outlook.conversation.reading
    around = items[position].inside
    first = position if around is None else around
    found: dict[int, Reason | None] = {first: None}
    for message in sorted(_messages(items[first].message, unit, reading)):
        for i in reading.items_of(message):
            is_out = outlook.is_out(i, even_of_placeholders=True)
            if items[i].inside is None and not is_out:
                found.setdefault(i, Reason("with_unit", {"unit": unit}))
    return found


def stays_with(unit: RemovedUnit, reason: Reason) -> Reason:
    """Return why an item stays with its unit, in which something stays for this reason."""
    return Reason("unit_stays", {"unit": unit, "why": reason.sentence})


def _messages(message: int, unit: RemovedUnit, reading: Reading) -> set[int]:
    found: set[int] = set()
    todo = [message]
    while todo:
        new = [
            i
            for i in _bare_unit(todo.pop(), unit, reading)
            if i not in found and reading.roles[i] not in SYSTEM_ROLES
        ]
        found.update(new)
        for one in new:
            bound = (other for i in reading.items_of(one) for other in reading.bound_to(i))
            todo += {reading.items[other].message for other in bound} - found
    return found


def _bare_unit(message: int, unit: RemovedUnit, reading: Reading) -> range:
    """Return the messages of a unit without those that pairs add."""
    if unit == "group":
        return reading.reply_of(message)
    if unit == "turn":
        starts = reading.turn_starts
        turn = bisect_right(starts, message)
        first = starts[turn - 1] if turn else 0
        return range(first, starts[turn] if turn < len(starts) else reading.message_count)
    return range(message, message + 1)
