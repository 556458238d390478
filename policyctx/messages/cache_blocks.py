"""The blocks of a message as a prompt cache sees them, and where its `cache_control` markers are.

A block is an element of the content, or a whole message whose content is no list of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import Message, Path
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import marker_of, markers_of, unmarked, unmarked_block
from policyctx.messages.shapes.sdk_objects import as_mapping, as_message
from policyctx.messages.shapes.shape import RESULT_ROLES

BlockKind: TypeAlias = Literal["tool_use", "tool_result", "other", "unmarkable"]
"""`unmarkable`: thinking or an empty text, on which a provider takes no marker."""
_THINKING = frozenset({"thinking", "redacted_thinking"})
_TTLS = {"5m": 300, "1h": 3600}


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
