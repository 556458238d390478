"""`Index`: the entries of one session in memory, by every key that reads a content back.

The index is what the lines of a journal add up to. It reads and writes no files.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from policyctx.messages.json_text import JSON
from policyctx.paths import numbered
from policyctx.store.content import Origin, is_inside
from policyctx.store.hollow import Hollow
from policyctx.store.in_flight import InFlight

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TEXTS = ("item_id", "item_type", "tool_use_id", "tool_name", "role")
_NUMBERS = ("message", "turn", "tokens")

# A content that was saved fewer seconds ago may have a placeholder that is not recorded yet.
GRACE_S = 3600.0
_NUMBER = re.compile(r"-([0-9]{1,9})$")


class Grouped(Generic[K, V]):
    """The values of each key, oldest first. A single value needs no list of its own."""

    def __init__(self) -> None:
        self._newest: dict[K, V] = {}
        self._all: dict[K, list[V]] = {}

    def __iter__(self) -> Iterator[K]:
        return iter(self._newest)

    def newest(self, key: K) -> V | None:
        """Return the value added last; None for an unknown key."""
        return self._newest.get(key)

    def all(self, key: K) -> Sequence[V]:
        """Return every value of a key; later changes do not affect the result."""
        if (several := self._all.get(key)) is not None:
            return tuple(several)
        return (self._newest[key],) if key in self._newest else ()

    def add(self, key: K, value: V) -> None:
        """Add a value after those of the key."""
        if key in self._newest:
            self._all.setdefault(key, [self._newest[key]]).append(value)
        self._newest[key] = value

    def remove(self, key: K, value: V) -> None:
        """Remove a value of a key."""
        if left := self._all.get(key, []):
            left.remove(value)
            self._newest[key] = left[-1]
            if len(left) == 1:
                del self._all[key]
        else:
            del self._newest[key]


class IndexEntry(NamedTuple):
    """What the index knows of a saved content. Paths are below the root, with `/`."""

    path: str
    sha256: str
    """Of the text in UTF-8, in hex."""
    size: int
    """Bytes of the text in UTF-8."""
    chars: int
    lines: int
    saved_at: float
    """Seconds since 1970, by the clock at that time."""
    wanted: str = ""
    """The path without its number; empty when it has none."""
    format: Literal["text", "envelope"] = "text"
    origin: Origin | None = None
    """The item that it came from, without its block."""
    hollow: Hollow | None = None
    """The item's block without the text."""
    rest: str | None = None
    """The hash of the content that holds the hollow block, where that is large."""
    is_rest: bool = False
    """Whether it is such a content."""
    same_as: str | None = None
    """The path of an equal content that was there before; the disk holds them once."""
    replaces: str | None = None
    """The hash of the content that it overwrites: a crash may have left that one in the file."""
    adopted: bool = False
    """Whether it was found on the disk when the index was rebuilt; retention keeps it."""

    @property
    def item_id(self) -> str | None:
        """The id of the item; None for a content without an origin."""
        return self.origin.item_id if self.origin else None

    def is_of(self, item_type: str | None, tool: str | None) -> bool:
        """Whether its item has this type and this tool; None matches every one."""
        found = (self.origin.item_type, self.origin.tool_name) if self.origin else (None, None)
        return item_type in {None, found[0]} and tool in {None, found[1]}

    def as_json(self) -> dict[str, JSON]:
        """Return the JSON of the entry, without values that are not known."""
        values: dict[str, JSON] = {
            "path": self.path,
            "sha256": self.sha256,
            "bytes": self.size,
            "chars": self.chars,
            "lines": self.lines,
            "saved_at": self.saved_at,
        }
        if self.origin is not None:
            known = ((name, getattr(self.origin, name)) for name in (*_TEXTS, *_NUMBERS))
            values |= {name: value for name, value in known if value is not None}
        if self.hollow is not None:
            values |= self.hollow.as_json()
        for name in ("wanted", "rest", "is_rest", "same_as", "replaces", "adopted"):
            if value := getattr(self, name):
                values[name] = value
        if self.format != "text":
            values["format"] = self.format
        return values


def entry_of(value: object) -> IndexEntry | None:
    """Parse the JSON of an entry; return None for a value that this store did not write."""
    if not isinstance(value, dict) or not _is_entry(value):
        return None
    return IndexEntry(
        path=value["path"],
        sha256=value["sha256"],
        size=value["bytes"],
        chars=value["chars"],
        lines=value["lines"],
        saved_at=float(value["saved_at"]),
        wanted=value.get("wanted", ""),
        format="envelope" if value.get("format") == "envelope" else "text",
        origin=_entry_origin(value),
        hollow=Hollow.of(value),
        rest=value.get("rest"),
        is_rest=value.get("is_rest") is True,
        same_as=value.get("same_as"),
        replaces=value.get("replaces"),
        adopted=value.get("adopted") is True,
    )


