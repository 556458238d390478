"""JSON texts as recordings hold them: a line of a file, or a document small enough to be read."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

BOM = b"\xef\xbb\xbf"


def value_of(text: bytes) -> Any:  # noqa: ANN401 - JSON holds any value
    """Return what a JSON text says; raises `ValueError`, also for what is nested too deeply.

    Of repeated keys the last counts. What only Python's own parser takes is taken: lone surrogates
    and `NaN`.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError as error:
        if "recursion limit" in str(error):
            raise ValueError("nested too deeply") from error
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
