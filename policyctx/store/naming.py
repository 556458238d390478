"""The path that a content gets: the expected one, or the wanted one with the first free number."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from policyctx.errors import StoreError
from policyctx.paths import numbered
from policyctx.store.backend import TEMPORARY, Backend
from policyctx.store.content import PACKED, is_inside
from policyctx.store.files import Prepared, sha256_in, stored_bytes, text_of
from policyctx.store.index import Index, IndexEntry

# What is at a path: nothing, this very content (compressed or not), or something else.
Occupant: TypeAlias = Literal["nothing", "itself", "itself packed", "another"]

# Every file system accepts a path of this many characters, which are ASCII.
_SHORT = 200


class PathAllocator:
    """Allocates the paths of one call, each only once; a path on the disk is taken.

    Where it `trusts` the index to know every name, it looks on the disk only for the names that the
    index knows: naming a file never overwrites another, and a name that turns out to be taken is
    given up.
    """

    def __init__(self, backend: Backend, index: Index, *, reserved: set[str], trusts: bool) -> None:
        self._backend = backend
        self._index = index
        self._given = set(reserved)
        self._trusts = trusts
        self._given_up: set[str] = set()

    def take(self, one: Prepared) -> tuple[str, Occupant]:
        """Allocate the first path that is free or holds this content; return what is there."""
        for path in self._candidates(one):
            if path not in self._given:
                occupant = "nothing" if self._is_trusted(path) else self.occupant(path, one)
                if occupant != "another":
                    self._given.add(path)
                    return path, occupant
        raise AssertionError  # numbers do not end

    def take_exactly(self, one: Prepared) -> tuple[str, Occupant]:
        """Allocate the expected path. Raises `StoreError` when another content has it."""
        path = one.content.relative_path
        occupant = "another" if path in self._given else self.occupant(path, one)
        if occupant == "another":
            target = f"{self._backend.root}/{path}"
            raise StoreError(f"{target} holds another item already", path=target)
        self._given.add(path)
        return path, occupant

    def give_up(self, path: str) -> None:
        """Take back a path that turned out to be taken."""
        self._given.discard(path)
        self._given_up.add(path)

    def occupant(self, path: str, one: Prepared) -> Occupant:
        """Return what is at a path, by the index and the disk."""
        known = self._index.at(path)
        if known is not None and known.sha256 != one.sha256:
            return "another"
        if _has_other_blocks(self._index.of(path, one.item_id), one):
            return "another"
        try:
            found = self._backend.status(path)
        except FileNotFoundError:
            try:
                self._backend.status(path + PACKED)
            except FileNotFoundError:
                return "nothing"
            return "itself packed" if self._holds(path, one) else "another"
        return "itself" if found.is_file and self._holds(path, one, found.size) else "another"

    def _is_trusted(self, path: str) -> bool:
        """Whether to trust the index that nothing is there; a long name may be impossible."""
        is_known = path in self._given_up or self._index.at(path) is not None
        return self._trusts and not is_known and len(path) <= _SHORT

    def _holds(self, path: str, one: Prepared, size: int | None = None) -> bool:
        if one.format == "text" and size is not None and size != one.size:
            return False
        try:
            if one.format == "text":
                return sha256_in(self._backend, path, one.format) == one.sha256
            raw = stored_bytes(self._backend, path)
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


def _has_other_blocks(known: IndexEntry | None, one: Prepared) -> bool:
    """Whether an item of this id has the very text already, but made of other blocks."""
    if known is None or one.item_id is None:
        return False
    new = one.entry(known.path, known.saved_at)
    if "blocks" not in {one.kind for one in (known.hollow, new.hollow) if one} and not known.rest:
        return False
    return known.rest != new.rest or known.hollow != new.hollow


def is_temporary(path: str) -> bool:
    """Whether this is the path of a temporary file, which a crash may have left."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(TEMPORARY)


def check_inside(path: str, backend: Backend) -> None:
    """Raise `StoreError` for a path that leads out of the store."""
    if not is_inside(path):
        target = f"{backend.root}/{path}"
        raise StoreError(f"{target} leads out of {backend.root}", path=target)
