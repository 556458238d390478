"""A folder that is held open by its descriptor, so that no link in it is followed.

Importing this module raises `ImportError` on a system that has no such descriptors.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
    from pathlib import Path

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


def opened(path: Path) -> Folder:
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
