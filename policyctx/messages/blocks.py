"""What one message contains, in the shapes of both APIs, before the list around it is known.

Anthropic messages hold blocks (`tool_use`, `tool_result`, …), OpenAI chat messages hold parts,
`tool_calls` and the role `tool`. A block that is none of these is carried along as `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from policyctx.messages.items import UNKNOWN, Item, compact_json

if TYPE_CHECKING:
    from policyctx.messages.items import Message, Path

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")

_TEXT_BLOCKS = ("text", "input_text", "output_text")
_THINKING_BLOCKS = ("thinking", "redacted_thinking")
# Blocks whose bytes are no text. No type speaks of sound, so it is carried along.
_MEDIA_BLOCKS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "document",
    "file": "document",
    "input_file": "document",
    "input_audio": UNKNOWN,
}

# What a message of the chat API may say without content.
_BESIDE_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


class Place(NamedTuple):
    """Where a message stands in the list."""

    message: int
    """Its 0-based position."""
    role: str
    turn: int
    """Turns begun up to here."""
    items: int
    """Items before its own."""


def items_in(message: Message, place: Place) -> list[Item]:
    """Return what is in the message, in the order in which a model reads it.

    A result is followed by the images and documents in it; it does not know its call yet.
    """
    content = message.get("content")
    if place.role in RESULT_ROLES:
        return _result(place, ("content",), message, message.get("tool_call_id"))
    items: list[Item] = []
    if isinstance(content, str):
        if content:
            items.append(_text(place, ("content",), content))
    elif content:
        for i, block in enumerate(content):
            _add_block(items, place, i, block if type(block) is dict else as_mapping(block))
    if calls := message.get("tool_calls"):
        for i, call in enumerate(calls):
            items.append(_chat_call(place, ("tool_calls", i), as_mapping(call)))
    if call := message.get("function_call"):
        items.append(_chat_call(place, ("function_call",), as_mapping(call)))
    return items


def as_mapping(block: object) -> Mapping[str, Any]:
    """See a block as a map: one already, or an object of a provider's SDK; else an unknown one."""
    if type(block) is dict or isinstance(block, Mapping):  # the first test is the quick one
        return block
    dump = getattr(block, "model_dump", None)
    return dump(mode="json") if callable(dump) else {"type": type(block).__name__, "value": block}


def says_nothing(message: Message) -> bool:
    """Whether a message is empty: no provider takes one. The result of a tool may be."""
    if message["role"] in RESULT_ROLES or message.get("content"):
        return False
    return not any(message.get(key) for key in _BESIDE_CONTENT)


def input_path(call: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where in a call of a chat message its input stands."""
    for holder, field in (("function", "arguments"), ("custom", "input")):
        if isinstance(call.get(holder), Mapping):
            return holder, field
    return ("arguments",)


def call_key(item: Item) -> object:
    """Return what a call and its result share, None for one that can have no other half.

    That is the id. A legacy `function_call` has none: the function's name answers it.
    """
    if item.tool_use_id is not None:
        return item.tool_use_id
    legacy = item.role == "function" or item.path == ("function_call",)
    return (item.tool,) if legacy and item.tool is not None else None


def _add_block(items: list[Item], place: Place, i: int, block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    if kind in _TEXT_BLOCKS and isinstance(text := block.get("text"), str):
        items.append(_text(place, _path(i, "text"), text))
    elif kind == "tool_result":
        message, role, turn, before = place
        here = Place(message, role, turn, before + len(items))
        items += _result(here, _path(i, "content"), block, block.get("tool_use_id"))
    elif kind == "tool_use":
        text = compact_json(block.get("input"))
        items.append(_call(place, _path(i, "input"), block, block.get("id"), text))
    else:
        items.append(_other(place, _path(i), block))


@lru_cache(maxsize=4096)  # many items share few paths, and what is shared costs nothing to keep
def _path(i: int, *field: str) -> Path:
    return ("content", i, *field)


def _other(place: Place, path: Path, block: Mapping[str, Any]) -> Item:
    kind = _word(block.get("type"))
    if kind in _MEDIA_BLOCKS:
        return _medium(place, path, block)
    if kind in _THINKING_BLOCKS:
        kind, text = "thinking", str(block.get("thinking") or block.get("data") or "")
    else:
        kind, text = UNKNOWN, compact_json(block)
    return Item(place.message, path, kind, kind, place.role, text, text, 0, place.turn)


def _text(place: Place, path: Path, text: str) -> Item:
    message, role, turn, _ = place
    if role == "assistant":
        kind = "assistant_message"
    else:
        kind = "system_prompt" if role in SYSTEM_ROLES else "user_message"
    return Item(message, path, kind, kind, role, text, text, 0, turn)


def _chat_call(place: Place, path: Path, call: Mapping[str, Any]) -> Item:
    *holders, field = input_path(call)
    function = call[holders[0]] if holders else call
    given = function.get(field)
    text = given if isinstance(given, str) else compact_json(given)
    return _call(place, path, function, call.get("id"), text)


def _call(place: Place, path: Path, named: Mapping[str, Any], call_id: object, text: str) -> Item:
    message, role, turn, _ = place
    tool = _word(named.get("name"))
    return Item(
        message, path, "tool_call", "tool_call", role, text, text, 0, turn,
        tool, _word(call_id), message,
    )  # fmt: skip


def _result(place: Place, path: Path, holder: Mapping[str, Any], call_id: object) -> list[Item]:
    """Return the result that `holder` is, a block or a whole message, then the media in it."""
    message, role, turn, before = place
    content = holder.get("content")
    text = counted = content if isinstance(content, str) else ""
    media: dict[int, Mapping[str, Any]] = {}
    if content is not None and not isinstance(content, str):
        text = counted = compact_json(content)
        media = _media_in(content)
        if media:
            counted = compact_json([part for j, part in enumerate(content) if j not in media])
    result = Item(
        message, path, "tool_result", "tool_result", role, text, counted, len(media), turn,
        _word(holder.get("name")), _word(call_id), None, holder.get("is_error") is True,
    )  # fmt: skip
    if not media:
        return [result]
    found = (_medium(place, (*path, j), part) for j, part in media.items())
    known = (item for item in found if item.kind != UNKNOWN)
    return [result, *(_inside(result, before, n, item) for n, item in enumerate(known, 1))]


def _media_in(content: object) -> dict[int, Mapping[str, Any]]:
    """Return the images, documents and sounds of a result's content, by their places there."""
    parts = content if isinstance(content, list | tuple) else ()
    seen = ((j, as_mapping(part)) for j, part in enumerate(parts))
    return {j: part for j, part in seen if _word(part.get("type")) in _MEDIA_BLOCKS}


def _inside(result: Item, position: int, number: int, medium: Item) -> Item:
    return medium._replace(
        tool=result.tool, tool_use_id=result.tool_use_id, error=result.error,
        inside=position, number=number,
    )  # fmt: skip


def _medium(place: Place, path: Path, block: Mapping[str, Any]) -> Item:
    message, role, turn, _ = place
    kind = _MEDIA_BLOCKS[block["type"]]
    source = block.get("source")
    media_type = _word(source.get("media_type")) if isinstance(source, Mapping) else None
    text = compact_json(block)
    return Item(message, path, kind, kind, role, text, "", 1, turn, media_type=media_type)


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
