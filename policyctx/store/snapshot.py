"""`index.json`: a snapshot of the index, and a second copy of what its journal says.

It names its journal and the byte up to which it covers it. Its checksum is the CRC-32 of the bytes
after it; policyctx 0.1 wrote no checksum.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.store.backend import NOT_A_STORE_FILE
from policyctx.store.content import encoded
from policyctx.store.index import Index
from policyctx.store.journal import JOURNAL, Fold, encode, head_ids, values_of_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.messages.json_text import JSON
    from policyctx.store.backend import Backend
    from policyctx.store.journal import Position

_SCHEMA_VERSION = "1.0"
_START = b'{"schema_version":"%b","crc32":"' % _SCHEMA_VERSION.encode()
_CHECKSUM_BYTES = len("00000000")
# A line feed stands only between the parts of a snapshot, so this is where its records begin.
_RECORDS = b'\n],\n"records":[\n'
_END = b"\n]}\n"
# The keys of a snapshot that policyctx 0.1 wrote.
_UNCHECKED_KEYS = {"schema_version", "journal", "roots", "items", "records"}

# The lines appended since the last snapshot are folded into a new one when they are this many times
# its size, and at least this many bytes: on average, an entry is folded once in three.
_OUTGROWN = 4
_LEAST_FOLD_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """An index as it was when so much of its journal had been written."""

    index: Index
    fold: Fold
    size: int
    """Bytes of the file."""


def read_snapshot(backend: Backend, path: str) -> IndexSnapshot | None:
    """Return a snapshot; None for a file that is damaged or was not written by this store.

    Raises `OSError` where there is no readable file.
    """
    raw = backend.read(path)
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


def checked_parts(backend: Backend, path: str) -> tuple[Fold, bytes] | None:
    """Return what a snapshot covers, and its records as the inside of a JSON array.

    None for a snapshot that is damaged or of policyctx 0.1. Raises `OSError` as `read_snapshot`.
    """
    raw = backend.read(path)
    end = len(_START) + _CHECKSUM_BYTES
    start = raw.find(_RECORDS) + len(_RECORDS)
    if (
        not raw.startswith(_START)
        or raw[len(_START) : end] != b"%08x" % zlib.crc32(memoryview(raw)[end:])
        or start < len(_RECORDS)
        or not raw.endswith(_END)
    ):
        return None
    try:
        return _first_line(raw[: raw.find(b"\n") + 1]), raw[start : -len(_END)]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


class Snapshots:
    """The snapshot, at `path`, of the journal in `folder`: read once, written when outgrown."""

    def __init__(self, path: str, *, folder: str) -> None:
        self.path = path
        self._folder = folder
        self._folded_bytes = 0
        self._size: int | None = None

    def read(self, backend: Backend) -> tuple[IndexSnapshot | None, str]:
        """Return the snapshot, None where none is valid, and a sentence about damage, or ""."""
        try:
            found = read_snapshot(backend, self.path)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in NOT_A_STORE_FILE:
                raise
            found = None
        harm = (
            ""
            if found
            else f"{self.path} is damaged or was written by another program, and is written anew"
        )
        return found, harm

    def begin(self, read: IndexSnapshot | None) -> None:
        """Continue from this snapshot; without one, `write_when_due` writes one."""
        self._folded_bytes = read.fold.bytes if read else 0
        self._size = read.size if read else None

    def write_when_due(
        self, backend: Backend, index: Index, position: Position, journal: Callable[[], bytes]
    ) -> str:
        """Write the snapshot when its `journal` has outgrown it; return the error, or ""."""
        due = max(_LEAST_FOLD_BYTES, _OUTGROWN * (self._size or 0))
        if self._size is not None and position.bytes - self._folded_bytes < due:
            return ""
        try:
            self.write(backend, index, position, journal())
        except OSError as error:  # the journal holds it all
            self._folded_bytes, self._size = position.bytes, 0
            return f"{self.path} could not be written: {error.strerror}"
        return ""

    def write(self, backend: Backend, index: Index, position: Position, journal: bytes) -> None:
        """Write a snapshot that covers the whole `journal`. Raises `OSError`."""
        journal_id, checksum = head_ids(position.head)[0], zlib.crc32(journal)
        fold = Fold(journal_id, position.bytes, position.number, checksum)
        raw = _text(index, fold, (f"{self._folder}/{JOURNAL}", journal))
        # Not flushed: the journal says the same, and a torn snapshot is recognised.
        self._size = backend.write(self.path, raw, flush=False).size
        self._folded_bytes = position.bytes

    def covers(self, backend: Backend, position: Position) -> bool:
        """Whether the snapshot on the disk covers all of its journal up to this position."""
        found = _fold_on_disk(backend, self.path)
        ids = head_ids(position.head)[:1]
        return found is not None and (found.journal_id,) == ids and found.bytes == position.bytes


def _fold_on_disk(backend: Backend, path: str) -> Fold | None:
    """Return what a snapshot covers, by its first line; None for one of another version."""
    try:
        with backend.open(path) as file:
            first = file.readline()
        return _first_line(first) if first.startswith(_START) else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def _first_line(first: bytes) -> Fold:
    return _fold(json.loads(first.rstrip(b",\n") + b"}")["journal"])


def _checked(raw: bytes) -> dict[str, Any]:
    """Return the JSON of a snapshot. Raises `ValueError` when its checksum does not match.

    A snapshot of policyctx 0.1 has no checksum.
    """
    end = len(_START) + _CHECKSUM_BYTES
    is_checked = raw.startswith(_START)
    if is_checked and raw[len(_START) : end] != b"%08x" % zlib.crc32(memoryview(raw)[end:]):
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
    """Return the values of one kind in a journal; None when some are out of date or damaged."""
    found = values_of_kind(journal, kind)
    return found if found is not None and len(found) == number else None
