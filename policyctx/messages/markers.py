"""`cache_control` markers: where a provider caches the beginning of a request.

Callers move their markers from turn to turn, so the content of a message excludes its markers. A
marker may be on the message itself, on a block of its content, and on a block in the content of a
`tool_result`. A field of that name anywhere else, such as in the input of a call, is data. Messages
are dicts here, and a framework's object has no markers; blocks may be objects of a provider's SDK.
A marker that is None counts as none.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import Any, Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import Message, Path, PlainValue, Ttl
from policyctx.messages.json_text import as_mapping, as_message, compact_json
from policyctx.messages.shapes.shape import RESULT_ROLES

MARKER = "cache_control"
_TEXT_BLOCK = {"type", "text"}
BlockKind: TypeAlias = Literal["tool_use", "tool_result", "other", "unmarkable"]
"""`unmarkable`: thinking or an empty text, on which a provider takes no marker."""
_THINKING = ("thinking", "redacted_thinking")
_TTLS = {"5m": 300, "1h": 3600}
# What OpenAI's APIs write in another way, or beside the content. A text is alike in both.
_ANTHROPIC = (
    *_THINKING, "tool_use", "tool_result", "server_tool_use", "image", "document", "search_result",
)  # fmt: skip


def markers_of(message: Message) -> dict[Path, Any]:
    """Return the markers of a message by the path of what they are on; `()` is the message."""
    found = {}
    for path, holder in _holders(message):
        if (marker := marker_of(holder)) is not None:
            found[path] = marker
    return found


def places_of(message: Message) -> list[Path]:
    """Return the path of everything in a message that may have a marker."""
    return [path for path, _ in _holders(message)]


def unmarked(message: Message) -> Message:
    """Return a message without its markers: the same object if it has none."""
    return with_markers(message, {})


def with_markers(message: Message, markers: Mapping[Path, Any]) -> Message:
    """Return a message with exactly these markers by path, and the same object if it has them.

    A new message is a shallow copy, in which only what changes is copied.
    """
    if not isinstance(message, dict):
        return message
    new: Message = _marked(message, markers.get(()))
    content = message.get("content")
    blocks = _marked_blocks(content, ("content",), markers)
    return new if blocks is content else {**new, "content": blocks}


def marker_of(holder: object) -> PlainValue:
    """Return the marker of a message or a block, None without one."""
    if type(holder) is dict or isinstance(holder, Mapping):  # the first test is the quick one
        return holder.get(MARKER)
    return getattr(holder, MARKER, None)


def ttl_of(marker: object) -> Ttl:
    """Return the TTL that a marker asks for; five minutes where it says nothing else."""
    return "1h" if isinstance(marker, Mapping) and marker.get("ttl") == "1h" else "5m"


def new_marker(ttl: Ttl) -> dict[str, str]:
    """Return a marker with this TTL."""
    return {"type": "ephemeral"} | ({} if ttl == "5m" else {"ttl": ttl})


def marked_with(holder: PlainValue, ttl: Ttl | None) -> PlainValue:
    """Return a block or a tool with a marker of this TTL, or without one.

    The same object comes back if it has such a marker already, whatever else that says.
    """
    marker = marker_of(holder)
    if ttl is not None and marker is not None and ttl_of(marker) == ttl:
        return holder
    return _marked(holder, None if ttl is None else new_marker(ttl))


def bare(message: PlainValue) -> PlainValue:
    """Return a message without its markers, and with a lone text block as a text.

    Both forms mean the same to a provider, and a marker needs the block.
    """
    if not isinstance(message, dict):
        return message
    found = unmarked(message)
    content = found.get("content")
    if not isinstance(content, list | tuple) or len(content) != 1:
        return found
    if found.get("role") in RESULT_ROLES:  # the text of a result is that of its whole list
        return found
    [block] = content
    if isinstance(block, Mapping) and block.keys() == _TEXT_BLOCK and block["type"] == "text":
        return {**found, "content": block["text"]} if block["text"] else found
    return found


def unmarked_block(block: PlainValue) -> PlainValue:
    """Return a block without its marker: the same object if it has none."""
    return _marked(block, None)


def unmarked_blocks(content: PlainValue) -> PlainValue:
    """Return the content of a result with its blocks unmarked: the same object if none has one."""
    return _marked_blocks(content, (), {})


def is_plain(message: Message) -> bool:
    """Return whether neither a message nor a block of its content is an object of an SDK."""
    if type(message) is not dict:
        return False
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return True
    return all(type(block) is dict for block in content)


def _holders(message: Message) -> Iterator[tuple[Path, object]]:
    if not isinstance(message, dict):
        return
    yield (), message
    for i, block in enumerate(_blocks(message.get("content"))):
        if _may_have_marker(block):
            yield ("content", i), block
            for j, inner in enumerate(_blocks(_inner(block))):
                if _may_have_marker(inner):
                    yield ("content", i, "content", j), inner


def _blocks(content: object) -> Sequence[object]:
    return content if isinstance(content, list | tuple) else ()


def _may_have_marker(block: object) -> bool:
    return isinstance(block, Mapping) or callable(getattr(block, "model_dump", None))


def _inner(block: object) -> object:
    """Return the content of a `tool_result` block, None for any other block."""
    if isinstance(block, Mapping):
        return block.get("content") if block.get("type") == "tool_result" else None
    is_result = getattr(block, "type", None) == "tool_result"
    return getattr(block, "content", None) if is_result else None


def _marked_blocks(content: PlainValue, path: Path, markers: Mapping[Path, Any]) -> PlainValue:
    if not isinstance(content, list | tuple):
        return content
    new: list[PlainValue] = []
    for i, block in enumerate(content):
        here = (*path, i)
        marked, inner = _marked(block, markers.get(here)), _inner(block)
        blocks = _marked_blocks(inner, (*here, "content"), markers)
        new.append(marked if blocks is inner else _with_field(marked, "content", blocks))
    return content if all(map(is_, new, content)) else new


def _marked(holder: PlainValue, marker: object) -> PlainValue:
    """Return a message or a block with this marker; None removes the one that it has."""
    if isinstance(holder, Mapping):
        if marker is None:
            if MARKER not in holder:
                return holder
            return {key: value for key, value in holder.items() if key != MARKER}
        return holder if holder.get(MARKER) == marker else {**holder, MARKER: marker}
    if marker_of(holder) == marker or not _may_have_marker(holder):
        return holder
    return _with_field(holder, MARKER, marker)


def _with_field(holder: PlainValue, name: str, value: object) -> PlainValue:
    """Return a shallow copy with this value of a field; an object's extra field can be removed."""
    if isinstance(holder, Mapping):
        return {**holder, name: value}
    new = copy.copy(holder)
    setattr(new, name, value)
    if value is None and name not in getattr(type(holder), "model_fields", {}):
        with suppress(AttributeError):
            delattr(new, name)
    return new


