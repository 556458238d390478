"""The folders of a store, opened part by part, so that no link planted in it leads out."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Self

from policyctx.store.folders import READING, check_regular, opened
from policyctx.store.waiting import give_back, take_waiting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from policyctx.store.folders import Folder

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
            above = opened(path.parent)
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
            return opened(self.root)
        except FileNotFoundError:
            if self._mode is None:
                raise
        missing = [path for path in (self.root, *self.root.parents) if not path.is_dir()]
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                path.mkdir()
                path.chmod(self._mode)
                self._made_above.append(path)
        return opened(self.root)


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
