"""`Folder`: a folder held open by its descriptor, so that no link is followed; locks on files.

Importing this module raises `ImportError` on a system that has no descriptors of folders.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from functools import partial
from pathlib import Path

from policyctx.errors import StoreError

if os.open not in os.supports_dir_fd:
    raise ImportError("policyctx.store needs a POSIX system: it opens files by their folder")

# O_NONBLOCK: a pipe in the place of a file must not make its reader wait.
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY
# The system releases the lock of a process that dies at once; a process that hangs keeps it.
_PATIENCE_S = 30.0
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.02
# How file systems say that another process holds a lock.
_HELD = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})


class Descriptor(list[int]):
    """An open file or folder, which is closed when nothing refers to it any more, at the latest.

    An interrupt may come after any call. So one call opens the file and puts its number here, and
    one takes it out and closes the file: neither loses a number.
    """

    __slots__ = ()

    def __init__(self, name: str, flags: int, mode: int = 0o600, folder: int | None = None) -> None:
        super().__init__()
        self.extend(map(partial(os.open, mode=mode, dir_fd=folder), (name,), (flags,)))

    @property
    def number(self) -> int:
        """The number by which the system knows the open file."""
        return self[0]

    def close(self, _close: Callable[[int], None] = os.close) -> None:
        """Close the file; without effect when it is closed."""
        if self:
            any(map(_close, map(self.pop, (0,))))

    def __del__(self) -> None:
        self.close()


class _Named:
    """Lets an error that knows only a name have the whole path."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            error.filename, error.filename2 = self._path, None


class Folder:
    """An open folder: operations act on it wherever its path leads by now.

    Names are those of its own entries, never paths. Raises `OSError` with the whole path; the
    number is `ELOOP` for a link.
    """

    __slots__ = ("_descriptor", "_opened", "number", "path")

    def __init__(self, opened: Descriptor, path: str) -> None:
        self._opened = opened
        self._descriptor = opened.number
        self.path = path
        found = os.fstat(self._descriptor)
        self.number = (found.st_dev, found.st_ino)
        """Device and inode, which no other folder has while this one is open."""

    def open(self, name: str, flags: int, mode: int = 0o600) -> Descriptor:
        """Open a file."""
        with _Named(f"{self.path}/{name}"):
            return Descriptor(name, flags, mode, self._descriptor)

    def below(self, name: str) -> Folder:
        """Open the folder with this name."""
        path = f"{self.path}/{name}"
        try:
            return Folder(self.open(name, _FOLDER), path)
        except NotADirectoryError as error:
            if stat.S_ISLNK(self.stat(name).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from error
            raise

    def make(self, name: str, mode: int) -> bool:
        """Make a folder with this very mode; return False when the name is taken."""
        try:
            with _Named(f"{self.path}/{name}"):
                os.mkdir(name, mode, dir_fd=self._descriptor)
        except FileExistsError:
            return False
        made = self.open(name, _FOLDER)
        set_mode(made.number, mode)
        made.close()
        return True

    def stat(self, name: str) -> os.stat_result:
        """Return the status of an entry; a link counts as itself."""
        with _Named(f"{self.path}/{name}"):
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def link(self, name: str, target: Folder, new: str) -> None:
        """Give a file a second name, never over an existing one."""
        folders = {"src_dir_fd": self._descriptor, "dst_dir_fd": target._descriptor}
        with _Named(f"{target.path}/{new}"):
            os.link(name, new, **folders, follow_symlinks=False)

    def replace(self, name: str, new: str) -> None:
        """Rename a file within this folder, over the file that has the new name."""
        with _Named(f"{self.path}/{new}"):
            os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _Named(f"{self.path}/{name}"):
            os.unlink(name, dir_fd=self._descriptor)

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        own = Descriptor(".", _FOLDER, folder=self._descriptor)  # a child process shares the other
        try:
            return sorted(os.listdir(own.number))  # noqa: PTH208 - by descriptor
        finally:
            own.close()

    def flush(self) -> None:
        """Wait until the disk keeps the entries."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the folder."""
        self._opened.close()


def open_folder(path: Path) -> Folder:
    """Open a folder by its path. Links on the way to it are the user's own and are followed."""
    try:
        return Folder(Descriptor(str(path), _FOLDER & ~os.O_NOFOLLOW), str(path))
    except OSError as error:
        if error.errno == errno.ELOOP:  # which says of a file that it is not this store's
            raise OSError(errno.EMLINK, os.strerror(errno.ELOOP), str(path)) from error
        raise


def check_regular(descriptor: int, path: str) -> os.stat_result:
    """Return the status of an open file. Raises `OSError` for a folder, a pipe or a device."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return found


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file or folder, whatever the umask is."""
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def folder_mode(file_mode: int) -> int:
    """Return the mode of a folder whose files have `file_mode`: x wherever they have r."""
    return file_mode | (file_mode & 0o444) >> 2


@contextmanager
def locked(folder: Folder, name: str, mode: int) -> Iterator[None]:
    """Hold an exclusive lock on the file `name` in a folder, which is made when it is missing.

    It belongs to the process that acquires it: a forked child that leaves the context only closes
    its copy of the descriptor. The file is opened each time, since a descriptor that a child shares
    with its parent would not exclude it. Raises `OSError`, and `StoreError` when another process
    keeps the lock.
    """
    opened = _opened_lock(folder, name, mode)
    try:
        wait_for(opened.number, f"{folder.path}/{name}")
        process = os.getpid()
        try:
            yield
        finally:
            # Closing alone would leave the lock to a child that was forked meanwhile.
            if process == os.getpid():
                flock(opened.number, LOCK_UN)
    finally:
        opened.close()


def _opened_lock(folder: Folder, name: str, mode: int) -> Descriptor:
    try:
        return folder.open(name, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        opened = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
        set_mode(opened.number, mode)
        return opened


def wait_for(descriptor: int, path: str, patience: float = _PATIENCE_S) -> None:
    """Wait until an open file is locked; raises `StoreError` after so many seconds."""
    pause = _FIRST_PAUSE_S
    deadline = time.monotonic() + patience
    while not is_acquired(descriptor):
        if time.monotonic() > deadline:
            sentence = f"{path} has been held by another process for {patience:.0f} s"
            raise StoreError(sentence, path=path)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def is_held(folder: Folder, name: str) -> bool:
    """Return whether a process holds the lock on a file. Raises `OSError`.

    A free lock is acquired for a moment to find out, so whoever acquires it has to wait.
    """
    try:
        opened = folder.open(name, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        if not is_acquired(opened.number):
            return True
        flock(opened.number, LOCK_UN)
    finally:
        opened.close()
    return False


def is_acquired(descriptor: int) -> bool:
    """Try once to lock an open file; return False if another descriptor holds the lock."""
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
