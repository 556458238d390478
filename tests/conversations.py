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


def call(call_id: str, tool: str, arguments: Any) -> Message:
    """An assistant message with one call with this input."""
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
    return {"role": "assistant", "content": [block]}


def thinking(text: str = "hm", signature: str = "EqoB") -> dict[str, Any]:
    """A block of thinking."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def picture(data: str = "iVBORw0KGgo=") -> dict[str, Any]:
    """A block with an image."""
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def chat_calls(*calls: tuple[str, str, str], content: str | None = None) -> Message:
    """An assistant message of the chat API with a call for each (id, tool, arguments)."""
    made = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for id_, tool, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def chat_result(call_id: str, content: Any) -> Message:
    """A result of the chat API."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
