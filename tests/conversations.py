"""Short conversations for tests."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]


def user(text: str = "go on") -> Message:
    return {"role": "user", "content": text}


def calls(*calls: tuple[str, str]) -> Message:
    """An assistant message with a call for each (id, tool)."""
    blocks = [{"type": "tool_use", "id": id_, "name": tool, "input": {}} for id_, tool in calls]
    return {"role": "assistant", "content": blocks}


def results(*results: tuple[str, Any], error: bool = False) -> Message:
    """A user message with a result for each (id, content)."""
    extra = {"is_error": True} if error else {}
    blocks = [
        {"type": "tool_result", "tool_use_id": id_, "content": content, **extra}
        for id_, content in results
    ]
    return {"role": "user", "content": blocks}


def session_of(*contents: Any, tool: str = "Bash") -> list[Message]:
    """A task, then a call of the tool and its result for each content; ids are c0, c1, …"""
    messages = [user("the task")]
    for i, content in enumerate(contents):
        messages += [calls((f"c{i}", tool)), results((f"c{i}", content))]
    return messages
