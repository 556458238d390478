"""Messages as they lie in a request: maps and lists, nothing read into them yet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
Block: TypeAlias = Mapping[str, Any]


def blocks_of(content: object) -> Iterator[Block]:
    """Yield the blocks of a content list; a text has none.

    An object of a provider's SDK is seen as the map that it stands for, a bare string in the list
    as a text block.
    """
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping):
            yield block
        elif isinstance(block, str):
            yield {"type": "text", "text": block}
        elif callable(dump := getattr(block, "model_dump", None)):
            yield dump(mode="json")


def text_of(value: object) -> str:
    """Return a text as it is, anything else as compact JSON, nothing as no text."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return _encode(value)
    except (RecursionError, ValueError):
        return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
