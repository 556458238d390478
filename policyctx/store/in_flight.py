"""Files that are being written: what a journal says of them, and the lock that a writer holds.

Before its first file, a batch that records will follow is announced in the journal, with the paths
that it is about to use. The record that names a path settles it, and what is left of the batch is
announced together with that record. A writer holds a lock of its own while it has batches left, so
`collect` can tell a batch of a living writer, which it leaves alone, from one that a crash cut off.
No clock is read. Several batches may have one path.

The announcement is not flushed: a crash of the machine ends every writer, and as long as the
machine runs, other processes see what was appended.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from typing import TYPE_CHECKING

from policyctx.store.content import is_inside
from policyctx.store.files import PACKED
from policyctx.store.local.lock import Lock, is_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policyctx.store.content import JSON
    from policyctx.store.local.tree import Folder

# The writer, and the number of its batch.
_ID = re.compile(r"[0-9a-f]{16}-[0-9]{1,18}")
_LOCK = "writing-"
# A batch that so many others followed is not going to be recorded.
_MOST_OPEN = 32
# The keys of a record that name a content's file.
_NAMES = ("path", "archive")


class InFlight:
    """The batches that a journal announces, with the paths that are not settled."""

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
        """Take up what a line says of one batch; False for what no line could say."""
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
        """Let a batch have these paths instead of those before; without any it is settled."""
        left = frozenset(paths)
        if left:
            self._paths[batch] = left
        else:
            self._paths.pop(batch, None)

    def as_json(self) -> list[JSON]:
        """Return what a line says of each batch."""
        return [announcement(batch, paths) for batch, paths in self._paths.items()]


def announcement(batch: str, paths: Iterable[str]) -> JSON:
    """Return what a line says of a batch."""
    return {"id": batch, "paths": [*sorted(paths)]}


class OpenBatches:
    """The batches of one store in this process, with the paths in flight, and the lock for them.

    The lock is held while a batch is open. Its file stays for the next batch, since making a file
    costs many times what locking it does. A forked child is another writer and needs its own.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._paths: dict[str, frozenset[str]] = {}
        self._writer = secrets.token_hex(8)
        self._opened = 0
        self._lock: Lock | None = None

    def open(self, folder: Folder, mode: int, paths: Iterable[str]) -> str:
        """Return the id of a new batch; only while the session's lock is held.

        Raises `OSError`, and `StoreError` when another process keeps the lock of this writer.
        """
        if not self._opened:
            remove_dead_locks(folder)  # of processes that ended without closing their store
        if self._lock is None:
            lock = Lock(folder, mode, _LOCK + self._writer)
            lock.acquire()  # `collect` holds it for a moment where it looks for living writers
            self._lock = lock
        self._opened += 1
        batch = f"{self._writer}-{self._opened}"
        self._paths[batch] = frozenset(paths)
        return batch

    def named_by(self, records: Iterable[Mapping[str, JSON]]) -> dict[str, frozenset[str]]:
        """Return each batch of which records settle a path, with the paths that are left.

        A path that several batches have is settled for the oldest of them.
        """
        left: dict[str, frozenset[str]] = {}
        for record in records:
            for key in _NAMES:
                path = record.get(key)
                if not isinstance(path, str) or not self._paths:
                    continue
                path = path.removesuffix(PACKED)
                every = ((batch, left.get(batch, paths)) for batch, paths in self._paths.items())
                found = next(((batch, paths) for batch, paths in every if path in paths), None)
                if found is not None:
                    left[found[0]] = found[1] - {path}
        return left

    def update(self, changed: Mapping[str, Iterable[str]]) -> None:
        """Let batches have these paths; without any left in flight, the lock is released.

        The oldest of too many batches is closed: an error came between it and its records.
        """
        for batch, paths in changed.items():
            if batch in self._paths:
                self._paths[batch] = frozenset(paths)
        settled = [batch for batch, paths in self._paths.items() if not paths]
        surplus = [*self._paths][: max(0, len(self._paths) - _MOST_OPEN)]
        for batch in {*settled, *surplus}:
            self.close(batch)

    def close(self, batch: str) -> None:
        """Let nothing of a batch be in flight."""
        self._paths.pop(batch, None)
        if not self._paths:
            self.abandon()

    def close_all(self, folder: Callable[[], Folder]) -> None:
        """Release the lock, and remove its file from the folder."""
        if self._opened:
            self.abandon()
            self._opened = 0
            with contextlib.suppress(OSError):  # `collect` removes what is left
                folder().remove(_LOCK + self._writer)
            self._writer = secrets.token_hex(8)

    def abandon(self) -> None:
        """Release the lock; `collect` removes its file where nobody else does."""
        self._paths.clear()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def is_living(folder: Folder, batch: str) -> bool:
    """Whether a process holds the lock of the writer of a batch. Raises `OSError`."""
    return is_held(folder, _LOCK + _writer_of(batch))


def _writer_of(batch: str) -> str:
    return batch.partition("-")[0]


def remove_dead_locks(folder: Folder) -> None:
    """Remove the lock files that nobody holds; only while nobody else can take a lock."""
    for name in folder.names():
        if name.startswith(_LOCK) and not is_held(folder, name):
            with contextlib.suppress(FileNotFoundError):
                folder.remove(name)
