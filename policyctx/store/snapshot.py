"""`index.json`: a snapshot of the index, and what a session recalls from it and its journal.

It names its journal and the byte up to which it covers it. Its entries may go on from there up to
the byte `listed`, so that a turn does not write all records again. Its checksum is the CRC-32 of
the bytes after it; policyctx 0.1 wrote no checksum.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from policyctx.definitions.items import PlainValue
from policyctx.messages.json_text import JSON, with_escaped_halves, with_halves
from policyctx.store.backend import NOT_A_STORE_FILE, Backend
from policyctx.store.content import encoded
from policyctx.store.index import Index
from policyctx.store.journal import (
    INDEX,
    JOURNAL,
    KINDS,
    Fold,
    Part,
    Position,
    encode,
    head_ids,
    line_start,
    open_journal,
    state_folders,
    values_of_kind,
)

# Returns a journal from a byte on.
Journal: TypeAlias = Callable[[int], bytes]
_SCHEMA_VERSION = "1.0"
_START = b'{"schema_version":"%b","crc32":"' % _SCHEMA_VERSION.encode()
_CHECKSUM_BYTES = len("00000000")
# A line feed stands only between the parts of a snapshot, so this is where its records begin.
_ITEMS = b',\n"items":[\n'
_RECORDS = b'\n],\n"records":[\n'
_END = b"\n]}\n"
_SEPARATOR = b",\n"
_LONGEST_FIRST_LINE = 1 << 16
# The keys of a snapshot that policyctx 0.1 wrote.
_UNCHECKED_KEYS = {"schema_version", "journal", "roots", "items", "records"}

# A snapshot lists every entry as long as there are this many at most, then all but this part.
_ALWAYS_COMPLETE = 1000
_BEHIND = 20
# Records that were appended since the last snapshot are folded into a new one when the journal has
# grown by this many times what was folded, and at least by this many bytes.
_OUTGROWN = 4
_LEAST_FOLD_BYTES = 16 * 1024
_SAVED = b"\n" + line_start("saved")
_RECORD = line_start("record")
_NO_RECORD = tuple(line_start(kind) for kind in sorted(KINDS - {"record"}))
_NUMBER = b',"n":'
_LINE_END_BYTES = len(b',"crc32":"00000000"}')


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """An index as it was when so much of its journal had been written."""

    index: Index
    fold: Fold


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
    if fold.records.bytes < 1 or not all(index.apply(line) for line in lines):
        return None
    return IndexSnapshot(index, fold)


def whole_index(backend: Backend, folder: str) -> Index | None:
    """Return what the snapshot of the session in a folder holds, if that is its whole journal."""
    try:
        found = read_snapshot(backend, f"{folder}/{INDEX}")
        with closing(open_journal(backend, folder, writing=False)) as log:
            content = log.read()
    except OSError:  # the session's store says why
        return None
    if found is None or found.fold.records.bytes != len(content):
        return None
    return found.index if found.fold.records.checksum == zlib.crc32(content) else None


def is_snapshot(backend: Backend, path: str) -> bool:
    """Whether a file begins as a snapshot does."""
    return bool(_first_of(backend, path))


class Snapshots:
    """The snapshot of the journal in `folder`: read once, written when entries are missing in it.

    `places` are the paths where it may be, the best one first. Where sessions share the root, that
    is a place for one of them: for the first, as long as it is alone. A file of anybody else is
    left alone there.
    """

    def __init__(self, places: Sequence[str], *, folder: str) -> None:
        self._places, self._folder = places, folder
        self._path = ""
        self._folded: Fold | None = None
        """What the last snapshot covers."""
        self._count = 0
        """The number of entries in it."""
        self._problem = ""
        """The error of the last attempt to write it; it is returned once."""

    def path(self, backend: Backend) -> str:
        """Return where the snapshot is, or where it is to be written."""
        best, own = self._places[0], self._places[-1]
        if best == own:
            self._path = self._path or (INDEX if self._continues_root(backend, own) else own)
            return self._path
        journal, first = f"{self._folder}/{JOURNAL}", _first_of(backend, best)
        named = str(first.get("path", "")) if first else ""
        # A path that no session has was changed by damage.
        if named == journal or (named and _is_there(backend, named)):
            self._path = best if named == journal else own
        elif not self._path:
            if _first_of(backend, own) is not None:
                is_ours = False
            elif first is None:
                is_ours = not set(state_folders(backend)) - {self._folder}
            else:  # of a session that goes on it is the damaged snapshot, else another's file
                is_ours = _is_there(backend, journal)
            self._path = best if is_ours else own
        return self._path

    def _continues_root(self, backend: Backend, own: str) -> bool:
        """Whether the root has the snapshot, of envelopes that are read as another format.

        A content there does not know the id of the journal before this session has a snapshot.
        """
        first, journal = _first_of(backend, INDEX), f"{self._folder}/{JOURNAL}"
        if not first or first.get("path") != journal or _first_of(backend, own) is not None:
            return False
        try:
            with backend.open(journal) as file:
                return first.get("id") in head_ids(file.readline(_LONGEST_FIRST_LINE))[:1]
        except OSError:
            return False

    def lags(self, backend: Backend) -> bool:
        """Whether too many entries of the journal are missing in the snapshot on the disk."""
        fold = _fold_on_disk(backend, self.path(backend))
        with closing(open_journal(backend, self._folder, writing=False)) as log:
            start = fold.entries.bytes if fold else 1
            missing = log.read(start - 1).count(_SAVED)
            return bool(missing) and _is_much(missing, log.read().count(_SAVED))

    def read(self, backend: Backend) -> tuple[IndexSnapshot | None, str]:
        """Return the snapshot, None where none is valid, and a sentence about damage, or ""."""
        path = self.path(backend)
        try:
            found = read_snapshot(backend, path)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in NOT_A_STORE_FILE:
                raise
            if not str(error.filename or path).endswith(path):
                return None, ""  # behind a folder that is a link nothing is written
            found = None
        damage = f"{path} is damaged or was written by another program, and is written anew"
        return found, "" if found else damage

    def begin(self, read: IndexSnapshot | None) -> None:
        """Continue from this snapshot; without one, `write_when_due` writes one."""
        self._folded = read.fold if read else None
        self._count = len(read.index) if read else 0

    def write_when_due(
        self, backend: Backend, index: Index, position: Position, journal: Journal, *, changed: int
    ) -> str:
        """Write the snapshot when too many entries are missing; return a new error, or "".

        `changed` entries were just added or removed. The snapshot is also written when its journal
        has outgrown what it covers.
        """
        folded = self._folded.records.bytes if self._folded else 0
        missing = max(changed, abs(len(index) - self._count))
        is_outgrown = position.bytes - folded >= max(_LEAST_FOLD_BYTES, _OUTGROWN * folded)
        if self._folded and not is_outgrown and not _is_much(missing, len(index)):
            return ""
        before, self._problem = self._problem, ""
        try:
            folds = is_outgrown or self._folded is None
            self.write(backend, index, position, journal, folds=folds)
        except OSError as error:  # the journal holds it all
            self._problem = f"{self._places[0]} could not be written: {error.strerror}"
        return "" if self._problem == before else self._problem

    def write(
        self, backend: Backend, index: Index, position: Position, journal: Journal, *, folds: bool
    ) -> None:
        """Write a snapshot that covers the whole `journal`, which is read from a byte on.

        What the last snapshot holds is copied from it. Without `folds` the new entries alone are
        added; the records since then stay in the journal. Raises `OSError`.
        """
        path = self.path(backend)
        parts = _grown(backend, path, index, position, journal, folds=folds)
        parts = parts or _anew(index, position, journal)
        raw = _text(index, parts, f"{self._folder}/{JOURNAL}")
        # Not flushed: the journal says the same, and a torn snapshot is recognised.
        backend.write(path, raw, flush=False)
        self._folded, self._count = parts.fold, len(index)

    def covers(self, backend: Backend, position: Position) -> bool:
        """Whether the snapshot on the disk covers all of its journal up to this position."""
        return _is_at(_fold_on_disk(backend, self.path(backend)), position)

    def were_at(self, position: Position) -> bool:
        """Whether the snapshot covered all of its journal when it was read or written last."""
        return _is_at(self._folded, position)


def _is_at(fold: Fold | None, position: Position) -> bool:
    ids = head_ids(position.head)[:1]
    return fold is not None and (fold.journal_id,) == ids and fold.records.bytes == position.bytes


def _is_much(missing: int, entries: int) -> bool:
    """Whether a snapshot of so many entries may not lack this many."""
    return missing * _BEHIND > entries if entries > _ALWAYS_COMPLETE else missing > 0


def _first_of(backend: Backend, path: str) -> dict[str, Any] | None:
    """Return what a snapshot says of its journal, by its first line.

    It is empty for a file of another kind or version; None where there is no file.
    """
    try:
        with backend.open(path) as file:
            first = file.readline(_LONGEST_FIRST_LINE)
        return _journal_in(first) if first.startswith(_START) else {}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return {}


def _is_there(backend: Backend, path: str) -> bool:
    try:
        return backend.status(path).is_file
    except OSError:
        return False


def _fold_on_disk(backend: Backend, path: str) -> Fold | None:
    """Return what a snapshot covers; None for one of another version."""
    try:
        return _fold(_first_of(backend, path) or {})
    except (ValueError, LookupError, TypeError):
        return None


def _journal_in(first: bytes) -> dict[str, Any]:
    found = json.loads(first.rstrip(b",\n") + b"}")["journal"]
    return found if isinstance(found, dict) else {}


def _checked(raw: bytes) -> dict[str, Any]:
    """Return the JSON of a snapshot. Raises `ValueError` when its checksum does not match.

    A snapshot of policyctx 0.1 has no checksum.
    """
    end = len(_START) + _CHECKSUM_BYTES
    is_checked = raw.startswith(_START)
    if is_checked and raw[len(_START) : end] != b"%08x" % zlib.crc32(memoryview(raw)[end:]):
        raise ValueError("the checksum is that of another snapshot")
    found = json.loads(with_halves(raw) if is_checked else raw)
    if not isinstance(found, dict) or (not is_checked and found.keys() != _UNCHECKED_KEYS):
        raise ValueError("no snapshot")
    return found


def _fold(journal: dict[str, Any]) -> Fold:
    if not isinstance(journal, dict):
        raise TypeError("no journal is named")
    entries = _part(journal.get("listed", journal))
    return Fold(str(journal["id"]), _part(journal), entries)


def _part(part: dict[str, Any]) -> Part:
    if "lines" not in part:  # of policyctx 0.1
        return Part(int(part["bytes"]))
    return Part(int(part["bytes"]), int(part["lines"]), int(part["crc32"], 16))


def _lines(found: dict[str, Any]) -> Iterator[dict[str, object]]:
    kinds = (("root", "roots"), ("saved", "items"), ("record", "records"))
    for kind, name in kinds:
        for value in found[name]:
            yield {kind: value}
    for value in found.get("in_flight", ()):
        yield {"in_flight": value}


class _Parts(NamedTuple):
    """A snapshot's lists, as the inside of a JSON array with a value a line."""

    fold: Fold
    items: bytes
    records: bytes


