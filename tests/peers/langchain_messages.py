"""Conversations as messages of LangChain, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.peers.said import Plain, Said, arguments

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages; each result is one."""
    found: list[Any] = []
    for one in said:
        if one.role == "user":
            found.append(HumanMessage(one.text))
        elif one.role == "assistant":
            calls = [{"name": c.tool, "args": c.arguments, "id": c.id} for c in one.calls]
            found.append(AIMessage(one.text, tool_calls=calls))
        else:
            found += [
                ToolMessage(each.text, tool_call_id=each.id, name=each.tool) for each in one.results
            ]
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared."""
    found: list[Plain] = []
    for one in messages:
        if one.type == "tool":
            found.append(("tool", (("result", one.tool_call_id, one.text),)))
            continue
        text = (("text", one.text),) if one.text else ()
        calls = [
            ("call", c["id"], c["name"], arguments(c["args"]))
            for c in getattr(one, "tool_calls", ())
        ]
        found.append((_ROLES[one.type], (*text, *calls)))
    return found
