"""Conversations as items of the Responses API, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the items; each message, call and result is one."""
    found: list[Any] = []
    for one in said:
        if one.text:
            found.append({"type": "message", "role": one.role, "content": one.text})
        found += [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.tool,
                "arguments": json.dumps(call.arguments, ensure_ascii=False),
            }
            for call in one.calls
        ]
        found += [
            {"type": "function_call_output", "call_id": each.id, "output": each.text}
            for each in one.results
        ]
    return found


def plain(items: Sequence[Any]) -> list[Plain]:
    """Return items as they are compared: each is a message."""
    found: list[Plain] = []
    for one in items:
        if one["type"] == "function_call":
            given = arguments(json.loads(one["arguments"]))
            found.append(("assistant", (("call", one["call_id"], one["name"], given),)))
        elif one["type"] == "function_call_output":
            found.append(("tool", (("result", one["call_id"], one["output"]),)))
        else:
            found.append((one["role"], (("text", one["content"]),)))
    return found
