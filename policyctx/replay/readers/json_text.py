"""JSON texts as recordings hold them: a line of a file, or a document small enough to be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable

BOM = b"\xef\xbb\xbf"
_DEPTH = 200


def value_of(text: bytes | str) -> Any:  # noqa: ANN401 - JSON holds any value
    """Return what a JSON text says; raises `ValueError`, also for what is nested too deeply.

    Of repeated keys the last counts. What only Python's own parser takes is taken: lone surrogates
    and `NaN`.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError as error:
        if "recursion limit" in str(error):
            raise ValueError("nested too deeply") from error
    except TypeError:
        # The quick parser takes no `str` with a lone surrogate in it.
        pass
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def _is_deep(value: object) -> bool:
    """Whether a value is nested more deeply than the quick parser takes it."""
    level = [value]
    for _ in range(_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
