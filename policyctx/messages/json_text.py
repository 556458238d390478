"""Compact JSON: the text of whatever a message holds besides strings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces; objects of an SDK become plain values.

    Raises `TypeError`, `ValueError` or `RecursionError` for a value that is not JSON.
    """
    # Not `pydantic_core.to_json`, which leaves the UTF-8 of each text in the caller's string.
    return _encode(value)


def json_pieces(value: object) -> Iterator[str]:
    """Yield the text of `compact_json` in pieces, so that no long text is copied as a whole."""
    if not _has_long_text(value):
        yield compact_json(value)
    elif isinstance(value, str):
        cuts = range(0, len(value), _PIECE_CHARS)
        yield '"'
        yield from (compact_json(value[at : at + _PIECE_CHARS])[1:-1] for at in cuts)
        yield '"'
    elif isinstance(value, dict):
        for i, (name, inner) in enumerate(value.items()):
            yield f"{',' if i else '{'}{compact_json(name)}:"
            yield from json_pieces(inner)
        yield "}"
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield "," if i else "["
            yield from json_pieces(inner)
        yield "]"


def stringified(value: object) -> str:
    """Return compact JSON in which lone surrogates are escaped, as `JSON.stringify` writes them.

    Two halves side by side stay, since they would come back as one character.
    """
    text = compact_json(value)
    return text if text.isascii() else _LONE.sub(lambda found: f"\\u{ord(found[0]):x}", text)


def text_of(value: object) -> str:
    """Return a string unchanged, nothing as an empty text, and any other value as compact JSON.

    A value that is not JSON is returned as Python writes it.
    """
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return compact_json(value)
    except (RecursionError, TypeError, ValueError):
        return str(value)


def _has_long_text(value: object, depth: int = 16) -> bool:
    """Return whether a value contains a long text, not too deep in plain lists and objects."""
    inner: Collection[object] = ()
    if type(value) is str:
        return len(value) > _PIECE_CHARS
    if type(value) is dict and all(type(name) is str for name in value):
        inner = value.values()
    elif type(value) is list:
        inner = value
    return depth > 0 and any(_has_long_text(each, depth - 1) for each in inner)


def _plain_values(value: object) -> object:
    """Return an object of a provider's SDK as plain values, any other object as its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


_PIECE_CHARS = 1 << 16
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_values).encode
