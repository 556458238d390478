"""What keeps a store in order: verifying, rebuilding, collecting, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from policyctx.errors import StoreError
from policyctx.store.collecting import CollectionReport, Collector, Terms
from policyctx.store.entries import STATE_FOLDER
from policyctx.store.exporting import export
from policyctx.store.importing import imported
from policyctx.store.rebuilding import state_folders
from policyctx.store.state import Rebuilt, State
from policyctx.store.storage import Storage, snapshot_path
from policyctx.store.verifying import Verification, verified

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from policyctx.store.opening import Tree

# Called with how many of how many are done.
Progress: TypeAlias = "Callable[[int, int], object]"


def _silently(_done: int, _of: int) -> None:
    """Show no progress."""


class Upkeep(Storage):
    """A storage that can be looked after. `progress` gets how many of how many are done."""

    def verify(self, *, progress: Progress = _silently) -> Verification:
        """Read every content and compare it with its hash; what is harmed is named."""
        with self._tree("verified") as tree:
            found = verified(tree, tuple(self._index(tree)), progress)
            now = self._index(tree)
            left = (h for h in found.harmed if now.of(h.entry.path, h.entry.item_id) is not None)
            return Verification(found.checked, tuple(left))

    def rebuild(self) -> Rebuilt:
        """Read journal and files again: take up what no index tells of, forget what is gone.

        Raises `StoreError`, for a folder without a store too.
        """
        if self._state is None:
            return Rebuilt(0, (), ())
        with self._tree("rebuilt") as existing:
            existing.folder()
        with self._tree("rebuilt", making=True) as tree:
            return self._state.rebuild(tree)

    def collect(
        self,
        *,
        max_age: float | None = None,
        max_bytes: int | None = None,
        ended: bool = False,
        only_own: bool = False,
        dry_run: bool = False,
        progress: Progress = _silently,
    ) -> CollectionReport:
        """Remove what is older than `max_age` seconds, then the oldest until `max_bytes` are left.

        What a live placeholder names stays, by the records of every session in this root, and so
        does what was saved in the last hour. What a living writer saved and has not recorded yet
        stays whatever the clocks say. `ended` says that none of the sessions goes on. `only_own`
        keeps the contents of all sessions but this one; `ended` then says it of this one alone.
        What stays and is not named is packed, with `compress: zstd`. Raises `StoreError`.
        """
        own = self._state.folder if only_own and self._state is not None else None
        terms = Terms(max_age, max_bytes, packs=self._packs, ended=ended, only=own)
        with self._tree("collected") as tree:
            collector = Collector(tree, self._states(tree), self._rules, self._clock)
            return collector.collected(terms, dry_run=dry_run, progress=progress)

    def export(self, target: str | os.PathLike[str], *, progress: Progress = _silently) -> int:
        """Write the session to one file and return the number of its contents.

        Raises `StoreError`, and `CorruptContentError` when a content is not what was saved.
        """
        path = Path(target)
        with self._tree("exported") as tree:
            reader = self._reader(tree)
            return export(self._index(tree), reader, path, mode=self._mode, progress=progress)

    def import_from(self, source: str | os.PathLike[str], *, progress: Progress = _silently) -> int:
        """Take up an exported session and return the number of its contents.

        This store must hold nothing yet. Raises `StoreError`, after which it holds nothing still.
        """
        if self._state is None:
            raise StoreError("a store without state cannot take a session up", path=str(self.root))
        with self._tree("imported", making=True) as tree:
            return self._state.take_over(
                tree, lambda: imported(tree, Path(source), self._rules, progress)
            )

    def _states(self, tree: Tree) -> list[State]:
        """The state of every session in this root, this one's as it is in memory."""
        return [
            self._state
            if self._state is not None and self._state.folder == folder
            else State(
                self.root,
                folder=folder,
                snapshot=snapshot_path(folder, self._format),
                mode=self._mode,
                flush=self._rules.flush,
                form=self._format,
                owns_root=folder == STATE_FOLDER,
            )
            for folder in state_folders(tree)
        ]
