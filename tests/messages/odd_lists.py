"""A Hypothesis strategy for message lists that no provider would take.

They have few ids, any order, and messages of any shape.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from policyctx.definitions.items import Message

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
PDF = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "EqoB"}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "字"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str | None, tool: str = "read") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": {"path": "x", "of": ["y"]}}


def result(call_id: str | None, content: Any = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def chat_call(call_id: str | None, arguments: Any = '{"path": "x"}') -> dict[str, Any]:
    function = {"name": "read", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def assistant(*blocks: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> Message:
    return {"role": "user", "content": list(blocks)}


def chat_calls(*calls: dict[str, Any], content: Any = None) -> Message:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answer(call_id: str | None, content: Any = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


LEGACY_CALL: Message = {
    "role": "assistant",
    "content": None,
    "function_call": {"name": "read", "arguments": '{"path": "x"}'},
}
LEGACY_ANSWER: Message = {"role": "function", "name": "read", "content": "found"}


def item_call(call_id: str | None, kind: str = "function_call") -> Message:
    inputs: dict[str, Any] = {
        "function_call": {"name": "read", "arguments": '{"path": "x"}'},
        "custom_tool_call": {"name": "write", "input": "raw"},
        "local_shell_call": {"action": {"type": "exec", "command": ["ls"]}},
    }
    return {"type": kind, "call_id": call_id, **inputs[kind]}


def output(call_id: str | None, content: Any = "found") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


REASONING: Message = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
COMPACTION: Message = {"type": "compaction", "encrypted_content": "gAAA"}
INPUT_IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}


def said(role: str, *parts: dict[str, Any]) -> Message:
    return {"type": "message", "role": role, "content": list(parts)}


_MESSAGES: tuple[Message, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "system", "content": [text("Be"), text("brief.")]},
    {"role": "user", "content": "go"},
    {"role": "user", "content": ""},
    {"role": "user", "content": None},
    {"role": "assistant", "content": "done"},
    {"role": "assistant", "content": []},
    {"role": "assistant", "content": "done", "reasoning_content": "hm"},
    user(text("look"), IMAGE, text("here")),
    assistant(THINKING, REDACTED, text("hello")),
    assistant(THINKING, call("a")),
    assistant(SEARCH, text("searching")),
    assistant(text("both"), call("a"), call("b", "search")),
    assistant(call("a"), call("a", "write")),
    assistant(call("b"), call(None)),
    user(result("a")),
    user(result("b"), text("and?")),
    user(result("a", [text("seen"), IMAGE, SEARCH, IMAGE]), result("b", [PDF])),
    user(result("a", []), result("a", None), result(None)),
    chat_calls(chat_call("a"), chat_call("b", {"path": "x"})),
    chat_calls(chat_call("b"), content="reading"),
    chat_calls({"id": "a", "type": "custom", "custom": {"name": "write", "input": "raw"}}),
    answer("a"),
    answer("b", [text("seen"), {"type": "image_url", "image_url": {"url": "data:image/gif,x"}}]),
    answer("b", [IMAGE]),
    answer(None, None),
    LEGACY_CALL,
    LEGACY_ANSWER,
)
_ITEMS: tuple[Message, ...] = (
    said("user", {"type": "input_text", "text": "look"}, INPUT_IMAGE),
    said("assistant", {"type": "output_text", "text": "done"}),
    said("developer", {"type": "input_text", "text": "Be brief."}),
    said("assistant"),
    REASONING,
    REASONING | {"summary": [{"type": "summary_text", "text": "hm"}]},
    COMPACTION,
    {"type": "item_reference", "id": "msg_1"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    item_call("a"),
    item_call("b", "custom_tool_call"),
    item_call("b", "local_shell_call"),
    item_call(None),
    output("a"),
    output("b", [{"type": "input_text", "text": "seen"}, INPUT_IMAGE, INPUT_IMAGE]),
    output("b", [INPUT_IMAGE]),
    output("a", []),
    output(None, None),
)


def odd_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists of 0 to 12 messages that share no object."""
    mixed = st.lists(st.sampled_from((*_MESSAGES, *_ITEMS)), max_size=12)
    alike = (st.lists(st.sampled_from(some), max_size=12) for some in (_MESSAGES, _ITEMS))
    return st.one_of(*alike, mixed).map(lambda found: [deepcopy(message) for message in found])
