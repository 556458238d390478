"""`index.json`: what a journal added up to at some moment, and a second copy of it."""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.store.encoding import encoded
from policyctx.store.folders import NEW_FILE, NO_FILE_OF_OURS, set_mode
from policyctx.store.index import Index
from policyctx.store.journal import SCHEMA_VERSION, Fold, encode, head_ids
from policyctx.store.opening import read_whole
from policyctx.store.writing import TEMPORARY, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.store.content import JSON
    from policyctx.store.journal import Position
    from policyctx.store.opening import Tree


# What was appended since the last snapshot is folded when it is so many times its size, and this
# many bytes: on the average, an entry is folded once in three.
_OUTGROWN = 4
_LEAST_FOLD_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was when so much of its journal had been written."""

    index: Index
    fold: Fold
    size: int
    """Bytes of the file."""


def read_snapshot(tree: Tree, path: str) -> Snapshot | None:
    """Return a snapshot, None for one that was not written here or not as a whole.

    Raises `OSError` where there is no readable file.
    """
    raw = read_whole(*tree.place(path))
    try:
        found = json.loads(raw)
        fold = Fold(str(found["journal"]["id"]), int(found["journal"]["bytes"]))
        lines = list(_lines(found))
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    index = Index()
    if fold.bytes < 1 or not all(index.apply(line) for line in lines):
        return None
    return Snapshot(index, fold, len(raw))


def write_snapshot(
    tree: Tree, path: str, index: Index, fold: Fold, journal: bytes, *, mode: int
) -> int:
    """Write a snapshot of a journal in one step and return its bytes.

    It is not flushed: the journal says the same, and a torn one is known by its look.
    """
    raw = _text(index, fold, journal)
    folder, name = tree.place(path)
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
    """The snapshot of one journal at `path`: read once, and written when it is outgrown."""

    def __init__(self, path: str, *, mode: int) -> None:
        self.path = path
        self._mode = mode
        self._folded_bytes = 0
        self._size: int | None = None

    def read(self, tree: Tree) -> tuple[Snapshot | None, str]:
        """Return the snapshot, None where there is none to believe, and what harm was found."""
        try:
            found = read_snapshot(tree, self.path)
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in NO_FILE_OF_OURS:
                raise
            found = None
        harm = "" if found else f"{self.path} was torn or not written here, and is written anew"
        return found, harm

    def begin(self, read: Snapshot | None) -> None:
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
        fold = Fold(head_ids(position.head)[0], position.bytes)
        harm, size = "", 0
        try:
            size = write_snapshot(tree, self.path, index, fold, journal(), mode=self._mode)
        except OSError as error:  # the journal holds it all
            harm = f"{self.path} could not be written: {error.strerror}"
        self._folded_bytes, self._size = position.bytes, size
        return harm


def _lines(found: dict[str, list[object]]) -> Iterator[dict[str, object]]:
    kinds = (("root", "roots"), ("saved", "items"), ("record", "records"))
    for kind, name in kinds:
        for value in found[name]:
            yield {kind: value}


def _text(index: Index, fold: Fold, journal: bytes) -> bytes:
    """The snapshot as JSON, one item a line."""
    known: JSON = {"id": fold.journal_id, "bytes": fold.bytes}
    head = f'{{"schema_version":{encode(SCHEMA_VERSION)},"journal":{encode(known)}'
    roots = encoded(f',\n"roots":{encode(index.roots)}')
    items = _values(journal, b'{"saved":', len(index)) or [
        encoded(encode(entry.as_json())) for entry in index
    ]
    records = _values(journal, b'{"record":', len(index.records)) or [
        encoded(encode(record)) for record in index.records
    ]
    lists = b',\n"items":[\n%b\n],\n"records":[\n%b\n]}\n'
    return head.encode() + roots + lists % (b",\n".join(items), b",\n".join(records))


def _values(journal: bytes, kind: bytes, number: int) -> list[bytes]:
    """What a journal's lines of one kind hold, as it stands there; [] when some are out of date."""
    found = [line[len(kind) : -1] for line in journal.split(b"\n") if line.startswith(kind)]
    return found if len(found) == number else []