class CacheBlock(NamedTuple):
    """One block as a cache knows it."""

    text: str
    """Equal for equal blocks of messages with the same role, without their markers."""
    kind: BlockKind = "other"


class MarkedBlock(NamedTuple):
    """A block that a `cache_control` marker is on, or in."""

    block: int
    ttl: int | None = None
    """In seconds; None for the provider's default."""


def cache_blocks(message: Message) -> list[CacheBlock]:
    """Return the blocks of a message, at least one, in the order in which a model reads them."""
    plain = unmarked(as_message(message))
    role, content = plain.get("role"), plain.get("content")
    if _has_blocks(plain):
        return [_block(role, as_mapping(block)) for block in content]
    if isinstance(content, str) and plain.keys() == {"role", "content"}:
        return [_block(role, {"type": "text", "text": content})]
    return [CacheBlock(compact_json(plain), "tool_result" if role in RESULT_ROLES else "other")]


def block_at(message: Message, path: Path) -> int:
    """Return the index of the block in which the item or the marker at a path stands."""
    in_content = len(path) > 1 and path[0] == "content" and isinstance(path[1], int)
    return int(path[1]) if in_content and _has_blocks(as_message(message)) else 0


def marked_blocks(message: Message) -> list[MarkedBlock]:
    """Return the marked blocks of a message; a marker on the message is on its last block."""
    plain = as_message(message)
    last = len(cache_blocks(plain)) - 1
    return [
        MarkedBlock(block_at(plain, path) if path else last, _ttl(marker))
        for path, marker in markers_of(plain).items()
    ]


