"""Saving the contents of one plan: all are written, all are waited for once, then all are named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from policyctx.store.naming import Names, check_inside
from policyctx.store.writing import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.store.content import Saved
    from policyctx.store.entries import Entry
    from policyctx.store.index import Index
    from policyctx.store.opening import Tree
    from policyctx.store.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Rules:
    """How a store writes."""

    on_conflict: Literal["suffix", "overwrite", "error"]
    flush: bool
    mode: int
    shares: bool
    """Is equal content stored once; that needs an index."""
    trusts: bool
    """Does the index know every name, packed ones too, as no other session uses the root."""
    reserved: frozenset[str] = frozenset()
    """Paths that no content may have."""


@dataclass(frozen=True, slots=True)
class Written:
    """What saving came to: answers for the caller, entries for the index."""

    saved: tuple[Saved, ...]
    entries: tuple[Entry, ...]
    reused: tuple[str, ...]
    """Paths of files that were there before."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A content with its path. It is there already, equal to another, or lies in `temporary`."""

    one: Prepared
    path: str
    reused: bool = False
    same_as: str | None = None
    """The path of an equal content in the store."""
    twin: int | None = None
    """The position of an equal content in this call."""
    temporary: str = ""


class Saving:
    """One call of `save`, without `overwrite`. Raises `OSError` and `StoreError`."""

    def __init__(
        self, tree: Tree, index: Index, rules: Rules, now: float, batch: str | None = None
    ) -> None:
        self._id = batch
        self._tree = tree
        self._index = index
        self._rules = rules
        self._now = now
        self._names = Names(tree, index, reserved=set(rules.reserved), trusts=rules.trusts)
        self._twins: dict[str, int] = {}

    def written(self, contents: Sequence[Prepared]) -> Written:
        """Write every content and return what became of each, in their order."""
        rules = self._rules
        with Batch(self._tree, mode=rules.mode, flush=rules.flush, of=self._id) as batch:
            placed = [self._placed(batch, i, one) for i, one in enumerate(contents)]
            batch.flush()
            named: list[_Placed] = []
            for one in placed:
                named.append(self._named(batch, one, named))
            batch.flush_folders()
        root = str(self._tree.root)
        return Written(
            tuple(p.one.saved(p.path, root, reused=p.reused, same_as=p.same_as) for p in named),
            tuple(p.one.entry(p.path, self._now, same_as=p.same_as) for p in named),
            tuple(p.one.stored_path(p.path) for p in named if p.reused or p.same_as),
        )

    def _placed(self, batch: Batch, position: int, one: Prepared) -> _Placed:
        check_inside(one.content.relative_path, self._tree)
        if one.content.wanted_path:
            check_inside(one.wanted, self._tree)
        exactly = self._rules.on_conflict == "error"
        path, occupant = (self._names.take_exactly if exactly else self._names.take)(one)
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
        return self._staged(batch, one, path)

    def _staged(self, batch: Batch, one: Prepared, path: str) -> _Placed:
        temporary = batch.stage(one.stored_path(path), one.document(self._now))
        return _Placed(one, path, temporary=temporary)

    def _named(self, batch: Batch, placed: _Placed, before: Sequence[_Placed]) -> _Placed:
        if placed.reused:
            return placed
        if placed.twin is not None:
            placed = replace(placed, same_as=before[placed.twin].path)
        while not placed.reused:
            try:
                self._name(batch, placed)
            except FileExistsError:
                placed = self._elsewhere(placed)
            except OSError as error:
                if placed.same_as is None:
                    raise
                placed = self._unlinked(batch, placed, error)
            else:
                break
        return placed

    def _name(self, batch: Batch, placed: _Placed) -> None:
        if placed.same_as is None:
            batch.name(placed.temporary, placed.one.stored_path(placed.path))
        else:
            batch.link(placed.same_as, placed.path)

    def _unlinked(self, batch: Batch, placed: _Placed, error: OSError) -> _Placed:
        """No link is to be had: the equal content's own file, or where that has gone, another."""
        if not isinstance(error, FileNotFoundError):
            return replace(placed, path=placed.same_as or placed.path, reused=True)
        placed = self._staged(batch, placed.one, placed.path)
        batch.flush()
        return placed

    def _elsewhere(self, placed: _Placed) -> _Placed:
        """Another writer was faster: the next name, or its file where that holds this very text."""
        self._names.lose(placed.path)
        exactly = self._rules.on_conflict == "error"
        path, occupant = (self._names.take_exactly if exactly else self._names.take)(placed.one)
        return replace(placed, path=path, reused=occupant == "itself")
