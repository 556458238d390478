"""`Hollow`: what a list holds beside the text of an item, and how the text is put back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from policyctx.messages.json_text import JSON, compact_json, parsed
from policyctx.messages.markers import unmarked_block
from policyctx.messages.shapes.block_texts import BlockPath, is_binary, texts_in

Kind: TypeAlias = Literal["text", "json", "blocks"]
_KINDS: dict[object, Kind] = {"json": "json", "blocks": "blocks"}


class Hollow(NamedTuple):
    """A block whose text was removed at `place`; None when it does not contain the text."""

    block: JSON
    place: BlockPath | None = None
    kind: Kind = "text"
    """How the text was there: as it is, as the value whose JSON it is, or as blocks."""
    runs: tuple[dict[str, JSON], ...] = ()
    """The blocks, of which equal ones in a row that differ only in their texts are one run."""

    @property
    def holds_more(self) -> bool:
        """Whether there are blocks of which nothing is in the text, such as images."""
        holds_binary = any(is_binary(value) for _, value in _values(self.block))
        return holds_binary or any("chars" not in run for run in self.runs)

    def as_json(self) -> dict[str, JSON]:
        """Return the keys of the index that describe it."""
        if self.place is None:
            return {"block": self.block}
        values: dict[str, JSON] = {"block": self.block, "text_at": [*self.place]}
        values["text_as"] = self.kind
        return {**values, "blocks": [*self.runs]} if self.kind == "blocks" else values

    @classmethod
    def of(cls, value: dict[str, Any]) -> Hollow | None:
        """Return the hollow block that these keys describe, None if they describe none."""
        if "block" not in value:
            return None
        place, runs = value.get("text_at"), value.get("blocks", [])
        if not isinstance(place, list):
            return cls(value["block"], None)
        parts = tuple(part for part in place if isinstance(part, (str, int)))
        return cls(value["block"], parts, _KINDS.get(value.get("text_as"), "text"), tuple(runs))

    def filled(self, text: str) -> JSON:
        """Return a new block with the text in its place.

        Raises `LookupError`, `TypeError` or `ValueError` for a description that does not fit.
        """
        block: JSON = json.loads(compact_json(self.block))
        if self.place is None:
            return block
        value: JSON = text
        if self.kind != "text":
            value = parsed(text) if self.kind == "json" else [*_filled(self.runs, text)]
        return _block_with(block, self.place, value)


def hollow(block: JSON, text: str) -> Hollow:
    """Return a block without its text: the first value that is the text, or that it was made of.

    Such a value is a string equal to it, one with that JSON, or a list of blocks whose texts are
    joined in it.
    """
    if isinstance(block, dict):  # the usual case
        for key, value in block.items():
            if value == text:
                return Hollow({**block, key: None}, (key,))
    values = _values(block)
    for place, value in values:
        if isinstance(value, str) and value == text:
            return Hollow(_block_with(block, place, None), place)
        if isinstance(value, list) and (runs := _runs(value, text)) is not None:
            return Hollow(_block_with(block, place, None), place, "blocks", tuple(runs))
    if (as_compact := _compact(text)) is not None:
        for place, value in values:
            if isinstance(value, (list, dict)) and compact_json(value) == as_compact:
                return Hollow(_block_with(block, place, None), place, "json")
    return Hollow(block, None)


def _compact(text: str) -> str | None:
    """Return the JSON of a list or a map as compact JSON, None for another text."""
    if text[:1] in {"{", "["}:
        with suppress(ValueError, RecursionError):
            return compact_json(parsed(text))
    return None


def _runs(blocks: list[JSON], text: str) -> list[dict[str, JSON]] | None:
    """Return blocks without the pieces of a text; None if they are not what it was made of.

    A run is `of` a block with nulls `at` the places of its pieces, which have so many `chars`. A
    block whose line of JSON cannot give it back is there whole, as is one of which nothing is in
    the text.
    """
    if len(blocks) == 1 and len([*texts_in(blocks[0])]) == 1:
        return None  # its text is the whole text
    runs: list[dict[str, Any]] = []
    start, like = 0, ""
    for block in blocks:
        pieces = _pieces(block, text, start)
        if not pieces:
            runs.append({"of": block})
            like = ""
            continue
        start += sum(length + 1 for _, length in pieces)
        is_json = isinstance(block, (dict, list)) and pieces[0][0] == ()
        of = block
        if not is_json or unmarked_block(block) is block:
            for place, _ in pieces:
                of = _block_with(of, place, None)
        run: dict[str, Any] = {"of": of, "at": [[*place] for place, _ in pieces]}
        run |= {"as": "json"} if is_json else {}
        if like != (like := compact_json(run)) or (is_json and of is block):
            runs.append({**run, "chars": []})
        runs[-1]["chars"] += [length for _, length in pieces]
    return runs if start == len(text) + 1 else None


def _pieces(block: JSON, text: str, start: int) -> list[tuple[BlockPath, int]]:
    """Return the place and length of each piece that a block has of a text, from `start` on."""
    found = [*texts_in(block)]
    if not found and text.startswith(("{", "["), start):
        found = [((), compact_json(unmarked_block(block)))]
    pieces = []
    for place, piece in found:
        end = start + len(piece)
        if not text.startswith(piece, start) or text[end : end + 1] not in {"", "\n"}:
            return []
        pieces.append((place, len(piece)))
        start = end + 1
    return pieces


def _filled(runs: Sequence[dict[str, Any]], text: str) -> Iterator[JSON]:
    """Yield the blocks of these runs with the pieces of a text."""
    start = 0
    for run in runs:
        of, places, lengths = compact_json(run["of"]), run.get("at", ()), run.get("chars", ())
        for i in range(0, len(lengths) or 1, len(places) or 1):
            block: JSON = json.loads(of)
            for place, length in zip(places, lengths[i : i + len(places)], strict=True):
                piece = text[start : start + length]
                start += length + 1
                if run.get("as") != "json":
                    block = _block_with(block, tuple(place), piece)
                elif block is None:
                    block = json.loads(piece)
            yield block


def _values(block: JSON) -> list[tuple[BlockPath, JSON]]:
    """Return every value in a block with its place, outer values first."""
    found: list[tuple[BlockPath, JSON]] = [((), block)]
    for place, value in found:
        if isinstance(value, dict):
            found += [((*place, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            found += [((*place, i), inner) for i, inner in enumerate(value)]
    return found


def _block_with(block: JSON, place: BlockPath, value: JSON) -> JSON:
    if not place:
        return value
    first, *rest = place
    if isinstance(block, dict) and isinstance(first, str):
        return {**block, first: _block_with(block[first], tuple(rest), value)}
    if isinstance(block, list) and isinstance(first, int):
        return [*block[:first], _block_with(block[first], tuple(rest), value), *block[first + 1 :]]
    raise ValueError(f"no place {place} in this block")
