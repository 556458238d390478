"""Compact JSON: the text of whatever a message holds besides strings."""

from __future__ import annotations

import json
import re
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces; objects of an SDK become plain values.

    Raises `TypeError`, `ValueError` or `RecursionError` for a value that is not JSON.
    """
    if _is_written_alike(value):
        from pydantic_core import to_json  # noqa: PLC0415 - a process with texts alone starts faster

        try:
            return to_json(value).decode()
        except ValueError:  # a lone surrogate
            pass
    return _encode(value)


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


def _is_written_alike(value: object, depth: int = 16) -> bool:
    """Whether both encoders write the value alike: no floats, and no unusual depth."""
    if type(value) is dict and _NAMES.issuperset(map(type, value)):
        inner: Collection[object] = value.values()
    elif type(value) is list:
        inner = value
    else:
        return type(value) in _SIMPLE
    if _SIMPLE.issuperset(map(type, inner)):
        return depth > 0
    return depth > 0 and all(_is_written_alike(each, depth - 1) for each in inner)


def _plain_values(value: object) -> object:
    """Return an object of a provider's SDK as plain values, any other object as its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_NAMES, _SIMPLE = frozenset({str}), frozenset({str, int, bool, NoneType})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_values).encode
