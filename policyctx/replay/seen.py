"""`SeenItem`: what an item of a session said, when it was out of the context, and why it stayed.

A replay keeps these only for a report that shows them: everything else about a session is numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policyctx.replay.timeline import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.messages.items import Item
    from policyctx.planning.plan import Plan
    from policyctx.replay.part import Absence, Part
    from policyctx.replay.recorded_items import RecordedItems


@dataclass(frozen=True, slots=True)
class Kept:
    """Why an item was still in the context at the last call of its list."""

    call: int
    """The number of that call, at which the reason is true."""
    step: str
    """The last step that might have taken it."""
    reason: str
    """With its code: `recent: 2nd newest of Read, 3 kept`."""
    rule: str
    place: str
    """`file:line` of what says so; empty when nothing in a file does."""


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
    """Of its whole text."""
    media: int
    """Images, documents and sounds in it."""
    arrived: int
    """The first call of a model that had it; one more than any when it came after them."""
    inside: bool
    """Does it stand inside a result that is an item itself."""
    text: str
    """Without the bytes of media; of a result in blocks of text, what these say."""
    absences: tuple[Absence, ...] = ()
    """When it was not in the context as it was, and the beginning of what stood in its place."""
    kept: Kept | None = None
    """None for what was out at the last call, came after it, or is selected by no step."""


def seen_items(
    number: int, part: Part, plan: Plan, recorded: RecordedItems, *, limit: int
) -> Iterator[SeenItem]:
    """Yield the items of a part; `plan` is its last, and texts are cut after `limit` characters."""
    facts, kept = plan.facts, dict(_kept(part, plan, recorded))
    for position, item in enumerate(part.items):
        text = _said(item) if item.kind == "tool_result" else item.counted
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
            chars=len(text),
            media=len(item.media),
            arrived=part.arrived(position),
            inside=item.inside is not None,
            text=text[:limit],
            absences=tuple(replace(one, left=one.left[:limit]) for one in absences),
            kept=kept.get(position),
        )


def _said(result: Item) -> str:
    """Return the texts of a result that is a list of such blocks, each on its own line."""
    text = result.counted
    if not text.startswith('[{"t'):
        return text
    try:
        blocks = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not all(isinstance(b, dict) and b.keys() == {"type", "text"} for b in blocks):
        return text
    return "\n".join(str(block["text"]) for block in blocks)


def _kept(part: Part, plan: Plan, recorded: RecordedItems) -> Iterator[tuple[int, Kept]]:
    """Yield what a step might have taken and did not, by position, as the last plan explains it."""
    policy = plan.conversation.policy
    for decision in plan.decisions:
        position = recorded.position(plan.conversation, decision.position)
        if position is None or _is_out(part, position):
            continue
        place = place_of(policy, decision.rule_path)
        reason = str(decision.reason)
        yield position, Kept(part.last_call, decision.step, reason, decision.rule, place)


def _is_out(part: Part, position: int) -> bool:
    """Was the item out at the last call, by itself or with the result that it stands in."""
    around = part.items[position].inside
    places = (position,) if around is None else (position, around)
    return any(part.absence(place, part.last_call) is not None for place in places)