def _parts_in(raw: bytes) -> _Parts | None:
    """Return the parts of a snapshot; None if it is damaged or of policyctx 0.1."""
    end = len(_START) + _CHECKSUM_BYTES
    items, start = raw.find(_ITEMS), raw.find(_RECORDS)
    if (
        not raw.startswith(_START)
        or raw[len(_START) : end] != b"%08x" % zlib.crc32(memoryview(raw)[end:])
        or not 0 <= items < start
        or not raw.endswith(_END)
    ):
        return None
    try:
        fold = _fold(_journal_in(raw[: raw.find(b"\n") + 1]))
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    records = raw[start + len(_RECORDS) : -len(_END)]
    return _Parts(fold, raw[items + len(_ITEMS) : start], records)


def _grown(
    backend: Backend, path: str, index: Index, position: Position, journal: Journal, *, folds: bool
) -> _Parts | None:
    """Return the parts of the snapshot on the disk with what its journal has said since.

    Without `folds` that is the entries alone. None where that is not the whole: entries were
    removed or replaced, or something is damaged.
    """
    try:
        last = _parts_in(backend.read(path))
    except OSError:
        return None
    if last is None or (last.fold.journal_id,) != head_ids(position.head)[:1]:
        return None
    fold, listed = last.fold, last.fold.entries
    if listed.number < 0 or listed.bytes > position.bytes:
        return None
    start = fold.records.bytes if folds else listed.bytes
    new = journal(start)[: position.bytes - start]
    later = new[listed.bytes - start :]
    items = _longer(last.items, later, "saved", len(index))
    entries = Part(position.bytes, position.number, zlib.crc32(later, listed.checksum))
    records = _longer(last.records, new, "record", len(index.records)) if folds else last.records
    fold = Fold(fold.journal_id, entries if folds else fold.records, entries)
    return None if items is None or records is None else _Parts(fold, items, records)


