"""The folders of a local store, held open so that no link planted in them leads outside.

Importing this module raises `ImportError` on a system that has no descriptors of folders.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import OrderedDict
from typing import TYPE_CHECKING, NoReturn, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

if os.open not in os.supports_dir_fd:
    raise ImportError("policyctx.store needs a POSIX system: it opens files by their folder")

# A pipe in the place of a file must not make its reader wait.
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
# What opening says of a link, a folder or a pipe in the place of a file.
NO_FILE_OF_OURS = frozenset({errno.ELOOP, errno.EISDIR, errno.EINVAL})
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY


class Folder(Protocol):
    """An open folder; names are those of its own entries, never paths.

    Raises `OSError` with the whole path, `ELOOP` for a link.
    """

    path: str
    number: tuple[int, int]
    """Device and inode, which no other folder has while it is open."""

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Return a descriptor of the file."""

    def below(self, name: str) -> Folder:
        """Return the folder of this name, opened."""

    def make(self, name: str, mode: int) -> bool:
        """Make a folder with this very mode; False when there is one."""

    def stat(self, name: str) -> os.stat_result:
        """Return what the entry is; a link counts as itself."""

    def link(self, name: str, target: Folder, new: str) -> None:
        """Give the file a second name, never over an existing one."""

    def replace(self, name: str, new: str) -> None:
        """Rename within this folder, over what has the new name."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""

    def flush(self) -> None:
        """Have the disk keep its entries, where the system can."""

    def close(self) -> None:
        """Let go of it."""


class _DescriptorFolder:
    """A folder held by its descriptor: what is done in it is done there, wherever names lead."""

    __slots__ = ("_descriptor", "number", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path
        found = os.fstat(descriptor)
        self.number = (found.st_dev, found.st_ino)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        try:
            return os.open(name, flags, mode, dir_fd=self._descriptor)
        except OSError as error:
            raise_named(error, f"{self.path}/{name}")

    def below(self, name: str) -> Folder:
        path = f"{self.path}/{name}"
        try:
            return _DescriptorFolder(os.open(name, _FOLDER, dir_fd=self._descriptor), path)
        except NotADirectoryError as error:
            if stat.S_ISLNK(self.stat(name).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from error
            raise_named(error, path)
        except OSError as error:
            raise_named(error, path)

    def make(self, name: str, mode: int) -> bool:
        try:
            os.mkdir(name, mode, dir_fd=self._descriptor)
        except FileExistsError:
            return False
        except OSError as error:
            raise_named(error, f"{self.path}/{name}")
        made = self.open(name, _FOLDER)
        set_mode(made, mode)
        os.close(made)
        return True

    def stat(self, name: str) -> os.stat_result:
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError as error:
            raise_named(error, f"{self.path}/{name}")

    def link(self, name: str, target: Folder, new: str) -> None:
        assert isinstance(target, _DescriptorFolder)  # noqa: S101 - for the type checker
        try:
            os.link(
                name,
                new,
                src_dir_fd=self._descriptor,
                dst_dir_fd=target._descriptor,  # noqa: SLF001 - of its own class
                follow_symlinks=False,
            )
        except OSError as error:
            raise_named(error, f"{target.path}/{new}")

    def replace(self, name: str, new: str) -> None:
        try:
            os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError as error:
            raise_named(error, f"{self.path}/{new}")

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except OSError as error:
            raise_named(error, f"{self.path}/{name}")

    def names(self) -> list[str]:
        own = os.open(".", _FOLDER, dir_fd=self._descriptor)  # a child process shares the other
        try:
            return sorted(os.listdir(own))  # noqa: PTH208 - by descriptor
        finally:
            os.close(own)

    def flush(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def open_folder(path: Path) -> Folder:
    """Open a folder by its path; links on the way there are the user's own, and are followed."""
    return _DescriptorFolder(os.open(path, _FOLDER & ~os.O_NOFOLLOW), str(path))


def check_regular(descriptor: int, path: str) -> os.stat_result:
    """Return what is open; raise `OSError` for a folder, a pipe or a device."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return found


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file or folder, whatever the umask is."""
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def raise_named(error: OSError, path: str) -> NoReturn:
    """Raise the error with the whole path, where it knows a name only."""
    error.filename, error.filename2 = path, None
    raise error


# The folders of one root by their path below it, the one used last at the end.
Opened: TypeAlias = "OrderedDict[str, Folder]"

# Each holds a descriptor, and a process has some hundreds at least: so many roots, so many of each.
_ROOTS = 8
_FOLDERS = 4

# Each step is one operation on a dict, so threads need no lock, nor does a child that was forked.
_waiting: dict[str, Opened] = {}


