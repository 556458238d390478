"""The inputs of calls, as JSON texts: what is long in them gives way, and they stay objects."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(?P<is_key>\s*:)?')


def shortened_input(text: str, replacement: Callable[[str], str | None]) -> str | None:
    """Return the JSON text of a call's input with its long strings replaced.

    Each string value at any depth for which `replacement` gives a text gives way to it, in the
    order of `text`; keys, and all else to the byte, stay. None when `text` is no JSON object, or
    when nothing gave way.
    """
    if not _is_object(text):
        return None
    changed = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal changed
        if found["is_key"] or (new := replacement(json.loads(found[0]))) is None:
            return found[0]
        changed = True
        return compact_json(new)

    new_text = _STRING.sub(replaced, text)
    return new_text if changed else None


def strings_in(text: str) -> Iterator[str]:
    """Yield the string values of a call's input, at any depth; the text itself if it is none."""
    if not _is_object(text):
        yield text
        return
    for found in _STRING.finditer(text):
        if not found["is_key"]:
            yield json.loads(found[0])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (RecursionError, ValueError):
        return False
