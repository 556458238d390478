"""Batches in flight: files that are saved before the records that name them.

Before its first file, such a batch is announced in the journal, with the paths that it is about to
use. A record that names a path settles it, and the rest of the batch is announced together with
that record. A writer holds a lock of its own while it has open batches, so `collect` can tell the
batch of a living writer, which it leaves alone, from one that a crash cut off. No clock is read.
Several batches may have the same path.

The announcement is not flushed: a crash of the machine ends every writer, and as long as the
machine runs, other processes see what was appended.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from itertools import chain

from policyctx.messages.json_text import JSON
from policyctx.store.backend import Backend, random_name
from policyctx.store.content import PACKED, is_inside

# The writer, and the number of its batch.
_ID = re.compile(r"[0-9a-f]{16}-[0-9]{1,18}")
_LOCK = "writing-"
# A batch that this many others followed will not be recorded.
_MOST_OPEN = 32


class InFlight:
    """The batches that a journal announces, with their paths that are not settled."""

    def __init__(self) -> None:
        self._paths: dict[str, frozenset[str]] = {}

    @property
    def batches(self) -> tuple[str, ...]:
        """The id of each batch that is not settled, oldest first."""
        return tuple(self._paths)

    def paths(self, batch: str) -> frozenset[str]:
        """Return the paths of a batch that are not settled."""
        return self._paths.get(batch, frozenset())

    def apply(self, value: object) -> bool:
        """Apply what a line says of one batch; return False for an invalid value."""
        if not isinstance(value, dict):
            return False
        batch, paths = value.get("id"), value.get("paths")
        if not isinstance(batch, str) or not _ID.fullmatch(batch):
            return False
        if not isinstance(paths, list) or not all(map(is_inside, paths)):
            return False
        self.announce(batch, paths)
        return True

    def announce(self, batch: str, paths: Iterable[str]) -> None:
        """Replace the paths of a batch; without any it is settled."""
        if left := frozenset(paths):
            self._paths[batch] = left
        else:
            self._paths.pop(batch, None)

    def as_json(self) -> list[JSON]:
        """Return the announcement of each batch."""
        return [announcement(batch, paths) for batch, paths in self._paths.items()]


def announcement(batch: str, paths: Iterable[str]) -> JSON:
    """Return what a line of the journal says of a batch."""
    return {"id": batch, "paths": [*sorted(paths)]}


def named_paths(record: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the contents that a record names."""
    named = (record.get("path"), record.get("archive"))
    return [path.removesuffix(PACKED) for path in named if isinstance(path, str)]


class OpenBatches:
    """The batches of one store in this process, and the lock that it holds while one is open.

    `folder` is the state folder of its session. The file of the lock stays for the next batch,
    since making a file costs many times more than locking it. A forked child is another writer and
    needs open batches of its own.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.process = os.getpid()
        self._paths: dict[str, frozenset[str]] = {}
        self._writer = random_name()
        self._opened = 0
        self._lock: contextlib.ExitStack | None = None

    def open(self, backend: Backend, paths: Iterable[str]) -> str:
        """Open a batch and return its id; only while the session's lock is held.

        Raises `OSError`, and `StoreError` when another process keeps the lock of this writer.
        """
        if not self._opened:
            # Of processes that ended without closing their store.
            remove_dead_locks(backend, self._folder)
        if self._lock is None:
            lock = contextlib.ExitStack()
            # `collect` holds it for a moment to look for living writers.
            lock.enter_context(backend.lock(self._lock_file()))
            self._lock = lock
        self._opened += 1
        batch = f"{self._writer}-{self._opened}"
        self._paths[batch] = frozenset(paths)
        return batch

    def protects(self, path: str) -> bool:
        """Whether an open batch has this path, so that `collect` leaves its file alone."""
        return any(path in paths for paths in self._paths.values())

    def named_by(self, records: Iterable[Mapping[str, JSON]]) -> dict[str, set[str]]:
        """Return each batch of which records settle a path, with its remaining paths.

        A path that several batches have is settled for the oldest of them.
        """
        left: dict[str, set[str]] = {}
        for path in chain.from_iterable(map(named_paths, records)) if self._paths else ():
            for batch, paths in self._paths.items():
                if path in left.get(batch, paths):
                    if batch not in left:
                        left[batch] = set(paths)
                    left[batch].remove(path)
                    break
        return left

    def update(self, changed: Mapping[str, Iterable[str]]) -> None:
        """Replace the paths of batches, and close those without any.

        The oldest of too many batches are closed: an error prevented their records.
        """
        for batch, paths in changed.items():
            if batch in self._paths:
                self._paths[batch] = frozenset(paths)
        settled = [batch for batch, paths in self._paths.items() if not paths]
        surplus = [*self._paths][: max(0, len(self._paths) - _MOST_OPEN)]
        for batch in {*settled, *surplus}:
            self.close(batch)

    def close(self, batch: str) -> None:
        """Close a batch; with the last one, release the lock."""
        self._paths.pop(batch, None)
        if not self._paths:
            self.abandon()

    def close_all(self, backend: Backend) -> None:
        """Close every batch, and remove the file of the lock."""
        if self._opened:
            self.abandon()
            self._opened = 0
            with contextlib.suppress(OSError):  # `collect` removes what is left
                backend.remove(self._lock_file())
            self._writer = random_name()

    def abandon(self) -> None:
        """Close every batch and release the lock; `collect` removes its file."""
        self._paths.clear()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    def _lock_file(self) -> str:
        return f"{self._folder}/{_LOCK}{self._writer}"


def is_living(backend: Backend, folder: str, batch: str) -> bool:
    """Whether a process holds the lock of the writer of a batch. Raises `OSError`."""
    return backend.is_locked(f"{folder}/{_LOCK}{batch.partition('-')[0]}")


def remove_dead_locks(backend: Backend, folder: str) -> None:
    """Remove the lock files that nobody holds; only while nobody else can take a lock."""
    for name in backend.names(folder):
        path = f"{folder}/{name}"
        if name.startswith(_LOCK) and not backend.is_locked(path):
            with contextlib.suppress(FileNotFoundError):
                backend.remove(path)
