"""`EditsToCome`: the first place of a list that a policy could still change, call after call."""

from __future__ import annotations

from policyctx.messages.cache_blocks import MarkedBlock, block_at
from policyctx.planning.anchors import Removable
from policyctx.planning.conversation import Conversation
from policyctx.replay.recording import MarkedPlace
from policyctx.turns.result import Result
from policyctx.turns.sources import position_of


class EditsToCome:
    """Follows a session; a call costs what is new in it."""

    def __init__(self) -> None:
        self._in: Conversation | None = None
        self._removable: Removable | None = None

    def first(self, result: Result) -> MarkedPlace | None:
        """Return the first block behind the newest edit that could still change, None if none."""
        plan = result.plan
        if self._removable is None or self._in is not plan.conversation:
            self._in = plan.conversation
            self._removable = Removable(plan.conversation, plan.candidates.values())
        if result.compacted or (position := self._removable.first()) is None:
            return None
        item = plan.conversation.items[position]
        place = position_of(result.source_ranges, item.message)
        if place is None:
            return None
        return MarkedPlace(place, MarkedBlock(block_at(result.messages[place], item.path)))
