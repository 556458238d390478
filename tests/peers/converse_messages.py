"""Conversations as messages of Bedrock's Converse API, which Strands uses, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages; the results of one reply are one message of the user."""
    found: list[Any] = []
    for one in said:
        blocks: list[Any] = [{"text": one.text}] if one.text else []
        blocks += [
            {"toolUse": {"toolUseId": call.id, "name": call.tool, "input": call.arguments}}
            for call in one.calls
        ]
        blocks += [
            {
                "toolResult": {
                    "toolUseId": each.id,
                    "status": "success",
                    "content": [{"text": each.text}],
                }
            }
            for each in one.results
        ]
        role = "assistant" if one.role == "assistant" else "user"
        found.append({"role": role, "content": blocks})
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared."""
    return [(one["role"], tuple(map(_block, one["content"]))) for one in messages]


def _block(block: Any) -> tuple[str, ...]:
    if "toolUse" in block:
        call = block["toolUse"]
        return "call", call["toolUseId"], call["name"], arguments(call["input"])
    if "toolResult" in block:
        result = block["toolResult"]
        return "result", result["toolUseId"], "".join(one["text"] for one in result["content"])
    return "text", block["text"]
