"""Calls of a model in recordings whose format the package does not read yet: Codex and Pi.

Read only as far as a prompt's size needs it: the messages in the order of the file, what a
compaction left, and what was billed. Branches that were taken back are not told apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from policyctx.replay.model_call import ModelCall
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Record: TypeAlias = dict[str, Any]
Message: TypeAlias = dict[str, Any]


def records_of(path: Path) -> list[Record]:
    """Read JSON lines, leaving out those that are none."""
    records = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def codex_calls(records: Iterable[Record]) -> Iterator[ModelCall]:
    """Yield the calls of a Codex session: a reply's items come before the usage of its call."""
    messages: list[Message] = []
    sent: list[Message] | None = None
    model, billed = None, None
    for record in records:
        kind, payload = record.get("type"), record.get("payload") or {}
        if kind == "turn_context":
            model = payload.get("model", model)
        elif kind == "compacted":
            history = payload.get("replacement_history") or ()
            messages, sent = [m for item in history for m in _codex_message(item)], None
        elif kind == "response_item":
            if sent is None and _is_codex_reply(payload):
                sent = list(messages)
            messages.extend(_codex_message(payload))
        elif payload.get("type") == "token_count" and (info := payload.get("info")):
            usage = info["last_token_usage"]
            if info["total_token_usage"] != billed and sent is not None:
                cached = usage["cached_input_tokens"]
                yield ModelCall(sent, Usage(usage["input_tokens"] - cached, cached), model)
            billed, sent = info["total_token_usage"], None


def _is_codex_reply(item: Record) -> bool:
    return item.get("role") == "assistant" or item.get("type") in (
        "reasoning", "function_call", "custom_tool_call", "web_search_call",
    )  # fmt: skip


def _codex_message(item: Record) -> Iterator[Message]:
    """Turn an item into a chat message; reasoning is encrypted, so nothing of it shows."""
    kind = item.get("type")
    if kind == "message":
        yield {"role": item["role"], "content": item["content"]}
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") or item.get("input")
        function = {"name": item.get("name"), "arguments": arguments}
        yield {"role": "assistant", "tool_calls": [{"function": function}]}
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield {"role": "tool", "content": item.get("output")}


def pi_calls(records: Iterable[Record]) -> Iterator[ModelCall]:
    """Yield the calls of a Pi session: a reply holds the usage of its own call."""
    entries: list[tuple[Record, Message]] = []
    before: list[Message] = []
    for i, record in enumerate(records := list(records)):
        if record.get("type") == "compaction":
            before = [{"role": "user", "content": record["summary"]}]
            entries = [one for one in entries if _is_kept(one[0], record, records[:i])]
        message = record.get("message")
        if record.get("type") != "message" or not isinstance(message, dict):
            continue
        usage = message.get("usage")
        if message["role"] == "assistant" and usage:
            prompt = [*before, *(shown for _, shown in entries)]
            billed = Usage(usage["input"], usage["cacheRead"], usage["cacheWrite"])
            if billed.prompt:
                yield ModelCall(prompt, billed, message.get("model"))
        entries.append((record, _pi_message(message)))


def _is_kept(entry: Record, compaction: Record, before: list[Record]) -> bool:
    """Say whether an entry comes at or after the first that the compaction kept."""
    if "firstKeptEntryIndex" in compaction:
        first = compaction["firstKeptEntryIndex"]
    else:
        wanted = compaction["firstKeptEntryId"]
        first = next((i for i, r in enumerate(before) if r.get("id") == wanted), len(before))
    return any(entry is record for record in before[first:])


def _pi_message(message: Message) -> Message:
    content = message.get("content", message.get("output"))
    if message["role"] != "assistant":
        role = "tool" if message["role"] in ("toolResult", "bashExecution") else "user"
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        inner = [_pi_block(block) for block in blocks]
        result = [{"type": "tool_result", "content": inner}]
        return {"role": "user", "content": result if role == "tool" else inner}
    return {"role": "assistant", "content": [_pi_block(block) for block in content or ()]}


def _pi_block(block: Record) -> Record:
    if block.get("type") == "toolCall":
        return {"type": "tool_use", "name": block["name"], "input": block["arguments"]}
    if block.get("type") == "image":
        return {"type": "image", "source": {"type": "base64", "data": block.get("data")}}
    return block