def is_young(entry: IndexEntry, now: float) -> bool:
    """Whether a content is new, or the clock has stepped back; `collect` keeps it then."""
    return now - entry.saved_at < GRACE_S


def _is_entry(value: dict[str, object]) -> bool:
    # Loops, not generators: a folder of 10,000 sessions is listed by this.
    for name in ("bytes", "chars", "lines", "saved_at"):
        if type(value.get(name)) not in {int, float}:
            return False
    for name in ("wanted", "rest", "same_as", "replaces", *_TEXTS):
        if not isinstance(value.get(name, ""), str):
            return False
    for name in _NUMBERS:
        if type(value.get(name, 0)) is not int:
            return False
    sha256 = value.get("sha256")
    return (
        is_inside(value.get("path"))
        and isinstance(sha256, str)
        and _SHA256.fullmatch(sha256) is not None
        and ("wanted" not in value or is_inside(value["wanted"]))
    )


def _entry_origin(value: dict[str, str]) -> Origin | None:
    if "item_id" not in value:
        return None
    known = {name: value[name] for name in (*_TEXTS, *_NUMBERS) if name in value}
    return Origin(**{"item_type": "unknown", **known})  # type: ignore[arg-type]


class Index:
    """The entries, records, roots and batches in flight of a session."""

    def __init__(self) -> None:
        self.records: list[dict[str, JSON]] = []
        self.roots: list[str] = []
        """The roots that this store has had, as absolute paths."""
        self.in_flight = InFlight()
        self._entries: dict[tuple[str, str | None], IndexEntry] = {}
        self._by_path: Grouped[str, IndexEntry] = Grouped()
        self._by_id: Grouped[str, IndexEntry] = Grouped()
        self._by_sha: Grouped[str, str] = Grouped()
        self._forms: Grouped[tuple[str, str], str] = Grouped()
        self._numbers: dict[str, int] = {}
        self._wanted: dict[str, str] = {}
        """For each path the one that its first entry wanted; several entries may share a file."""

    def __iter__(self) -> Iterator[IndexEntry]:
        """Iterate over every entry, oldest first."""
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def contents(self) -> int:
        """The number of entries without the rests, each of which belongs to a content."""
        return sum(not entry.is_rest for entry in self._entries.values())

    def at(self, path: str) -> IndexEntry | None:
        """Return the newest entry of a file."""
        return self._by_path.newest(path)

    def of(self, path: str, item_id: str | None) -> IndexEntry | None:
        """Return the entry of this item in this file."""
        return self._entries.get((path, item_id))

    def by_id(self, key: str) -> IndexEntry | None:
        """Return the newest entry with this item id or tool-use id.

        One that was saved goes before one that was found, and a result before its call.
        """
        found = self._by_id.all(key)
        saved = (entry for entry in reversed(found) if not entry.adopted)
        newest = next(saved, None)
        if newest is None:
            return found[-1] if found else None
        return next((entry for entry in (newest, *saved) if not _is_call(entry)), newest)

    def named_by(self, item_id: str) -> IndexEntry | None:
        """Return the entry of the file that the newest record of an item names.

        An item that was read back has the file of the item that it was read from.
        """
        for record in reversed(self.records):
            if record.get("item_id") == item_id and isinstance(path := record.get("path"), str):
                return self.at(path)
        return None

    def ids(self) -> list[str]:
        """Return every item id and tool-use id."""
        return list(self._by_id)

    def equal(self, sha256: str) -> str | None:
        """Return the path of a content with this hash, the newest."""
        return self._by_sha.newest(sha256)

    def forms(self, wanted: str, sha256: str) -> Sequence[str]:
        """Return the numbered paths of `wanted` that hold this content, oldest first."""
        return self._forms.all((wanted, sha256))

    def next_number(self, wanted: str) -> int:
        """Return a number from which on no numbered path of `wanted` is known to be taken."""
        return self._numbers.get(wanted, 0)

    def apply(self, line: object) -> bool:
        """Apply one line of a journal; return False for a line that this store did not write."""
        if not isinstance(line, dict) or len(line) != 1:
            return False
        ((kind, value),) = line.items()
        if kind == "saved":
            entry = entry_of(value)
            if entry is not None:
                self.add(entry)
            return entry is not None
        if kind == "removed":
            if not isinstance(value, dict) or not is_inside(value.get("path")):
                return False
            self.remove(value["path"])
        elif kind == "record":
            if not isinstance(value, dict):
                return False
            self.records.append(value)
        elif kind == "in_flight":
            return self.in_flight.apply(value)
        elif kind == "root" and isinstance(value, str) and value not in self.roots:
            self.roots.append(value)
        return True  # a kind of a later version is not damage

    def add(self, entry: IndexEntry) -> None:
        """Add an entry; remove those of the same file with another hash."""
        known = self.at(entry.path)
        if known is not None and known.sha256 != entry.sha256:
            self.remove(entry.path)
        if (earlier := self._entries.pop((entry.path, entry.item_id), None)) is not None:
            self._forget(earlier)
        if self.at(entry.path) is None:
            wanted = entry.wanted or entry.path
            self._by_sha.add(entry.sha256, entry.path)
            self._forms.add((wanted, entry.sha256), entry.path)
            self._wanted[entry.path] = wanted
            number = number_of(entry.path, wanted)
            self._numbers[wanted] = max(self._numbers.get(wanted, 0), number + 1)
        self._entries[entry.path, entry.item_id] = entry
        self._by_path.add(entry.path, entry)
        for key in _ids(entry):
            self._by_id.add(key, entry)

    def remove(self, path: str) -> None:
        """Remove the entries of a file."""
        for entry in self._by_path.all(path):
            del self._entries[path, entry.item_id]
            self._forget(entry)

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Yield the lines of a journal with the same contents."""
        for root in self.roots:
            yield {"root": root}
        for entry in self._entries.values():
            yield {"saved": entry.as_json()}
        for record in self.records:
            yield {"record": record}
        for batch in self.in_flight.as_json():
            yield {"in_flight": batch}

    def with_missing(self, other: "Index") -> "Index":
        """Return this index with everything that only the other one has."""
        merged = Index()
        for line in self.lines():
            merged.apply(line)
        for root in other.roots:
            merged.apply({"root": root})
        for entry in other:
            if self.of(entry.path, entry.item_id) is None:
                merged.add(entry._replace(replaces=None))
        left = list(self.records)
        for record in other.records:
            if record in left:
                left.remove(record)
            else:
                merged.records.append(record)
        return merged

    def _forget(self, entry: IndexEntry) -> None:
        for key in _ids(entry):
            self._by_id.remove(key, entry)
        self._by_path.remove(entry.path, entry)
        if self.at(entry.path) is None:
            self._by_sha.remove(entry.sha256, entry.path)
            self._forms.remove((self._wanted.pop(entry.path), entry.sha256), entry.path)


def number_of(path: str, wanted: str) -> int:
    """Return the number that `path` adds to `wanted`; 0 for none."""
    if path == wanted:
        return 0
    name = path.rpartition("/")[2]
    stem, dot, _ = name.rpartition(".")
    found = _NUMBER.search(stem if dot and stem else name)
    number = int(found[1]) if found else 0
    return number if found and numbered(wanted, number) == path else 0


def _is_call(entry: IndexEntry) -> bool:
    """Whether it is an assistant's tool call; the result of the call has the same id."""
    origin = entry.origin
    return origin is not None and origin.role == "assistant" and origin.tool_use_id is not None


