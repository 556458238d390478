"""The path that a content gets, and the sessions of a root by their folders."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote_to_bytes

from policyctx.errors import StoreError
from policyctx.planning.paths import numbered, safe_part
from policyctx.store.backend import TEMPORARY, Backend
from policyctx.store.content import PACKED, STATE_FOLDER, decoded, is_inside
from policyctx.store.files import Format, Prepared, sha256_in, stored_bytes, text_of
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import JOURNAL, open_journal, read_journal

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


INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder below the root in which one session keeps its state."""

    path: str
    format: Format
    """The format of the session's contents."""

    @classmethod
    def of_session(cls, session: str | None, form: Format) -> StateFolder:
        """Return the folder of a session; None for the store that owns the root."""
        below = "" if session is None else f"/{safe_part(session)}"
        return cls(STATE_FOLDER + below, form)

    @property
    def owns_root(self) -> bool:
        """Whether no other session keeps its contents in this root."""
        return self.path == STATE_FOLDER

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Where the snapshot may be, the best place first: in the root for envelopes.

        A session that shares the root takes that place if no other session has it; see `Snapshots`.
        """
        own = f"{self.path}/{INDEX}"
        if self.format != "envelope":
            return (own,)
        return (INDEX,) if self.owns_root else (INDEX, own)


def state_folders(backend: Backend) -> list[str]:
    """Return the folder of each session that keeps a journal in this root."""
    try:
        names = backend.names(STATE_FOLDER)
    except FileNotFoundError:
        return []
    found = [STATE_FOLDER] if JOURNAL in names else []
    for name in names:
        if name == JOURNAL and backend.is_remote:  # the journal itself is a folder there
            continue
        folder = f"{STATE_FOLDER}/{name}"
        with contextlib.suppress(OSError):  # a file
            if JOURNAL in backend.names(folder):
                found.append(folder)
    return found


def session_of(folder: str) -> str:
    """Return the id of the session that keeps its state in a folder; "" for the root's own."""
    name = folder.removeprefix(STATE_FOLDER).removeprefix("/")
    return decoded(unquote_to_bytes(name))


def session_ids(backend: Backend) -> list[str]:
    """Return the id of each session that keeps a journal in this root, sorted."""
    return sorted(map(session_of, state_folders(backend)))


def lines_in(backend: Backend, folder: str) -> tuple[object, ...]:
    """Return every line of the journal in a folder, oldest first; () when there is none."""
    try:
        log = open_journal(backend, folder, writing=False)
    except FileNotFoundError:
        return ()
    with contextlib.closing(log):
        return read_journal(log).lines


def all_indexes(backend: Backend) -> Iterator[Index]:
    """Yield what the journal of each session in this root says."""
    for folder in state_folders(backend):
        index = Index()
        try:
            lines = lines_in(backend, folder)
        except OSError:
            continue  # damaged; its own session repairs it
        for line in lines:
            index.apply(line)
        yield index
