"""`LocalBackend`: the files of a store in a folder of this computer.

A name never refers to half a content. Each content goes to a temporary file in its folder first.
When all are complete (and flushed to stable storage where asked), each gets its name in one step,
and the folders are flushed. A file that has its name stays: another process may rely on it already.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import IO, Self, TypeAlias, cast

from policyctx import lazy
from policyctx.store.backend import TEMPORARY, FileStatus, random_name
from policyctx.store.local.folder import (
    NEW_FILE,
    READING,
    Descriptor,
    Folder,
    check_regular,
    folder_mode,
    is_held,
    locked,
    open_folder,
    set_mode,
)

# The open folders of one root by their path below it, the one used last at the end.
OpenFolders: TypeAlias = "OrderedDict[str, Folder]"

# Each folder holds a descriptor, of which a process has some hundreds at least.
_KEPT_ROOTS = 8
_KEPT_FOLDERS = 4
# How many folders a tree holds open at a time; a plan may name thousands.
_OPEN_FOLDERS = 32


class Tree:
    """The folders below a root, opened when they are needed and closed together.

    With `mode`, that of its files, missing folders are made on demand. `changed` holds the folders
    that got new entries. A tree belongs to one thread.
    """

    def __init__(self, root: Path, *, mode: int | None = None) -> None:
        self.root = root
        self.changed: set[str] = set()
        self._name = str(root)
        self._mode = None if mode is None else folder_mode(mode)
        self._made_above: list[Path] = []
        # Nobody else has the kept folders until they are given back.
        self._open: OpenFolders = _kept.pop(self._name, OrderedDict())
        self._checked: set[str] = set()

    def close(self) -> None:
        """Let go of all folders; a few stay open for the next tree of this root."""
        _keep(self._name, self._open)

    def folder(self, relative: str = "") -> Folder:
        """Return the folder at a path below the root, its parts joined by `/`; "" is the root."""
        found = self._open.get(relative)
        if found is not None and (relative in self._checked or self._is_still(found, relative)):
            self._checked.add(relative)
            self._open.move_to_end(relative)
            return found
        if found is not None:
            for one in self._open.keys() - self._checked:
                self._open.pop(one).close()
        if relative:
            above, _, name = relative.rpartition("/")
            found = self._open_below(self.folder(above), above, name)
        else:
            found = self._open_root()
        self._open[relative] = found
        self._checked.add(relative)
        if len(self._open) > _OPEN_FOLDERS:
            self._open.popitem(last=False)[1].close()
        return found

    def place(self, path: str) -> tuple[Folder, str]:
        """Return the folder of a file and its name there."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def flush_changed(self) -> None:
        """Wait until the disk keeps the new entries of every folder; flush each once."""
        for relative in sorted(self.changed):
            self.folder(relative).flush()
        self.changed.clear()
        for path in self._made_above:
            above = open_folder(path.parent)
            with closing(above):
                above.flush()
        self._made_above.clear()

    def _is_still(self, folder: Folder, relative: str) -> bool:
        path = f"{self._name}/{relative}" if relative else self._name
        try:
            found = os.stat(path, follow_symlinks=not relative)  # noqa: PTH116 - called often
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == folder.number

    def _open_below(self, above: Folder, relative: str, name: str) -> Folder:
        try:
            return above.below(name)
        except FileNotFoundError:
            if self._mode is None:
                raise
        if above.make(name, self._mode):
            self.changed.add(relative)
        return above.below(name)

    def _open_root(self) -> Folder:
        try:
            return open_folder(self.root)
        except FileNotFoundError:
            if self._mode is None:
                raise
        missing = [path for path in (self.root, *self.root.parents) if not path.is_dir()]
        for path in reversed(missing):
            with suppress(FileExistsError):  # another process was faster
                path.mkdir()
                path.chmod(self._mode)
                self._made_above.append(path)
        return open_folder(self.root)


# The folders that are kept between calls, by their root. Each access is one operation on a dict, so
# neither threads nor a forked child need a lock.
_kept: dict[str, OpenFolders] = {}


