"""The items of one message in the formats of both APIs, without the list around it.

Anthropic messages contain blocks (`tool_use`, `tool_result`, …). OpenAI chat messages contain parts
and `tool_calls`, and have the role `tool`. A message of the role `tool` or `function` is one
result, or it contains `tool_result` blocks. Blocks of other types become items of the type
`unknown` and are left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from policyctx.definitions.items import UNKNOWN, Item, Medium
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import unmarked_block, unmarked_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.definitions.items import Message, Path

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
REMOVED = "[Content removed]"
"""The text of a result of which nothing is left; providers reject an empty one."""

_TEXT_KINDS = {"assistant": "assistant_message"} | dict.fromkeys(SYSTEM_ROLES, "system_prompt")
_TEXT_BLOCKS = ("text", "input_text", "output_text")
_THINKING_BLOCKS = ("thinking", "redacted_thinking")
# Blocks whose bytes are not text. There is no item type for sound.
_MEDIA_BLOCKS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "document",
    "file": "document",
    "input_file": "document",
    "input_audio": UNKNOWN,
}

_DATA_URL = re.compile(r"data:([^;,]+)")
# Fields that a message of the chat API may have instead of content.
_BESIDE_CONTENT = ("tool_calls", "function_call", "refusal", "audio")

# The position of a message, its role, and the turns begun up to there; a plain tuple is quickest.
MessagePosition: TypeAlias = tuple[int, str, int]


def items_in(message: Message, place: MessagePosition) -> list[Item]:
    """Return the items of the message, in the order in which a model reads them.

    A result is followed by the images and documents in it. Its call and its position among the
    items depend on the list and are not set yet.
    """
    content = message.get("content")
    if place[1] in RESULT_ROLES and is_result(message):
        call_id, tool = message.get("tool_call_id"), message.get("name")
        return _result(place, ("content",), message, call_id, tool)
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


def as_message(message: Message) -> Message:
    """Return a message as a dict: the message itself, or the dict that an SDK's object sends.

    For an object with `model_dump`, such as the `ChatCompletionMessage` of OpenAI's SDK, that is a
    new dict of plain values. It has the fields that the SDK sends back to the provider: those that
    were set, without those that the object excludes from requests. For Anthropic's `Message` it has
    the role and the content. Any other value is returned unchanged. Raises the errors of
    `model_dump`.
    """
    if type(message) is dict or isinstance(message, dict) or not _is_object(message):
        return message
    sent: Message = _sent(message)
    content = getattr(message, "content", None)
    if isinstance(content, list):
        sent["content"] = [_sent(block) if _is_object(block) else block for block in content]
    is_response = sent.get("type") == "message" and "usage" in sent
    return {key: sent[key] for key in ("role", "content")} if is_response else sent


def role_of(message: Message) -> str:
    """Return the role of a message, which may be an SDK's object."""
    role: str = as_message(message)["role"]
    return role


def _is_object(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "model_dump", None))


def _sent(value: Any) -> Any:  # noqa: ANN401 - any class with pydantic's method
    """Return the plain values that an SDK sends for an object, including its defaults."""
    options = {"mode": "json", "by_alias": True, "warnings": False}
    options["exclude"] = getattr(value, "__api_exclude__", None)
    given = value.model_dump(exclude_unset=True, **options)
    return _with_defaults(given, value.model_dump(**options))


def _with_defaults(given: Any, whole: Any) -> Any:  # noqa: ANN401 - plain values
    """Return `given` with the non-empty fields that only `whole` has, such as a default role."""
    if isinstance(given, dict) and isinstance(whole, dict):
        keys = (key for key in whole if key in given or whole[key])
        return {key: _with_defaults(given.get(key, whole[key]), whole[key]) for key in keys}
    if isinstance(given, list) and isinstance(whole, list) and len(given) == len(whole):
        return [_with_defaults(*pair) for pair in zip(given, whole, strict=True)]
    return given


def comparable(message: Message) -> object:
    """Return a value that is equal for an SDK's object and for the dict that was saved of it.

    An object may be saved with its unset fields as None, or without them.
    """
    return _without_none(as_message(message))


