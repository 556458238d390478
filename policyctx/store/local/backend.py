"""`LocalBackend`: the files of a store in a folder of this computer."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Self, cast

from policyctx.store.backend import FileStatus
from policyctx.store.local.folder import NEW_FILE, READING, check_regular, is_held, locked
from policyctx.store.local.write import (
    Batch,
    LogFile,
    Tree,
    release_kept,
    status_of,
    temporary_name,
    write_file,
)

_binary = cast("Callable[[int], IO[bytes]]", partial(open, mode="rb"))


class LocalBackend:
    """The files below a folder. See `Backend`.

    `mode` is that of new files. `making` makes missing folders. `flushes` says whether the store
    waits for the disk at all.
    """

    is_remote = False
    is_spilling = False

    def __init__(
        self, root: Path, *, mode: int = 0o600, flushes: bool = True, making: bool = False
    ) -> None:
        self._tree = Tree(root, mode=mode if making else None)
        self._mode = mode
        self._flushes = flushes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tree.close()

    @staticmethod
    def release(root: Path) -> None:
        """Close what stays open between calls, so that the file system can be unmounted."""
        release_kept(root)

    @property
    def root(self) -> Path:
        """The absolute path of the folder, as the caller gave it."""
        return self._tree.root

    def roots(self) -> tuple[Path, ...]:
        """Return the path of the folder as it was given, and with its links resolved."""
        return (self.root, self.root.resolve())

    def read(self, path: str) -> bytes:
        """Return the bytes of a regular file."""
        with self.open(path) as file:
            return file.read()

    def open(self, path: str) -> IO[bytes]:
        """Open a regular file to read it in pieces."""
        folder, name = self._tree.place(path)
        opened = folder.open(name, READING)
        check_regular(opened.number, f"{folder.path}/{name}")
        # One call takes the number out and makes the file, so an interrupt loses neither.
        [file] = map(_binary, map(opened.pop, (0,)))
        return file

    def open_log(self, path: str, *, writing: bool) -> LogFile:
        """Open an existing file to read it, and where `writing`, to append to it."""
        folder, name = self._tree.place(path)
        return LogFile(folder, name, writing=writing, flushes=self._flushes)

    def status(self, path: str) -> FileStatus:
        """Return the status of what is at a path."""
        return status_of(self._stat(path))

    def mode(self, path: str) -> int:
        """Return the permissions of a file."""
        return stat.S_IMODE(self._stat(path).st_mode)

    def names(self, folder: str) -> list[str]:
        """Return the names of all entries of a folder, sorted."""
        return self._tree.folder(folder).names()

    def files(self, *, without: frozenset[str]) -> Iterator[str]:
        """Yield the path of every regular file, in order, but skip `without` in the root."""
        return self._files_below("", without)

    def write(self, path: str, content: bytes, *, flush: bool) -> FileStatus:
        """Put a new file in the place of what is at `path`, in one step; return its status."""
        flush = flush and self._flushes
        found = write_file(*self._tree.place(path), content, self._mode, flush=flush)
        if flush:
            self._tree.flush_changed()
        return found

    def batch(self, name: str | None = None) -> Batch:
        """Return a batch to write files with. Its temporary files are named after it."""
        return Batch(self._tree, mode=self._mode, flush=self._flushes, of=name)

    def remove(self, path: str) -> None:
        """Remove a file."""
        folder, name = self._tree.place(path)
        folder.remove(name)

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Return the lock on a file; the file is made when it is missing."""
        return locked(*self._tree.place(path), self._mode)

    def is_locked(self, path: str) -> bool:
        """Return whether a process holds the lock on a file; see `is_held`."""
        return is_held(*self._tree.place(path))

    def time_in(self, folder: str) -> float:
        """Return the time, in seconds since 1970, that a file written now in a folder gets."""
        place = self._tree.folder(folder)
        name = temporary_name()
        place.open(name, NEW_FILE).close()
        try:
            return place.stat(name).st_mtime
        finally:
            place.remove(name)

    def _stat(self, path: str) -> os.stat_result:
        folder, name = self._tree.place(path)
        return folder.stat(name)

    def _files_below(self, relative: str, without: frozenset[str]) -> Iterator[str]:
        for name in self.names(relative):
            if name in without:
                continue
            path = f"{relative}/{name}" if relative else name
            try:
                mode = self._stat(path).st_mode
            except FileNotFoundError:
                continue  # removed meanwhile
            if stat.S_ISDIR(mode):
                yield from self._files_below(path, frozenset())
            elif stat.S_ISREG(mode):
                yield path
