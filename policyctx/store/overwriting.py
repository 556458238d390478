"""Saving under `on_conflict: overwrite`: the last content of a path takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.store.naming import check_inside
from policyctx.store.saving import Written
from policyctx.store.streaming import sha256_in
from policyctx.store.writing import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree
    from policyctx.store.prepared import Prepared
    from policyctx.store.saving import Rules


class Overwriting:
    """One call of `save` with `overwrite`. Raises `OSError` and `StoreError`.

    `announce` takes the entries up before the files change: a crash in between leaves the earlier
    content, which its entry names as what it replaces.
    """

    def __init__(
        self,
        tree: Tree,
        rules: Rules,
        now: float,
        announce: Callable[[Sequence[Entry]], object],
        batch: str | None = None,
    ) -> None:
        self._id = batch
        self._tree = tree
        self._rules = rules
        self._now = now
        self._announce = announce

    def written(self, contents: Sequence[Prepared]) -> Written:
        """Write every content and return what became of each, in their order."""
        root = str(self._tree.root)
        rules = self._rules
        with Batch(self._tree, mode=rules.mode, flush=rules.flush, of=self._id) as batch:
            staged = self._staged(batch, contents)
            batch.flush()
            self._announce([self._entry(path, one) for path, (one, _) in staged.items()])
            for path, (one, temporary) in staged.items():
                batch.put(temporary, one.stored_path(path))
            batch.flush_folders()
        saved = (one.saved(one.content.relative_path, root, reused=False) for one in contents)
        return Written(tuple(saved), (), ())

    def _staged(
        self, batch: Batch, contents: Sequence[Prepared]
    ) -> dict[str, tuple[Prepared, str]]:
        """The last content of each path, with the temporary file that it lies in."""
        last = {one.content.relative_path: one for one in contents}
        for path in last:
            check_inside(path, self._tree)
            if path in self._rules.reserved:
                check_inside("", self._tree)
        return {
            path: (one, batch.stage(one.stored_path(path), one.document(self._now)))
            for path, one in last.items()
        }

    def _entry(self, path: str, one: Prepared) -> Entry:
        try:
            before = sha256_in(self._tree, path, one.format)
        except (OSError, ValueError):
            before = None
        return one.entry(path, self._now, replaces=before)
