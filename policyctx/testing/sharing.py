"""Which parts of two JSON values are one object, so that changing one changes the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def shared_parts(one: object, other: object) -> list[object]:
    """Return the maps and lists in `one` that are in `other` as well, as the same objects."""
    known = {id(part) for part in _parts(other)}
    return [part for part in _parts(one) if id(part) in known]


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)
