"""Offloaded texts put back into a document of JSON, such as the session file of a host."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

from policyctx.definitions.items import MEDIA_TYPES
from policyctx.messages.reading import is_message, items_of
from policyctx.planning.ledger import LedgerEntry, is_entry
from policyctx.store.content import encoded, sha256_of
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.hollow import Hollow

JSON: TypeAlias = Any
_Key: TypeAlias = tuple[str, ...]
# The fields that name the call of a block or of a message; the first that is there counts. Google
# may give the name of the tool alone.
_IDS = ("tool_use_id", "tool_call_id", "call_id", "toolUseId", "id", "name")
# The fields that say what a block is. In Chat and Responses a message has a role.
_KINDS = ("type", "role")
# What `_key` reads of a block.
_NAMING = frozenset({*_IDS, *_KINDS})
# A text block takes the place of an image or a document.
_TEXT_BLOCK = frozenset({"type", "text", "cache_control"})


def _key(value: dict[str, JSON]) -> _Key | None:
    """Return the field that names the call: its map's key, its own, its value; and what it is.

    None without one. In the Responses API a call and its output have the same field. Bedrock and
    Google have it in a map of the block.
    """
    maps = [("", value), *(pair for pair in value.items() if isinstance(pair[1], dict))]
    for holder, inner in maps:
        name = next((one for one in _IDS if isinstance(inner.get(one), str)), None)
        if name is not None:
            return holder, name, inner[name], *(str(value.get(one)) for one in _KINDS)
    return None


class _Saved(NamedTuple):
    """Where a content is, which is read when it goes back."""

    store: ContextFileSystem
    path: str


class _Original(NamedTuple):
    """A block that was offloaded, and its placeholder: as a text, as JSON, and as JSON in JSON."""

    saved: _Saved
    placeholder: str
    once: str
    twice: str

    @classmethod
    def of(cls, saved: _Saved, placeholder: str) -> Self:
        once = json.dumps(placeholder)[1:-1]
        # The arguments of a call may be JSON inside a string.
        return cls(saved, placeholder, once, json.dumps(once)[1:-1])


@dataclass(slots=True)
class Restorer:
    """Puts the originals in the places of their placeholders, whatever the document looks like.

    A string that is a placeholder becomes its text. A block, or a message, that is recorded and
    that contains its placeholder becomes the original block, and so does a text block that took the
    place of an image or a document. What was not saved stays, as do placeholders that stand for
    several files. A content is read when its placeholder is found, and not held: `lines` and
    `value` raise `StoreError` for one that is gone or that is not what was saved.
    """

    blocks: dict[_Key, list[_Original]]
    """The originals, by what `_key` returns."""
    media: dict[str, _Saved]
    """The original blocks of images and documents, by the placeholder."""
    texts: dict[str, _Saved]
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
        if (saved := self.texts.get(value)) is not None:
            self.restored += 1
            return saved.store.read(saved.path)
        self.left += value in self.unsaved
        return value

    def _block(self, value: dict[str, JSON]) -> JSON | None:
        """Return the original of a block that contains its placeholder, None for another value."""
        key = None if value.keys() <= _TEXT_BLOCK else _key(value)
        if key is None:
            text = value.get("text")
            found = self.media.get(text) if isinstance(text, str) else None
        else:
            alike = self.blocks.get(key)
            found = _held_in(value, alike) if alike else None
        return None if found is None else found.store.restore(found.path)


def _held_in(value: dict[str, JSON], originals: list[_Original]) -> _Saved | None:
    """Return the first of the originals whose placeholder is in a block, None if none is."""
    there = json.dumps(value)
    # The input of a built-in tool is an object of a fixed form.
    texts = {item.text for item in items_of([value])} if is_message(value) else set()
    for one in originals:
        if one.once in there or one.twice in there or one.placeholder in texts:
            return one.saved
        # The placeholder of an input is JSON, whose form in the document may be another one.
        with suppress(ValueError):
            if one.placeholder.startswith("{") and _has(value, json.loads(one.placeholder)):
                return one.saved
    return None


def _has(value: JSON, wanted: JSON) -> bool:
    """Whether a value of JSON is this one, or has it somewhere inside."""
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(value == wanted) or any(_has(inner, wanted) for inner in held)


def restorer(stores: Iterable[ContextFileSystem]) -> Restorer:
    """Return what puts back everything that the sessions of these stores offloaded."""
    blocks: dict[_Key, list[_Original]] = {}
    media: dict[str, _Saved] = {}
    found: dict[str, dict[str | None, _Saved | None]] = {}
    for store in stores:
        entries = (LedgerEntry.of(record) for record in store.records() if is_entry(record))
        for entry in entries:
            if entry is None or not entry.placeholder:
                continue
            path, candidates = entry.relative_path, found.setdefault(entry.placeholder, {})
            if path is None:
                candidates[None] = None
                continue
            saved, known = _Saved(store, path), store.find(path)
            sha256 = sha256_of(encoded(store.read(path))) if known is None else known.sha256
            candidates[sha256] = saved
            if known is None or (known.hollow is None and known.rest is None):
                continue
            if entry.key.kind in MEDIA_TYPES:
                media.setdefault(entry.placeholder, saved)
                continue
            block = _named(saved, known.hollow)
            if isinstance(block, dict) and (key := _key(block)) is not None:
                blocks.setdefault(key, []).append(_Original.of(saved, entry.placeholder))
    texts = {
        placeholder: saved
        for placeholder, candidates in found.items()
        if len(candidates) == 1
        for saved in candidates.values()
        if saved is not None
    }
    return Restorer(blocks, media, texts, frozenset(found.keys() - texts.keys()))


def _named(saved: _Saved, hollow: Hollow | None) -> JSON:
    """Return the block of a content, without its text where nothing that names it is in that."""
    if hollow is not None and hollow.block is not None and _NAMING.isdisjoint(hollow.place or ()):
        return hollow.block
    return saved.store.restore(saved.path)
