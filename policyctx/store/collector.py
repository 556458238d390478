"""Retention: which contents may be removed or compressed, and the collection that does it.

A content that a live placeholder names is never removed. A collection also removes what crashes
left behind: temporary files, and a compressed copy of a file that is still there uncompressed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from policyctx.definitions.actions import Action
from policyctx.messages.json_text import JSON
from policyctx.store.backend import Backend, Progress, WriteBatch, is_temporary
from policyctx.store.content import PACKED
from policyctx.store.files import Format, packed_whole, sha256_in, stored_bytes, stored_status
from policyctx.store.index import GRACE_S, CollectionReport, Index, IndexEntry, StoredFile, is_young
from policyctx.store.state import State

# States of an item whose placeholder is no longer in the context.
GONE = frozenset(action.past for action in Action if not action.keeps_place)
# Compressing a content of fewer bytes frees no block of a disk.
_LEAST_PACKED = 1024
# How many files are compressed before the locks are taken to put them in their places.
_AT_A_TIME = 256
# In the place of a temporary file: an equal content was compressed just now.
_LINKED = "linked"


class CollectionPlan(NamedTuple):
    """The files that `collect` will remove and compress."""

    removed: tuple[tuple[StoredFile, str], ...]
    """Each file with the rule that removes it."""
    packed: tuple[StoredFile, ...]
    size_before: int
    size_after: int
    """Bytes after the removals; what compression saves is not counted."""


class RetentionLimits(NamedTuple):
    """What may stay: contents of an age in seconds, and how many bytes and contents of them."""

    max_age: float | None = None
    max_bytes: int | None = None
    max_contents: int | None = None

    @property
    def are_shared(self) -> bool:
        """Whether what may stay of one content depends on how many others there are."""
        return self.max_bytes is not None or self.max_contents is not None

    def rule(self, age: float, size: int, contents: int) -> str:
        """Return the limit that removes a content of this age; `""`: none.

        `size` and `contents` are those of everything that is left, the content included.
        """
        if self.max_age is not None and age > self.max_age:
            return "max_age"
        if self.max_bytes is not None and size > self.max_bytes:
            return "max_bytes"
        is_over = self.max_contents is not None and contents > self.max_contents
        return "max_contents" if is_over else ""


class Terms(NamedTuple):
    """The arguments of `collect`: what may stay, and which sessions have ended."""

    limits: RetentionLimits
    packs: bool
    ended: bool
    idle: float | None = None
    """A session that wrote nothing for so many seconds has ended."""
    only: str | None = None
    """The state folder of the one session whose contents may go; None for all in the root."""
    picked: Mapping[str, str] | None = None
    """The paths to remove in place of what the limits say, each with its rule."""


def live_paths(index: Index, *, ended: bool) -> frozenset[str]:
    """Return the paths that the placeholders of a session name, by its records.

    The newest record of an item counts. A session that has `ended` has no placeholders.
    """
    if ended:
        return frozenset()
    states = states_of(index.records, index.roots)
    return frozenset(path for (_, path), state in states.items() if state not in GONE)


def states_of(
    records: Iterable[Mapping[str, JSON]], roots: Iterable[str]
) -> dict[tuple[str | None, str], str]:
    """Return the newest state of each item that records name, by item id and path."""
    states: dict[tuple[str | None, str], str] = {}
    for record in records:
        item_id, path, state = (record.get(name) for name in ("item_id", "path", "state"))
        if isinstance(path, str) and isinstance(state, str):
            known = item_id if isinstance(item_id, str) else None
            states[known, _below_root(path, roots)] = state
    return states


def chosen(files: Sequence[StoredFile], now: float, terms: Terms) -> CollectionPlan:
    """Choose the files to remove and to compress; `files` are in the order of their saving.

    What a text is without counts with the text, and goes with it.
    """
    names = Counter(file.number for file in files)
    before = left = size_of(files)
    removed: list[tuple[StoredFile, str]] = []
    holders = Counter(rest for file in files if (rest := file.entries[-1].rest) is not None)
    contents = [file for file in files if not _is_one_of(holders, file.entries[-1])]
    rests: defaultdict[str, list[StoredFile]] = defaultdict(list)
    for file in _removable(files):
        if _is_one_of(holders, file.entries[-1]):
            rests[file.entries[-1].sha256].append(file)
    stay = len(contents)
    for file in _removable(contents):
        if terms.picked is None:
            why = terms.limits.rule(now - file.saved_at, left, stay)
        else:
            why = terms.picked.get(file.path, "")
        if not why:
            continue
        stay -= 1
        going, rest = [file], file.entries[-1].rest
        if rest is not None:
            holders[rest] -= 1
            if not holders[rest]:  # what a text is without goes with the last text
                going += rests[rest]
        for one in going:
            removed.append((one, why))
            names[one.number] -= 1
            left -= 0 if names[one.number] else one.size
    gone = {file.path for file, _ in removed}
    packed = (file for file in _packable(files) if file.path not in gone) if terms.packs else ()
    return CollectionPlan(tuple(removed), tuple(packed), before, left)


def size_of(files: Iterable[StoredFile]) -> int:
    """Return the bytes of files; a file with several names counts once."""
    return sum({file.number: file.size for file in files}.values())


def _removable(files: Iterable[StoredFile]) -> Iterable[StoredFile]:
    return (file for file in files if not file.is_live and not file.is_adopted)


def _packable(files: Sequence[StoredFile]) -> Iterable[StoredFile]:
    """Files to compress: compressing one name of a live content would store the content twice."""
    live = {file.entries[-1].sha256 for file in files if file.is_live}
    return (
        file
        for file in _removable(files)
        if not file.is_packed
        and file.entries[-1].sha256 not in live
        and file.entries[-1].size >= _LEAST_PACKED
    )


def _below_root(path: str, roots: Iterable[str]) -> str:
    for root in roots:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return path


def _left_over(backend: Backend, folder: str, named: Collection[str]) -> Iterator[str]:
    try:
        names = set(backend.names(folder))
    except FileNotFoundError:
        return
    for name in names:
        path = f"{folder}/{name}" if folder else name
        plain = name.removesuffix(PACKED)
        is_copy = plain != name and plain in names and path.removesuffix(PACKED) in named
        if is_copy or is_temporary(path):
            yield path


def _is_one_of(rests: Collection[str], entry: IndexEntry) -> bool:
    return entry.is_rest and entry.sha256 in rests


def _removal(entry: IndexEntry, now: float, why: str) -> dict[str, JSON]:
    line: dict[str, JSON] = {"path": entry.path, "time": now, "why": why, "sha256": entry.sha256}
    return line if entry.format == "text" else {**line, "format": entry.format}


class Collector:
    """The collection over all sessions of a root. Raises `OSError` and `StoreError`.

    What a crash cut off while contents were removed is removed by the next collection.
    """

    def __init__(
        self, backend: Backend, states: Sequence[State], clock: Callable[[], float]
    ) -> None:
        self._backend = backend
        self._states = sorted(states, key=lambda state: state.folder)
        self._clock = clock

    def collect(self, terms: Terms, *, dry_run: bool, progress: Progress) -> CollectionReport:
        """Remove, then compress; `progress` gets the number of files compressed and the total."""
        for state in self._states:
            state.refresh(self._backend)
        files = self.files(terms)
        choice = chosen(files, self._clock(), terms)
        if not dry_run:
            choice = self._remove(terms)
            self._pack(choice.packed, terms, progress)
            self._remove_left_over()
        size = choice.size_after if dry_run else size_of(self.files(terms))
        removed = ((kept.entries[-1], rule) for kept, rule in choice.removed)
        packed = (kept.entries[-1] for kept in choice.packed)
        return CollectionReport(
            tuple((entry, rule) for entry, rule in removed if not entry.is_rest),
            tuple(entry for entry in packed if not entry.is_rest),
            choice.size_before,
            size,
            dry_run,
            sum(not file.entries[-1].is_rest for file in files),
        )

    def have_ended(self, terms: Terms) -> bool:
        """Whether by the terms every session has ended."""
        for state in self._states:
            state.refresh(self._backend)
        return all(self._has_ended(state, terms) for state in self._states)

    def _has_ended(self, state: State, terms: Terms) -> bool:
        """Whether the session has ended: it wrote nothing for long, and has nothing in flight."""
        if terms.ended or terms.idle is None:
            return terms.ended
        last = max((entry.saved_at for entry in state.index), default=0.0)
        written = max(last, state.written_at(self._backend))
        return self._clock() - written > terms.idle and not state.living(self._backend)

    def files(self, terms: Terms, only: frozenset[str] | None = None) -> list[StoredFile]:
        """Return every existing file that an entry names, or `only` these, oldest first."""
        now = self._clock()
        live: set[str] = set()
        entries: dict[str, list[IndexEntry]] = {}
        holders: list[tuple[str, str]] = []
        for state in self._states:
            is_other = terms.only not in {None, state.folder}
            ended = not is_other and self._has_ended(state, terms)
            live |= live_paths(state.index, ended=ended)
            live.update(*state.living(self._backend).values())
            known = [*state.index, *state.left_by_dead(self._backend)]
            if is_other:  # everything that it names stays
                live |= {entry.path for entry in known}
            holders += [(entry.path, entry.rest) for entry in known if entry.rest is not None]
            for entry in known:
                if only is None or entry.path in only:
                    entries.setdefault(entry.path, []).append(entry)
        rests = {rest for path, rest in holders if path in live}
        live |= {path for path, named in entries.items() if _is_one_of(rests, named[-1])}
        files = []
        for path, named in entries.items():
            try:
                found, is_packed = stored_status(self._backend, path)
            except FileNotFoundError:
                continue
            young = any(is_young(entry, now) for entry in named) and not terms.ended
            status = found.size, found.identity, young or path in live, is_packed
            files.append(StoredFile(path, tuple(named), *status))
        return sorted(files, key=lambda file: file.saved_at)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as locks:
            for state in self._states:
                locks.enter_context(state.writing(self._backend))
            yield

    def _remove(self, terms: Terms) -> CollectionPlan:
        """Choose again while no other process writes, and remove: first entries, then files."""
        with self._locked():
            for state in self._states:
                state.settle_dead(self._backend)
            now = self._clock()
            choice = chosen(self.files(terms), now, terms)
            lines = [_removal(kept.entries[-1], now, why) for kept, why in choice.removed]
            gone = {kept.path for kept, _ in choice.removed}
            told = []
            for state in self._states:
                known = [line for line in lines if state.index.at(str(line["path"]))]
                known += self._cut_off(state)
                gone |= {str(line["path"]) for line in known}
                if known:
                    state.append(self._backend, removed=known)
                    told.append(state)
            for path in sorted(gone):
                self._unlink(path)
                self._unlink(path + PACKED)
            for state in told:  # the lines say what is to be removed, so they stay until it is
                state.shorten(self._backend)
        return choice

    def _cut_off(self, state: State) -> list[dict[str, JSON]]:
        """Return the removals of an earlier collection whose files are still there.

        A file that was written in the last hour, by either clock, or that holds another text is
        none of them: somebody may be about to save it.
        """
        lines = [line for line in state.lines(self._backend) if isinstance(line, dict)]
        removed = {
            str(one.get("path")): one
            for line in lines
            if isinstance(one := line.get("removed"), dict) and "sha256" in one
        }
        for one in self._states:
            used = live_paths(one.index, ended=False).union(entry.path for entry in one.index)
            for path in removed.keys() & used.union(*one.living(self._backend).values()):
                del removed[path]
        return [dict(one) for path, one in removed.items() if self._is_cut_off(path, one)]

    def _is_cut_off(self, path: str, removal: Mapping[str, JSON]) -> bool:
        form: Format = "envelope" if removal.get("format") == "envelope" else "text"
        try:
            written = stored_status(self._backend, path)[0].modified
            now = min(self._clock(), self._backend.time_in(path.rpartition("/")[0]))
            is_old = now - written > GRACE_S
            return is_old and sha256_in(self._backend, path, form) == removal["sha256"]
        except (FileNotFoundError, ValueError):
            return False

    def _remove_left_over(self) -> None:
        """Remove what crashes left an hour ago, while no other process begins to write.

        The temporary files of living batches stay. The hour must have passed by the clock of the
        disk too, which set the time of each file: the clock of this process may be ahead.
        """
        with self._locked():
            for state in self._states:
                state.settle_dead(self._backend)
            named = {entry.path for state in self._states for entry in state.index}
            folders = {"", *(state.folder for state in self._states)}  # an index may be in the root
            living = {batch for state in self._states for batch in state.living(self._backend)}
            folders |= {path.rpartition("/")[0] for path in named}
            for folder in sorted(folders):
                for path in _left_over(self._backend, folder, named):
                    if path.rpartition("/")[2][1:].rpartition("-")[0] not in living:
                        self._remove_old(folder, path)

    def _remove_old(self, folder: str, path: str) -> None:
        with suppress(FileNotFoundError):  # it got its name meanwhile
            old = self._backend.status(path).modified + GRACE_S
            if self._clock() > old and self._backend.time_in(folder) > old:
                self._backend.remove(path)

    def _pack(self, files: Sequence[StoredFile], terms: Terms, progress: Progress) -> None:
        """Compress while others may save; take the locks only to put the files in place."""
        done = 0
        firsts: dict[str, str] = {}
        for start in range(0, len(files), _AT_A_TIME):
            some = files[start : start + _AT_A_TIME]
            progress(done, len(files))
            with self._backend.batch() as batch:
                staged = {kept.path: self._stage(batch, kept, firsts) for kept in some}
                batch.flush()
                with self._locked():
                    still = self.files(terms, only=frozenset(p for p in staged if staged[p]))
                    self._put(batch, [k for k in still if not k.is_live], staged, firsts)
            done += len(some)
        progress(done, len(files))

    def _stage(self, batch: WriteBatch, kept: StoredFile, firsts: dict[str, str]) -> str:
        """Stage a compressed copy of a content; return "" where that is not smaller."""
        entry = kept.entries[-1]
        if entry.format == "text" and firsts.setdefault(entry.sha256, kept.path) != kept.path:
            return _LINKED
        try:
            raw = stored_bytes(self._backend, kept.path)
        except (FileNotFoundError, ValueError):
            return ""
        smaller = packed_whole(raw)
        return batch.stage(kept.path + PACKED, smaller) if len(smaller) < len(raw) else ""

    def _put(
        self,
        batch: WriteBatch,
        files: Sequence[StoredFile],
        staged: Mapping[str, str],
        firsts: Mapping[str, str],
    ) -> None:
        done = []
        for kept in files:
            target = kept.path + PACKED
            if staged[kept.path] != _LINKED:
                batch.replace(staged[kept.path], target)
            elif not self._link(batch, firsts[kept.entries[-1].sha256] + PACKED, target):
                continue
            done.append(kept.path)
        batch.flush_folders()
        now = self._clock()
        for state in self._states:
            known = (path for path in done if state.index.at(path))
            lines: list[dict[str, JSON]] = [{"path": path, "time": now} for path in known]
            if lines:
                state.append(self._backend, packed=lines)
        for path in done:
            self._unlink(path)

    def _link(self, batch: WriteBatch, first: str, target: str) -> bool:
        try:
            batch.link(first, target)
        except OSError:
            return False  # it stays as it is
        return True

    def _unlink(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._backend.remove(path)
