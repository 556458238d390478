"""Saving: write all files, wait for the disk once, name them, then append their entries.

A content gets the expected path, or the wanted one with the first free number. Under
`on_conflict: overwrite` the entries come first: a crash in between leaves the earlier content,
which its new entry names as the one that it replaces.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from policyctx.errors import StoreError
from policyctx.paths import marked, numbered
from policyctx.store import files
from policyctx.store.backend import Backend, WriteBatch
from policyctx.store.content import Content, Saved, is_inside, sha256_of
from policyctx.store.index import GRACE_S, Index, IndexEntry
from policyctx.store.state import State

# How often a file that a save relies on may vanish before that is an error.
_RACES = 100
# Hex digits of a hash in a name. More than nine digits are never read as a number.
_MARK_LENGTH = 12
# What is at a path: nothing, this very content (compressed or not), or something else.
Occupant: TypeAlias = Literal["nothing", "itself", "itself packed", "another"]

# Every file system accepts a path of this many characters, which are ASCII.
_SHORT = 200


class SaveRules(NamedTuple):
    """How a store saves."""

    on_conflict: Literal["suffix", "overwrite", "error"]
    format: files.Format
    compresses: bool
    """Whether contents may be compressed."""
    shares: bool
    """Whether equal contents are stored once, which needs an index."""
    trusts: bool
    """Whether the index knows every name, since no other session uses the root."""
    reserved: frozenset[str] = frozenset()
    """Paths that no content may have."""


class SaveResult(NamedTuple):
    """What one attempt to save has done."""

    saved: tuple[Saved, ...]
    """The results for the caller."""
    entries: tuple[IndexEntry, ...]
    """The entries for the index."""
    reused: tuple[str, ...]
    """Paths of files that were there before."""


class Saver:
    """Saves the contents of one store; `state` is None for a store without an index."""

    def __init__(self, rules: SaveRules, state: State | None, clock: Callable[[], float]) -> None:
        self.rules, self._state, self._clock = rules, state, clock

    def prepare(self, contents: Sequence[Content]) -> list[files.Prepared]:
        """Encode and hash contents, then what else has to be saved for them; without any effect."""
        rules, has_index = self.rules, self._state is not None
        ready = [
            files.prepare(content, rules.format, packs=rules.compresses, has_index=has_index)
            for content in contents
        ]
        rests = [one.rest for one in ready if one.rest is not None]
        return ready + [files.prepare(rest, rules.format, packs=False) for rest in rests]

    def save(
        self, backend: Backend, contents: Sequence[files.Prepared], *, recorded: bool
    ) -> tuple[Saved, ...]:
        """Save all contents and return the result of each, in their order.

        With `recorded`, the files are in flight until records name them. Raises `OSError` and
        `StoreError`. After an error, files that have their names stay.
        """
        with self._in_flight(backend, contents, recorded=recorded) as batch:
            for _ in range(_RACES):
                now = self._clock()
                if (done := self._commit(backend, contents, now, batch)) is not None:
                    return done.saved
        sentence = f"files vanish from {backend.root} as they are saved"
        raise StoreError(sentence, path=str(backend.root))

    def _in_flight(
        self, backend: Backend, contents: Sequence[files.Prepared], *, recorded: bool
    ) -> AbstractContextManager[str | None]:
        """Announce the files in the journal, where records that name them follow."""
        if self._state is None or not recorded:
            return nullcontext()
        paths = {one.content.relative_path for one in contents}
        for path in paths:
            check_inside(path, backend)
        return self._state.in_flight(backend, paths)

    def _commit(
        self, backend: Backend, contents: Sequence[files.Prepared], now: float, batch: str | None
    ) -> SaveResult | None:
        """Save once; return None when another process changed what the save relies on.

        The files of a `batch` are in flight: the index need not wait for the disk, since the
        records that name them will.
        """
        state = self._state
        if self.rules.on_conflict == "overwrite":
            return self._overwrite(backend, contents, now, batch)
        index = Index() if state is None else state.loaded(backend)
        done = SuffixSave(backend, index, self.rules, now, batch).write(contents)
        if state is None:
            return done
        is_plain = batch is not None and not (backend.is_remote or done.reused)
        if is_plain and not _changed_batch(batch, index, done.entries):
            # `collect` leaves these paths alone since the batch was announced, and the index was up
            # to date then: nothing can have removed the files or taken their names.
            state.hold(done.entries)
            return done
        with state.writing(backend) as index:
            # `collect` may have removed an older file of this name, and with it the new one.
            # A remote journal tells it when the entries are appended.
            paths = () if backend.is_remote else (one.file.relative_path for one in done.saved)
            if not all(_is_there(backend, path) for path in paths):
                return None
            taken = [entry.path for entry in done.entries if _is_taken(entry, index)]
            if taken:
                for path in () if backend.is_remote else set(taken) - set(done.reused):
                    backend.remove(path)
                return None
            new = [entry for entry in done.entries if _is_new(entry, index)]
            moved = _changed_batch(batch, index, done.entries)
            if new or moved:
                state.append(backend, entries=new, in_flight=moved, flush=batch is None)
        return done

    def _overwrite(
        self, backend: Backend, contents: Sequence[files.Prepared], now: float, batch: str | None
    ) -> SaveResult:
        """Save once; the last content of each path replaces the file that is there."""
        state, root = self._state, str(backend.root)
        last = {one.content.relative_path: one for one in contents}
        for path in last:
            check_inside(path, backend)
            if path in self.rules.reserved:
                check_inside("", backend)
        # Without the lock another process could name its files between ours.
        lock: AbstractContextManager[object] = (
            nullcontext() if state is None else state.writing(backend)
        )
        with lock, backend.batch(batch) as writing:
            staged = {
                path: writing.stage(one.stored_path(path), one.document(now))
                for path, one in last.items()
            }
            writing.flush()
            if state is not None:
                entries = [
                    one.entry(path, now, replaces=_hash_at(backend, path, one.format))
                    for path, one in last.items()
                ]
                state.append(backend, entries=entries)
            for path, temporary in staged.items():
                writing.replace(temporary, last[path].stored_path(path))
            writing.flush_folders()
        saved = (one.saved(one.content.relative_path, root, reused=False) for one in contents)
        return SaveResult(tuple(saved), (), ())


def _hash_at(backend: Backend, path: str, form: files.Format) -> str | None:
    try:
        return files.sha256_in(backend, path, form)
    except (OSError, ValueError):
        return None


class _Placed(NamedTuple):
    """A content with its path. It is there already, equal to another, or lies in `temporary`."""

    one: files.Prepared
    path: str
    reused: bool = False
    same_as: str | None = None
    """The path of an equal content in the store."""
    twin: int | None = None
    """The position of an equal content in this call."""
    temporary: str = ""


class SuffixSave:
    """One attempt to save that overwrites nothing. Raises `OSError` and `StoreError`."""

    def __init__(
        self, backend: Backend, index: Index, rules: SaveRules, now: float, batch: str | None
    ) -> None:
        self._id, self._backend, self._index, self._rules = batch, backend, index, rules
        self._now = now
        reserved = set(rules.reserved)
        self._names = PathAllocator(backend, index, reserved=reserved, trusts=rules.trusts)
        self._twins: dict[str, int] = {}

    def write(self, contents: Sequence[files.Prepared]) -> SaveResult:
        """Write every content and return the result, in their order."""
        with self._backend.batch(self._id) as batch:
            placed = [self._place(batch, i, one) for i, one in enumerate(contents)]
            batch.flush()
            if any(map(partial(self._is_taken, batch), placed)):
                placed = [self._moved(batch, one) for one in placed]
                batch.flush()
            named: list[_Placed] = []
            for one in placed:
                named.append(self._name(batch, one, named))
            batch.flush_folders()
        root = str(self._backend.root)
        return SaveResult(
            tuple(p.one.saved(p.path, root, reused=p.reused, same_as=p.same_as) for p in named),
            tuple(p.one.entry(p.path, self._now, same_as=p.same_as) for p in named),
            tuple(p.one.stored_path(p.path) for p in named if p.reused or p.same_as),
        )

    def _place(self, batch: WriteBatch, position: int, one: files.Prepared) -> _Placed:
        check_inside(one.content.relative_path, self._backend)
        if one.content.wanted_path:
            check_inside(one.wanted, self._backend)
        if self._backend.is_spilling:
            return self._place_by_content(batch, one)
        path, occupant = self._names.take(one, exactly=self._rules.on_conflict == "error")
        if occupant == "itself" or (occupant == "itself packed" and one.is_packed):
            batch.expect(one.stored_path(path))
            return _Placed(one, path, reused=True)
        if self._rules.shares and one.format == "text" and not one.is_packed:
            twin = self._twins.setdefault(one.sha256, position)
            if twin != position:
                return _Placed(one, path, twin=twin)
            equal = self._index.equal(one.sha256)
            if equal is not None and self._names.occupant(equal, one) == "itself":
                batch.expect(equal)
                return _Placed(one, path, same_as=equal)
        return self._stage(batch, one, path)

    def _is_taken(self, batch: WriteBatch, placed: _Placed) -> bool:
        return bool(placed.temporary) and batch.is_taken(placed.one.stored_path(placed.path))

    def _moved(self, batch: WriteBatch, placed: _Placed) -> _Placed:
        """Stage a content whose name is taken anew, without a look at what has the name."""
        if self._rules.on_conflict == "error" or not self._is_taken(batch, placed):
            return placed
        return self._place_by_content(batch, placed.one)

    def _place_by_content(self, batch: WriteBatch, one: files.Prepared) -> _Placed:
        """Stage a content under a name that only its very bytes have."""
        document = one.document(self._now)
        path = marked(one.wanted, sha256_of(document)[:_MARK_LENGTH])
        return _Placed(one, path, temporary=batch.stage(one.stored_path(path), document))

    def _stage(self, batch: WriteBatch, one: files.Prepared, path: str) -> _Placed:
        temporary = batch.stage(one.stored_path(path), one.document(self._now))
        return _Placed(one, path, temporary=temporary)

    def _name(self, batch: WriteBatch, placed: _Placed, before: Sequence[_Placed]) -> _Placed:
        if placed.reused:
            return placed
        if placed.twin is not None:
            placed = placed._replace(same_as=before[placed.twin].path)
        while not placed.reused:
            try:
                self._publish(batch, placed)
            except FileExistsError:
                placed = self._elsewhere(placed)
            except OSError as error:
                if placed.same_as is None:
                    raise
                placed = self._unlinked(batch, placed, error)
            else:
                break
        return placed

    def _publish(self, batch: WriteBatch, placed: _Placed) -> None:
        if placed.same_as is None:
            batch.publish(placed.temporary, placed.one.stored_path(placed.path))
        else:
            batch.link(placed.same_as, placed.path)

    def _unlinked(self, batch: WriteBatch, placed: _Placed, error: OSError) -> _Placed:
        """Use the equal content's own file where no link is possible; a file of its own if gone."""
        if not isinstance(error, FileNotFoundError):
            return placed._replace(path=placed.same_as or placed.path, reused=True)
        placed = self._stage(batch, placed.one, placed.path)
        batch.flush()
        return placed

    def _elsewhere(self, placed: _Placed) -> _Placed:
        """Take the next name, as another writer was faster, or its file if it has this content."""
        self._names.give_up(placed.path)
        path, occupant = self._names.take(placed.one, exactly=self._rules.on_conflict == "error")
        return placed._replace(path=path, reused=occupant == "itself")