def _longer(before: bytes, journal: bytes, kind: str, number: int) -> bytes | None:
    """Return values with those of a kind in the journal, None if they are not so many then."""
    values = values_of_kind(journal, kind)
    if values is None or _number(before) + len(values) != number:
        return None
    return _SEPARATOR.join([before, *values] if before else values)


def _number(values: bytes) -> int:
    return values.count(b"\n") + 1 if values else 0


def _anew(index: Index, position: Position, journal: Journal) -> _Parts:
    """Return the parts of a new snapshot, copied from the journal as far as that is possible."""
    content = journal(0)[: position.bytes]
    items = _longer(b"", content, "saved", len(index))
    if items is None:
        items = _SEPARATOR.join(encoded(encode(entry.as_json())) for entry in index)
    records = _longer(b"", content, "record", len(index.records))
    if records is None:
        records = _SEPARATOR.join(encoded(encode(record)) for record in index.records)
    whole = Part(position.bytes, position.number, zlib.crc32(content))
    fold = Fold(head_ids(position.head)[0], whole, whole)
    return _Parts(fold, items, records)


def _as_json(part: Part) -> dict[str, JSON]:
    return {"bytes": part.bytes, "lines": part.number, "crc32": f"{part.checksum:08x}"}


def _text(index: Index, parts: _Parts, journal: str) -> bytes:
    """The snapshot as JSON, one item a line."""
    fold = parts.fold
    known = {"id": fold.journal_id, "path": journal, **_as_json(fold.records)}
    if fold.entries != fold.records:
        known["listed"] = _as_json(fold.entries)
    text = b'","journal":%b,\n"roots":%b,\n"in_flight":%b%b%b%b%b%b' % (
        encoded(encode(known)),
        encoded(encode(index.roots)),
        encoded(encode(index.in_flight.as_json())),
        _ITEMS,
        parts.items,
        _RECORDS,
        parts.records,
        _END,
    )
    text = with_escaped_halves(text)
    return b"%b%08x%b" % (_START, zlib.crc32(text), text)


