"""Content blocks, which the three APIs share: the parts in them, and how they are edited.

Blocks of a type that is not known become parts of the kind `unknown` and are left unchanged.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

from policyctx.definitions.items import UNKNOWN, Message, Path, PlainValue, author_of, joined
from policyctx.messages.json_text import (
    JSON,
    Text,
    as_mapping,
    compact_json,
    json_text,
    stringified,
    without_none,
)
from policyctx.messages.markers import MARKER, marker_of, unmarked, unmarked_block, unmarked_blocks
from policyctx.messages.shapes.block_texts import (
    DOCUMENTS,
    IMAGES,
    SOUNDS,
    TEXT_BLOCKS,
    BlockList,
    blocks_in,
    joined_text,
    media_type_of,
    medium_of,
    shown_texts,
)
from policyctx.messages.shapes.shape import (
    REMOVED,
    RESULT_ROLES,
    SPEAKING_ROLES,
    Part,
    Shape,
    kind_of_text,
)

_THINKING_BLOCKS = ("thinking", "redacted_thinking")
# Blocks of media. Sound has no item type.
_MEDIA_BLOCKS = (
    dict.fromkeys(IMAGES, "image")
    | dict.fromkeys(DOCUMENTS, "document")
    | dict.fromkeys(SOUNDS, UNKNOWN)
)
# What is in a message and is none.
BLOCK_TYPES = frozenset(
    {*TEXT_BLOCKS, *_THINKING_BLOCKS, *_MEDIA_BLOCKS, "tool_use", "tool_result", "refusal"}
)
# Types of JSON values that contain no other values.
_FLAT = frozenset({str, int, bool, NoneType})
_COPIED_DEPTH = 32
# Fields of a chat message beside its content, or in place of it.
BESIDE_CONTENT = frozenset({"tool_calls", "function_call", "refusal", "audio"})
# What a reply may have without any of these and without content.
_BESIDE_REPLY = frozenset(
    {"type", "role", "name", "id", "status", "annotations", "prefix", "weight", "reasoning"}
    | {"reasoning_content", "reasoning_details", "thinking_blocks", "provider_specific_fields"}
)
# How many fields an error names, and how much of a name.
_NAMED_FIELDS, _NAME_CHARS = 6, 40
# Types that cannot be a block, unlike an object of a provider's SDK.
_NO_OBJECT = (str, int, float, list)


def content_parts(content: str | Sequence[object] | None, role: str) -> list[Part]:
    """Return the parts in the content of a message: a text, or a list of blocks."""
    if isinstance(content, str):
        return [Part(("content",), kind_of_text(role), content, content)] if content else []
    parts: list[Part] = []
    for i, block in enumerate(content or ()):
        _add_block(parts, role, i, block if type(block) is dict else as_mapping(block))
    return parts


def _add_block(parts: list[Part], role: str, i: int, block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    is_text = kind in TEXT_BLOCKS and role not in RESULT_ROLES  # a result holds no messages
    if is_text and isinstance(text := block.get("text"), str):
        part = Part(_path(i, "text"), kind_of_text(role), text, text)
        parts.append(part if type(block) is dict else part._replace(author=author_of(block)))
    elif kind == "tool_result":
        error = block.get("is_error") is True
        call_id = word(block.get("tool_use_id"))
        found = result_parts(_path(i, "content"), block.get("content"), call_id, error=error)
        if type(block) is not dict:
            found[0] = found[0]._replace(author=author_of(block))
        parts += found
    elif kind == "tool_use":
        text = json_text(block.get("input"))
        tool, call_id = word(block.get("name")), word(block.get("id"))
        parts.append(Part(_path(i, "input"), "tool_call", text, text, (), tool, call_id))
    else:
        parts.append(_other(_path(i), block))


@lru_cache(maxsize=4096)  # many items share few paths
def _path(i: int, *field: str) -> Path:
    return ("content", i, *field)


def _other(path: Path, block: Mapping[str, Any]) -> Part:
    kind = word(block.get("type"))
    if kind in _MEDIA_BLOCKS:
        return _medium(path, block)
    if kind in _THINKING_BLOCKS:
        text = str(block.get("thinking") or block.get("data") or "")
        return Part(path, "thinking", text, text)
    return as_half(unknown_part(path, block), block)


def as_half(part: Part, block: Mapping[str, Any]) -> Part:
    """Return the part of a block that stays as half of a pair, if the provider ran its tool.

    The types of such blocks have names of one form.
    """
    kind = str(block.get("type"))
    if kind.endswith("_tool_use") or kind == "server_tool_call":
        if call_id := word(block.get("id")):
            return part._replace(call_id=call_id, tool=word(block.get("name")) or kind)
    elif kind.endswith("_tool_result"):
        return part._replace(call_id=word(block.get("tool_use_id", block.get("tool_call_id"))))
    return part


def unknown_part(path: Path, value: object) -> Part:
    """Return the part for a block or message of a type that is not known."""
    text = json_text(unmarked_block(value))
    return Part(path, UNKNOWN, text, text)


def result_parts(
    path: Path,
    content: object,
    call_id: str | None,
    tool: str | None = None,
    *,
    error: bool = False,
) -> list[Part]:
    """Return the result in a block or in a whole message, then the media in it."""
    if type(content) is str:  # as most results are
        return [Part(path, "tool_result", content, content, (), tool, call_id, error)]
    content = unmarked_blocks(content)
    media: dict[int, Mapping[str, Any]] = {}
    blocks: BlockList | None = None
    text: Text
    counted: Text
    if isinstance(content, str):
        text = counted = content
    elif content is None:
        text = counted = ""
    elif (listed := blocks_in(content)) is None:
        text = counted = json_text(content)
    else:
        media = _media_in(listed)
        if (texts := shown_texts(listed)) is None:
            text = counted = stringified(content)
            if media:
                counted = json_text([part for j, part in enumerate(listed) if j not in media])
        else:
            text, blocks = joined(texts), BlockList(content, texts)
            counted = (joined_text(listed, media) or "") if media else text
    held = tuple(map(medium_of, media.values())) if media else ()
    result = Part(path, "tool_result", text, counted, held, tool, call_id, error, blocks=blocks)
    files = (_medium((*path, j), part) for j, part in media.items())
    return [result, *shown_files(result, files)] if media else [result]


# The blocks of Anthropic's API as which the files of other hosts are sized.
_FILES = {"image": "image", "application": "document", "text": "document"}
_FILES |= {"audio": "audio", "video": "video"}


def block_type(media_type: str) -> str | None:
    """Return the type of the block by which a file is sized, None for one without a size."""
    return _FILES.get(media_type.partition("/")[0])


def file_part(path: Path, block: Mapping[str, Any], text: Text, media_type: str | None) -> Part:
    """Return the part of a file with a text of the host; `block` gives its size."""
    kind = block["type"] if block["type"] in ("image", "document") else "unknown"
    return Part(path, kind, text, "", (medium_of(block),), media_type=media_type)


def shown_files(result: Part, files: Iterable[Part]) -> Iterator[Part]:
    """Yield the images and documents in a result of a host, numbered, as parts of it."""
    shown = (part for part in files if part.kind != UNKNOWN)
    for number, part in enumerate(shown, 1):
        yield part._replace(call_id=result.call_id, error=result.error, number=number)


def _media_in(content: Sequence[object]) -> dict[int, Mapping[str, Any]]:
    """Return the images, documents and sounds in the content of a result, by their index."""
    seen = ((j, as_mapping(part)) for j, part in enumerate(content))
    return {j: part for j, part in seen if word(part.get("type")) in _MEDIA_BLOCKS}


def _medium(path: Path, block: Mapping[str, Any]) -> Part:
    block = unmarked_block(block)
    kind, text = _MEDIA_BLOCKS[block["type"]], json_text(block)
    return Part(path, kind, text, "", (medium_of(block),), media_type=media_type_of(block))


def word(value: object) -> str | None:
    """Return a value if it is a string, otherwise None."""
    return value if isinstance(value, str) else None


class DictShape(Shape):
    """What the shapes of the APIs' dicts have in common."""

    def plain(self, message: Message) -> JSON:
        """Return the message without the fields that are None."""
        plain: JSON = without_none(message)
        return plain

    def block(self, message: Message, path: Path) -> JSON:
        """Return the innermost list element around the path, or else the message."""
        plain: JSON = plain_block(message, path)
        return plain


