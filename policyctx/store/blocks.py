"""An original block without its text, which is in the content's file already."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.messages.items import compact_json

if TYPE_CHECKING:
    from policyctx.store.content import JSON

Place: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Hollow:
    """A block whose text was taken out at `place`; None when it does not hold the text."""

    block: JSON
    place: Place | None
    kind: Literal["text", "json"] = "text"
    """Did the text stand there as it is, or as the value that it is the compact JSON of."""

    def as_json(self) -> dict[str, JSON]:
        """Return what the index holds of it."""
        if self.place is None:
            return {"block": self.block}
        return {"block": self.block, "text_at": [*self.place], "text_as": self.kind}

    def filled(self, text: str) -> JSON:
        """Return the block as it was; nothing in it is shared with this one."""
        block: JSON = json.loads(json.dumps(self.block))
        if self.place is None:
            return block
        return _with(block, self.place, text if self.kind == "text" else json.loads(text))


def hollow(block: JSON, text: str) -> Hollow:
    """Take the text out of its block: the first string that is the text, or value that it is."""
    if isinstance(block, dict):  # most often it stands right there
        for key, value in block.items():
            if value == text:
                return Hollow({**block, key: None}, (key,))
    for place, value in _values(block):
        if isinstance(value, str) and value == text:
            return Hollow(_with(block, place, None), place)
    if text[:1] in {"{", "["}:
        for place, value in _values(block):
            if isinstance(value, (list, dict)) and compact_json(value) == text:
                return Hollow(_with(block, place, None), place, "json")
    return Hollow(block, None)


def _values(block: JSON) -> list[tuple[Place, JSON]]:
    """Every value in a block with its place, outer ones first."""
    found: list[tuple[Place, JSON]] = [((), block)]
    for place, value in found:
        if isinstance(value, dict):
            found += [((*place, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            found += [((*place, i), inner) for i, inner in enumerate(value)]
    return found


def _with(block: JSON, place: Place, value: JSON) -> JSON:
    """A copy of the block along `place`, with the value there."""
    if not place:
        return value
    first, *rest = place
    if isinstance(block, dict) and isinstance(first, str):
        return {**block, first: _with(block[first], tuple(rest), value)}
    if isinstance(block, list) and isinstance(first, int):
        return [*block[:first], _with(block[first], tuple(rest), value), *block[first + 1 :]]
    raise ValueError(f"no place {place} in this block")
