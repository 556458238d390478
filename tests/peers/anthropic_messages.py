"""Conversations as messages of Anthropic's API, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages; the results of one reply are one message of the user."""
    found: list[Any] = []
    for one in said:
        blocks: list[Any] = [{"type": "text", "text": one.text}] if one.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
            for call in one.calls
        ]
        blocks += [
            {"type": "tool_result", "tool_use_id": each.id, "content": each.text}
            for each in one.results
        ]
        role = "assistant" if one.role == "assistant" else "user"
        found.append({"role": role, "content": blocks})
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared."""
    return [(one["role"], tuple(map(_block, one["content"]))) for one in messages]


def _block(block: Any) -> tuple[str, ...]:
    if block["type"] == "tool_use":
        return "call", block["id"], block["name"], arguments(block["input"])
    if block["type"] == "tool_result":
        return "result", block["tool_use_id"], block["content"]
    return "text", block["text"]
