"""Saving into a store with an index: the files first, then the entries that tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.store.index import Index
from policyctx.store.overwriting import Overwriting
from policyctx.store.retention import GRACE_S
from policyctx.store.saving import Saving

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree
    from policyctx.store.prepared import Prepared
    from policyctx.store.saving import Rules, Written
    from policyctx.store.state import State


def committed(
    tree: Tree,
    state: State | None,
    rules: Rules,
    contents: Sequence[Prepared],
    now: float,
    *,
    batch: str | None,
) -> Written | None:
    """Save all contents; None when others changed what was counted on, and all is to be redone.

    The files of a `batch` are in flight: the index need not wait for the disk, since the records
    that name them will. Raises `OSError` and `StoreError`. What has its name by then stays.
    """
    if rules.on_conflict == "overwrite":
        return _overwritten(tree, state, rules, contents, now, batch=batch)
    index = Index() if state is None else state.loaded(tree)
    written = Saving(tree, index, rules, now, batch).written(contents)
    if state is None:
        return written
    with state.writing(tree) as index:
        # `collect` may have removed an older file of this name, and with it the new one.
        if not all(_is_there(tree, one.file.relative_path) for one in written.saved):
            return None
        taken = [entry.path for entry in written.entries if _is_taken(entry, index)]
        if taken:
            _withdraw(tree, set(taken) - set(written.reused))
            return None
        new = [entry for entry in written.entries if _is_news(entry, index)]
        moved = _announced_anew(batch, index, written.entries)
        if new or moved:
            state.append(tree, entries=new, in_flight=moved, flush=batch is None)
    return written


def _overwritten(
    tree: Tree,
    state: State | None,
    rules: Rules,
    contents: Sequence[Prepared],
    now: float,
    *,
    batch: str | None,
) -> Written:
    if state is None:
        return Overwriting(tree, rules, now, lambda _: None).written(contents)

    def announce(entries: Sequence[Entry]) -> None:
        state.append(tree, entries=entries)

    with state.writing(tree):  # or another could name its own files between ours
        return Overwriting(tree, rules, now, announce, batch).written(contents)


def _is_there(tree: Tree, path: str) -> bool:
    folder, name = tree.place(path)
    try:
        folder.stat(name)
    except FileNotFoundError:
        return False
    return True


def _is_taken(entry: Entry, index: Index) -> bool:
    """Has another process given the name to a content that lies packed, or was removed by hand."""
    known = index.at(entry.path)
    return known is not None and known.sha256 != entry.sha256


def _announced_anew(
    batch: str | None, index: Index, entries: Iterable[Entry]
) -> dict[str, list[str]]:
    """Return the paths of a batch where they are not those that it was about to use."""
    paths = {entry.path for entry in entries}
    if batch is None or paths == index.in_flight.paths(batch):
        return {}
    return {batch: sorted(paths)}


def _withdraw(tree: Tree, paths: Iterable[str]) -> None:
    for path in paths:
        folder, name = tree.place(path)
        folder.remove(name)


def _is_news(entry: Entry, index: Index) -> bool:
    """Does an entry tell something new, or renew what `collect` might soon take for left over."""
    known = index.of(entry.path, entry.item_id)
    if known is None or known.sha256 != entry.sha256:
        return True
    return abs(entry.saved_at - known.saved_at) > GRACE_S / 2
