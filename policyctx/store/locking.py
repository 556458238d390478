"""One writer at a time, among threads and processes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from filelock import lock_descriptor, unlock_descriptor

from policyctx.errors import StoreError
from policyctx.store.folders import NO_FOLLOW, set_mode

if TYPE_CHECKING:
    from policyctx.store.folders import Folder

_NAME = "lock"
# A holder that dies is let go of by the system at once; one that hangs is waited for so long.
_PATIENCE_S = 30.0
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.02


class Lock:
    """Holds the lock of a folder. Raises `OSError`, and `StoreError` when another keeps it.

    It is opened anew each time: a child process must not share its parent's lock.
    """

    __slots__ = ("_descriptor", "_folder", "_mode")

    def __init__(self, folder: Folder, mode: int) -> None:
        self._folder = folder
        self._mode = mode
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = _opened(self._folder, self._mode)
        try:
            _wait_for(self._descriptor, self._folder)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            unlock_descriptor(self._descriptor)
        finally:
            os.close(self._descriptor)


def _opened(folder: Folder, mode: int) -> int:
    try:
        return folder.open(_NAME, os.O_RDWR | NO_FOLLOW)
    except FileNotFoundError:
        descriptor = folder.open(_NAME, os.O_RDWR | os.O_CREAT | NO_FOLLOW, mode)
        set_mode(descriptor, mode)
        return descriptor


def _wait_for(descriptor: int, folder: Folder) -> None:
    pause = _FIRST_PAUSE_S
    deadline = time.monotonic() + _PATIENCE_S
    while not lock_descriptor(descriptor, blocking=False):
        if time.monotonic() > deadline:
            path = f"{folder.path}/{_NAME}"
            raise StoreError(
                f"{path} has been held by another process for {_PATIENCE_S:.0f} s", path=path
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
