"""`Ledger`: the decisions of a session, by which an item looks the same in every later turn."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

from policyctx.definitions.actions import BY_STATE, Action
from policyctx.definitions.items import MEDIA_TYPES, Blocks, Item
from policyctx.planning.placeholders import content_hash

TYPES: dict[str, frozenset[type]] = {
    "text": frozenset({str}),
    "text or nothing": frozenset({str, type(None)}),
    "whole number": frozenset({int}),
    "whole number or nothing": frozenset({int, type(None)}),
    "number": frozenset({int, float}),
    "truth": frozenset({bool}),
    "list": frozenset({list}),
}
# What separates a file's name from its surroundings in a JSON text; an escape does too.
_BETWEEN_NAMES = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^A-Za-z0-9._%-]+")
# A kind of item, a tool-use id, and the text of a placeholder or the hash of a rewritten result.
RenderedKey: TypeAlias = tuple[str, str | None, str | None]


class _Missing:
    """The type of a field that a record does not have."""


_MISSING = _Missing()
# The name of each field, and the types that its value may have.
Fields: TypeAlias = tuple[tuple[str, frozenset[type]], ...]


def fields_of(types: Mapping[str, str]) -> Fields:
    """Return fields by name and type; a name that ends in "?" may be missing."""
    return tuple(
        (name.removesuffix("?"), TYPES[expected] | ({_Missing} if name.endswith("?") else set()))
        for name, expected in types.items()
    )


# The fields that every version wrote, and those that may be missing.
DECISION = fields_of(
    {
        "kind": "text",
        "tool_use_id": "text or nothing",
        "sha256": "text",
        "occurrence": "whole number",
        "chars": "whole number",
        "item_id": "text",
        "item_type": "text",
        "tool?": "text or nothing",
        "state": "text",
        "step": "text",
        "policy": "text",
        "placeholder": "text or nothing",
        "path": "text or nothing",
        "alike?": "whole number",
        "reads_as?": "text",
        "names_file?": "truth",
        "tokens?": "whole number or nothing",
        "rewritten?": "text or nothing",
        "saved?": "text or nothing",
        "call_id?": "text",
    }
)

MARK = fields_of(
    {
        "step": "text",
        "kind": "text",
        "tool_use_id": "text or nothing",
        "sha256": "text",
        "occurrence": "whole number",
        "chars": "whole number",
    }
)


def is_of(record: Mapping[str, Any], fields: Fields) -> bool:
    """Whether each field has its type."""
    get = record.get
    for name, types in fields:  # noqa: SIM110 - a restart checks thousands; `all` takes twice as long
        if type(get(name, _MISSING)) not in types:
            return False
    return True


class ItemKey(NamedTuple):
    """The identity of an item, independent of the list that it is in.

    The parts are its kind, its tool-use id, the hash of its `identity`, and the number of equal
    items before it, so that the rest keep their keys when the beginning of a list is cut off.
    """

    kind: str
    tool_use_id: str | None
    sha256: str
    occurrence: int


class LedgerEntry(NamedTuple):
    """The decision on one item, and how the item was rendered."""

    key: ItemKey
    chars: int
    """Of the item's text."""
    item_id: str
    item_type: str
    action: Action
    step: str
    policy: str
    """The digest of the policy that decided."""
    placeholder: str | None = None
    relative_path: str | None = None
    """Of its file below the store's root."""
    tool: str | None = None
    alike: int = 0
    """Of a dropped item: the number of items equal to it in the list then, itself included."""
    reads_as: str = ""
    """The kind that its placeholder is read as, where it differs from the item's own."""
    names_file: bool = False
    """Of a call: whether its input names a file of the store."""
    tokens: int | None = None
    """Of the item, where the policy keeps the newest by their tokens."""
    rewritten: str | None = None
    """The SHA-256 of the text of a kept result after items inside it left. Such an entry is no
    decision; it only identifies the result by that text."""
    saved: str | None = None
    """The SHA-256 of the text in its file, where the key has another: of a result with media."""
    call_id: str | None = None
    """Of a result: the id of its call, where it names that by a second id."""

    def record(self) -> dict[str, Any]:
        """Return the entry as plain values for JSON."""
        optional = {name: getattr(self, name) for name in _OPTIONAL}
        return {
            "record": "decision",
            **self.key._asdict(),
            "chars": self.chars,
            "item_id": self.item_id,
            "item_type": self.item_type,
            "tool": self.tool,
            "state": self.action.past,
            "step": self.step,
            "policy": self.policy,
            "placeholder": self.placeholder,
            "path": self.relative_path,
            **{name: value for name, value in optional.items() if value != _OPTIONAL[name]},
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> LedgerEntry | None:
        """Return the entry that `record` was made of, None for a record of another kind."""
        if record.get("record") != "decision":
            return None
        # By position, since a session begins with thousands of them, and names take longer.
        return cls(
            ItemKey(record["kind"], record["tool_use_id"], record["sha256"], record["occurrence"]),
            record["chars"],
            record["item_id"],
            record["item_type"],
            BY_STATE[record["state"]],
            record["step"],
            record["policy"],
            record["placeholder"],
            record["path"],
            record.get("tool"),
            *map(record.get, _OPTIONAL, _OPTIONAL.values()),
        )

    @property
    def place(self) -> RenderedKey:
        """The key to find its placeholder by: the kind it is read as, its tool-use id, its text.

        A rewritten result is found by the hash of its text. Media inside results have no kind
        there: equal texts may stand for an image and for a document.
        """
        kind, call, *_ = self.key
        read = self.reads_as or ("" if kind in MEDIA_TYPES else kind)
        return read, call, self.rewritten or self.placeholder


# The last fields of an entry, which a record lacks where they have these values.
_OPTIONAL = {
    name: default
    for name, default in LedgerEntry._field_defaults.items()
    if name not in {"placeholder", "relative_path", "tool"}
}

# Of each item of a message that is in no other one: its key, and the number of its drop if it was
# dropped. It is equal for the message as it was and as it was edited.
Trace: TypeAlias = tuple[tuple[ItemKey, int | None], ...]


class Mark(NamedTuple):
    """Where the list ended when a step last took something: its newest item then."""

    step: str
    key: ItemKey
    chars: int
    """Of the item's text."""

    def record(self) -> dict[str, Any]:
        """Return the mark as plain values for JSON."""
        return {"record": "mark", "step": self.step, **self.key._asdict(), "chars": self.chars}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Mark | None:
        """Return the mark that `record` was made of, None for a record of another kind."""
        if record.get("record") != "mark":
            return None
        key = ItemKey(*(record[part] for part in ItemKey._fields))
        return cls(record["step"], key, record["chars"])


def is_entry(record: Mapping[str, Any]) -> bool:
    """Return whether a record of a decision has the fields of an entry."""
    return is_of(record, DECISION) and record["state"] in BY_STATE


class Ledger:
    """The decided items of a session; it grows with each plan that is carried out."""

    def __init__(self, entries: Iterable[LedgerEntry] = ()) -> None:
        self.entries: dict[ItemKey, LedgerEntry] = {}
        self.marks: dict[str, Mark] = {}
        """Of each step whose gate asks for it."""
        self.before_drop: dict[ItemKey, LedgerEntry] = {}
        """What had left a placeholder of an item before it was dropped."""
        self._rendered: dict[RenderedKey, LedgerEntry | dict[ItemKey, LedgerEntry]] = {}
        """The entry of each placeholder, or the entries of several that are alike."""
        self._repeats: defaultdict[tuple[str, str | None, str], set[int]] = defaultdict(set)
        """The occurrences of equal items after the first."""
        self._lengths: set[tuple[str, str | None, int]] = set()
        self._has_rewritten: set[tuple[str, str | None]] = set()
        self._calls: set[tuple[str, str | None]] = set()
        """The kind and the tool-use id of each decided item."""
        self._by_id: dict[str, LedgerEntry] = {}
        """The entry with the newest file of each item id."""
        self._files: dict[str, str] = {}
        """The SHA-256 of the text that was saved in each file, by its path."""
        self._names: set[str] = set()
        """Of the files, without their folders."""
        self._depth = 0
        """The most folders that a file's path has."""
        self.newest_path = ""
        """Of the file that was named last, below the store's root; empty before there is one."""
        self.drops: dict[ItemKey, int] = {}
        """The items that were ever dropped, numbered in the order in which that happened first."""
        self.dropped_calls: set[str] = set()
        """The ids of the calls that were ever dropped."""
        self.drops_alike = False
        """Whether an item was dropped that others may be equal to."""
        self._endings: set[str] = set()
        """The endings of the files' names, which are cheaper to look for than the names."""
        self._has_odd_names = False
        """Whether a file's name, by the policy's own `path`, has unusual characters."""
        self.add(entries)

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entries: Iterable[LedgerEntry]) -> None:
        """Add decisions; an item that was decided before gets the new state."""
        paths: list[str] = []
        for entry in entries:
            key = entry.key
            kind, call, _, occurrence = key
            if entry.rewritten is not None:
                self._has_rewritten.add((kind, call))
                self._note_rendered(entry)
                continue
            self.drops_alike = self.drops_alike or self._is_drop_alike(entry)
            earlier = self.entries.pop(key, None)
            self.entries[key] = entry  # the newest decision is the last
            if entry.action.leaves_nothing:
                if earlier is not None and earlier.placeholder is not None:
                    self.before_drop[key] = earlier
                self.drops.setdefault(key, len(self.drops))
                if kind == "tool_call":
                    self.dropped_calls.update(filter(None, (call, entry.call_id)))
            self._lengths.add((kind, call, entry.chars))
            self._calls.add((kind, call))
            if occurrence:
                self._repeats[key[:3]].add(occurrence)
            if entry.placeholder is not None:
                self._note_rendered(entry)
            if entry.relative_path is not None:
                self._note_file(entry, entry.relative_path)
                paths.append(entry.relative_path)
        if paths:
            self._note_names(paths)

    def has_drops_alike(self, entries: Iterable[LedgerEntry]) -> bool:
        """Return `drops_alike` as it is after these decisions."""
        return self.drops_alike or any(map(self._is_drop_alike, entries))

    def _is_drop_alike(self, entry: LedgerEntry) -> bool:
        if not entry.action.leaves_nothing:
            return False
        earlier = self.entries.get(entry.key)
        was_left = earlier is not None and earlier.placeholder is not None
        kind, call, *_ = entry.key
        # An image in the second result of a call may be equal to one in the first.
        return call is None or kind in MEDIA_TYPES or entry.alike > 1 or was_left

    def drops_after(self, entries: Iterable[LedgerEntry]) -> dict[ItemKey, int]:
        """Return the `drops` that these decisions add, with their numbers."""
        dropped = dict.fromkeys(entry.key for entry in entries if entry.action.leaves_nothing)
        new = (key for key in dropped if key not in self.drops)
        return {key: number for number, key in enumerate(new, len(self.drops))}

    def _note_rendered(self, entry: LedgerEntry) -> None:
        known = self._rendered.setdefault(entry.place, entry)
        if known is entry:
            return
        # Nearly every placeholder is the only one of its kind, and needs no dict of its own.
        if isinstance(known, LedgerEntry):
            known = self._rendered[entry.place] = {known.key: known}
        known[entry.key] = entry

    def _note_file(self, entry: LedgerEntry, path: str) -> None:
        # Entries of items that were read back from the file come after that of its own item.
        self._files.setdefault(path, entry.saved or entry.key.sha256)
        known = self._by_id.get(entry.item_id)
        if known is None or known.key.kind == "tool_call" or entry.key.kind != "tool_call":
            self._by_id[entry.item_id] = entry

    def _note_names(self, paths: Sequence[str]) -> None:
        names = [path.rpartition("/")[2] for path in paths]
        self._names.update(names)
        parts = (name.rpartition(".") for name in names)
        # A name without an ending is looked for by its words alone: each would be an ending.
        self._endings.update(f".{ending}" if point else "" for _, point, ending in parts)
        self._has_odd_names |= _BETWEEN_NAMES.search("".join(names)) is not None
        self._depth = max(self._depth, *(path.count("/") for path in paths))
        self.newest_path = paths[-1]

    @property
    def paths(self) -> AbstractSet[str]:
        """The files that the entries name, below the store's root."""
        return self._files.keys()

    def may_name_file(self, given: str) -> bool:
        """Return whether a call's input, as JSON, may name a file; False is certain, and cheap."""
        if self._has_odd_names:
            return True
        if not any(ending in given for ending in self._endings):
            return False
        return not self._names.isdisjoint(_BETWEEN_NAMES.split(given))

    def has_file(self, path: str) -> bool:
        """Return whether a path, absolute or relative, is a file that an entry names."""
        *folders, below = path.rsplit("/", self._depth + 1)
        while below not in self._files:
            if not folders:
                return False
            below = f"{folders.pop()}/{below}"
        return True

    def path_of(self, item_id: str) -> str | None:
        """Return the path of the newest file of an item id, that of a result before its call's."""
        entry = self._by_id.get(item_id)
        return None if entry is None else entry.relative_path

    def saved_hash(self, relative_path: str) -> str | None:
        """Return the SHA-256 of the text that was saved in a file, None for an unknown file."""
        return self._files.get(relative_path)

    def rendered(self, item: Item) -> dict[ItemKey, LedgerEntry]:
        """Return the entries that left this very text, oldest first."""
        # What holds media may have the very text of a placeholder, which never holds any.
        found = {} if item.media else self._at((item.kind, item.tool_use_id, item.text))
        if not found and self.may_be_rewritten(item):
            found = self._at((item.kind, item.tool_use_id, content_hash(item.whole)))
        return found

    def _at(self, place: RenderedKey) -> dict[ItemKey, LedgerEntry]:
        found = self._rendered.get(place)
        return {found.key: found} if isinstance(found, LedgerEntry) else found or {}

    def may_be_rewritten(self, item: Item) -> bool:
        """Return whether a result like this one ever stood with something inside it removed."""
        return (item.kind, item.tool_use_id) in self._has_rewritten

    def is_dropped(self, key: ItemKey) -> bool:
        """Return whether the newest decision on an item removed it."""
        entry = self.entries.get(key)
        return entry is not None and entry.action.leaves_nothing

    def left_inside(self, equal: tuple[str, str | None, str]) -> dict[str, list[ItemKey]]:
        """Return the placeholders of equal media in results, each with the keys that left it."""
        keys = (ItemKey(*equal, occurrence) for occurrence in (0, *self._repeats.get(equal, ())))
        found = (self.entries.get(key) for key in keys)
        texts = {entry.placeholder for entry in found if entry and entry.placeholder is not None}
        return {
            text: [k for k in self._at(("", equal[1], text)) if self.entries[k].placeholder == text]
            for text in texts
        }

    def as_decided(self, item: Item, *, as_json: bool = False) -> Item:
        """Return an item with the text under which it was decided or marked.

        That of a result in blocks may be the texts of the blocks or one of two forms of JSON. If
        none is known, `as_json` says which it has from now on.
        """
        if item.blocks is None:
            return item
        default = item._replace(texts=item.whole) if as_json else item
        if not self._has_call(item):
            return default
        return next(filter(self._knows_text, _forms(item, item.blocks)), default)

    def _has_call(self, item: Item) -> bool:
        found = item.kind, item.tool_use_id
        return found in self._calls or any(mark.key[:2] == found for mark in self.marks.values())

    def _knows_text(self, item: Item) -> bool:
        equal, chars = (item.kind, item.tool_use_id, content_hash(item.identity)), len(item.text)
        if any(mark.key[:3] == equal and mark.chars == chars for mark in self.marks.values()):
            return True
        is_decided = ItemKey(*equal, 0) in self.entries or equal in self._repeats
        return is_decided and self.may_know(item)

    def may_know(self, item: Item) -> bool:
        """Return whether there may be an entry for the item; False is certain, and cheap."""
        return (item.kind, item.tool_use_id, len(item.text)) in self._lengths

    def may_have_left(self, item: Item) -> bool:
        """Return whether there may be an entry for the item or for what it stands for."""
        return self.may_know(item) or bool(self.rendered(item))


def _forms(item: Item, blocks: Blocks) -> Iterator[Item]:
    yield item
    yield item._replace(texts=blocks.json)
    yield item._replace(texts=blocks.raw_json)
