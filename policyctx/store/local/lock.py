"""Exclusive locks on files, among threads and processes."""

import errno
import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

from policyctx.errors import StoreError
from policyctx.store.local.folder import Descriptor, Folder, set_mode

# The system releases the lock of a process that dies at once; a process that hangs keeps it.
_PATIENCE_S = 30.0


_FIRST_PAUSE_S = 0.0002


_LONGEST_PAUSE_S = 0.02


# How file systems say that another process holds a lock.
_HELD = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})


class Lock:
    """An exclusive lock on the file `name` in a folder, which is made when it is missing.

    It belongs to the process that acquires it: in a forked child, `release` only closes the child's
    copy of the descriptor. Each `acquire` opens the file again, since a descriptor that a child
    shares with its parent would not exclude it.
    """

    __slots__ = ("_folder", "_mode", "_name", "_opened", "_process")

    def __init__(self, folder: Folder, name: str, mode: int) -> None:
        self._folder = folder
        self._mode = mode
        self._name = name
        self._opened: Descriptor | None = None
        self._process = -1

    def acquire(self) -> None:
        """Wait for the lock. Raises `OSError`, and `StoreError` when another process keeps it."""
        opened = self._open()
        try:
            wait_for(opened.number, f"{self._folder.path}/{self._name}")
        except BaseException:
            opened.close()
            raise
        self._opened, self._process = opened, os.getpid()

    def release(self) -> None:
        """Release the lock; without effect when it is not held."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            # Closing alone would leave the lock to a child that was forked meanwhile.
            if self._process == os.getpid():
                flock(opened.number, LOCK_UN)
        finally:
            opened.close()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _open(self) -> Descriptor:
        try:
            return self._folder.open(self._name, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            opened = self._folder.open(self._name, flags, self._mode)
            set_mode(opened.number, self._mode)
            return opened


def wait_for(descriptor: int, path: str, patience: float = _PATIENCE_S) -> None:
    """Wait until an open file is locked; raises `StoreError` after so many seconds."""
    pause = _FIRST_PAUSE_S
    deadline = time.monotonic() + patience
    while not is_acquired(descriptor):
        if time.monotonic() > deadline:
            raise StoreError(
                f"{path} has been held by another process for {patience:.0f} s", path=path
            )
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
