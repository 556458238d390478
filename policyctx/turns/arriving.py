"""Find the call that an arriving result answers.

A loop appends the model's reply to its list before it runs the tools, so the call is in the list
that the session was given last, mostly behind the messages that the session has seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import call_key
from policyctx.turns.known_list import KnownList


def call_of(
    message: Message, known: KnownList | None, since: Sequence[Message], shapes: Shapes
) -> Message | None:
    """Return the newest message with a call that a result in `message` answers, None for none.

    `since` are the messages that follow the known list. In the known list only calls without a
    result count. A message that cannot be read has no calls.
    """
    keys = _keys(message, "tool_result", shapes)
    if not keys:
        return None
    for asked in reversed(since):
        if not keys.isdisjoint(_keys(asked, "tool_call", shapes)):
            return asked
    if known is None:
        return None
    calls = filter(None, map(known.conversation.reading.open_call, keys))
    newest = max((call.message for call in calls), default=None)
    return None if newest is None else known.given[newest]


def _keys(message: Message, kind: str, shapes: Shapes) -> set[object]:
    """Return the keys by which items of a kind in a message are paired."""
    try:
        items = items_of([message], shapes)
    except MessagesError:  # raised again, with its place, when the message is read to decide
        return set()
    return {call_key(item) for item in items if item.kind == kind} - {None}
