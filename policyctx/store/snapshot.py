"""`index.json`: what a journal added up to at some moment, and a second copy of it.

It names its journal and the byte up to which it covers it. What follows its checksum has that
CRC-32; policyctx 0.1 wrote no checksum.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.store.content import encoded
from policyctx.store.index import Index
from policyctx.store.journal import JOURNAL, Fold, encode, head_ids, values_of_kind
from policyctx.store.local.tree import (
    NEW_FILE,
    NO_FILE_OF_OURS,
    READING,
    check_regular,
    read_whole,
    set_mode,
)
from policyctx.store.local.write import TEMPORARY, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.store.content import JSON
    from policyctx.store.journal import Position
    from policyctx.store.local.tree import Tree


_SCHEMA_VERSION = "1.0"
_START = b'{"schema_version":"%b","crc32":"' % _SCHEMA_VERSION.encode()
_CHECKSUM_BYTES = len("00000000")
# The keys of one that policyctx 0.1 wrote.
_UNCHECKED_KEYS = {"schema_version", "journal", "roots", "items", "records"}

# What was appended since the last snapshot is folded when it is so many times its size, and this
# many bytes: on the average, an entry is folded once in three.
_OUTGROWN = 4
_LEAST_FOLD_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """An index as it was when so much of its journal had been written."""

    index: Index
    fold: Fold
    size: int
    """Bytes of the file."""


def read_snapshot(tree: Tree, path: str) -> IndexSnapshot | None:
    """Return a snapshot, None for one that was not written here or not as a whole.

    Raises `OSError` where there is no readable file.
    """
    raw = read_whole(*tree.place(path))
    try:
        found = _checked(raw)
        fold = _fold(found["journal"])
        lines = list(_lines(found))
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    index = Index()
    if fold.bytes < 1 or not all(index.apply(line) for line in lines):
        return None
    return IndexSnapshot(index, fold, len(raw))


def write_snapshot(
    tree: Tree, path: str, index: Index, fold: Fold, journal: tuple[str, bytes], *, mode: int
) -> int:
    """Write a snapshot of a journal, its path and its bytes, in one step; return its own bytes.

    It is not flushed: the journal says the same, and a torn one is known by its look.
    """
    folder, name = tree.place(path)
    raw = _text(index, fold, journal)
    temporary = f".{secrets.token_hex(8)}{TEMPORARY}"
    try:
        descriptor = folder.open(temporary, NEW_FILE, mode)
        with open(descriptor, "wb", buffering=0):  # noqa: PTH123 - an open descriptor, not a path
            set_mode(descriptor, mode)
            write_all(descriptor, raw)
        folder.replace(temporary, name)
    except OSError:
        with contextlib.suppress(OSError):
            folder.remove(temporary)
        raise
    return len(raw)


class Snapshots:
    """The snapshot, at `path`, of the journal in `folder`: read once, written when outgrown."""

    def __init__(self, path: str, *, folder: str, mode: int) -> None:
        self.path = path
        self._folder = folder
        self._mode = mode
        self._folded_bytes = 0
        self._size: int | None = None

    def read(self, tree: Tree) -> tuple[IndexSnapshot | None, str]:
        """Return the snapshot, None where there is none to believe, and what harm was found."""
        try:
            found = read_snapshot(tree, self.path)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in NO_FILE_OF_OURS:
                raise
            found = None
        harm = (
            ""
            if found
            else f"{self.path} is damaged or was written by another program, and is written anew"
        )
        return found, harm

    def begin(self, read: IndexSnapshot | None) -> None:
        """Go on from this snapshot; without one, the next occasion writes it."""
        self._folded_bytes = read.fold.bytes if read else 0
        self._size = read.size if read else None

    def write_when_due(
        self, tree: Tree, index: Index, position: Position, journal: Callable[[], bytes]
    ) -> str:
        """Write the snapshot when its `journal` has outgrown it; return what hindered that."""
        due = max(_LEAST_FOLD_BYTES, _OUTGROWN * (self._size or 0))
        if self._size is not None and position.bytes - self._folded_bytes < due:
            return ""
        try:
            self.write(tree, index, position, journal())
        except OSError as error:  # the journal holds it all
            self._folded_bytes, self._size = position.bytes, 0
            return f"{self.path} could not be written: {error.strerror}"
        return ""

    def write(self, tree: Tree, index: Index, position: Position, journal: bytes) -> None:
        """Write a snapshot that covers the whole `journal`. Raises `OSError`."""
        journal_id, checksum = head_ids(position.head)[0], zlib.crc32(journal)
        fold = Fold(journal_id, position.bytes, position.number, checksum)
        named = (f"{self._folder}/{JOURNAL}", journal)
        self._size = write_snapshot(tree, self.path, index, fold, named, mode=self._mode)
        self._folded_bytes = position.bytes

    def covers(self, tree: Tree, position: Position) -> bool:
        """Does the snapshot on the disk cover all of its journal up to there."""
        found = _fold_on_disk(tree, self.path)
        ids = head_ids(position.head)[:1]
        return found is not None and (found.journal_id,) == ids and found.bytes == position.bytes


def _fold_on_disk(tree: Tree, path: str) -> Fold | None:
    """Return what a snapshot covers by its first line; None for one that is not of this version."""
    folder, name = tree.place(path)
    try:
        descriptor = folder.open(name, READING)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - an open descriptor, not a path
            check_regular(descriptor, f"{folder.path}/{name}")
            first = file.readline()
        found = json.loads(first.rstrip(b",\n") + b"}")
        return _fold(found["journal"]) if first.startswith(_START) else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def _checked(raw: bytes) -> dict[str, Any]:
    """Return the JSON of a snapshot. Raises `ValueError` for what its checksum does not agree with.

    What policyctx 0.1 wrote has no checksum.
    """
    end = len(_START) + _CHECKSUM_BYTES
    is_checked = raw.startswith(_START)
    if is_checked and raw[len(_START) : end] != b"%08x" % zlib.crc32(raw[end:]):
        raise ValueError("the checksum is that of another snapshot")
    found = json.loads(raw)
    if not isinstance(found, dict) or (not is_checked and found.keys() != _UNCHECKED_KEYS):
        raise ValueError("no snapshot")
    return found


def _fold(journal: dict[str, Any]) -> Fold:
    if not isinstance(journal, dict):
        raise TypeError("no journal is named")
    journal_id, size = str(journal["id"]), int(journal["bytes"])
    if "lines" not in journal:  # of policyctx 0.1
        return Fold(journal_id, size, None)
    return Fold(journal_id, size, int(journal["lines"]), int(journal["crc32"], 16))


def _lines(found: dict[str, Any]) -> Iterator[dict[str, object]]:
    kinds = (("root", "roots"), ("saved", "items"), ("record", "records"))
    for kind, name in kinds:
        for value in found[name]:
            yield {kind: value}
    for value in found.get("in_flight", ()):
        yield {"in_flight": value}


def _text(index: Index, fold: Fold, journal: tuple[str, bytes]) -> bytes:
    """The snapshot as JSON, one item a line."""
    path, content = journal
    known: JSON = {
        "id": fold.journal_id,
        "path": path,
        "bytes": fold.bytes,
        "lines": fold.number,
        "crc32": f"{fold.checksum:08x}",
    }
    items = _values(content, "saved", len(index))
    if items is None:
        items = [encoded(encode(entry.as_json())) for entry in index]
    records = _values(content, "record", len(index.records))
    if records is None:
        records = [encoded(encode(record)) for record in index.records]
    text = (
        b'","journal":%b,\n"roots":%b,\n"in_flight":%b,\n"items":[\n%b\n],\n"records":[\n%b\n]}\n'
        % (
            encoded(encode(known)),
            encoded(encode(index.roots)),
            encoded(encode(index.in_flight.as_json())),
            b",\n".join(items),
            b",\n".join(records),
        )
    )
    return b"%b%08x%b" % (_START, zlib.crc32(text), text)


def _values(journal: bytes, kind: str, number: int) -> list[bytes] | None:
    """What a journal's lines of one kind hold; None when some of it is out of date or damaged."""
    found = values_of_kind(journal, kind)
    return found if found is not None and len(found) == number else None
