"""`State`: the index and the records of one session, shared by its threads and processes.

The journal is the truth. The snapshot saves reading a long journal, and is a second copy in case
the journal is damaged. If both are damaged, the index is rebuilt from the files. Of all of them,
only values that this store could have written are believed.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from policyctx.errors import StoreError
from policyctx.store import journal
from policyctx.store.files import is_stored
from policyctx.store.in_flight import (
    OpenBatches,
    announcement,
    is_living,
    remove_dead_locks,
)
from policyctx.store.index import Index
from policyctx.store.local.lock import Lock
from policyctx.store.local.tree import NO_FILE_OF_OURS
from policyctx.store.rebuild import adopted_entries
from policyctx.store.sessions import lines_in
from policyctx.store.snapshot import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from policyctx.store.content import JSON
    from policyctx.store.files import Format
    from policyctx.store.index import IndexEntry
    from policyctx.store.local.tree import Tree
    from policyctx.store.snapshot import IndexSnapshot

_LOG = logging.getLogger("policyctx.store")


class LoadedIndex:
    """The index of one session in `folder`, its snapshot at `snapshot`; both below the root.

    `owns_root` says that no other session keeps its contents in this root. `notices` says what was
    found harmed, and what became of it.
    """

    def __init__(
        self,
        root: Path,
        *,
        folder: str,
        snapshot: str,
        mode: int,
        flush: bool,
        form: Format,
        owns_root: bool,
    ) -> None:
        self.index = Index()
        self.folder = folder
        self.snapshot = snapshot
        self.notices: list[str] = []
        self._root = root
        self._mode = mode
        self._flush = flush
        self._format = form
        self._owns_root = owns_root
        self._threads = threading.RLock()
        self._position: journal.Position | None = None
        self._open: int | None = None
        self._torn = 0
        self._is_loaded = False
        self._is_harmed = False
        self._snapshots = Snapshots(snapshot, folder=folder, mode=mode)

    def refresh(self, tree: Tree) -> Index:
        """Take up what was appended since, by this process or another, and return the index."""
        with self._threads:
            try:
                self._read(tree)
            finally:
                self._close()
            return self.index

    def loaded(self, tree: Tree) -> Index:
        """Return the index as it was read last; what others appended since may be missing."""
        return self.index if self._is_loaded else self.refresh(tree)

    def _read(self, tree: Tree, *, writing: bool = False) -> int:
        """Take up what is new in the journal; return the bytes of a torn line at its end."""
        copy = None if self._is_loaded else self._second_copy(tree)
        self._is_loaded, was_loaded = True, self._is_loaded
        try:
            self._open = journal.open_journal(tree.folder(self.folder), writing=writing)
            fold = copy.fold if copy else None
            read = journal.read_journal(self._open, self._position, folded=fold)
        except FileNotFoundError:
            if was_loaded:
                self._miss()
            elif copy is not None or self._owns_root:
                self._mend(tree, copy, "the journal was missing")
            return 0
        except OSError as error:
            if error.errno not in NO_FILE_OF_OURS:
                raise
            self._mend(tree, copy, f"the journal is no file of this store: {error.strerror}")
            return 0
        if read.is_new:
            self._replace(tree, read, copy)
        else:
            self._take_up(tree, read, copy)
        return read.torn

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def _replace(self, tree: Tree, read: journal.JournalRead, copy: IndexSnapshot | None) -> None:
        """Take up a journal that was not read before, or that is another than the one known."""
        before, known = self.index, self._position
        self.index = copy.index if copy and read.passed_over else Index()
        self._snapshots.begin(copy if read.passed_over else None)
        self._take_up(tree, read, copy)
        ids = journal.head_ids(read.position.head)
        if not ids:
            self._mend(tree, copy, "the first line of the journal could not be read")
        elif copy and copy.fold.journal_id == ids[0] and read.position.bytes < copy.fold.bytes:
            self._mend(tree, copy, "the journal was cut off")
        if known is not None and not journal.goes_on(known, read.position):
            self.index = self.index.with_missing(before)
            self._harm("the journal was replaced by another; what that one lacked was kept")

    def _take_up(self, tree: Tree, read: journal.JournalRead, copy: IndexSnapshot | None) -> None:
        unknown = sum(not self.index.apply(line) for line in read.lines)
        self._position = read.position
        damage = [*read.damage]
        if unknown:
            damage.append(f"{unknown} of the journal's lines are not valid entries")
        if damage:
            self._mend(tree, copy, " and ".join(damage))

    def _miss(self) -> None:
        if self._position is not None:
            self._position = None
            self._harm("the journal was removed while in use, and is written anew from memory")

    def _mend(self, tree: Tree, copy: IndexSnapshot | None, harm: str) -> None:
        """Fill what a harmed journal no longer says from the snapshot, then from the files."""
        if copy is not None:
            self.index = self.index.with_missing(copy.index)
        before = len(self.index)
        for entry in adopted_entries(tree, self.index, self._format, but={self.snapshot}):
            self.index.add(entry)
        if len(self.index) or self._position is not None:
            found = len(self.index) - before
            files = {0: "no file", 1: "1 file"}.get(found, f"{found} files")
            self._harm(f"{harm}; the index was rebuilt, and {files} recovered from the disk")

    def _harm(self, notice: str) -> None:
        self._is_harmed = True
        self._notice(notice)

    def _notice(self, notice: str) -> None:
        said = f"{self._root}/{self.folder}: {notice}"
        self.notices.append(said)
        _LOG.warning("%s", said)

    def _second_copy(self, tree: Tree) -> IndexSnapshot | None:
        found, harm = self._snapshots.read(tree)
        if harm:
            self._notice(harm)
        return found


# So many journals back, one that replaces another says so.
_REMEMBERED_JOURNALS = 8
_NOTHING: Mapping[str, Iterable[str]] = MappingProxyType({})
# A journal is shortened when that saves so many bytes.
_LEAST_SHORTENED = 64 * 1024


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What rebuilding an index came to."""

    entries: int
    found: tuple[IndexEntry, ...]
    """What no index told of, and is taken up from the disk."""
    gone: tuple[IndexEntry, ...]
    """What the index told of, and is not on the disk."""


