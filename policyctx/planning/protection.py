"""What no step may take, whatever the policy says, because the loop still needs it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import UNKNOWN
from policyctx.planning.decisions import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Item

# Types that no step offloads: the system prompt carries the rules, thinking is signed, a call's
# input must stay an object, and images and documents are not text.
_NEVER_OFFLOADED = {
    "system_prompt": "the system prompt stays",
    "thinking": "the bytes of thinking are signed",
    "tool_call": "a call keeps its input",
    "image": "an image is no text",
    "document": "a document is no text",
    UNKNOWN: "a block of a kind not known here stays",
}


def protected(items: Sequence[Item], *, with_pending: bool = True) -> dict[int, Reason]:
    """Return, by position in `items`, each item that is never taken, with the reason.

    These are the types that cannot be offloaded, the newest user message, and a pending call with
    all after it. A call is pending while it has no answer and no later assistant message shows
    that the agent went on without one; an abandoned call stays itself, but holds nothing else.
    """
    found: dict[int, Reason] = {}
    pending = _first_pending(items) if with_pending else float("inf")
    newest = max((item.message for item in items if item.kind == "user_message"), default=-1)
    for i, item in enumerate(items):
        if item.message >= pending:
            found[i] = Reason("answer_pending")
        elif item.kind in _NEVER_OFFLOADED:
            found[i] = Reason("protected", {"why": _NEVER_OFFLOADED[item.kind]})
        elif item.kind == "user_message" and item.message == newest:
            found[i] = Reason("protected", {"why": "the newest user message stays"})
    return found


def _first_pending(items: Sequence[Item]) -> float:
    """The position of the newest assistant message if it has an unanswered call, else infinity."""
    newest = max((item.message for item in items if item.role == "assistant"), default=-1)
    calls = sum(item.kind == "tool_call" and item.message == newest for item in items)
    answers = sum(item.kind == "tool_result" and item.call_message == newest for item in items)
    return newest if answers < calls else float("inf")