def _keep(root: str, folders: OpenFolders) -> None:
    """Keep the folders used last, and close the others."""
    while len(folders) > _KEPT_FOLDERS:
        folders.popitem(last=False)[1].close()
    _close(_kept.pop(root, None))
    if folders:
        _kept[root] = folders
    if len(_kept) > _KEPT_ROOTS:
        _close(_kept.pop(next(iter(tuple(_kept)), ""), None))


def release_kept(root: Path) -> None:
    """Close the folders of a root that stay open between calls, so that it can be unmounted."""
    _close(_kept.pop(str(root), None))


def _close(folders: OpenFolders | None) -> None:
    while folders:
        folders.popitem()[1].close()


try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore] # macOS has it
except ImportError:
    F_FULLFSYNC = None  # type: ignore[assignment,unused-ignore]

# Bytes to ask for where a file has grown since it was opened.
_PIECE = 1 << 16
# A disk takes several flushes at a time; from eight on it is no faster.
_FLUSHING_THREADS = 8
# Files that wait open for their flush; systems allow some hundreds to a process.
_WAITING = 64


class Batch:
    """The files of one save: staged one by one, flushed together, and named one by one.

    The names of its temporary files begin with the id `of` the batch, where it has one. Leaving the
    context removes the files without a name. See `WriteBatch`.
    """

    def __init__(self, tree: Tree, *, mode: int, flush: bool, of: str | None = None) -> None:
        self._prefix = "." if of is None else f".{of}-"
        self._tree, self._mode, self._flush = tree, mode, flush
        self._unnamed: set[str] = set()
        self._waiting: list[Descriptor] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._waiting:
            opened.close()
        for temporary in self._unnamed:
            with suppress(OSError):
                folder, name = self._tree.place(temporary)
                folder.remove(name)

    def stage(self, path: str, content: bytes) -> str:
        """Write `content` to a temporary file beside `path`; return the temporary path."""
        folder, own = self._tree.place(path)
        name = temporary_name(self._prefix)
        temporary = path.removesuffix(own) + name
        self._unnamed.add(temporary)  # an interrupt may come as soon as it is there
        opened = folder.open(name, NEW_FILE, self._mode)
        try:
            set_mode(opened.number, self._mode)
            write_all(opened.number, content)
        except OSError as error:
            opened.close()
            error.filename = f"{folder.path}/{own}"
            raise
        self._wait_for(opened)
        return temporary

    def expect(self, path: str) -> None:
        """Include an existing file in the next `flush`."""
        if self._flush:
            folder, name = self._tree.place(path)
            self._wait_for(folder.open(name, READING))

    def flush(self) -> None:
        """Wait until the disk keeps the contents of everything staged or expected."""
        waiting, self._waiting = self._waiting, []
        try:
            if len(waiting) == 1:
                flush_file(waiting[0].number)
            elif waiting:
                with lazy.futures.ThreadPoolExecutor(
                    min(_FLUSHING_THREADS, len(waiting))
                ) as threads:
                    for _ in threads.map(flush_file, [opened.number for opened in waiting]):
                        pass
        finally:
            for opened in waiting:
                opened.close()

    def is_taken(self, path: str) -> bool:  # noqa: ARG002
        """Return False: a taken name shows when a file is to get it."""
        return False

    def publish(self, temporary: str, path: str) -> None:
        """Give a staged file its name. Raises `FileExistsError` when the name is taken."""
        folder, name = self._tree.place(temporary)
        new = path.rpartition("/")[2]
        try:
            folder.link(name, folder, new)
        except FileExistsError:
            raise
        except OSError:
            _replace_reserved(folder, name, new)
        else:
            # The file has its name. A second name that cannot be removed does no harm.
            with suppress(OSError):
                folder.remove(name)
        self._unnamed.discard(temporary)
        self._tree.changed.add(path.rpartition("/")[0])

    def link(self, path: str, new: str) -> None:
        """Give an existing file a second name. Raises `FileExistsError` when that is taken."""
        folder, name = self._tree.place(path)
        target, new_name = self._tree.place(new)
        folder.link(name, target, new_name)
        self._tree.changed.add(new.rpartition("/")[0])

    def replace(self, temporary: str, path: str) -> None:
        """Give a staged file its name, in the place of the file that has it."""
        folder, name = self._tree.place(temporary)
        folder.replace(name, path.rpartition("/")[2])
        self._unnamed.discard(temporary)
        self._tree.changed.add(path.rpartition("/")[0])

    def flush_folders(self) -> None:
        """Wait until the disk keeps the names."""
        if self._flush:
            self._tree.flush_changed()

    def _wait_for(self, opened: Descriptor) -> None:
        if not self._flush:
            opened.close()
            return
        self._waiting.append(opened)
        if len(self._waiting) >= _WAITING:
            self.flush()


