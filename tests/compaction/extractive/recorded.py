"""Recorded sessions as messages: all of what was said and done, in order, in three formats."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from policyctx.messages.reading import items_of
from policyctx.replay.recording import read_recording

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tests.compaction.extractive.sessions import Message

FOLDERS = ("claude-code", "codex", "pi")

# What a program wrote in the user's name: elements, caveats, notes in brackets, summaries, skills.
BY_A_PROGRAM = re.compile(
    r"\s*(<|Caveat:|\[Request|# AGENTS|This session is being continued|Base directory for)"
)
# A longer text is a document, not a few sentences.
LONGEST_MESSAGE = 1_200


def recorded_messages(path: Path) -> list[Message]:
    """Return the messages of a recording."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.parent.name == "claude-code":
        recording = read_recording(lines)
        return [] if recording is None else recording.messages
    records = _records(lines)
    found = _codex(records) if path.parent.name == "codex" else _pi(records)
    return [message for message in found if message.get("content") or message.get("tool_calls")]


def _records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _codex(records: Iterable[dict[str, Any]]) -> Iterator[Message]:
    for record in records:
        item = record["payload"] if record.get("type") == "response_item" else {}
        kind = item.get("type")
        if kind == "message":
            yield {"role": item["role"], "content": item["content"]}
        elif kind in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input", ""))
            function = {"name": item["name"], "arguments": arguments}
            call = {"id": item["call_id"], "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}


def _pi(records: Iterable[dict[str, Any]]) -> Iterator[Message]:
    for record in records:
        message = record.get("message") if record.get("type") == "message" else None
        if message is None or message["role"] not in ("user", "assistant", "toolResult"):
            continue
        if message["role"] == "toolResult":
            result = {"type": "tool_result", "tool_use_id": message["toolCallId"]}
            said = {"content": message["content"], "is_error": message.get("isError", False)}
            yield {"role": "user", "content": [result | said]}
            continue
        blocks = message["content"]
        for i, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if block.get("type") == "toolCall":
                call = {"id": block["id"], "name": block["name"], "input": block["arguments"]}
                blocks[i] = {"type": "tool_use", **call}
        yield {"role": message["role"], "content": blocks}


def pieces(messages: Sequence[Message], count: int) -> list[list[Message]]:
    """Cut a list into so many pieces, none of which begins with a result."""
    results = {item.message for item in items_of(messages) if item.kind == "tool_result"}
    cuts = [0]
    for number in range(1, count):
        cut = max(len(messages) * number // count, cuts[-1])
        while cut < len(messages) and cut in results:
            cut += 1
        cuts.append(cut)
    bounds = [*cuts, len(messages)]
    return [list(messages[a:b]) for a, b in pairwise(bounds) if a < b]


def instructions(messages: Sequence[Message]) -> list[str]:
    """Return the sentences that the user typed, spaces evened out."""
    typed = [
        item.text
        for item in items_of(messages)
        if item.kind == "user_message"
        and not BY_A_PROGRAM.match(item.text)
        and len(item.text) <= LONGEST_MESSAGE
    ]
    sentences = (
        " ".join(sentence.split())
        for text in typed
        for line in text.split("\n")
        for sentence in re.split(r"(?<=[.!?])\s+", line)
    )
    return [sentence for sentence in sentences if re.search(r"[^\W\d]", sentence)]
