"""Conversations as messages of OpenAI's Chat Completions, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages; each result is one."""
    found: list[Any] = []
    for one in said:
        if one.role == "tool":
            found += [
                {"role": "tool", "tool_call_id": each.id, "content": each.text}
                for each in one.results
            ]
            continue
        message: dict[str, Any] = {"role": one.role, "content": one.text or None}
        if one.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.tool,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in one.calls
            ]
        found.append(message)
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared."""
    found: list[Plain] = []
    for one in messages:
        text = one.get("content") or ""
        if one["role"] == "tool":
            found.append(("tool", (("result", one["tool_call_id"], text),)))
            continue
        calls = [
            ("call", call["id"], call["function"]["name"], _arguments(call))
            for call in one.get("tool_calls", ())
        ]
        found.append((one["role"], (*([("text", text)] if text else []), *calls)))
    return found


def _arguments(call: dict[str, Any]) -> str:
    return arguments(json.loads(call["function"]["arguments"]))