class State(LoadedIndex):
    """The index and the records of one session, and the one way to add to them."""

    _batches: OpenBatches | None = None

    @property
    def _open_batches(self) -> OpenBatches:
        """The batches of this process, none of them its parent's where it was forked."""
        batches = self._batches
        if batches is None or batches.process != os.getpid():
            if batches is not None:
                batches.abandon()
            self._batches = batches = OpenBatches()
            # A batch that no record settled, as an error came between, must not cost a descriptor.
            weakref.finalize(self, batches.abandon).atexit = False
        return batches

    @contextmanager
    def writing(self, tree: Tree) -> Iterator[Index]:
        """Hold the session's lock, with the index up to date and the journal whole."""
        with self._threads, Lock(tree.folder(self.folder), self._mode):
            try:
                self._torn = self._read(tree, writing=True)
                if self._torn:
                    self._notice("the last line of the journal was torn by a crash; it is left out")
                if self._position is None or self._is_harmed:
                    self.write_anew(tree)
                yield self.index
            finally:
                self._close()

    def append(
        self,
        tree: Tree,
        *,
        entries: Sequence[IndexEntry] = (),
        records: Sequence[dict[str, JSON]] = (),
        removed: Sequence[dict[str, JSON]] = (),
        packed: Sequence[dict[str, JSON]] = (),
        in_flight: Mapping[str, Iterable[str]] = _NOTHING,
        flush: bool = True,
    ) -> None:
        """Append to the journal, all or nothing, and take it up; only while `writing`."""
        if self._open is None:
            self._open = journal.open_journal(tree.folder(self.folder), writing=True)
        assert self._position is not None  # noqa: S101 - `writing` saw to it
        roots = [] if str(self._root) in self.index.roots else [str(self._root)]
        lines: list[dict[str, JSON]] = [{"root": root} for root in roots]
        lines += [{"in_flight": announcement(*batch)} for batch in in_flight.items()]
        lines += [{"saved": entry.as_json()} for entry in entries]
        lines += [{"record": record} for record in records]
        lines += [{"removed": dict(one)} for one in removed]
        lines += [{"packed": dict(one)} for one in packed]
        raw = journal.numbered(lines, self._position.number)
        flush = self._flush and flush
        self._position = journal.append_lines(
            self._open, raw, self._position, torn=self._torn, flush=flush
        )
        self._torn = 0
        self.index.roots += roots
        for batch, paths in in_flight.items():
            self.index.in_flight.announce(batch, paths)
        if in_flight:
            self._open_batches.update(in_flight)
        for entry in entries:
            self.index.add(entry)
        self.index.records += records
        for one in removed:
            self.index.remove(str(one["path"]))
        if entries or records or removed or packed:
            self._fold(tree)

    @contextmanager
    def in_flight(self, tree: Tree, paths: Iterable[str]) -> Iterator[str]:
        """Announce a batch that is about to use these paths, and give its id.

        From now on `collect` leaves its files alone, until records have named each of them. After
        an error nothing of the batch is in flight.
        """
        with self.writing(tree):
            batch = self._open_batches.open(tree.folder(self.folder), self._mode, paths)
            try:
                self.append(tree, in_flight={batch: paths}, flush=False)
            except BaseException:
                self._open_batches.close(batch)
                raise
        try:
            yield batch
        except BaseException:
            with self._threads:
                self._open_batches.close(batch)
            raise

    def remember(self, tree: Tree, records: Sequence[dict[str, JSON]], *, flush: bool) -> None:
        """Append records, which settle the files that they name."""
        with self.writing(tree):
            left = self._open_batches.named_by(records)
            self.append(tree, records=records, in_flight=left, flush=flush)

    def living(self, tree: Tree) -> dict[str, frozenset[str]]:
        """Return the batches of living writers, of any process, with the paths in flight."""
        folder, flying = tree.folder(self.folder), self.index.in_flight
        return {batch: flying.paths(batch) for batch in flying.batches if is_living(folder, batch)}

    def forget_dead(self, tree: Tree) -> None:
        """Settle the batches that a crash cut off, and remove their locks; only while `writing`."""
        living = self.living(tree)
        dead = [batch for batch in self.index.in_flight.batches if batch not in living]
        if dead:
            self.append(tree, in_flight=dict.fromkeys(dead, ()), flush=False)
        remove_dead_locks(tree.folder(self.folder))

    def complete_snapshot(self, tree: Tree) -> None:
        """Let the snapshot cover the whole journal; without a journal there is none.

        A journal that was found damaged is written anew, so that the damage is reported once.
        Raises `OSError` when it cannot be written.
        """
        with self._threads:
            self.refresh(tree)
            if self._position is None:
                return
            if self._snapshots.covers(tree, self._position) and not self._is_harmed:
                return
            with self.writing(tree) as index:
                if not self._snapshots.covers(tree, self._position):
                    self._snapshots.write(tree, index, self._position, self._journal(tree))

    def close(self, tree: Tree) -> None:
        """Let go of every batch, settled or not, and complete the snapshot."""
        with self._threads:
            self._open_batches.close_all(lambda: tree.folder(self.folder))
        self.complete_snapshot(tree)

    def write_anew(self, tree: Tree) -> None:
        """Replace the journal by one that says what the index says; only while `writing`."""
        known = journal.head_ids(self._position.head) if self._position else ()
        head = journal.new_head(known[:_REMEMBERED_JOURNALS])
        raw = journal.numbered(self.index.lines())
        folder = tree.folder(self.folder)
        self._position = journal.write_anew(folder, head, raw, mode=self._mode, flush=self._flush)
        if self._flush:
            tree.flush_changed()
        self._close()  # it was that of the journal before
        self._torn = 0
        self._is_harmed = False
        self._snapshots.begin(None)
        if raw:
            self._fold(tree)

    def shorten(self, tree: Tree) -> None:
        """Write the journal anew when most of it tells of what is gone; only while `writing`."""
        needed = sum(map(len, journal.numbered(self.index.lines())))
        if self._position is not None and self._position.bytes > 2 * needed + _LEAST_SHORTENED:
            self.write_anew(tree)

    def rebuild(self, tree: Tree) -> Rebuilt:
        """Read everything again, take up the files that are not known, forget those that are gone.

        What was believed so far in memory does not count.
        """
        with self._threads, Lock(tree.folder(self.folder), self._mode):
            self.index, self._position, self._is_loaded = Index(), None, False
            try:
                self._read(tree, writing=True)
            finally:
                self._close()
            found = [*adopted_entries(tree, self.index, self._format, but={self.snapshot})]
            for entry in found:
                self.index.add(entry)
            gone = [entry for entry in self.index if not is_stored(tree, entry.path)]
            for entry in gone:
                self.index.remove(entry.path)
            self.write_anew(tree)
            return Rebuilt(len(self.index), tuple(found), tuple(gone))

    def take_over(self, tree: Tree, index: Callable[[], Index]) -> int:
        """Take the index of another store for one's own, which must hold nothing yet."""
        with self.writing(tree):
            if len(self.index) or self.index.records:
                raise StoreError(f"{self._root} holds a session already", path=str(self._root))
            self.index = index()
            self.index.apply({"root": str(self._root)})
            self.write_anew(tree)
            return len(self.index)

    def lines(self, tree: Tree) -> tuple[object, ...]:
        """Return every line of the journal, oldest first; () when there is none."""
        return lines_in(tree, self.folder)

    def _fold(self, tree: Tree) -> None:
        assert self._position is not None  # noqa: S101 - something was just written there
        harm = self._snapshots.write_when_due(
            tree, self.index, self._position, lambda: self._journal(tree)
        )
        if harm:
            self._notice(harm)

    def _journal(self, tree: Tree) -> bytes:
        """Every byte of the journal."""
        if self._open is None:
            self._open = journal.open_journal(tree.folder(self.folder), writing=True)
        return journal.whole(self._open)