def take_waiting(root: str) -> Opened:
    """Return the folders that wait for this root; until given back nobody else has them."""
    found = _waiting.pop(root, None)
    return OrderedDict() if found is None else found


def give_back(root: str, folders: Opened) -> None:
    """Keep the folders used last, and close the others."""
    while len(folders) > _FOLDERS:
        folders.popitem(last=False)[1].close()
    close_all(_waiting.pop(root, None))
    if folders:
        _waiting[root] = folders
    if len(_waiting) > _ROOTS:
        close_all(_waiting.pop(next(iter(tuple(_waiting)), ""), None))


def close_all(folders: Opened | None) -> None:
    """Close every folder."""
    while folders:
        folders.popitem()[1].close()


# How many folders stay open at a time; a plan may name thousands.
_OPEN_FOLDERS = 32


class Tree:
    """The folders below a root, opened as they are needed and let go of together.

    With `mode`, that of files, missing folders are made on demand. `changed` names the folders
    that got new entries. Not to be shared by threads.
    """

    def __init__(self, root: Path, *, mode: int | None = None) -> None:
        self.root = root
        self.changed: set[str] = set()
        self._name = str(root)
        self._mode = None if mode is None else folder_mode(mode)
        self._made_above: list[Path] = []
        self._open = take_waiting(self._name)
        self._sure: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        give_back(self._name, self._open)

    def folder(self, relative: str = "") -> Folder:
        """Return the folder at a path below the root, its parts joined by `/`; "" is the root."""
        found = self._open.get(relative)
        if found is not None and relative not in self._sure and not self._is_still(found, relative):
            self._close_unsure()
            found = None
        if found is not None:
            self._sure.add(relative)
            self._open.move_to_end(relative)
            return found
        if relative:
            above, _, name = relative.rpartition("/")
            found = self._below(self.folder(above), above, name)
        else:
            found = self._opened_root()
        self._open[relative] = found
        self._sure.add(relative)
        if len(self._open) > _OPEN_FOLDERS:
            self._open.popitem(last=False)[1].close()
        return found

    def place(self, path: str) -> tuple[Folder, str]:
        """Return the folder of a file and its name there."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def flush_changed(self) -> None:
        """Have the disk keep the new entries of every folder, each flushed once."""
        for relative in sorted(self.changed):
            self.folder(relative).flush()
        self.changed.clear()
        for path in self._made_above:
            above = open_folder(path.parent)
            with contextlib.closing(above):
                above.flush()
        self._made_above.clear()

    def _is_still(self, folder: Folder, relative: str) -> bool:
        """Does the path lead to this very folder, by whatever way."""
        path = f"{self._name}/{relative}" if relative else self._name
        try:
            found = os.stat(path, follow_symlinks=not relative)  # noqa: PTH116 - a hot place
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == folder.number

    def _close_unsure(self) -> None:
        for relative in self._open.keys() - self._sure:
            self._open.pop(relative).close()

    def _below(self, above: Folder, relative: str, name: str) -> Folder:
        try:
            return above.below(name)
        except FileNotFoundError:
            if self._mode is None:
                raise
        if above.make(name, self._mode):
            self.changed.add(relative)
        return above.below(name)

    def _opened_root(self) -> Folder:
        try:
            return open_folder(self.root)
        except FileNotFoundError:
            if self._mode is None:
                raise
        missing = [path for path in (self.root, *self.root.parents) if not path.is_dir()]
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                path.mkdir()
                path.chmod(self._mode)
                self._made_above.append(path)
        return open_folder(self.root)


def read_whole(folder: Folder, name: str) -> bytes:
    """Return the bytes of a regular file."""
    descriptor = folder.open(name, READING)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - an open descriptor, not a path
        check_regular(descriptor, f"{folder.path}/{name}")
        return file.read()


def folder_mode(file_mode: int) -> int:
    """Return the mode of a folder whose files have `file_mode`: x wherever they have r."""
    return file_mode | (file_mode & 0o444) >> 2


def files_below(tree: Tree, relative: str = "", *, without: frozenset[str]) -> Iterator[str]:
    """Yield the path of every regular file below a folder, in order; `without` names are passed."""
    folder = tree.folder(relative)
    for name in folder.names():
        if name in without:
            continue
        path = f"{relative}/{name}" if relative else name
        try:
            mode = tree.folder(relative).stat(name).st_mode
        except FileNotFoundError:
            continue  # removed meanwhile
        if stat.S_ISDIR(mode):
            yield from files_below(tree, path, without=frozenset())
        elif stat.S_ISREG(mode):
            yield path
