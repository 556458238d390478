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

from filelock import lock_descriptor, unlock_descriptor

from policyctx.store.entries import is_inside
from policyctx.store.folders import NO_FOLLOW, set_mode
from policyctx.store.packing import PACKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from policyctx.store.content import JSON
    from policyctx.store.folders import Folder

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

    The lock is held while a batch is open. Its file stays for the next one, since making a file
    costs many times what locking it does.
    """

    def __init__(self) -> None:
        self._paths: dict[str, frozenset[str]] = {}
        self._writer = secrets.token_hex(8)
        self._opened = 0
        self._process = os.getpid()
        self._lock = -1

    def open(self, folder: Folder, mode: int, paths: Iterable[str]) -> str:
        """Return the id of a new batch. Raises `OSError`; only while nobody else takes a lock."""
        if self._process != os.getpid():  # a child that was forked is another writer
            self.abandon()
            self._writer, self._process = secrets.token_hex(8), os.getpid()
            self._opened = 0
        if not self._opened:
            remove_dead_locks(folder)  # of processes that ended without closing their store
        if self._lock < 0:
            self._lock = _locked(folder, _LOCK + self._writer, mode)
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
        descriptor, self._lock = self._lock, -1
        if descriptor >= 0:
            os.close(descriptor)


def _locked(folder: Folder, name: str, mode: int) -> int:
    """Open and lock a file that only this writer knows."""
    descriptor = _opened(folder, name, mode)
    try:
        lock_descriptor(descriptor, blocking=False)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _opened(folder: Folder, name: str, mode: int) -> int:
    try:
        return folder.open(name, os.O_RDWR | NO_FOLLOW)
    except FileNotFoundError:
        descriptor = folder.open(name, os.O_RDWR | os.O_CREAT | NO_FOLLOW, mode)
        set_mode(descriptor, mode)
        return descriptor


def is_living(folder: Folder, batch: str) -> bool:
    """Whether a process holds the lock of the writer of a batch. Raises `OSError`."""
    try:
        descriptor = folder.open(_LOCK + _writer_of(batch), os.O_RDWR | NO_FOLLOW)
    except FileNotFoundError:
        return False
    try:
        if not lock_descriptor(descriptor, blocking=False):
            return True
        unlock_descriptor(descriptor)
    finally:
        os.close(descriptor)
    return False


def _writer_of(batch: str) -> str:
    return batch.partition("-")[0]


def remove_dead_locks(folder: Folder) -> None:
    """Remove the lock files that nobody holds; only while nobody else can take a lock."""
    for name in folder.names():
        if name.startswith(_LOCK) and not is_living(folder, name.removeprefix(_LOCK)):
            with contextlib.suppress(FileNotFoundError):
                folder.remove(name)
