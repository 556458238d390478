"""What one message contains, in the shapes of both APIs, before the list around it is known.

Anthropic messages hold blocks (`tool_use`, `tool_result`, …), OpenAI chat messages hold parts,
`tool_calls` and the role `tool`. A block that is none of these is carried along as `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.messages.items import UNKNOWN, compact_json

if TYPE_CHECKING:
    from policyctx.messages.items import Message, Path

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")

_TEXT_BLOCKS = ("text", "input_text", "output_text")
_MEDIA_BLOCKS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "document",
    "file": "document",
    "input_file": "document",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One block seen alone: its kind, where its text stands, and whose call or result it is."""

    type: str
    path: Path
    text: str
    counted: str
    media: int = 0
    tool: str | None = None
    tool_use_id: str | None = None
    error: bool = False
    media_type: str | None = None


def pieces_of(message: Message) -> Iterator[Piece]:
    """Yield what is in the message, in the order in which a model reads it."""
    role, content = message["role"], message.get("content")
    if role in RESULT_ROLES:
        yield _result(message, ("content",), message.get("tool_call_id"), message.get("name"))
        return
    if isinstance(content, str):
        if content:
            yield Piece(_text_type(role), ("content",), content, content)
    else:
        for i, block in enumerate(content or ()):
            yield _block(as_mapping(block), ("content", i), role)
    for i, call in enumerate(message.get("tool_calls") or ()):
        yield _tool_call(as_mapping(call), ("tool_calls", i))


def as_mapping(block: object) -> Mapping[str, Any]:
    """See a block as a map: one already, or an object of a provider's SDK; else an unknown one."""
    if type(block) is dict or isinstance(block, Mapping):  # the first test is the quick one
        return block
    dump = getattr(block, "model_dump", None)
    return dump(mode="json") if callable(dump) else {"type": type(block).__name__, "value": block}


def _text_type(role: str) -> str:
    if role in SYSTEM_ROLES:
        return "system_prompt"
    return "assistant_message" if role == "assistant" else "user_message"


def _block(block: Mapping[str, Any], path: Path, role: str) -> Piece:
    kind = block.get("type")
    if kind in _TEXT_BLOCKS and isinstance(block.get("text"), str):
        return Piece(_text_type(role), (*path, "text"), block["text"], block["text"])
    if kind in ("thinking", "redacted_thinking"):
        text = str(block.get("thinking") or block.get("data") or "")
        return Piece("thinking", path, text, text)
    if kind == "tool_use":
        text = compact_json(block.get("input"))
        return Piece(
            "tool_call", (*path, "input"), text, text,
            tool=_word(block.get("name")), tool_use_id=_word(block.get("id")),
        )  # fmt: skip
    if kind == "tool_result":
        return _result(block, (*path, "content"), block.get("tool_use_id"), None)
    if kind in _MEDIA_BLOCKS:
        source = block.get("source")
        media_type = _word(source.get("media_type")) if isinstance(source, Mapping) else None
        text = compact_json(block)
        return Piece(_MEDIA_BLOCKS[kind], path, text, "", media=1, media_type=media_type)
    text = compact_json(block)
    return Piece(UNKNOWN, path, text, text)


def _tool_call(call: Mapping[str, Any], path: Path) -> Piece:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    return Piece(
        "tool_call", path, text, text,
        tool=_word(function.get("name")), tool_use_id=_word(call.get("id")),
    )  # fmt: skip


def _result(holder: Mapping[str, Any], path: Path, call_id: object, tool: object) -> Piece:
    content = holder.get("content")
    text = counted = content if isinstance(content, str) else ""
    media = 0
    if content is not None and not isinstance(content, str):
        text = counted = compact_json(content)
        parts = content if isinstance(content, list | tuple) else ()
        shown = [part for part in parts if not _is_medium(part)]
        if media := len(parts) - len(shown):
            counted = compact_json(shown)
    return Piece(
        "tool_result", path, text, counted, media,
        tool=_word(tool), tool_use_id=_word(call_id), error=holder.get("is_error") is True,
    )  # fmt: skip


def _is_medium(part: object) -> bool:
    return _word(as_mapping(part).get("type")) in _MEDIA_BLOCKS


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
