"""`State`: the index and the records of one session, shared by its threads and processes.

The journal is the truth. The snapshot saves reading a long journal, and is a second copy in case
the journal is damaged. It has the newest records when the session is closed or the journal has
grown. If both are damaged, the index is rebuilt from the files. Of all of them, only values that
this store could have written are believed.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from types import MappingProxyType
from typing import NamedTuple

from policyctx import lazy
from policyctx.errors import StoreError, present
from policyctx.messages.json_text import JSON
from policyctx.store import journal
from policyctx.store.backend import NOT_A_STORE_FILE, AppendLog, Backend, Root
from policyctx.store.files import is_stored
from policyctx.store.in_flight import OpenBatches, announcement, is_living, remove_dead_locks
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import StateFolder, lines_in
from policyctx.store.read import adopted_entries
from policyctx.store.snapshot import IndexSnapshot, Snapshots, recalled_records

_LOCK = "lock"
_NOTHING: Mapping[str, Iterable[str]] = MappingProxyType({})
# A journal is shortened when that saves this many bytes.
_LEAST_SHORTENED = 64 * 1024


class Rebuilt(NamedTuple):
    """The result of rebuilding an index."""

    entries: int
    found: tuple[IndexEntry, ...]
    """Contents on the disk that the index did not know."""
    gone: tuple[IndexEntry, ...]
    """Contents that the index knew and that are not on the disk, and what a list held beside its
    texts where those are there."""


class State:
    """The index and the records of one session, and the only way to add to them.

    `notices` has a sentence for each damage that was found, and what was done about it.
    """

    def __init__(self, root: Root, place: StateFolder) -> None:
        self.index = Index()
        self.folder = place.path
        self.notices: list[str] = []
        self._standing: set[str] = set()
        """The notices since the last write; damage lasts while nothing can be written."""
        self._root, self._place = root, place
        self._threads = threading.RLock()
        self._position: journal.Position | None = None
        self._log: AppendLog | None = None
        self._torn = 0
        self._is_loaded = False
        self._has_recalled = False
        """Whether the records were read before the rest."""
        self._has_written = False
        self._is_damaged = False
        self._snapshots = Snapshots(place.snapshots, folder=place.path)
        self._batches: OpenBatches | None = None
        self._held: list[IndexEntry] = []
        """Entries of files in flight; their lines are appended with the next ones."""

    def follow(self) -> None:
        """Note that somebody relies on the records as they are read; in a folder writers share."""

    def refresh(self, backend: Backend) -> Index:
        """Read what this or another process appended since, and return the index."""
        with self._threads:
            was_loaded = self._is_loaded
            try:
                self._read(backend)
            finally:
                self._close_log()
            if not was_loaded:
                self._mend(backend)
            return self.index

    def _mend(self, backend: Backend) -> None:
        """Write the snapshot if a writer was killed before it could; nothing depends on it.

        Damage stays for the session that goes on, which reports it.
        """
        if backend.is_remote or self._position is None or self.notices or self._is_only_read:
            return
        with suppress(OSError, StoreError):
            if self._snapshots.lags(backend):
                self.complete_snapshot(backend)

    def records(self, backend: Backend) -> list[dict[str, JSON]]:
        """Return every record, oldest first, with those that others appended since.

        The first call of a session that goes on reads no more than the records.
        """
        with self._threads:
            if not (self._is_loaded or self._has_recalled):
                self._has_recalled = True
                with suppress(OSError):  # reading it all reports why
                    found = recalled_records(backend, self.folder, self._snapshots.path(backend))
                    if found is not None and not self._snapshots.lags(backend):
                        return found
            return [*self.refresh(backend).records]

    def loaded(self, backend: Backend) -> Index:
        """Return the index as it was last read; lines that others appended since may be missing."""
        return self.index if self._is_loaded else self.refresh(backend)

    def lines(self, backend: Backend) -> tuple[object, ...]:
        """Return every line of the journal, oldest first; () when there is none."""
        return lines_in(backend, self.folder)

    @contextmanager
    def writing(self, backend: Backend) -> Iterator[Index]:
        """Hold the session's lock, with the index up to date and the journal complete."""
        with self._threads, self._lock(backend):
            self._has_written = True
            try:
                self._torn = self._read(backend, writing=True)
                if self._torn:
                    self._notice("the last line of the journal was torn by a crash; it is left out")
                if self._position is None or self._is_damaged:
                    self.write_anew(backend)
                yield self.index
            finally:
                self._close_log()

    def append(
        self,
        backend: Backend,
        *,
        entries: Sequence[IndexEntry] = (),
        records: Sequence[dict[str, JSON]] = (),
        removed: Sequence[dict[str, JSON]] = (),
        packed: Sequence[dict[str, JSON]] = (),
        in_flight: Mapping[str, Iterable[str]] = _NOTHING,
        flush: bool = True,
    ) -> None:
        """Append to the journal, all or nothing, then apply it; only while `writing`."""
        assert self._position is not None  # noqa: S101 - `writing` saw to it
        held, entries = len(self._held), [*self._still_held(backend), *entries]
        lines = [{"in_flight": announcement(*batch)} for batch in in_flight.items()]
        lines = self._lines_of(entries, records, removed, packed, before=lines)
        raw = journal.numbered(lines, self._position.number)
        self._position = journal.append_lines(
            self._opened_log(backend), raw, self._position, torn=self._torn, flush=flush
        )
        self._torn = 0
        self._standing.clear()
        del self._held[:held]
        self.index.apply({"root": str(self._root)})
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
            self._fold(backend, len(entries) + len(removed))

    def _lines_of(
        self,
        entries: Iterable[IndexEntry],
        records: Iterable[dict[str, JSON]],
        removed: Iterable[dict[str, JSON]],
        packed: Iterable[dict[str, JSON]],
        before: Iterable[dict[str, JSON]] = (),
    ) -> list[dict[str, JSON]]:
        """Return the lines to append, the root of the store first where the journal lacks it."""
        is_new = str(self._root) not in self.index.roots
        lines: list[dict[str, JSON]] = [{"root": str(self._root)}] if is_new else []
        lines += before
        lines += [{"saved": entry.as_json()} for entry in entries]
        lines += [{"record": record} for record in records]
        lines += [{"removed": dict(one)} for one in removed]
        lines += [{"packed": dict(one)} for one in packed]
        return lines

    def hold(self, entries: Iterable[IndexEntry]) -> None:
        """Add entries of files in flight, whose lines are appended with the records that follow.

        A crash before that leaves files without an entry: the next attempt uses them again, and
        `collect` finds them by `left_by_dead`.
        """
        with self._threads:
            for entry in entries:
                self._held.append(entry)
                self.index.add(entry)

    def _still_held(self, backend: Backend) -> list[IndexEntry]:
        """Return the held entries, less those that were removed after their batch was closed."""
        batches = self._open_batches if self._held else None
        return [
            entry
            for entry in self._held
            if present(batches).protects(entry.path) or is_stored(backend, entry.path)
        ]

    def left_by_dead(self, backend: Backend) -> list[IndexEntry]:
        """Return entries for files that dead writers left in flight before they had one."""
        living = self.living(backend)
        flying = self.index.in_flight
        left = {
            path
            for batch in flying.batches
            if batch not in living
            for path in flying.paths(batch)
            if self.index.at(path) is None and is_stored(backend, path)
        }
        if not left:
            return []
        found = (entry for entry in self._adopted(backend) if entry.path in left)
        return [entry._replace(adopted=False) for entry in found]  # a writer announced it

    def settle_dead(self, backend: Backend) -> None:
        """Append the entries of `left_by_dead`, and settle the batches of dead writers.

        Also removes the locks of dead writers. Only while `writing`: of two processes that collect,
        one may have removed what the other has just found.
        """
        living = self.living(backend)
        dead = [batch for batch in self.index.in_flight.batches if batch not in living]
        if dead:
            left = self.left_by_dead(backend)
            self.append(backend, entries=left, in_flight=dict.fromkeys(dead, ()), flush=bool(left))
        if not backend.is_remote:
            remove_dead_locks(backend, self.folder)

    def remember(
        self, backend: Backend, records: Sequence[dict[str, JSON]], *, flush: bool
    ) -> None:
        """Append records, which settle the files that they name."""
        with self.writing(backend):
            left = self._open_batches.named_by(records)
            self.append(backend, records=records, in_flight=left, flush=flush)

    @contextmanager
    def in_flight(self, backend: Backend, paths: Iterable[str]) -> Iterator[str]:
        """Announce a batch that is about to use these paths, and provide its id.

        From now on `collect` leaves its files alone, until records have named each of them. After
        an error nothing of the batch is in flight.
        """
        with self.writing(backend):
            batch = self._open_batches.open(backend, paths)
            try:
                self.append(backend, in_flight={batch: paths}, flush=False)
            except BaseException:
                self._open_batches.close(batch)
                raise
        try:
            yield batch
        except BaseException:
            with self._threads:
                self._open_batches.close(batch)
            raise

    def living(self, backend: Backend) -> dict[str, frozenset[str]]:
        """Return the batches of living writers, of any process, with the paths in flight."""
        flying = self.index.in_flight
        return {
            batch: flying.paths(batch)
            for batch in flying.batches
            if is_living(backend, self.folder, batch)
        }

    @property
    def is_loaded(self) -> bool:
        """Whether the journal was read."""
        return self._is_loaded

    def report(self, notice: str) -> None:
        """Add a notice, and log it as a warning."""
        sentence = f"{self._root}/{self.folder}: {notice}"
        self.notices.append(sentence)
        lazy.logging.getLogger("policyctx.store").warning("%s", sentence)

    def written_at(self, backend: Backend) -> float:
        """Return when the journal was last written, in seconds since 1970; 0.0 for none."""
        try:
            return backend.status(f"{self.folder}/{journal.JOURNAL}").modified
        except FileNotFoundError:
            return 0.0

    def complete_snapshot(self, backend: Backend) -> None:
        """Let the snapshot cover the whole journal; do nothing without a journal.

        A damaged journal is written anew, so that the damage is reported once. Raises `OSError`
        when that fails.
        """
        with self._threads:
            if self._held:
                with self.writing(backend):
                    self.append(backend)
            elif self._is_only_read:
                return
            self.refresh(backend)
            if self._position is None:
                return
            if self._snapshots.covers(backend, self._position) and not self._is_damaged:
                return
            with self.writing(backend) as index:
                if not self._snapshots.covers(backend, self._position):
                    log = self._journal(backend)
                    self._snapshots.write(backend, index, self._position, log, folds=True)

    @property
    def _is_only_read(self) -> bool:
        """Whether nothing was written here, and the snapshot covered the journal as it was read."""
        is_sound = self._position is not None and not (self._has_written or self._is_damaged)
        return is_sound and self._snapshots.were_at(present(self._position))

    def close(self, backend: Backend) -> None:
        """Complete the snapshot, and close every batch, settled or not."""
        with self._threads:
            try:
                self.complete_snapshot(backend)  # the batches protect held entries until then
            finally:
                if self._batches is not None:
                    self._open_batches.close_all(backend)

    def write_anew(self, backend: Backend) -> None:
        """Replace the journal by one that contains just the index; only while `writing`."""
        head = journal.new_head(self._position)
        for entry in self._still_held(backend):
            self.index.add(entry)
        raw = journal.numbered(self.index.lines())
        self._position = journal.write_journal(backend, self.folder, head, raw)
        self._held.clear()
        self._close_log()  # it was that of the journal before
        self._torn = 0
        self._is_damaged = False
        self._standing.clear()
        self._snapshots.begin(None)
        if raw:
            self._fold(backend)

    def shorten(self, backend: Backend) -> None:
        """Write the journal anew when most of its lines are obsolete; only while `writing`."""
        needed = sum(map(len, journal.numbered(self.index.lines())))
        if self._position is not None and self._position.bytes > 2 * needed + _LEAST_SHORTENED:
            self.write_anew(backend)

    def rebuild(self, backend: Backend) -> Rebuilt:
        """Read everything again, add the files that are unknown, remove entries without a file.

        The index in memory does not count.
        """
        with self._threads, self._lock(backend):
            self.index, self._position, self._is_loaded = Index(), None, False
            try:
                self._read(backend, writing=True)
            finally:
                self._close_log()
            found = [*self._adopted(backend)]
            for entry in found:
                self.index.add(entry)
            gone = self._gone_from(backend)
            for entry in gone:
                self.index.remove(entry.path)
            self.write_anew(backend)
            held = {entry.rest for entry in self.index}
            lost = (one for one in gone if not one.is_rest or one.sha256 in held)
            new = (one for one in found if not one.is_rest)
            return Rebuilt(self.index.contents, tuple(new), tuple(lost))

    def _gone_from(self, backend: Backend) -> list[IndexEntry]:
        return [entry for entry in self.index if not is_stored(backend, entry.path)]

    def take_over(self, backend: Backend, index: Callable[[], Index]) -> int:
        """Take over the index of another store. Raises `StoreError` when this one has entries."""
        with self.writing(backend):
            if len(self.index) or self.index.records:
                raise StoreError(f"{self._root} holds a session already", path=str(self._root))
            self.index = index()
            self.index.apply({"root": str(self._root)})
            self.write_anew(backend)
            return self.index.contents

    @property
    def _open_batches(self) -> OpenBatches:
        """The batches of this process; a forked child does not have those of its parent."""
        batches = self._batches
        if batches is None or batches.process != os.getpid():
            if batches is not None:
                batches.abandon()
            self._batches = batches = OpenBatches(self.folder)
            # A batch that no record settled, because of an error, must not cost a descriptor.
            weakref.finalize(self, batches.abandon).atexit = False
        return batches

    def _lock(self, backend: Backend) -> AbstractContextManager[None]:
        return backend.lock(f"{self.folder}/{_LOCK}")

    def _opened_log(self, backend: Backend) -> AppendLog:
        if self._log is None:
            self._log = journal.open_journal(backend, self.folder, writing=True)
        return self._log

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _journal(self, backend: Backend) -> Callable[[int], bytes]:
        return lambda start: self._opened_log(backend).read(start)

    def _fold(self, backend: Backend, changed: int = 0) -> None:
        problem = self._snapshots.write_when_due(
            backend, self.index, present(self._position), self._journal(backend), changed=changed
        )
        if problem:
            self._notice(problem)

    def _read(self, backend: Backend, *, writing: bool = False) -> int:
        """Read what is new in the journal; return the bytes of an incomplete line at its end."""
        copy = None
        if not self._is_loaded:
            copy, problem = self._snapshots.read(backend)
            if problem:
                self._notice(problem)
        self._is_loaded, was_loaded = True, self._is_loaded
        try:
            self._log = journal.open_journal(backend, self.folder, writing=writing)
            fold = copy.fold if copy else None
            read = journal.read_journal(self._log, self._position, folded=fold)
        except FileNotFoundError:
            if was_loaded:
                self._miss()
            elif copy is not None or self._place.owns_root:
                self._repair(backend, copy, "the journal was missing")
            return 0
        except OSError as error:
            if error.errno not in NOT_A_STORE_FILE:
                raise
            self._repair(backend, copy, f"the journal is no file of this store: {error.strerror}")
            return 0
        if read.is_new:
            self._replace(backend, read, copy)
        else:
            self._apply(backend, read, copy)
        return read.torn

    def _replace(
        self, backend: Backend, read: journal.JournalRead, copy: IndexSnapshot | None
    ) -> None:
        """Apply a journal that was not read before, or that is another than the known one."""
        before, known, fold = self.index, self._position, copy and copy.fold
        self.index = copy.index if copy and read.skipped_fold else Index()
        self.index.records += read.records
        self._snapshots.begin(copy if read.skipped_fold else None)
        self._apply(backend, read, copy)
        for entry in self._still_held(backend):
            self.index.add(entry)
        ids = journal.head_ids(read.position.head)
        if not ids:
            self._repair(backend, copy, "the first line of the journal could not be read")
        elif fold and fold.journal_id == ids[0] and read.position.bytes < fold.entries.bytes:
            self._repair(backend, copy, "the journal was cut off")
        if known is not None and not journal.continues(known, read.position):
            self.index = self.index.with_missing(before)
            notice = "the journal was replaced by another; what that one lacked was kept"
            self._report_damage(notice)

    def _apply(
        self, backend: Backend, read: journal.JournalRead, copy: IndexSnapshot | None
    ) -> None:
        unknown = sum(not self.index.apply(line) for line in read.lines)
        self._position = read.position
        damage = [*read.damage]
        if unknown:
            damage.append(f"{unknown} of the journal's lines are not valid entries")
        if damage:
            self._repair(backend, copy, " and ".join(damage))

    def _miss(self) -> None:
        if self._position is not None:
            self._position = None
            notice = "the journal was removed while in use, and is written anew from memory"
            self._report_damage(notice)

    def _repair(self, backend: Backend, copy: IndexSnapshot | None, damage: str) -> None:
        """Complete the index of a damaged journal from the snapshot, then from the files."""
        if copy is not None:
            self.index = self.index.with_missing(copy.index)
        before = self.index.contents
        for entry in self._adopted(backend):
            self.index.add(entry)
        if len(self.index) or self._position is not None:
            found = self.index.contents - before
            files = {0: "no file", 1: "1 file"}.get(found, f"{found} files")
            rebuilt = f"the index was rebuilt, and {files} recovered from the disk"
            self._report_damage(f"{damage}; {rebuilt}")

    def _adopted(self, backend: Backend) -> Iterator[IndexEntry]:
        but = set(self._place.snapshots)
        return adopted_entries(backend, self.index, self._place.format, but=but)

    def _report_damage(self, notice: str) -> None:
        self._is_damaged = True
        self._notice(notice)

    def _notice(self, notice: str) -> None:
        """Report what is so until the journal is written again, once."""
        if notice not in self._standing:
            self._standing.add(notice)
            self.report(notice)
