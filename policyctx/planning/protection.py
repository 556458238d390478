"""What no step may take for the time being, because the loop still needs it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.planning.reasons import Reason

if TYPE_CHECKING:
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.snapshot import Checkpoint
    from policyctx.policy.models import Step

_NEWEST = Reason("protected", {"why": "the newest user message stays"})
_THINKING = Reason("protected", {"why": "the thinking of the current turn stays"})
_PENDING = Reason("answer_pending")


def protection(
    conversation: Conversation, position: int, step: Step, at: Checkpoint
) -> Reason | None:
    """Return why the item cannot be taken yet, None when nothing holds it.

    These are the newest user message, a pending call with all after it, any call without an
    answer, and thinking of the current turn. A call is pending while it has no answer and no later
    assistant message shows that the agent went on without one; an abandoned call stays itself, but
    holds nothing else. While results arrive one by one, calls made together with them still run,
    so on arrival only the calls themselves are held.
    """
    item = conversation.items[position]
    if item.message >= at.pending and step.on == "model_call":
        return _PENDING
    if item.kind == "tool_call":
        result = conversation.reading.partners.get(position)
        if result is None or result >= at.items:
            return _PENDING
    if item.kind == "user_message" and item.message == at.newest_user:
        return _NEWEST
    if item.kind == "thinking" and item.turn == at.turns:
        return _THINKING
    return None
