"""`Ledger`: the decisions of a session, by which an item looks the same in every later turn."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from policyctx.definitions.actions import BY_STATE, Action
from policyctx.definitions.items import Blocks, Item
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
        "behind?": "text",
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


# What separates a file's name from its surroundings in a JSON text; an escape does too.
_BETWEEN_NAMES = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^A-Za-z0-9._%-]+")


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
    alike: int = 0
    """Of a dropped item: the number of items equal to it in the list then, itself included."""
    tool: str | None = None
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
    behind: str | None = None
    """Of a dropped item: the SHA-256 of the item before it in the list then, empty without any."""
    call_id: str | None = None
    """Of a result: the id of its call, where it names that by a second id."""

    def record(self) -> dict[str, Any]:
        """Return the entry as plain values for JSON."""
        kind, tool_use_id, sha256, occurrence = self.key
        return {
            "record": "decision",
            "kind": kind,
            "tool_use_id": tool_use_id,
            "sha256": sha256,
            "occurrence": occurrence,
            "chars": self.chars,
            "item_id": self.item_id,
            "item_type": self.item_type,
            "tool": self.tool,
            "state": self.action.past,
            "step": self.step,
            "policy": self.policy,
            "placeholder": self.placeholder,
            "path": self.relative_path,
            **({"alike": self.alike} if self.alike else {}),
            **({"reads_as": self.reads_as} if self.reads_as else {}),
            **({"names_file": True} if self.names_file else {}),
            **({} if self.tokens is None else {"tokens": self.tokens}),
            **({} if self.rewritten is None else {"rewritten": self.rewritten}),
            **({} if self.saved is None else {"saved": self.saved}),
            **({} if self.behind is None else {"behind": self.behind}),
            **({} if self.call_id is None else {"call_id": self.call_id}),
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
            record.get("alike", 0),
            record.get("tool"),
            record.get("reads_as", ""),
            record.get("names_file", False),
            record.get("tokens"),
            record.get("rewritten"),
            record.get("saved"),
            record.get("behind"),
            record.get("call_id"),
        )

    @property
    def place(self) -> RenderedKey:
        """The key to find its placeholder by: the kind it is read as, its tool-use id, its text.

        A rewritten result is found by the hash of its text instead.
        """
        kind, call, *_ = self.key
        return self.reads_as or kind, call, self.rewritten or self.placeholder


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


# A kind of item, a tool-use id, and the text of a placeholder or the hash of a rewritten result.
RenderedKey: TypeAlias = tuple[str, str | None, str | None]


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
            earlier = self.entries.pop(key, None)
            self.entries[key] = entry  # the newest decision is the last
            if entry.action.leaves_nothing and earlier and earlier.placeholder is not None:
                self.before_drop[key] = earlier
            if entry.action.leaves_nothing:
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
        self._endings.update("".join(name.rpartition(".")[1:]) for name in names)
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
        found = self._rendered.get((item.kind, item.tool_use_id, item.text))
        if found is None and self.may_be_rewritten(item):
            place = item.kind, item.tool_use_id, content_hash(item.whole)
            found = self._rendered.get(place)
        if isinstance(found, LedgerEntry):
            return {found.key: found}
        return found or {}

    def may_be_rewritten(self, item: Item) -> bool:
        """Return whether a result like this one ever stood with something inside it removed."""
        return (item.kind, item.tool_use_id) in self._has_rewritten

    def is_dropped(self, key: ItemKey) -> bool:
        """Return whether the newest decision on an item removed it."""
        entry = self.entries.get(key)
        return entry is not None and entry.action.leaves_nothing

    def left_of(self, equal: tuple[str, str | None, str]) -> list[str]:
        """Return the placeholders of all that have this kind, tool-use id and hash."""
        keys = (ItemKey(*equal, occurrence) for occurrence in (0, *self._repeats.get(equal, ())))
        found = (self.entries.get(key) for key in keys)
        return [entry.placeholder for entry in found if entry and entry.placeholder is not None]

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


def _forms(item: Item, blocks: Blocks) -> Iterator[Item]:
    yield item
    yield item._replace(texts=blocks.json)
    yield item._replace(texts=blocks.raw_json)


class _Alike:
    """The positions of items of one length that may be equal, and how often each hash is there.

    Each is hashed once, when it is first asked for. Most lengths are those of one item, which
    needs no hash.
    """

    __slots__ = "counts", "hashed", "positions"

    def __init__(self) -> None:
        self.positions = array("l")
        self.hashed = 0
        """How many of them are in `counts`."""
        self.counts: dict[str, int] = {}


class Identities:
    """The keys of the items of a list that grows, each computed on first use.

    A placeholder counts as what it stands for, so an item has the same key in the list as it was
    and in the list as it was edited; of placeholders that are alike each stands for the next.
    `items` are as they were read. `gone` are the keys of what was taken out of the list before it
    came back: what is equal to it keeps the key that it had.
    """

    def __init__(self, items: Sequence[Item], ledger: Ledger, gone: Iterable[ItemKey] = ()) -> None:
        self._items, self._ledger = items, ledger
        self._gone: dict[tuple[str, str | None, str], list[int]] = {}
        for key in sorted(gone, key=itemgetter(3)):
            if (occurrences := self._gone.get(key[:3])) is None:
                self._gone[key[:3]] = [key.occurrence]
            else:
                occurrences.append(key.occurrence)
        self._alike: dict[tuple[str, str | None, int], _Alike] = {}
        self._groups: list[_Alike] = []
        """For each item, those that may be equal to it."""
        self._ranks = array("l")
        """For each item that is hashed, how many equal ones are before it."""
        self._hashes: list[str | None] = []
        self._replaced: dict[int, LedgerEntry] = {}
        self._looked_at = 0
        self._unclaimed: dict[RenderedKey, Iterator[LedgerEntry]] = {}
        self._whole: defaultdict[tuple[str, str | None, str], int] = defaultdict(int)
        """How many results stand whole, of those that may also stand rewritten."""

    def entry(self, position: int) -> LedgerEntry | None:
        """Return the ledger's entry of an item, whether it is whole or replaced.

        That is the newest decision on it: an older placeholder may be in a list that comes
        again. A placeholder of what was taken out of other lists stands for itself.
        """
        if (replaced := self.replaced(position)) is not None:
            is_gone = self._is_gone(replaced.key)
            return replaced if is_gone else self._ledger.entries.get(replaced.key)
        item = self._items[position]
        return self._ledger.entries.get(self.key(position)) if self._ledger.may_know(item) else None

    def replaced(self, position: int) -> LedgerEntry | None:
        """Return the entry of what a placeholder stands for; None for an item that stands whole."""
        for i in range(self._looked_at, len(self._items)):
            item = self._items[i]
            found = self._ledger.rendered(item)
            if found and (entry := self._next_of(found)) is not None:
                self._replaced[i] = entry
            elif self._ledger.may_be_rewritten(item):
                self._whole[item.kind, item.tool_use_id, content_hash(item.identity)] += 1
        self._looked_at = len(self._items)
        return self._replaced.get(position)

    def trace(self, positions: Iterable[int]) -> Trace:
        """Return what a message with these items is recognised by in each of its forms."""
        return tuple(self._traced(i) for i in positions if self._items[i].inside is None)

    def _traced(self, position: int) -> tuple[ItemKey, int | None]:
        item = self._items[position]
        if self.replaced(position) is None and not self._ledger.may_know(item):
            return ItemKey(item.kind, item.tool_use_id, self._hash(position), 0), None
        key = self.key(position)
        return key, self._ledger.drops.get(key)

    def key(self, position: int) -> ItemKey:
        """Return the key of the item at this position."""
        if (replaced := self.replaced(position)) is not None:
            return replaced.key
        found = self._hash(position)
        kind, call = self._items[position].kind, self._items[position].tool_use_id
        self._count_alike(position, position + 1)
        before = self._ranks[position]
        if (result := self._items[position].inside) is not None:
            before += self._left_inside(result, (kind, call, found))
        gone = self._gone.get((kind, call, found), ())
        return ItemKey(kind, call, found, _not_gone(before, gone))

    def _left_inside(self, result: int, equal: tuple[str, str | None, str]) -> int:
        """Return how many of the equal texts are placeholders inside results instead of items.

        Up to this result; what stands for an image there is a text like any other.
        """
        left = Counter(self._ledger.left_of(equal))
        if not left:
            return 0
        results = [
            item
            for item in self._items[: result + 1]
            if item.kind == "tool_result" and item.tool_use_id == equal[1]
        ]
        return sum(
            min(most, sum(_times(text, item) for item in results)) for text, most in left.items()
        )

    def alike(self, position: int) -> int:
        """Return the number of items equal to the one at this position, with those taken out."""
        kind, call, found, _ = self.key(position)
        gone = self._gone.get((kind, call, found), ())
        counts = self._count_alike(position, len(self._items)).counts
        return counts.get(found, 1) + len(gone)

    def behind(self, position: int) -> str:
        """Return the hash of the item before this one, empty without any; none is in a result."""
        before = (i for i in range(position - 1, -1, -1) if self._items[i].inside is None)
        nearest = next(before, None)
        return "" if nearest is None else self._hash(nearest)

    def _next_of(self, found: dict[ItemKey, LedgerEntry]) -> LedgerEntry | None:
        """Return the first of equal placeholders that is not in the list yet, else the last.

        Those that still stand come before those of items that were dropped later. A rewritten text
        is a tool's own, so one more of it is another result: None.
        """
        last = next(reversed(found.values()))
        if last.place not in self._unclaimed:
            here = [key for key in found if not self._is_gone(key) and not self._stands_whole(key)]
            here.sort(key=self._ledger.is_dropped)
            self._unclaimed[last.place] = iter([found[key] for key in here])
        return next(self._unclaimed[last.place], last if last.rewritten is None else None)

    def _is_gone(self, key: ItemKey) -> bool:
        kind, call, sha256, occurrence = key
        return occurrence in self._gone.get((kind, call, sha256), ())

    def _stands_whole(self, key: ItemKey) -> bool:
        """Return whether a result that may stand rewritten was seen whole."""
        kind, call, sha256, occurrence = key
        gone = self._gone.get((kind, call, sha256), ())
        for before in range(self._whole.get((kind, call, sha256), 0)):
            if occurrence == _not_gone(before, gone):
                return True
        return False

    def _count_alike(self, position: int, end: int) -> _Alike:
        """Return the items that may be equal to this one, counted up to `end`."""
        for i in range(len(self._groups), len(self._items)):
            likeness = self._likeness(i)
            if (alike := self._alike.get(likeness)) is None:
                alike = self._alike[likeness] = _Alike()
            alike.positions.append(i)
            self._groups.append(alike)
            self._ranks.append(0)
        alike = self._groups[position]
        positions, counts = alike.positions, alike.counts
        if len(positions) > 1:
            while alike.hashed < len(positions) and (i := positions[alike.hashed]) < end:
                found = self._hash(i)
                self._ranks[i] = counts.get(found, 0)
                counts[found] = self._ranks[i] + 1
                alike.hashed += 1
        return alike

    def _likeness(self, position: int) -> tuple[str, str | None, int]:
        item, replaced = self._items[position], self.replaced(position)
        if replaced is not None:
            return replaced.key.kind, item.tool_use_id, replaced.chars
        return item.kind, item.tool_use_id, len(item.text)

    def _hash(self, position: int) -> str:
        if position >= len(self._hashes):
            self._hashes += repeat(None, len(self._items) - len(self._hashes))
        if (found := self._hashes[position]) is None:
            replaced = self.replaced(position)
            found = self._hashes[position] = (
                replaced.key.sha256 if replaced else content_hash(self._items[position].identity)
            )
        return found


def _times(text: str, result: Item) -> int:
    """Return how often a text is one of those in a result; by its lines if these are not known."""
    if result.blocks is not None and result.blocks.texts:
        return sum(str(one) == text for one in result.blocks.texts)
    return _lines(result.text).count(_lines(text)) if text else 0


def _lines(text: str) -> str:
    """Return a text in which each line has two line feeds of its own: neighbours share none."""
    return "\n" + text.replace("\n", "\n\n") + "\n"


def _not_gone(before: int, gone: Iterable[int]) -> int:
    """Return the occurrence of an item with so many equal ones before it, `gone` ones left out."""
    for occurrence in gone:
        before += occurrence <= before
    return before
