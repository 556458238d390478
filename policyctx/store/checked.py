"""Folders where the system cannot open names from a descriptor, as on Windows.

Each name is looked at before it is used, and a file once more when it is open: what is a link, or
was exchanged in between, is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from policyctx.store.folders import NO_FOLLOW

if TYPE_CHECKING:
    from policyctx.store.folders import Folder

_REPARSE_POINT = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)


def checked_folder(path: Path) -> Folder:
    """Return the folder at a path. Raises `OSError` when there is none."""
    if not path.is_dir():
        raise OSError(errno.ENOTDIR if path.exists() else errno.ENOENT, "no folder", str(path))
    return _CheckedFolder(path)


class _CheckedFolder:
    __slots__ = ("_path", "number", "path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self.path = path.as_posix()
        found = path.stat()
        self.number = (found.st_dev, found.st_ino)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        path = self._path / name
        before = None
        if not flags & os.O_EXCL:
            try:
                before = self.stat(name)
            except FileNotFoundError:
                if not flags & os.O_CREAT:
                    raise
            else:
                _refuse_link(before, path)
        descriptor = os.open(path, flags | NO_FOLLOW, mode)
        now = os.fstat(descriptor)
        if before is not None and (before.st_dev, before.st_ino) != (now.st_dev, now.st_ino):
            os.close(descriptor)
            _raise_link(path)
        return descriptor

    def below(self, name: str) -> Folder:
        path = self._path / name
        found = self.stat(name)
        _refuse_link(found, path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return _CheckedFolder(path)

    def make(self, name: str, mode: int) -> bool:
        path = self._path / name
        try:
            path.mkdir(mode)
        except FileExistsError:
            return False
        path.chmod(mode)
        return True

    def stat(self, name: str) -> os.stat_result:
        return (self._path / name).lstat()

    def link(self, name: str, target: Folder, new: str) -> None:
        _refuse_link(self.stat(name), self._path / name)
        Path(target.path, new).hardlink_to(self._path / name)

    def replace(self, name: str, new: str) -> None:
        (self._path / name).replace(self._path / new)

    def remove(self, name: str) -> None:
        (self._path / name).unlink()

    def names(self) -> list[str]:
        return sorted(path.name for path in self._path.iterdir())

    def flush(self) -> None:
        if os.name == "nt":
            return  # a folder cannot be opened there; the rename itself is what can be had
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Nothing is held."""


def _refuse_link(found: os.stat_result, path: Path) -> None:
    attributes = getattr(found, "st_file_attributes", 0)
    if stat.S_ISLNK(found.st_mode) or attributes & _REPARSE_POINT:
        _raise_link(path)


def _raise_link(path: Path) -> NoReturn:
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
