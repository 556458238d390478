"""The items of OpenAI's Responses API, as the messages and calls of its chat API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.messages.items import compact_json
from policyctx.replay.readers.fields import Record, objects, word

if TYPE_CHECKING:
    from policyctx.messages.items import Message

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_ANSWERS = ("function_call_output", "custom_tool_call_output")
# What the provider did by itself while it replied, and the summary that it made.
_CARRIED = (
    "compaction", "compaction_summary", "context_compaction", "image_generation_call",
    "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip
IN_REPLY = frozenset(_CALLS + _CARRIED + ("reasoning",))
"""Types of items that a model writes, messages apart."""


def is_item(record: Record) -> bool:
    """Whether a record is an item without an envelope, as the oldest rollouts have them."""
    kind = word(record.get("type"))
    return kind in IN_REPLY or kind in _ANSWERS or (kind == "message" and "role" in record)


def message_of(item: Record) -> Message | None:
    """Return the message that an item is; None for calls and whatever is no message."""
    if item.get("type") != "message":
        return None
    return {"role": item.get("role"), "content": item.get("content")}


def tool_call(item: Record) -> dict[str, Any] | None:
    """Return the call that an item is, None when it is none."""
    kind, call_id = item.get("type"), word(item.get("call_id") or item.get("id"))
    if kind == "custom_tool_call":
        custom = {"name": item.get("name"), "input": item.get("input")}
        return {"id": call_id, "type": "custom", "custom": custom}
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
    elif kind == "local_shell_call":
        function = {"name": "local_shell", "arguments": compact_json(item.get("action"))}
    else:
        return None
    return {"id": call_id, "type": "function", "function": function}


def answer(item: Record) -> Message | None:
    """Return the result that an item is: its output is a text, a list of parts, or holds either."""
    if item.get("type") not in _ANSWERS:
        return None
    output = item.get("output")
    if isinstance(output, dict):
        output = output.get("content", compact_json(output))
    return {"role": "tool", "tool_call_id": word(item.get("call_id")), "content": output}


def part_of(item: Record) -> list[Record]:
    """Return what an item of a reply adds to the message's content.

    Reasoning shows its summary, or nothing where it has none.
    """
    kind = item.get("type")
    if kind == "message":
        content = item.get("content")
        return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    if kind == "reasoning":
        shown = objects(item.get("summary")) + objects(item.get("content"))
        text = "\n".join(word(part.get("text")) for part in shown)
        signature = word(item.get("encrypted_content"))
        return [{"type": "thinking", "thinking": text, "signature": signature}]
    return [item]