def blocks_beside(part: object) -> list[CacheBlock]:
    """Return the blocks of a system prompt or of tool schemas: a text, a list, or another value."""
    if isinstance(part, list | tuple):
        return [CacheBlock(compact_json(unmarked_block(block))) for block in part]
    return [] if part is None else [CacheBlock(compact_json(part))]


def marked_beside(part: object) -> list[MarkedBlock]:
    """Return the marked blocks of a system prompt or of tool schemas."""
    blocks: Sequence[object] = part if isinstance(part, list | tuple) else ()
    markers = ((i, marker_of(block)) for i, block in enumerate(blocks))
    return [MarkedBlock(i, _ttl(marker)) for i, marker in markers if marker is not None]


def _has_blocks(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, list) and bool(content) and not message.get("tool_calls")


def _block(role: object, block: Mapping[str, object]) -> CacheBlock:
    text = compact_json([role, block])
    if block.get("type") == "tool_use":
        return CacheBlock(text, "tool_use")
    if block.get("type") == "tool_result":
        return CacheBlock(text, "tool_result")
    is_empty = block.get("type") == "text" and not str(block.get("text") or "").strip()
    is_markable = not is_empty and block.get("type") not in _THINKING
    return CacheBlock(text, "other" if is_markable else "unmarkable")


def _ttl(marker: object) -> int | None:
    ttl = marker.get("ttl") if isinstance(marker, Mapping) else None
    return _TTLS.get(ttl) if isinstance(ttl, str) else None


def blocks_of_system(system: object) -> list[Any] | None:
    """Return the blocks of a system prompt, None for one that may have no markers.

    A text is one block.
    """
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if system is None:
        return None
    return _request_blocks(system)


def blocks_of_tools(tools: object) -> list[Any] | None:
    """Return the schemas of tools, None where they may have no markers, as OpenAI's and MCP's."""
    return None if has_functions(tools) else _request_blocks(tools)


def has_functions(tools: object) -> bool:
    """Return whether one of the tools is a function, as only OpenAI's are."""
    if not tools or not isinstance(tools, list | tuple):
        return False
    return any(field_of(tool, "type") == "function" for tool in tools)


def has_schemas(tools: Iterable[object]) -> bool:
    """Return whether one of the tools is in Anthropic's form, or has a marker."""
    return any(
        field_of(tool, "input_schema") is not None or marker_of(tool) is not None for tool in tools
    )


def is_anthropic(message: Message) -> bool:
    """Return whether a message has a block that only Anthropic's API knows."""
    return any(field_of(block, "type") in _ANTHROPIC for block in _blocks(message.get("content")))


def places_for_text(blocks: list[Any]) -> list[int]:
    """Return the indices of the blocks of a system prompt that may have a marker."""
    texts = ((i, field_of(block, "text")) for i, block in enumerate(blocks))
    return [i for i, text in texts if isinstance(text, str) and text.strip()]


def places_for_tools(tools: list[Any]) -> list[int]:
    """Return the indices of the tools that may have a marker: those that are not deferred."""
    return [i for i, tool in enumerate(tools) if not field_of(tool, "defer_loading")]


def ttls_of(blocks: list[Any]) -> dict[int, Ttl]:
    """Return the TTL of each block that has a marker, by its index."""
    found = ((i, marker_of(block)) for i, block in enumerate(blocks))
    return {i: ttl_of(marker) for i, marker in found if marker is not None}


def with_ttls(given: PlainValue, blocks: list[Any], ttls: Mapping[int, Ttl]) -> PlainValue:
    """Return the blocks with markers of these TTLs and no others; `given` if nothing changes.

    `given` is what the blocks were read from.
    """
    new = [marked_with(block, ttls.get(i)) for i, block in enumerate(blocks)]
    return given if all(map(is_, new, blocks)) else new


def _request_blocks(given: object) -> list[Any] | None:
    if not isinstance(given, list | tuple):
        return None
    return list(given) if all(map(_may_be_marked, given)) else None


def _may_be_marked(block: object) -> bool:
    """Return whether a block takes a marker: the objects of other SDKs have no field for one."""
    if isinstance(block, Mapping):
        return True
    model = type(block)
    settings = getattr(model, "model_config", {})
    return settings.get("extra") == "allow" or MARKER in getattr(model, "model_fields", ())


def field_of(block: object, name: str) -> object:
    """Return a value of a dict or of an SDK's object, None if it has none."""
    return block.get(name) if isinstance(block, Mapping) else getattr(block, name, None)
