"""Items of OpenAI's Responses API: messages, calls, results and reasoning, each an item of its own.

Source: OpenAI's API reference, "Create a response", `input`. Reasoning keeps its bytes and its
place before what it led to. Items that the provider itself carries out, and items of other types,
are left unchanged; what no summary could tell survives a compaction.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING

from policyctx.definitions.items import Medium
from policyctx.messages.json_text import compact_json
from policyctx.messages.shapes import blocks
from policyctx.messages.shapes.anthropic import edit_content
from policyctx.messages.shapes.media import medium_of
from policyctx.messages.shapes.sdk_objects import without_none
from policyctx.messages.shapes.shape import Part, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from policyctx.definitions.items import Message, Path
    from policyctx.messages.json_text import JSON

# The field with the input of a call, and the one with the output of a result, by type of item.
_INPUTS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
# The place of a picture, as base64 text or a data URL, by the type of an item that the provider or
# the computer of the agent makes.
_PICTURES: dict[str, tuple[str, ...]] = {
    "image_generation_call": ("result",),
    "computer_call_output": ("output", "image_url"),
}
# A search is known, but its results are with the provider.
_KNOWN = frozenset({*_INPUTS, *_OUTPUTS, "message", "reasoning", "web_search_call"})
# What Anthropic's API adds to a message of this type in a response.
_OF_ANTHROPIC = frozenset({"usage", "stop_reason"})


class ResponsesShape(Shape):
    """Reads and edits the items of the Responses API; a reply of the model is several of them."""

    splits_replies = True

    def recognises(self, message: object) -> bool:
        """Return whether this is a dict with the type of an item rather than of a block."""
        if not isinstance(message, dict) or not isinstance(kind := message.get("type"), str):
            return False
        if kind == "message":
            return "role" in message and _OF_ANTHROPIC.isdisjoint(message)
        return "role" not in message and kind not in blocks.BLOCK_TYPES

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with a message's role or content, or with the input of a call."""
        kind = message["type"]
        if kind == "message":
            return (
                blocks.wrong_with_role(message)
                or blocks.wrong_with_content(message)
                or blocks.wrong_with_blocks(message)
            )
        field = _INPUTS.get(kind)
        given = None if field is None else message.get(field)
        if kind != "local_shell_call" and given is not None and not isinstance(given, str):
            return f'expected "{field}" to be a string, got {blocks.named(given)}'
        return None

    def role(self, message: Message) -> str:
        """Return the role of a message; a result has the role `tool`, any other `assistant`."""
        kind: str = message["type"]
        if kind == "message":
            role: str = message["role"]
            return role
        return "tool" if kind.endswith("_output") else "assistant"

    def parts(self, message: Message) -> list[Part]:
        """Return the parts of a message; any other item is one part, with the media in a result."""
        kind = message["type"]
        if kind == "message":
            return blocks.content_parts(message.get("content"), message["role"])
        if kind in _INPUTS:
            return [_call(message)]
        if kind in _OUTPUTS:
            return blocks.result_parts(("output",), message.get("output"), _call_id(message))
        if kind == "reasoning":
            return [_reasoning(message)]
        if kind in _PICTURES:
            return [_picture(message)]
        return [blocks.unknown_part((), message)]

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a deep copy with the parts at these paths edited; None if nothing is left."""
        kind = message["type"]
        new = blocks.copied(message)
        for path in sorted(texts, reverse=True):  # so that a removal moves no later block
            text = texts[path]
            if len(path) > 1:
                edit_content(new, path, text, is_result=path[0] == "output")
            elif text is None:
                return None
            else:
                new[path[0]] = json.loads(text) if kind == "local_shell_call" else text
        return None if self.is_empty(new) else new

    def written(self, role: str, text: str) -> Message:
        """Return an item of the type `message` with one part."""
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    def plain(self, message: Message) -> JSON:
        """Return the item without the fields that are None."""
        return without_none(message)  # type: ignore[return-value]

    def block(self, message: Message, path: Path) -> JSON:
        """Return the content part at the path, or the whole item."""
        plain: JSON = blocks.plain_block(message, path)
        return plain

    def is_empty(self, message: Message) -> bool:
        """Return whether this is a message without content."""
        return message["type"] == "message" and not message.get("content")

    def stays(self, message: Message) -> bool:
        """Return whether the item is of another type, such as a reference or a compaction."""
        return message["type"] not in _KNOWN


def is_plain_item(item: Message) -> bool:
    """Return whether a quick test shows a correct call of a function or its result."""
    kind = item.get("type")
    if kind == "function_call":
        return type(item.get("arguments")) is str and "role" not in item
    return kind == "function_call_output" and "role" not in item


def _call(item: Message) -> Part:
    kind: str = item["type"]
    field = _INPUTS[kind]
    given = item.get(field)
    text = given if isinstance(given, str) else compact_json(given)
    tool = "local_shell" if kind == "local_shell_call" else blocks.word(item.get("name"))
    return Part((field,), "tool_call", text, text, (), tool, _call_id(item))


def _picture(item: Message) -> Part:
    """Return an item of an unknown type whose picture counts by its pixels, not by its bytes."""
    *outer, name = _PICTURES[item["type"]]
    part, bare = blocks.unknown_part((), item), blocks.copied(item)
    holder = bare
    for key in outer:
        holder = holder.get(key)
        if not isinstance(holder, dict):
            return part
    picture = holder.pop(name, None)
    if not isinstance(picture, str) or not picture:
        return part
    medium = medium_of({"type": "input_image", "image_url": picture})
    return part._replace(counted=blocks.unknown_part((), bare).text, media=(medium,))


def _call_id(item: Mapping[str, Any]) -> str | None:
    given = blocks.word(item.get("call_id"))
    return blocks.word(item.get("id")) if given is None else given


def _reasoning(item: Mapping[str, Any]) -> Part:
    """Return the readable reasoning as the text, or its encrypted form if none is readable.

    The text that is billed cannot be read; without a summary its size is estimated.
    """
    given = (item.get("summary"), item.get("content"))
    shown = chain.from_iterable(parts for parts in given if isinstance(parts, list | tuple))
    texts = [str(part.get("text") or "") for part in shown if isinstance(part, dict)]
    words = "\n".join(text for text in texts if text)
    encrypted = str(item.get("encrypted_content") or "")
    media = () if words or not encrypted else (Medium("reasoning", "openai", encrypted),)
    return Part((), "thinking", words or encrypted, words, media)
