"""Conversations as messages of Agent Framework, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_framework import Content, Message

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages; the results of one reply are one message."""
    found: list[Any] = []
    for one in said:
        contents = [Content.from_text(one.text)] if one.text else []
        contents += [
            Content.from_function_call(call.id, call.tool, arguments=json.dumps(call.arguments))
            for call in one.calls
        ]
        contents += [
            Content.from_function_result(each.id, result=each.text) for each in one.results
        ]
        found.append(Message(one.role, contents))
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared."""
    return [(str(one.role), tuple(map(_block, one.contents))) for one in messages]


def _block(content: Any) -> tuple[str, ...]:
    if content.type == "function_call":
        given = arguments(json.loads(content.arguments))
        return "call", content.call_id, content.name, given
    if content.type == "function_result":
        return "result", content.call_id, str(content.result)
    return "text", content.text
