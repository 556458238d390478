"""`collect`: letting go of what retention allows, and packing what no placeholder names."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.store.files import stored_bytes
from policyctx.store.left_over import remove_left_over
from policyctx.store.packing import PACKED, packed
from policyctx.store.retention import Kept, chosen, is_young, live_paths, size_of
from policyctx.store.writing import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from policyctx.store.content import JSON
    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree
    from policyctx.store.retention import Choice
    from policyctx.store.saving import Rules
    from policyctx.store.state import State

# So many files are packed before the locks are taken to put them in their places.
_AT_A_TIME = 256
# In the place of a temporary file: an equal content was packed just now.
_LINKED = "linked"


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked of `collect`: seconds, bytes, and whether every session here has ended."""

    max_age: float | None
    max_bytes: int | None
    packs: bool
    ended: bool
    only: str | None = None
    """The state folder of the one session whose contents may go; None for all in the root."""


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """What `collect` did, or would do in a dry run."""

    removed: tuple[tuple[Entry, str], ...]
    """Contents that went, each with the rule by which."""
    packed: tuple[Entry, ...]
    size_before: int
    """Bytes of all contents on the disk."""
    size_after: int
    is_dry_run: bool


class Collector:
    """Works on every session of a root at once. Raises `OSError` and `StoreError`."""

    def __init__(
        self, tree: Tree, states: Sequence[State], rules: Rules, clock: Callable[[], float]
    ) -> None:
        self._tree = tree
        self._states = sorted(states, key=lambda state: state.folder)
        self._rules = rules
        self._clock = clock

    def collected(
        self, terms: Terms, *, dry_run: bool, progress: Callable[[int, int], object]
    ) -> CollectionReport:
        """Remove, then pack; `progress` gets how many of how many files are packed."""
        for state in self._states:
            state.refresh(self._tree)
        choice = self._choice(terms)
        if not dry_run:
            choice = self._removed(terms)
            self._pack(choice.packed, terms, progress)
            self._remove_left_over()
        size = choice.size_after if dry_run else size_of(self._files(terms))
        return CollectionReport(
            tuple((kept.entries[-1], rule) for kept, rule in choice.removed),
            tuple(kept.entries[-1] for kept in choice.packed),
            choice.size_before,
            size,
            dry_run,
        )

    def _choice(self, terms: Terms) -> Choice:
        return chosen(
            self._files(terms),
            self._clock(),
            max_age=terms.max_age,
            max_bytes=terms.max_bytes,
            packs=terms.packs,
        )

    def _files(self, terms: Terms, only: frozenset[str] | None = None) -> list[Kept]:
        """Every file that an entry names and that is there, or `only` these, oldest first."""
        now = self._clock()
        live: set[str] = set()
        for state in self._states:
            is_other = terms.only not in {None, state.folder}
            live |= live_paths(state.index, ended=terms.ended and not is_other)
            live.update(*state.living(self._tree).values())
            if is_other:  # whatever it names stays
                live |= {entry.path for entry in state.index}
        entries: dict[str, list[Entry]] = {}
        for state in self._states:
            for entry in state.index:
                if only is None or entry.path in only:
                    entries.setdefault(entry.path, []).append(entry)
        files = []
        for path, named in entries.items():
            found = self._found(path)
            if found is None:
                continue
            size, number, is_packed = found
            young = any(is_young(entry, now) for entry in named) and not terms.ended
            files.append(
                Kept(
                    path,
                    tuple(named),
                    size,
                    number,
                    is_live=young or path in live,
                    is_packed=is_packed,
                )
            )
        return sorted(files, key=lambda file: file.saved_at)

    def _found(self, path: str) -> tuple[int, tuple[int, int], bool] | None:
        """Bytes and number of a content's file, and whether it is packed."""
        for ending in ("", PACKED):
            try:
                folder, name = self._tree.place(path + ending)
                found = folder.stat(name)
            except FileNotFoundError:
                continue
            return found.st_size, (found.st_dev, found.st_ino), bool(ending)
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as locks:
            for state in self._states:
                locks.enter_context(state.writing(self._tree))
            yield

    def _removed(self, terms: Terms) -> Choice:
        """Choose again, with nobody else writing, and remove: first the entry, then the file."""
        with self._locked():
            choice = self._choice(terms)
            now = self._clock()
            lines: list[dict[str, JSON]] = [
                {"path": kept.path, "time": now, "why": why} for kept, why in choice.removed
            ]
            for state in self._states:
                known = [line for line in lines if state.index.at(str(line["path"]))]
                if known:
                    state.append(self._tree, removed=known)
                    state.shorten(self._tree)
            for kept, _ in choice.removed:
                self._unlink(kept.path)
                self._unlink(kept.path + PACKED)
        return choice

    def _remove_left_over(self) -> None:
        """Remove what crashes left behind, with nobody else beginning to write."""
        with self._locked():
            for state in self._states:
                state.forget_dead(self._tree)
            named = {entry.path for state in self._states for entry in state.index}
            folders = {state.folder for state in self._states}
            living = {batch for state in self._states for batch in state.living(self._tree)}
            remove_left_over(self._tree, named, folders, self._clock(), living=living)

    def _pack(
        self, files: Sequence[Kept], terms: Terms, progress: Callable[[int, int], object]
    ) -> None:
        """Write the packed ones while others may save, and only put them in place by ourselves."""
        done = 0
        firsts: dict[str, str] = {}
        for start in range(0, len(files), _AT_A_TIME):
            some = files[start : start + _AT_A_TIME]
            progress(done, len(files))
            with Batch(self._tree, mode=self._rules.mode, flush=self._rules.flush) as batch:
                staged = {kept.path: self._staged(batch, kept, firsts) for kept in some}
                batch.flush()
                with self._locked():
                    still = self._files(terms, only=frozenset(p for p in staged if staged[p]))
                    self._put(batch, [k for k in still if not k.is_live], staged, firsts)
            done += len(some)
        progress(done, len(files))

    def _staged(self, batch: Batch, kept: Kept, firsts: dict[str, str]) -> str:
        """Write a content packed, beside itself; "" where that does not make it smaller."""
        entry = kept.entries[-1]
        if entry.format == "text" and firsts.setdefault(entry.sha256, kept.path) != kept.path:
            return _LINKED
        try:
            raw = stored_bytes(self._tree, kept.path)
        except (FileNotFoundError, ValueError):
            return ""
        smaller = packed(raw)
        return batch.stage(kept.path + PACKED, smaller) if len(smaller) < len(raw) else ""

    def _put(
        self,
        batch: Batch,
        files: Sequence[Kept],
        staged: Mapping[str, str],
        firsts: Mapping[str, str],
    ) -> None:
        done = []
        for kept in files:
            target = kept.path + PACKED
            if staged[kept.path] != _LINKED:
                batch.put(staged[kept.path], target)
            elif not self._linked(batch, firsts[kept.entries[-1].sha256] + PACKED, target):
                continue
            done.append(kept.path)
        batch.flush_folders()
        now = self._clock()
        for state in self._states:
            known: list[dict[str, JSON]] = [
                {"path": path, "time": now} for path in done if state.index.at(path)
            ]
            if known:
                state.append(self._tree, packed=known)
        for path in done:
            self._unlink(path)

    def _linked(self, batch: Batch, first: str, target: str) -> bool:
        try:
            batch.link(first, target)
        except OSError:
            return False  # it stays as it is
        return True

    def _unlink(self, path: str) -> None:
        folder, name = self._tree.place(path)
        try:
            folder.remove(name)
        except FileNotFoundError:
            return
