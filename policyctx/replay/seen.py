"""`SeenItem`: what an item of a session said, and when it was out of the context.

A replay keeps these only for a report that shows them: everything else about a session is numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.planning.facts import Facts
    from policyctx.replay.part import Absence, Part


@dataclass(frozen=True, slots=True)
class SeenItem:
    """One item as it was recorded, its text no longer than the limit that was asked for."""

    part: int
    """Of the session, from 0 on; with `position` the same as a `Removal` has."""
    position: int
    message: int
    """Position of its message in the list as it was recorded, in its part."""
    role: str
    item_type: str
    tool: str | None
    item_id: str
    error: bool
    tokens: int
    chars: int
    """Of its whole text, without the bytes of media."""
    media: int
    """Images, documents and sounds in it."""
    arrived: int
    """The first call of a model that had it; one more than any when it came after them."""
    inside: bool
    """Does it stand inside a result that is an item itself."""
    text: str
    absences: tuple[Absence, ...] = ()
    """When it was not in the context as it was, and the beginning of what stood in its place."""


def seen_items(number: int, part: Part, facts: Facts, *, limit: int) -> Iterator[SeenItem]:
    """Yield the items of a part; texts are cut after `limit` characters."""
    for position, item in enumerate(part.items):
        absences = part.absences.get(position, ())
        yield SeenItem(
            part=number,
            position=position,
            message=item.message,
            role=item.role,
            item_type=item.type,
            tool=item.tool,
            item_id=item.item_id,
            error=item.error,
            tokens=facts.tokens(item),
            chars=len(item.counted),
            media=len(item.media),
            arrived=part.arrived(position),
            inside=item.inside is not None,
            text=item.counted[:limit],
            absences=tuple(replace(one, left=one.left[:limit]) for one in absences),
        )