def _ids(entry: IndexEntry) -> tuple[str, ...]:
    origin = entry.origin
    if origin is None:
        return ()
    if origin.tool_use_id is None or origin.tool_use_id == origin.item_id:
        return (origin.item_id,)
    return (origin.item_id, origin.tool_use_id)


class StoredFile(NamedTuple):
    """A file, with every entry of every session that names it, the newest last."""

    path: str
    entries: tuple[IndexEntry, ...]
    size: int
    """Bytes on the disk; files with the same `number` share them."""
    number: tuple[int, int]
    is_live: bool
    """Whether a placeholder names it, or may name it since it is new."""
    is_packed: bool

    @property
    def saved_at(self) -> float:
        """When it was saved last."""
        return max(entry.saved_at for entry in self.entries)

    @property
    def is_adopted(self) -> bool:
        """Whether it was found on the disk; it may be anyone's and is left alone."""
        return any(entry.adopted for entry in self.entries)


class CollectionReport(NamedTuple):
    """What `collect` did, or would do in a dry run.

    The bytes include what a list held beside its texts; the contents do not.
    """

    removed: tuple[tuple[IndexEntry, str], ...]
    """Removed contents, each with the rule that removed it."""
    packed: tuple[IndexEntry, ...]
    size_before: int
    """Bytes of all contents on the disk."""
    size_after: int
    is_dry_run: bool
    contents_before: int
    """The number of contents on the disk."""