def wrong_with_message(message: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the role, the content or a block of a message, None if nothing."""
    return wrong_with_role(message) or wrong_with_content(message) or wrong_with_blocks(message)


def wrong_with_content(message: Mapping[str, Any]) -> str | None:
    """Return why the content of a message is neither a text nor a list, None if it is."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return None
    if isinstance(content, Mapping) or not isinstance(content, Sequence):
        return f'expected "content" to be a string or a list of blocks, got {named(content)}'
    return None


def wrong_with_blocks(message: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the first wrong block in the content, None if all can be read."""
    content = message.get("content")
    wrong = () if content is None or isinstance(content, str) else map(_wrong_with_block, content)
    return next((f"content block {i}: {text}" for i, text in enumerate(wrong) if text), None)


def _wrong_with_block(block: object) -> str | None:
    if isinstance(block, Mapping) and not isinstance(block.get("type"), str):
        return f'expected "type" to be a string such as "text", got {named(block.get("type"))}'
    if is_no_object(block):
        return f"expected an object, got {named(block)}"
    return None


def is_no_object(value: object) -> bool:
    """Return whether a value can be neither a map nor an object of a provider's SDK."""
    return value is None or isinstance(value, _NO_OBJECT)


def named(value: object) -> str:
    """Return what JSON calls a value of this type, for an error."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


def plain_block(message: Message, path: Path) -> PlainValue:
    """Return the innermost list element around a path as plain JSON, or else the message.

    Its `cache_control` markers are left out.
    """
    path, value = fitting(message, path), message
    if len(path) > 1 and path[0] == "content" and isinstance(path[1], int):
        # No other block is looked at: a message may have a thousand results.
        [value], path = unmarked_blocks([message["content"][path[1]]]), path[2:]
    else:
        value = unmarked(message)
    indices = [i for i, part in enumerate(path) if isinstance(part, int)]
    held = at(value, path[: indices[-1] + 1]) if indices else value
    return _copied(held, lambda other: json.loads(compact_json(other)))


def fitting(message: Message, path: Path) -> Path:
    """Return a path that was read in another form of the message, in which its text is a block."""
    return path[:1] if len(path) > 1 and isinstance(message.get("content"), str) else path


def copied(message: Message) -> Message:
    """Return a deep copy; raises `TypeError` or `RecursionError` where that is not possible."""
    return _copied(message, copy.deepcopy)


def _copied(
    value: PlainValue, other: Callable[[PlainValue], PlainValue], depth: int = _COPIED_DEPTH
) -> PlainValue:
    """Return a deep copy: plain values down to a depth share their strings, all else is `other`."""
    kind = type(value)
    if kind in _FLAT:
        return value
    if depth and kind is dict and all(type(key) is str for key in value):
        return {
            key: inner if type(inner) in _FLAT else _copied(inner, other, depth - 1)
            for key, inner in value.items()
        }
    if depth and kind is list:
        return [_copied(inner, other, depth - 1) for inner in value]
    return other(value)


def put_block_text(message: Message, path: Path, text: str) -> None:
    """Replace the image or document at `path` by a block with a text and the same marker."""
    block = as_mapping(at(message, path))
    text_kind = "input_text" if block["type"].startswith("input_") else "text"
    marked = {} if (marker := marker_of(block)) is None else {MARKER: marker}
    put(message, path, {"type": text_kind, "text": text, **marked})


def remove_block(message: Message, path: Path, *, is_result: bool) -> None:
    """Remove the block at or around `path`; an empty list becomes an empty text.

    `is_result` says that the list is the content of a result. A result of which nothing is left
    gets a short text that says so.
    """
    *holder, last = path if isinstance(path[-1], int) else path[:-1]
    blocks = list_at(message, holder)
    del blocks[int(last)]
    if not blocks:
        put(message, holder, REMOVED if is_result or len(holder) > 1 else "")


def at(message: Message, path: Sequence[str | int]) -> PlainValue:
    """Return the value at `path`; a block may be a map or an object of a provider's SDK."""
    found: Any = message
    for part in path:
        found = found[part] if hasattr(found, "__getitem__") else getattr(found, str(part))
    return found


def put(message: Message, path: Sequence[str | int], value: object) -> None:
    """Replace the value at `path`."""
    *folders, last = path
    holder: Any = list_at(message, folders) if isinstance(last, int) else at(message, folders)
    if hasattr(holder, "__setitem__"):
        holder[last] = value
    else:
        setattr(holder, str(last), value)


def new_input(given: PlainValue, text: str) -> PlainValue:
    """Return the input that a JSON text gives a call; a value that stays is that of the old one."""
    return _with_values_of(given, json.loads(text))


def _with_values_of(given: PlainValue, new: PlainValue) -> PlainValue:
    if isinstance(new, dict) and isinstance(given, dict):
        return {key: _with_values_of(given.get(key), value) for key, value in new.items()}
    if isinstance(new, list) and isinstance(given, list) and len(new) == len(given):
        return [_with_values_of(*pair) for pair in zip(given, new, strict=True)]
    return given if given == new else new


def list_at(message: Message, path: Sequence[str | int]) -> list[Any]:
    """Return the list at `path`; another sequence there is replaced by a list."""
    found: Any = at(message, path)
    blocks: list[Any] = found if isinstance(found, list) else list(found)
    if blocks is not found:
        put(message, path, blocks)
    return blocks


def wrong_with_role(message: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the role of a message, None for a role of the three APIs."""
    role = message.get("role")
    if not isinstance(role, str):
        return f'expected "role" to be a string such as "user", got {named(role)}'
    if role in SPEAKING_ROLES or role in RESULT_ROLES:
        return None
    roles = ", ".join(map(compact_json, (*SPEAKING_ROLES, *RESULT_ROLES)))
    return f'expected "role" to be one of {roles}, got {shown(role)}'


def lacks_content(message: Mapping[str, Any]) -> bool:
    """Return whether a message with a role says nothing that a shape reads.

    A reply may lack its content: the APIs ask only for its role.
    """
    if "content" in message or not BESIDE_CONTENT.isdisjoint(message):
        return False
    return message.get("role") != "assistant" or not _BESIDE_REPLY.issuperset(message)


def fields_of(message: Mapping[str, Any]) -> str:
    """Return the names of a message's fields, for an error."""
    names = [shown(name) for name in message]
    listed = [*names[:_NAMED_FIELDS], "…"] if len(names) > _NAMED_FIELDS else names
    return f"an object with {', '.join(listed)}"


def shown(name: object) -> str:
    """Return a role or the name of a field in quotes, for an error; a long one is cut."""
    text = str(name)
    return compact_json(text if len(text) <= _NAME_CHARS else f"{text[:_NAME_CHARS]}…")
