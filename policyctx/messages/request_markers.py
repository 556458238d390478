"""Markers beside the messages of a request: those of its system prompt and of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from policyctx.definitions.request_content import Ttl
from policyctx.messages.markers import marked_with, marker_of, ttl_of


def blocks_of_system(system: object) -> list[Any] | None:
    """Return the blocks of a system prompt, None for one that may have no markers.

    A text is one block.
    """
    if isinstance(system, str):
        return [{"type": "text", "text": system}] if system else []
    if system is None:
        return None
    return _blocks(system)


def blocks_of_tools(tools: object) -> list[Any] | None:
    """Return the schemas of tools, None where they may have no markers, as OpenAI's."""
    found = _blocks(tools)
    if found is None or any(_field(tool, "type") == "function" for tool in found):
        return None
    return found


def places_for_text(blocks: list[Any]) -> list[int]:
    """Return the indices of the blocks of a system prompt that may have a marker."""
    texts = ((i, _field(block, "text")) for i, block in enumerate(blocks))
    return [i for i, text in texts if isinstance(text, str) and text.strip()]


def places_for_tools(tools: list[Any]) -> list[int]:
    """Return the indices of the tools that may have a marker: those that are not deferred."""
    return [i for i, tool in enumerate(tools) if not _field(tool, "defer_loading")]


def ttls_of(blocks: list[Any]) -> dict[int, Ttl]:
    """Return the TTL of each block that has a marker, by its index."""
    found = ((i, marker_of(block)) for i, block in enumerate(blocks))
    return {i: ttl_of(marker) for i, marker in found if marker is not None}


def with_ttls(given: Any, blocks: list[Any], ttls: Mapping[int, Ttl]) -> Any:  # noqa: ANN401
    """Return the blocks with markers of these TTLs and no others; `given` if nothing changes.

    `given` is what the blocks were read from.
    """
    new = [marked_with(block, ttls.get(i)) for i, block in enumerate(blocks)]
    return given if all(map(is_, new, blocks)) else new


def _blocks(given: object) -> list[Any] | None:
    if not isinstance(given, list | tuple):
        return None
    is_block = (isinstance(b, Mapping) or hasattr(b, "model_dump") for b in given)
    return list(given) if all(is_block) else None


def _field(block: object, name: str) -> object:
    return block.get(name) if isinstance(block, Mapping) else getattr(block, name, None)