class LogFile:
    """A file that grows at its end, held open. See `AppendLog`."""

    __slots__ = ("_descriptor", "_flushes", "_opened", "status")

    def __init__(self, folder: Folder, name: str, *, writing: bool, flushes: bool) -> None:
        flags = READING | os.O_RDWR | os.O_APPEND if writing else READING
        self._opened = folder.open(name, flags)
        self._descriptor = self._opened.number
        self._flushes = flushes
        try:
            self.status = status_of(check_regular(self._descriptor, name))
        except BaseException:
            self.close()
            raise

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return `size` bytes from `start` on, by default all; fewer where the file is shorter."""
        if size is not None:
            return os.pread(self._descriptor, size, start)
        found = []
        while piece := os.pread(self._descriptor, max(self.status.size - start, _PIECE), start):
            found.append(piece)
            start += len(piece)
        return b"".join(found)

    def append(self, raw: bytes, *, flush: bool) -> None:
        """Write all bytes at the end, and with `flush` wait until the disk keeps them."""
        write_all(self._descriptor, raw)
        if flush and self._flushes:
            flush_file(self._descriptor)

    def truncate(self, size: int) -> None:
        """Cut the file off after `size` bytes."""
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


def write_file(folder: Folder, name: str, content: bytes, mode: int, *, flush: bool) -> FileStatus:
    """Put a new file in the place of what has the name, in one step; return its status.

    With `flush`, wait until the disk keeps the file and its name.
    """
    temporary = temporary_name()
    try:
        opened = folder.open(temporary, NEW_FILE, mode)
        try:
            set_mode(opened.number, mode)
            write_all(opened.number, content)
            if flush:
                flush_file(opened.number)
            found = os.fstat(opened.number)
        finally:
            opened.close()
        folder.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.remove(temporary)
        raise
    if flush:
        folder.flush()
    return status_of(found)


def temporary_name(prefix: str = ".") -> str:
    """Return a name that no other file has."""
    return f"{prefix}{random_name()}{TEMPORARY}"


def status_of(found: os.stat_result) -> FileStatus:
    """Return the part of a file's status that the store uses."""
    identity = (found.st_dev, found.st_ino)
    return FileStatus(stat.S_ISREG(found.st_mode), found.st_size, found.st_mtime, identity)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; the system may take fewer at a time."""
    written = os.write(descriptor, content)
    if written < len(content):
        left = memoryview(content)[written:]
        while left:
            left = left[os.write(descriptor, left) :]


def flush_file(descriptor: int) -> None:
    """Wait until the disk keeps the file; on macOS, `fsync` alone does not."""
    if F_FULLFSYNC is not None:
        with suppress(OSError):  # a file system that does not know it
            fcntl(descriptor, F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _replace_reserved(folder: Folder, name: str, new: str) -> None:
    """Rename where there are no hard links: reserve the name, then replace the empty file."""
    folder.open(new, NEW_FILE).close()
    try:
        folder.replace(name, new)
    except OSError:
        folder.remove(new)
        raise


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
        self._mode, self._flushes = mode, flushes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tree.close()

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