def recalled_records(backend: Backend, folder: str, snapshot: str) -> list[dict[str, Any]] | None:
    """Return the records of the journal in a folder, oldest first; None where it must be repaired.

    `snapshot` is the path of its snapshot. Raises `FileNotFoundError` without a journal.
    """
    found = None
    with suppress(FileNotFoundError):
        found = _parts_in(backend.read(snapshot))
        if found is None:
            return None
    with closing(open_journal(backend, folder, writing=False)) as log:
        content = log.read()
    start, number = content.find(b"\n") + 1, 0
    ids = head_ids(content[:start])
    records: list[bytes] = []
    if found is not None:
        fold, folded = found.fold, with_halves(found.records)
        if fold.records.number < 0 or (fold.journal_id,) != ids[:1]:
            return None
        if zlib.crc32(memoryview(content)[: fold.entries.bytes]) != fold.entries.checksum:
            return None
        start, number, _ = fold.records
        records = [folded] if folded else []
    lines = content[start:].split(b"\n")
    if not ids or lines.pop():
        return None
    later = _records_in(lines, number)
    return None if later is None else _parsed([*records, *later])


def _records_in(lines: Sequence[bytes], after: int) -> list[bytes] | None:
    """Return the JSON of the records in the lines after a number; None where one may be lost.

    A line of another kind is checked if it is the last one: no number after it shows what it lacks.
    """
    found = []
    crc32 = zlib.crc32
    last = after + len(lines)
    for number, line in enumerate(lines, after + 1):
        if line.startswith(_NO_RECORD) and number != last:
            continue
        text = line[:-_LINE_END_BYTES]
        if not line.endswith(b',"n":%d,"crc32":"%08x"}' % (number, crc32(text))):
            return None
        if text.startswith(_RECORD):
            found.append(text[len(_RECORD) : text.rindex(_NUMBER)])
    return found


def _parsed(records: Sequence[bytes]) -> list[dict[str, Any]] | None:
    text = b"[%b]" % b",".join(records)
    try:
        found = _read_fast(text)
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(record, dict) for record in found) else None


def _read_fast(text: bytes) -> PlainValue:
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:  # such as a lone surrogate
        return json.loads(text)
