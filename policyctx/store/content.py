"""The values that go into and come out of a store, and what a list holds beside its texts.

`Content` is a text to be saved, `Origin` the item that it came from, `Saved` the result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from policyctx.definitions.items import Item
from policyctx.messages.json_text import JSON, compact_json, stringified
from policyctx.messages.markers import unmarked_block
from policyctx.messages.shapes.block_texts import BlockPath, is_binary, texts_in
from policyctx.paths import File

# The parts of a path that lead elsewhere.
_ELSEWHERE = frozenset({"", ".", ".."})


def encoded(text: str) -> bytes:
    """Return a text in UTF-8, with lone surrogates as CPython's `surrogatepass` writes them."""
    return text.encode("utf-8", "surrogatepass")


def decoded(raw: bytes) -> str:
    """Return the text that `encoded` encoded."""
    return raw.decode("utf-8", "surrogatepass")


def sha256_of(raw: bytes) -> str:
    """Return the sha256 in hex."""
    return hashlib.sha256(raw).hexdigest()


class Encoding:
    """The pieces of a text in UTF-8, iterated once; counts and hashes the text on the way."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()
        self._newlines, self._last = 0, ""
        self.size = 0
        """Bytes so far."""
        self.chars = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            raw = encoded(piece)
            self._hash.update(raw)
            self._newlines += piece.count("\n")
            self._last = piece[-1:] or self._last
            self.size += len(raw)
            self.chars += len(piece)
            yield raw

    @property
    def sha256(self) -> str:
        """The sha256 so far, in hex."""
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """The number of lines so far, as `line_count` counts them."""
        return self._newlines + (self._last not in {"", "\n"})


@dataclass(frozen=True, slots=True)
class Origin:
    """The item that a content came from: the keys that find it, and its original block."""

    item_id: str
    item_type: str
    tool_use_id: str | None = None
    tool_name: str | None = None
    role: str | None = None
    message: int | None = None
    """0-based position of its message in the list."""
    turn: int | None = None
    tokens: int | None = None
    block: JSON = None
    """The original block, or the whole message where its content is a string. A text that is in it
    is not stored twice. None: only the text can be restored."""

    @classmethod
    def of(cls, item: Item, *, tokens: int | None, block: JSON) -> Origin:
        """Return the origin of an item; `tokens` is None where they were not counted."""
        return cls(
            item_id=item.item_id,
            item_type=item.type,
            tool_use_id=item.tool_use_id,
            tool_name=item.tool,
            role=item.role,
            message=item.message,
            turn=item.turn,
            tokens=tokens,
            block=block,
        )

    def without_block(self) -> Origin:
        """Return the origin without its block."""
        return Origin(  # by hand, since `replace` takes four times as long
            item_id=self.item_id,
            item_type=self.item_type,
            tool_use_id=self.tool_use_id,
            tool_name=self.tool_name,
            role=self.role,
            message=self.message,
            turn=self.turn,
            tokens=self.tokens,
        )


@dataclass(frozen=True, slots=True)
class Content:
    """A text to be saved, and the path below the root that it is expected to get.

    `wanted_path` is that path without a number. When the expected path is taken, the content gets
    `wanted_path` with the first free number. A `packed` content is compressed at once, where the
    store compresses.
    """

    relative_path: str
    source: str | Iterable[str]
    """The text, or its pieces in order, which need not be in memory together."""
    wanted_path: str = ""
    origin: Origin | None = None
    packed: bool = False
    is_rest: bool = False
    """Whether it is the hollow block of another content, whose index entry would be large with it.
    Nothing but `restore` reads it."""

    @property
    def text(self) -> str:
        """The whole text; pieces are joined each time."""
        return self.source if isinstance(self.source, str) else "".join(self.source)

    @property
    def pieces(self) -> Iterable[str]:
        """The pieces of the text."""
        return (self.source,) if isinstance(self.source, str) else self.source


@dataclass(frozen=True, slots=True)
class Saved:
    """The result of saving a content: its file, and whether the disk held it already."""

    file: File
    sha256: str
    """Of the text in UTF-8, in hex."""
    chars: int
    lines: int
    size: int
    """Bytes of the text in UTF-8."""
    reused: bool = False
    """Whether the file held this very content before."""
    same_as: str | None = None
    """The path below the root of an equal content with another name; the disk holds it once."""


STATE_FOLDER = ".policyctx"
# In a folder whose objects wait for a store at a URL: that URL.
URL_FILE = f"{STATE_FOLDER}/url"
# The ending of the name of a compressed file.
PACKED = ".zst"


def is_inside(path: object) -> bool:
    """Whether a content may have this path: it is relative, inside the root, and not the state."""
    if not isinstance(path, str) or "\0" in path:
        return False
    parts = path.split("/")
    return not _ELSEWHERE & set(parts) and parts[0].casefold() != STATE_FOLDER


Kind: TypeAlias = Literal["text", "json", "blocks"]
_KINDS: dict[object, Kind] = {"json": "json", "blocks": "blocks"}


@dataclass(frozen=True, slots=True)
class Hollow:
    """A block whose text was removed at `place`; None when it does not contain the text."""

    block: JSON
    place: BlockPath | None = None
    kind: Kind = "text"
    """How the text was there: as it is, as the value whose compact JSON it is, or as blocks."""
    runs: tuple[dict[str, JSON], ...] = ()
    """The blocks, of which equal ones in a row that differ only in their texts are one run."""

    @property
    def holds_more(self) -> bool:
        """Whether there are blocks of which nothing is in the text, such as images."""
        return any("chars" not in run for run in self.runs) or any(
            is_binary(value) for _, value in _values(self.block)
        )

    def as_json(self) -> dict[str, JSON]:
        """Return the keys of the index that describe it."""
        if self.place is None:
            return {"block": self.block}
        values: dict[str, JSON] = {
            "block": self.block,
            "text_at": [*self.place],
            "text_as": self.kind,
        }
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
        block: JSON = json.loads(json.dumps(self.block))
        if self.place is None:
            return block
        value: JSON = text
        if self.kind != "text":
            value = json.loads(text) if self.kind == "json" else [*_filled(self.runs, text)]
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
    if text[:1] in {"{", "["}:
        for place, value in values:
            if isinstance(value, (list, dict)) and text in {
                compact_json(value),
                stringified(value),
            }:
                return Hollow(_block_with(block, place, None), place, "json")
    return Hollow(block, None)


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
        of, places, lengths = json.dumps(run["of"]), run.get("at", ()), run.get("chars", ())
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
    """Return a copy of the block, with the value at `place`."""
    if not place:
        return value
    first, *rest = place
    if isinstance(block, dict) and isinstance(first, str):
        return {**block, first: _block_with(block[first], tuple(rest), value)}
    if isinstance(block, list) and isinstance(first, int):
        return [*block[:first], _block_with(block[first], tuple(rest), value), *block[first + 1 :]]
    raise ValueError(f"no place {place} in this block")
