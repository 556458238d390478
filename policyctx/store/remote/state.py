"""`RemoteState`: the index and the records of a session whose journal is a sequence of objects.

Every write creates the next segment, with all lines that were kept back since the last one. So the
entries of a save and the records that name them are one object: both are there, or neither. The
first line of a segment says which writer made it. A writer that finds its next name taken reads
what the others wrote: what `collect` removed is taken in, and a segment of another writer of the
session ends this one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.store import journal
from policyctx.store.backend import Backend, Root, random_name
from policyctx.store.content import PACKED
from policyctx.store.in_flight import named_paths
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import StateFolder
from policyctx.store.remote.backend import RemoteBackend, SegmentedLog
from policyctx.store.state import Rebuilt, State

# What only the writer of a session appends; the rest is upkeep, which may run beside it.
_OF_A_SESSION = frozenset({"saved", "record"})
# How often upkeep may be faster before that is an error.
_RACES = 100


class RemoteState(State):
    """The index and the records of one session at a URL; see `State`."""

    def __init__(self, root: Root, place: StateFolder) -> None:
        super().__init__(root, place)
        self._writer = random_name()
        self._kept_back: list[dict[str, JSON]] = []
        """Lines that the index has and the journal does not."""
        self._is_followed = False
        """Whether somebody relies on the records as they were read: nobody else may add any."""
        self._other = ""
        """The other writer of the session, once there is one."""
        self._gone: set[str] = set()
        """Paths that `collect` of another process removed since the journal was last written."""

    def follow(self) -> None:
        """Treat each record that another writer adds from now on as its taking over."""
        self._is_followed = True

    def records(self, backend: Backend) -> list[dict[str, JSON]]:
        """Return every record, oldest first."""
        return [*self.refresh(backend).records]

    @contextmanager
    def writing(self, backend: Backend) -> Iterator[Index]:
        """Provide the index as it was read; whether it is up to date shows when it is appended."""
        with self._threads:
            self._note_taking_over(backend)
            if not self._is_loaded:
                self._read(backend)
            self._check()
            yield self.index

    def append(
        self,
        backend: Backend,
        *,
        entries: Sequence[IndexEntry] = (),
        records: Sequence[dict[str, JSON]] = (),
        removed: Sequence[dict[str, JSON]] = (),
        packed: Sequence[dict[str, JSON]] = (),
        in_flight: Mapping[str, Iterable[str]] | None = None,
        flush: bool = True,
    ) -> None:
        """Append to the journal, all or nothing, then apply it; keep it back without `flush`."""
        del in_flight  # `collect` is told by the journal itself
        lines = self._lines_of(entries, records, removed, packed)
        if flush:
            self._write(backend, [*self._kept_back, *lines])
            self._kept_back.clear()
        else:
            self._kept_back += lines
        for line in lines:
            self.index.apply(line)

    @contextmanager
    def in_flight(self, backend: Backend, paths: Iterable[str]) -> Iterator[str]:  # noqa: ARG002
        """Provide the id of a batch; it is not announced, since the journal shows a collection."""
        with self.writing(backend):
            pass
        yield f"{self._writer}-0"

    def written_at(self, backend: Backend) -> float:
        """Return when the last segment was written, by the service's clock; 0.0 for none."""
        return self._segments(backend).written_at()

    def complete_snapshot(self, backend: Backend) -> None:
        """Write the lines that were kept back; there is no snapshot."""
        with self._threads:
            if self._kept_back and not self._other:
                self._write(backend, self._kept_back)
                self._kept_back.clear()

    def shorten(self, backend: Backend) -> None:
        """Do nothing: segments stay."""

    def write_anew(self, backend: Backend) -> None:
        """Add a segment that replaces what is before it by just the index.

        Raises `StoreError` when another process has written meanwhile.
        """
        log, head = self._segments(backend), journal.new_head(self._position)
        lines = journal.numbered([{"writer": self._writer}, *self.index.lines()])
        try:
            log.append(head + b"".join(lines))
        except FileExistsError as error:
            raise StoreError(
                f"{self._root}/{self.folder}: another process wrote the journal meanwhile; run it"
                " again when the session does not go on",
                path=str(self._root),
            ) from error
        self._position = journal.Position(head, log.status.identity, log.status.size, len(lines))
        self._is_followed, self._is_damaged, self._other = True, False, ""

    def rebuild(self, backend: Backend) -> Rebuilt:
        """Rebuild as in a folder; a writer that goes on meanwhile is ended by it."""
        with self._threads:
            self._kept_back.clear()
            return super().rebuild(backend)

    def _gone_from(self, backend: Backend) -> list[IndexEntry]:
        there = {path.removesuffix(PACKED) for path in backend.files(without=frozenset())}
        return [entry for entry in self.index if entry.path not in there]

    def take_over(self, backend: Backend, index: Callable[[], Index]) -> int:
        """Take over the index of another store. Raises `StoreError` when this one has entries."""
        with self.writing(backend):
            if self._position is not None:
                raise StoreError(f"{self._root} holds a session already", path=str(self._root))
            taken = index()
            taken.apply({"root": str(self._root)})
            self._write(backend, [*taken.lines()])
            self.index = taken
            return taken.contents

    def _read(self, backend: Backend, *, writing: bool = False) -> int:
        """Read what is new in the journal; a segment is never incomplete."""
        del writing
        self._note_taking_over(backend)
        self._is_loaded, is_first = True, not self._is_loaded
        if not self._kept_back:
            self._gone.clear()
        try:
            log = journal.open_journal(backend, self.folder, writing=False)
        except FileNotFoundError:
            return 0
        read = journal.read_journal(log, self._position)
        if read.is_new:  # the first one, or it was rebuilt
            self.index = Index()
        if not is_first:
            self._note_others(read.lines)
        self._apply(backend, read, None)
        return 0

    def _segments(self, backend: Backend) -> SegmentedLog:
        return cast("RemoteBackend", backend).log(f"{self.folder}/{journal.JOURNAL}")

    def _note_taking_over(self, backend: Backend) -> None:
        """End this writer if another one went on while segments of this one waited."""
        if not self._other and cast("RemoteBackend", backend).is_taken_over:
            self._other = "another"
            self._kept_back.clear()
            self.index, self._position, self._is_loaded = Index(), None, False

    def _note_others(self, lines: Iterable[Mapping[str, JSON]]) -> None:
        """Note what other writers did since the journal was read last."""
        writer: JSON = ""
        for line in lines:
            ((kind, value),) = line.items()
            if kind == "writer":
                writer = value
            elif writer == self._writer:
                continue
            elif kind in _OF_A_SESSION and self._is_followed:
                self._other = str(writer)
            elif kind == "removed" and isinstance(value, dict):
                self._gone.add(str(value.get("path")))

    def _write(self, backend: Backend, lines: Sequence[dict[str, JSON]]) -> None:
        """Create the next segment. Raises `StoreError` if another writer has the session."""
        log = self._segments(backend)
        for _ in range(_RACES):
            known, head = self._position, b""
            if known is None:
                head = journal.new_head()
                known = journal.Position(head, log.status.identity, 0, 0)
            if log.status.size != known.bytes:
                self._catch_up(backend, lines)  # somebody else read on in this very log
                continue
            written = journal.numbered([{"writer": self._writer}, *lines], known.number)
            try:
                log.append(head + b"".join(written))
            except FileExistsError:
                self._is_followed = True
                self._catch_up(backend, lines)
                continue
            self._is_followed = True
            self._gone.clear()
            cast("RemoteBackend", backend).forget_created()
            number = known.number + len(written)
            self._position = known._replace(bytes=log.status.size, number=number)
            return
        raise StoreError(f"{self._root}: others write all the time", path=str(self._root))

    def _catch_up(self, backend: Backend, lines: Sequence[dict[str, JSON]]) -> None:
        """Read what others wrote. Raises `StoreError` where `lines` no longer hold."""
        self._read(backend)
        self._check()
        if hit := sorted(_paths_in(lines) & self._gone):
            self._gone.clear()
            self._kept_back = [one for one in self._kept_back if not _paths_in([one]) & {*hit}]
            raise StoreError(
                f"{self._root}/{hit[0]} was removed by another process meanwhile",
                path=f"{self._root}/{hit[0]}",
            )

    def _check(self) -> None:
        """Raise `StoreError` when the session has another writer, or its journal is damaged."""
        if self._other:
            raise StoreError(
                f"{self._root}: another process writes this session; what it wrote was not known"
                " here, so this one writes no more. Make a new session or store with the same id"
                " to go on from what is there",
                path=str(self._root),
            )
        if self._is_damaged:
            raise StoreError(
                f"{self._root}/{self.folder}: the journal is damaged, so nothing is added to it;"
                " what it names can be read, exported, and imported at another place",
                path=str(self._root),
            )


def _paths_in(lines: Iterable[Mapping[str, JSON]]) -> set[str]:
    """Return the paths of the contents that lines name."""
    values = (value for line in lines for value in line.values() if isinstance(value, dict))
    return {path for value in values for path in named_paths(value)}
