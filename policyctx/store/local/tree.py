"""`Tree`: the folders of a local store, held open so that no link planted in them leads outside.

Opening folders is half of the time of a save, so a few stay open between calls, for the whole
process. They are only handles: a tree that takes them checks whether each is still the folder that
its path leads to.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from policyctx.store.local.folder import Folder, folder_mode, open_folder

if TYPE_CHECKING:
    from pathlib import Path


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
        self._open = _take_kept(self._name)
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
            self._close_unchecked()
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
            with contextlib.closing(above):
                above.flush()
        self._made_above.clear()

    def _is_still(self, folder: Folder, relative: str) -> bool:
        """Whether the path still leads to this very folder."""
        path = f"{self._name}/{relative}" if relative else self._name
        try:
            found = os.stat(path, follow_symlinks=not relative)  # noqa: PTH116 - called often
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == folder.number

    def _close_unchecked(self) -> None:
        for relative in self._open.keys() - self._checked:
            self._open.pop(relative).close()

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
            with contextlib.suppress(FileExistsError):  # another process was faster
                path.mkdir()
                path.chmod(self._mode)
                self._made_above.append(path)
        return open_folder(self.root)


# The folders that are kept between calls, by their root. Each access is one operation on a dict, so
# neither threads nor a forked child need a lock.
_kept: dict[str, OpenFolders] = {}


def _take_kept(root: str) -> OpenFolders:
    """Return the folders kept for this root; nobody else has them until they are given back."""
    found = _kept.pop(root, None)
    return OrderedDict() if found is None else found


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
    """Close the folders of a root that stay open between calls; a later call opens them again."""
    _close(_kept.pop(str(root), None))


def _close(folders: OpenFolders | None) -> None:
    while folders:
        folders.popitem()[1].close()
