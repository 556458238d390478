"""Offloaded texts put back into a document of JSON, such as the session file of a host."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

from policyctx.definitions.items import MEDIA_TYPES
from policyctx.messages.reading import is_message, items_of
from policyctx.planning.ledger import LedgerEntry, is_entry
from policyctx.store.filesystem import ContextFileSystem

JSON: TypeAlias = Any
_Key: TypeAlias = tuple[str, str, str, str]
# The fields that name the call of a block or of a message; the first that is there counts. Google
# may give the name of the tool alone.
_IDS = ("tool_use_id", "tool_call_id", "call_id", "toolUseId", "id", "name")
# A text block takes the place of an image or a document.
_TEXT_BLOCK = frozenset({"type", "text", "cache_control"})


def _key(value: dict[str, JSON]) -> _Key | None:
    """Return the field that names the call: its map's key, its own, its value and the type.

    None without one. In the Responses API a call and its output have the same field. Bedrock and
    Google have it in a map of the block.
    """
    maps = [("", value), *(pair for pair in value.items() if isinstance(pair[1], dict))]
    for holder, inner in maps:
        name = next((one for one in _IDS if isinstance(inner.get(one), str)), None)
        if name is not None:
            return holder, name, inner[name], str(value.get("type"))
    return None


class _Original(NamedTuple):
    """A block that was offloaded, and its placeholder: as a text, as JSON, and as JSON in JSON."""

    block: dict[str, JSON]
    placeholder: str
    once: str
    twice: str

    @classmethod
    def of(cls, block: dict[str, JSON], placeholder: str) -> Self:
        once = json.dumps(placeholder)[1:-1]
        # The arguments of a call may be JSON inside a string.
        return cls(block, placeholder, once, json.dumps(once)[1:-1])


@dataclass(slots=True)
class Restorer:
    """Puts the originals in the places of their placeholders, whatever the document looks like.

    A string that is a placeholder becomes its text. A block, or a message, that is recorded and
    that contains its placeholder becomes the original block, and so does a text block that took the
    place of an image or a document. What was not saved stays, as do placeholders that stand for
    several files.
    """

    blocks: dict[_Key, list[_Original]]
    """The originals, by what `_key` returns."""
    media: dict[str, JSON]
    """The original blocks of images and documents, by the placeholder."""
    texts: dict[str, str]
    """The original text by its placeholder."""
    unsaved: frozenset[str]
    """Placeholders of items that were not saved, or that are not clear."""
    restored: int = field(default=0, init=False)
    """The number of places that have their originals back."""
    left: int = field(default=0, init=False)
    """The number of places with a placeholder that stays."""

    def lines(self, text: str) -> str:
        """Return a text of JSON, or of JSON lines, with the originals.

        A line without a placeholder, and a document without any, keeps its bytes. Raises
        `ValueError` for a text that is neither.
        """
        try:
            whole = json.loads(text)
        except ValueError:
            return "".join(self._line(line) for line in text.splitlines(keepends=True))
        before = self.restored
        new = self.value(whole)
        return text if self.restored == before else json.dumps(new, ensure_ascii=False, indent=2)

    def _line(self, line: str) -> str:
        if not line.strip():
            return line
        before = self.restored
        new = self.value(json.loads(line))
        return line if self.restored == before else json.dumps(new, ensure_ascii=False) + "\n"

    def value(self, value: JSON) -> JSON:
        """Return a value of JSON with the originals; the value given is not changed."""
        if isinstance(value, dict):
            if (block := self._block(value)) is not None:
                self.restored += 1
                return block
            return {name: self.value(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if (text := self.texts.get(value)) is not None:
            self.restored += 1
            return text
        self.left += value in self.unsaved
        return value

    def _block(self, value: dict[str, JSON]) -> JSON | None:
        """Return the original of a block that contains its placeholder, None for another value."""
        key = None if value.keys() <= _TEXT_BLOCK else _key(value)
        if key is None:
            text = value.get("text")
            return self.media.get(text) if isinstance(text, str) else None
        alike = [
            one
            for one in self.blocks.get(key, ())
            if all(one.block.get(name) == value.get(name) for name in ("type", "role"))
        ]
        return _held_in(value, alike) if alike else None


def _held_in(value: dict[str, JSON], originals: list[_Original]) -> JSON | None:
    """Return the first of the originals whose placeholder is in a block, None if none is."""
    there = json.dumps(value)
    # The input of a built-in tool is an object of a fixed form.
    texts = {item.text for item in items_of([value])} if is_message(value) else set()
    for one in originals:
        if one.once in there or one.twice in there or one.placeholder in texts:
            return one.block
        # The placeholder of an input is JSON, whose form in the document may be another one.
        with suppress(ValueError):
            if one.placeholder.startswith("{") and _has(value, json.loads(one.placeholder)):
                return one.block
    return None


def _has(value: JSON, wanted: JSON) -> bool:
    """Whether a value of JSON is this one, or has it somewhere inside."""
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(value == wanted) or any(_has(inner, wanted) for inner in held)


def restorer(stores: Iterable[ContextFileSystem]) -> Restorer:
    """Return what puts back everything that the sessions of these stores offloaded.

    Raises `StoreError` for a content that is gone or that is not what was saved.
    """
    blocks: dict[_Key, list[_Original]] = {}
    media: dict[str, JSON] = {}
    found: dict[str, set[str | None]] = {}
    for store in stores:
        entries = (LedgerEntry.of(record) for record in store.records() if is_entry(record))
        for entry in entries:
            if entry is None or not entry.placeholder:
                continue
            path = entry.relative_path
            text = None if path is None else store.read(path)
            found.setdefault(entry.placeholder, set()).add(text)
            original = None if path is None else _original(store, path)
            if original is None:
                continue
            if entry.key.kind in MEDIA_TYPES:
                media.setdefault(entry.placeholder, original)
            elif (key := _key(original)) is not None:
                blocks.setdefault(key, []).append(_Original.of(original, entry.placeholder))
    texts = {
        placeholder: text
        for placeholder, candidates in found.items()
        if len(candidates) == 1 and (text := next(iter(candidates))) is not None
    }
    return Restorer(blocks, media, texts, frozenset(found.keys() - texts.keys()))


def _original(store: ContextFileSystem, path: str) -> dict[str, JSON] | None:
    """Return the block that a content was; None where only its text is known."""
    entry = store.find(path)
    if entry is None or (entry.hollow is None and entry.rest is None):
        return None
    original = store.restore(path)
    return original if isinstance(original, dict) else None
