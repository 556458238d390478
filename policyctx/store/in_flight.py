"""Files that are being written: what a journal says of them, and the lock that a writer holds.

Before its first file, a batch that records will follow is announced in the journal, with the paths
that it is about to use. The record that names a path settles it, and what is left of the batch is
announced together with that record. The writer holds a lock of its own until nothing is left, so
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
    from collections.abc import Iterable, Mapping

    from policyctx.store.content import JSON
    from policyctx.store.folders import Folder

_ID = re.compile(r"[0-9a-f]{16}")
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
    """The batches of one store in this process, each with its lock and the paths in flight."""

    def __init__(self) -> None:
        self._locks: dict[str, int] = {}
        self._paths: dict[str, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def open(self, folder: Folder, mode: int, paths: Iterable[str]) -> str:
        """Return the id of a new batch, whose lock is held from now on. Raises `OSError`."""
        batch = secrets.token_hex(8)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW
        descriptor = folder.open(_LOCK + batch, flags, mode)
        try:
            set_mode(descriptor, mode)
            lock_descriptor(descriptor, blocking=False)  # nobody else knows the file
        except BaseException:
            os.close(descriptor)
            folder.remove(_LOCK + batch)
            raise
        self._locks[batch] = descriptor
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

    def update(self, folder: Folder, changed: Mapping[str, Iterable[str]]) -> None:
        """Let batches have these paths; the lock of one without any is released.

        The oldest of too many batches is closed: an error came between it and its records.
        """
        self._paths.update({batch: frozenset(paths) for batch, paths in changed.items()})
        settled = [batch for batch, paths in self._paths.items() if not paths]
        surplus = [*self._paths][: max(0, len(self._paths) - _MOST_OPEN)]
        for batch in {*settled, *surplus}:
            self.close(folder, batch)

    def close(self, folder: Folder, batch: str) -> None:
        """Release the lock of a batch, and remove its file."""
        self._release(batch)
        with contextlib.suppress(OSError):  # `collect` removes what is left
            folder.remove(_LOCK + batch)

    def close_all(self, folder: Folder) -> None:
        """Release every lock, and remove the files."""
        for batch in tuple(self._locks):
            self.close(folder, batch)

    def abandon(self) -> None:
        """Release every lock where the folder is out of reach; `collect` removes the files."""
        for batch in tuple(self._locks):
            self._release(batch)

    def _release(self, batch: str) -> None:
        self._paths.pop(batch, None)
        descriptor = self._locks.pop(batch, None)
        if descriptor is not None:
            os.close(descriptor)


def is_living(folder: Folder, batch: str) -> bool:
    """Does a process hold the lock of this batch. Raises `OSError`."""
    try:
        descriptor = folder.open(_LOCK + batch, os.O_RDWR | NO_FOLLOW)
    except FileNotFoundError:
        return False
    try:
        if not lock_descriptor(descriptor, blocking=False):
            return True
        unlock_descriptor(descriptor)
    finally:
        os.close(descriptor)
    return False


def remove_dead_locks(folder: Folder, living: Iterable[str]) -> None:
    """Remove the lock files of all but the living; only while nobody else can take a lock."""
    names = {_LOCK + batch for batch in living}
    for name in folder.names():
        batch = name.removeprefix(_LOCK)
        if name.startswith(_LOCK) and name not in names and not is_living(folder, batch):
            with contextlib.suppress(FileNotFoundError):
                folder.remove(name)
