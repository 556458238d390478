"""`Snapshot`: how far a conversation had come when a plan was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from policyctx.planning.conversation import Conversation


class Snapshot(NamedTuple):
    """A moment of a conversation, which goes on growing afterwards."""

    items: int
    messages: int
    turns: int
    newest_user: int
    """Position of the newest message of the user, -1 without one."""
    pending: float
    """Position of the message with a call that is not answered yet, infinity without one."""
    changes: int
    """Fates changed up to here."""

    @classmethod
    def of(cls, conversation: Conversation) -> Snapshot:
        """Return the present moment."""
        reading = conversation.reading
        return cls(
            items=len(conversation.items),
            messages=reading.message_count,
            turns=len(reading.turn_starts),
            newest_user=conversation.newest_user,
            pending=float("inf") if reading.pending is None else reading.pending,
            changes=len(conversation.history),
        )