def _is_there(backend: Backend, path: str) -> bool:
    try:
        backend.status(path)
    except FileNotFoundError:
        return False
    return True


def _is_taken(entry: IndexEntry, index: Index) -> bool:
    """Whether the name belongs to another content by now: a compressed one, or a removed one."""
    known = index.at(entry.path)
    return known is not None and known.sha256 != entry.sha256


def _changed_batch(
    batch: str | None, index: Index, entries: Iterable[IndexEntry]
) -> dict[str, list[str]]:
    """Return the paths of a batch where they differ from those that it announced."""
    paths = {entry.path for entry in entries}
    if batch is None or paths == index.in_flight.paths(batch):
        return {}
    return {batch: sorted(paths)}


def _is_new(entry: IndexEntry, index: Index) -> bool:
    """Whether an entry is new, or the known one so old that `collect` might soon remove it."""
    known = index.of(entry.path, entry.item_id)
    if known is None or known.sha256 != entry.sha256:
        return True
    return abs(entry.saved_at - known.saved_at) > GRACE_S / 2


class PathAllocator:
    """Allocates the paths of one call, each only once; a path on the disk is taken.

    Where it `trusts` the index to know every name, it looks on the disk only for the names that the
    index knows: naming a file never overwrites another, and a name that turns out to be taken is
    given up.
    """

    def __init__(self, backend: Backend, index: Index, *, reserved: set[str], trusts: bool) -> None:
        self._backend, self._index = backend, index
        self._given = set(reserved)
        self._trusts = trusts
        self._given_up: set[str] = set()

    def take(self, one: files.Prepared, *, exactly: bool) -> tuple[str, Occupant]:
        """Allocate the first path that is free or holds this content; return what is there.

        With `exactly`, only the expected path. Raises `StoreError` when another content has that.
        """
        if exactly:
            return self._take_exactly(one)
        for path in self._candidates(one):
            if path not in self._given:
                occupant = "nothing" if self._is_trusted(path) else self.occupant(path, one)
                if occupant != "another":
                    self._given.add(path)
                    return path, occupant
        raise AssertionError  # numbers do not end

    def _take_exactly(self, one: files.Prepared) -> tuple[str, Occupant]:
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

    def occupant(self, path: str, one: files.Prepared) -> Occupant:
        """Return what is at a path, by the index and the disk."""
        known = self._index.at(path)
        if known is not None and known.sha256 != one.sha256:
            return "another"
        if _has_other_blocks(self._index.of(path, one.item_id), one):
            return "another"
        try:
            found, is_packed = files.stored_status(self._backend, path)
        except FileNotFoundError:
            return "nothing"
        if is_packed:
            return "itself packed" if self._holds(path, one) else "another"
        return "itself" if found.is_file and self._holds(path, one, found.size) else "another"

    def _is_trusted(self, path: str) -> bool:
        """Whether to trust the index that nothing is there; a long name may be impossible."""
        is_known = path in self._given_up or self._index.at(path) is not None
        return self._trusts and not is_known and len(path) <= _SHORT

    def _holds(self, path: str, one: files.Prepared, size: int | None = None) -> bool:
        if one.format == "text" and size is not None and size != one.size:
            return False
        try:
            if one.format == "text":
                return files.sha256_in(self._backend, path, one.format) == one.sha256
            raw = files.stored_bytes(self._backend, path)
            known = self._index.of(path, one.item_id)
            return known is not None and files.text_of(raw, one.format) == one.content.text
        except (FileNotFoundError, ValueError):
            return False

    def _candidates(self, one: files.Prepared) -> Iterator[str]:
        wanted = one.wanted
        yield one.content.relative_path
        yield from self._index.forms(wanted, one.sha256)
        number = self._index.next_number(wanted)
        while True:
            yield numbered(wanted, number)
            number += 1


def _has_other_blocks(known: IndexEntry | None, one: files.Prepared) -> bool:
    """Whether an item of this id has the very text already, but made of other blocks."""
    if known is None or one.item_id is None:
        return False
    new = one.entry(known.path, known.saved_at)
    if "blocks" not in {one.kind for one in (known.hollow, new.hollow) if one} and not known.rest:
        return False
    return known.rest != new.rest or known.hollow != new.hollow


def check_inside(path: str, backend: Backend) -> None:
    """Raise `StoreError` for a path that leads out of the store."""
    if not is_inside(path):
        target = f"{backend.root}/{path}"
        raise StoreError(f"{target} leads out of {backend.root}", path=target)
