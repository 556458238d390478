"""Which path a content gets: the one expected, or the first free one behind it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.errors import StoreError
from policyctx.planning.paths import numbered
from policyctx.store.content import is_inside
from policyctx.store.files import PACKED, sha256_in, stored_bytes, text_of
from policyctx.store.local.write import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.store.index import Index
    from policyctx.store.local.tree import Tree
    from policyctx.store.save import Prepared

# What is at a path: nothing, this very content (plain or packed), or something else.
Occupant: TypeAlias = Literal["nothing", "itself", "itself packed", "another"]

# Every file system takes a name of so many characters, which are ASCII.
_SHORT = 200


class PathAllocator:
    """Hands out the paths of one call, each only once; what is on the disk counts as taken.

    Where the index can be trusted to know every name, the disk is asked only for those that it
    knows: giving a name never overwrites, and a name that is taken after all is lost.
    """

    def __init__(self, tree: Tree, index: Index, *, reserved: set[str], trusts: bool) -> None:
        self._tree = tree
        self._index = index
        self._given = set(reserved)
        self._trusts = trusts
        self._lost: set[str] = set()

    def take(self, one: Prepared) -> tuple[str, Occupant]:
        """Return the first path that is free or holds this content already, and which it is."""
        for path in self._candidates(one):
            if path not in self._given:
                occupant = "nothing" if self._is_believed(path) else self.occupant(path, one)
                if occupant != "another":
                    self._given.add(path)
                    return path, occupant
        raise AssertionError  # numbers do not end

    def take_exactly(self, one: Prepared) -> tuple[str, Occupant]:
        """Return the expected path. Raises `StoreError` when another content has it."""
        path = one.content.relative_path
        occupant = "another" if path in self._given else self.occupant(path, one)
        if occupant == "another":
            target = f"{self._tree.root}/{path}"
            raise StoreError(f"{target} holds another item already", path=target)
        self._given.add(path)
        return path, occupant

    def lose(self, path: str) -> None:
        """Take back a path that has turned out to be taken."""
        self._given.discard(path)
        self._lost.add(path)

    def occupant(self, path: str, one: Prepared) -> Occupant:
        """Return what is at a path, as the index and the disk say."""
        known = self._index.at(path)
        if known is not None and known.sha256 != one.sha256:
            return "another"
        folder, name = self._tree.place(path)
        try:
            found = folder.stat(name)
        except FileNotFoundError:
            try:
                folder.stat(name + PACKED)
            except FileNotFoundError:
                return "nothing"
            return "itself packed" if self._holds(path, one) else "another"
        is_file = stat.S_ISREG(found.st_mode)
        return "itself" if is_file and self._holds(path, one, found.st_size) else "another"

    def _is_believed(self, path: str) -> bool:
        """May the index be believed that nothing is there; a long name may be none at all."""
        is_known = path in self._lost or self._index.at(path) is not None
        return self._trusts and not is_known and len(path) <= _SHORT

    def _holds(self, path: str, one: Prepared, size: int | None = None) -> bool:
        if one.format == "text" and size is not None and size != one.size:
            return False
        try:
            if one.format == "text":
                return sha256_in(self._tree, path, one.format) == one.sha256
            raw = stored_bytes(self._tree, path)
            known = self._index.of(path, one.item_id)
            return known is not None and text_of(raw, one.format) == one.content.text
        except (FileNotFoundError, ValueError):
            return False

    def _candidates(self, one: Prepared) -> Iterator[str]:
        wanted = one.wanted
        yield one.content.relative_path
        yield from self._index.forms(wanted, one.sha256)
        number = self._index.next_number(wanted)
        while True:
            yield numbered(wanted, number)
            number += 1


def is_temporary(path: str) -> bool:
    """Is this a file that has not got its name; a crash may have left it."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(TEMPORARY)


def check_inside(path: str, tree: Tree) -> None:
    """Raise `StoreError` for a path that would lead out of the store."""
    if not is_inside(path):
        target = f"{tree.root}/{path}"
        raise StoreError(f"{target} leads out of {tree.root}", path=target)


def absolute_root(root: str | os.PathLike[str]) -> Path:
    """Return the folder that `root` names, with `~` filled in; it need not be there.

    Raises `StoreError` for the home of an unknown user.
    """
    try:
        return Path(root).expanduser().absolute()
    except RuntimeError as error:
        raise StoreError(f"{root}: {error}", path=os.fspath(root)) from error