def _without_none(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return _without_none(_sent(value)) if _is_object(value) else value


def as_mapping(block: object) -> Mapping[str, Any]:
    """Return a block as a map: the map itself, that of an SDK's object, or an unknown block."""
    if type(block) is dict or isinstance(block, Mapping):  # the first test is the quick one
        return block
    dump = getattr(block, "model_dump", None)
    return dump(mode="json") if callable(dump) else {"type": type(block).__name__, "value": block}


def is_result(message: Message) -> bool:
    """Whether the message as a whole is the result of one call.

    This holds for a message of the role `tool` or `function`, unless `tool_result` blocks in its
    content have the call's id (PRD tool-direct-offload F-001).
    """
    if message["role"] not in RESULT_ROLES:
        return False
    content = message.get("content")
    if not content or isinstance(content, str) or message.get("tool_call_id") is not None:
        return True
    return all(as_mapping(block).get("type") != "tool_result" for block in content)


def says_nothing(message: Message) -> bool:
    """Whether a message is empty, which providers reject; the result of a tool may be empty."""
    if message["role"] in RESULT_ROLES or message.get("content"):
        return False
    return not any(message.get(key) for key in _BESIDE_CONTENT)


def input_path(call: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the input within a call of a chat message."""
    for holder, field in (("function", "arguments"), ("custom", "input")):
        held = call.get(holder)
        if type(held) is dict or isinstance(held, Mapping):  # the first test is the quick one
            return holder, field
    return ("arguments",)


def kind_of_text(role: str) -> str:
    """Return the kind of the item for a text of this role."""
    return _TEXT_KINDS.get(role, "user_message")


def call_key(item: Item) -> object:
    """Return the key that a call and its result share, None for an item that cannot be paired.

    The key is the id. A legacy `function_call` has none: there it is the function's name.
    """
    if item.tool_use_id is not None:
        return item.tool_use_id
    legacy = item.role == "function" or item.path == ("function_call",)
    return (item.tool,) if legacy and item.tool is not None else None


def _add_block(items: list[Item], place: MessagePosition, i: int, block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    is_text = kind in _TEXT_BLOCKS and place[1] not in RESULT_ROLES  # a result is no message
    if is_text and isinstance(text := block.get("text"), str):
        items.append(_text(place, _path(i, "text"), text))
    elif kind == "tool_result":
        items += _result(place, _path(i, "content"), block, block.get("tool_use_id"))
    elif kind == "tool_use":
        text = compact_json(block.get("input"))
        items.append(_call(place, _path(i, "input"), text, block.get("name"), block.get("id")))
    else:
        items.append(_other(place, _path(i), block))


@lru_cache(maxsize=4096)  # many items share few paths
def _path(i: int, *field: str) -> Path:
    return ("content", i, *field)


def _item(place: MessagePosition, path: Path, kind: str, text: str) -> Item:
    """Return an item that is all text, and whose type is its kind."""
    message, role, turn = place
    return Item(
        message=message,
        path=path,
        kind=kind,
        type=kind,
        role=role,
        text=text,
        counted=text,
        turn=turn,
    )


def _text(place: MessagePosition, path: Path, text: str) -> Item:
    return _item(place, path, kind_of_text(place[1]), text)


def _other(place: MessagePosition, path: Path, block: Mapping[str, Any]) -> Item:
    kind = _word(block.get("type"))
    if kind in _MEDIA_BLOCKS:
        return _medium(place, path, block)
    if kind in _THINKING_BLOCKS:
        kind, text = "thinking", str(block.get("thinking") or block.get("data") or "")
    else:
        kind, text = UNKNOWN, compact_json(unmarked_block(block))
    return _item(place, path, kind, text)


def _chat_call(place: MessagePosition, path: Path, call: Mapping[str, Any]) -> Item:
    *holders, field = input_path(call)
    function = call[holders[0]] if holders else call
    given = function.get(field)
    text = given if isinstance(given, str) else compact_json(given)
    return _call(place, path, text, function.get("name"), call.get("id"))


def _call(place: MessagePosition, path: Path, text: str, tool: object, call_id: object) -> Item:
    message, role, turn = place
    return Item(
        message=message,
        path=path,
        kind="tool_call",
        type="tool_call",
        role=role,
        text=text,
        counted=text,
        turn=turn,
        tool=_word(tool),
        tool_use_id=_word(call_id),
        call_message=message,
    )


def _result(
    place: MessagePosition,
    path: Path,
    holder: Mapping[str, Any],
    call_id: object,
    tool: object = None,
) -> list[Item]:
    """Return the result in a block or in a whole message, then the media in it."""
    content = unmarked_blocks(holder.get("content"))
    media: dict[int, Mapping[str, Any]] = {}
    if isinstance(content, str):
        text = counted = content
    elif content is None:
        text = counted = ""
    else:
        text = counted = compact_json(content)
        if media := _media_in(content):
            counted = compact_json([part for j, part in enumerate(content) if j not in media])
    held = tuple(map(Medium, media.values())) if media else ()
    message, role, turn = place
    result = Item(
        message=message,
        path=path,
        kind="tool_result",
        type="tool_result",
        role=role,
        text=text,
        counted=counted,
        media=held,
        turn=turn,
        tool=_word(tool),
        tool_use_id=_word(call_id),
        error=holder.get("is_error") is True,
    )
    return [result, *_inside(result, place, media)] if media else [result]


def _media_in(content: object) -> dict[int, Mapping[str, Any]]:
    """Return the images, documents and sounds in the content of a result, by their index."""
    parts = content if isinstance(content, list | tuple) else ()
    seen = ((j, as_mapping(part)) for j, part in enumerate(parts))
    return {j: part for j, part in seen if _word(part.get("type")) in _MEDIA_BLOCKS}


def _inside(
    result: Item, place: MessagePosition, media: Mapping[int, Mapping[str, Any]]
) -> Iterator[Item]:
    found = (_medium(place, (*result.path, j), part) for j, part in media.items())
    items = (item for item in found if item.kind != UNKNOWN)
    for number, item in enumerate(items, 1):
        yield item._replace(tool_use_id=result.tool_use_id, error=result.error, number=number)


def _medium(place: MessagePosition, path: Path, block: Mapping[str, Any]) -> Item:
    block = unmarked_block(block)
    item = _item(place, path, _MEDIA_BLOCKS[block["type"]], compact_json(block))
    return item._replace(counted="", media=(Medium(block),), media_type=_media_type(block))


def _media_type(block: Mapping[str, Any]) -> str | None:
    """Return the media type of a block; in the chat API it is part of a data URL."""
    for part in (block.get("source"), block.get("image_url"), block.get("file"), block):
        if isinstance(part, Mapping) and isinstance(said := part.get("media_type"), str):
            return said
        url = part.get("url", part.get("file_data")) if isinstance(part, Mapping) else part
        if isinstance(url, str) and (found := _DATA_URL.match(url)):
            return found[1]
    return None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
