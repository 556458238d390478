"""`Index`: what one session's journal says, in memory, by every key that reads back."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.planning.paths import numbered
from policyctx.store.entries import entry_of, is_inside
from policyctx.store.grouped import Grouped
from policyctx.store.in_flight import InFlight

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.store.content import JSON
    from policyctx.store.entries import Entry

_NUMBER = re.compile(r"-([0-9]{1,9})$")


class Index:
    """The entries, records and roots that the lines of a journal add up to."""

    def __init__(self) -> None:
        self.records: list[dict[str, JSON]] = []
        self.roots: list[str] = []
        """The folders that this store was written in, as absolute paths."""
        self.in_flight = InFlight()
        self._entries: dict[tuple[str, str | None], Entry] = {}
        self._by_path: Grouped[str, Entry] = Grouped()
        self._by_id: Grouped[str, Entry] = Grouped()
        self._by_sha: Grouped[str, str] = Grouped()
        self._forms: Grouped[tuple[str, str], str] = Grouped()
        self._numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[Entry]:
        """Every entry, oldest first."""
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def at(self, path: str) -> Entry | None:
        """Return the newest entry of a file."""
        return self._by_path.newest(path)

    def of(self, path: str, item_id: str | None) -> Entry | None:
        """Return the entry of this item in this file."""
        return self._entries.get((path, item_id))

    def by_id(self, key: str) -> Entry | None:
        """Return the newest entry with this item id or tool-use id.

        One that was saved goes before one that was found, and a result before its call.
        """
        found = self._by_id.all(key)
        saved = (entry for entry in reversed(found) if not entry.adopted)
        newest = next(saved, None)
        if newest is None:
            return found[-1] if found else None
        answers = (entry for entry in (newest, *saved) if not _is_call(entry))
        return next(answers, newest)

    def ids(self) -> list[str]:
        """Return every item id and tool-use id."""
        return list(self._by_id)

    def equal(self, sha256: str) -> str | None:
        """Return the path of a content with this hash, the newest."""
        return self._by_sha.newest(sha256)

    def forms(self, wanted: str, sha256: str) -> Sequence[str]:
        """Return the numbered paths behind `wanted` that hold this content, oldest first."""
        return self._forms.all((wanted, sha256))

    def next_number(self, wanted: str) -> int:
        """Return a number from which on no path behind `wanted` is known to be taken."""
        return self._numbers.get(wanted, 0)

    def apply(self, line: object) -> bool:
        """Take up one line of a journal; False when it is none that this store could hold."""
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
        return True  # a kind that a later version has is no damage

    def add(self, entry: Entry) -> None:
        """Take up an entry; what the same file held before under another hash is forgotten."""
        known = self.at(entry.path)
        if known is not None and known.sha256 != entry.sha256:
            self.remove(entry.path)
        earlier = self._entries.pop((entry.path, entry.item_id), None)
        if earlier is not None:
            self._forget(earlier)
        if self.at(entry.path) is None:
            wanted = entry.wanted or entry.path
            self._by_sha.add(entry.sha256, entry.path)
            self._forms.add((wanted, entry.sha256), entry.path)
            number = number_of(entry.path, wanted)
            self._numbers[wanted] = max(self._numbers.get(wanted, 0), number + 1)
        self._entries[entry.path, entry.item_id] = entry
        self._by_path.add(entry.path, entry)
        for key in _ids(entry):
            self._by_id.add(key, entry)

    def remove(self, path: str) -> None:
        """Forget the entries of a file."""
        for entry in self._by_path.all(path):
            del self._entries[path, entry.item_id]
            self._forget(entry)

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Yield the lines of a journal that says the same."""
        for root in self.roots:
            yield {"root": root}
        for entry in self._entries.values():
            yield {"saved": entry.as_json()}
        for record in self.records:
            yield {"record": record}
        for batch in self.in_flight.as_json():
            yield {"in_flight": batch}

    def with_missing(self, other: Index) -> Index:
        """Return this index with what only the other one knows."""
        merged = Index()
        for line in self.lines():
            merged.apply(line)
        for root in other.roots:
            merged.apply({"root": root})
        for entry in other:
            if self.of(entry.path, entry.item_id) is None:
                merged.add(replace(entry, replaces=None))
        left = list(self.records)
        for record in other.records:
            if record in left:
                left.remove(record)
            else:
                merged.records.append(record)
        return merged

    def _forget(self, entry: Entry) -> None:
        for key in _ids(entry):
            self._by_id.remove(key, entry)
        self._by_path.remove(entry.path, entry)
        if self.at(entry.path) is None:
            self._by_sha.remove(entry.sha256, entry.path)
            self._forms.remove((entry.wanted or entry.path, entry.sha256), entry.path)


def number_of(path: str, wanted: str) -> int:
    """Return the number that `path` has behind `wanted`; 0 where it has none."""
    if path == wanted:
        return 0
    name = path.rpartition("/")[2]
    stem, dot, _ = name.rpartition(".")
    found = _NUMBER.search(stem if dot and stem else name)
    number = int(found[1]) if found else 0
    return number if found and numbered(wanted, number) == path else 0


def _is_call(entry: Entry) -> bool:
    """Is it what an assistant asked of a tool; the answer to that has the same id."""
    origin = entry.origin
    return origin is not None and origin.role == "assistant" and origin.tool_use_id is not None


def _ids(entry: Entry) -> tuple[str, ...]:
    origin = entry.origin
    if origin is None:
        return ()
    if origin.tool_use_id is None or origin.tool_use_id == origin.item_id:
        return (origin.item_id,)
    return (origin.item_id, origin.tool_use_id)
