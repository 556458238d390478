"""Files that are being written: what a journal says of them, and the lock that a writer holds.

Before its first file, a batch that records will follow is announced in the journal, with the paths
that it is about to use. Each path is settled by the record that names it. The writer holds a lock
of its own until all of them are, so `collect` can tell a batch of a living writer, which it leaves
alone, from one that a crash cut off. No clock is read.

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
# The keys of a record that name a content's file.
_NAMES = ("path", "archive")


class InFlight:
    """The batches that a journal announces, with the paths that no record has named yet."""

    def __init__(self) -> None:
        self._paths: dict[str, set[str]] = {}
        self._batches: dict[str, str] = {}
        """By path, the newest batch that announced it."""

    def __contains__(self, batch: str) -> bool:
        return batch in self._paths

    @property
    def batches(self) -> tuple[str, ...]:
        """The id of each batch that is not settled, oldest first."""
        return tuple(self._paths)

    def paths(self, batch: str) -> frozenset[str]:
        """Return the paths of a batch that are not settled."""
        return frozenset(self._paths.get(batch, ()))

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
        for path in self._paths.pop(batch, ()):
            self._batches.pop(path, None)
        for path in paths:
            self._settle(path)
            self._paths.setdefault(batch, set()).add(path)
            self._batches[path] = batch

    def settle(self, record: Mapping[str, JSON]) -> None:
        """Take up that a record names a file."""
        for key in _NAMES:
            path = record.get(key)
            if isinstance(path, str):
                self._settle(path.removesuffix(PACKED))

    def as_json(self) -> list[JSON]:
        """Return what a line says of each batch."""
        return [announcement(batch, paths) for batch, paths in self._paths.items()]

    def _settle(self, path: str) -> None:
        batch = self._batches.pop(path, None)
        if batch is not None:
            self._paths[batch].discard(path)
            if not self._paths[batch]:
                del self._paths[batch]


def announcement(batch: str, paths: Iterable[str]) -> JSON:
    """Return what a line says of a batch."""
    return {"id": batch, "paths": [*sorted(paths)]}


class WriterLocks:
    """The locks that this process holds in one folder, one for each of its open batches."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def take(self, folder: Folder, mode: int) -> str:
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
        self._held[batch] = descriptor
        return batch

    def held(self) -> tuple[str, ...]:
        """Return the batches whose locks are held here."""
        return tuple(self._held)

    def let_go(self, folder: Folder | None, batch: str) -> None:
        """Give a lock up and remove its file; without a folder, the file has gone with it."""
        descriptor = self._held.pop(batch, -1)
        if descriptor >= 0:
            os.close(descriptor)
        if folder is not None:
            with contextlib.suppress(OSError):  # `collect` removes what is left
                folder.remove(_LOCK + batch)

    def close(self) -> None:
        """Let go of every lock; `collect` removes the files."""
        for batch in self.held():
            self.let_go(None, batch)


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
