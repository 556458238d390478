"""Which contents may go, and which may be packed: nothing that a live placeholder names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.definitions.actions import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policyctx.store.content import JSON
    from policyctx.store.entries import Entry
    from policyctx.store.index import Index

# What was saved so short a while ago may be named by a placeholder that is not recorded yet.
GRACE_S = 3600.0
# States of an item whose placeholder is no longer in the context.
GONE = frozenset(action.past for action in Action if not action.keeps_place)
# Packing less than this, in bytes, gains no block of a disk.
_LEAST_PACKED = 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """One file, with every entry of every session that names it, the newest last."""

    path: str
    entries: tuple[Entry, ...]
    size: int
    """Bytes on the disk; files with one `number` take them together."""
    number: tuple[int, int]
    is_live: bool
    """Is it named by a placeholder, or so new that one may."""
    is_packed: bool

    @property
    def saved_at(self) -> float:
        """When it was saved last."""
        return max(entry.saved_at for entry in self.entries)

    @property
    def is_adopted(self) -> bool:
        """Was it found on the disk; then it may be anyone's, and is left alone."""
        return any(entry.adopted for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Choice:
    """What `collect` is to do."""

    removed: tuple[tuple[Kept, str], ...]
    """Files with the rule that each goes by."""
    packed: tuple[Kept, ...]
    size_before: int
    size_after: int
    """Bytes once the removed are gone; what packing gains is not counted."""


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
            states[known, _relative(path, roots)] = state
    return states


def is_young(entry: Entry, now: float) -> bool:
    """May a placeholder be about to name it; so it may when the clock has stepped back since."""
    return now - entry.saved_at < GRACE_S


def chosen(
    files: Sequence[Kept], now: float, *, max_age: float | None, max_bytes: int | None, packs: bool
) -> Choice:
    """Choose what goes and what is packed; `files` are in the order in which they were saved."""
    names = Counter(file.number for file in files)
    before = left = size_of(files)
    removed: list[tuple[Kept, str]] = []
    for file in _removable(files):
        if max_age is not None and now - file.saved_at > max_age:
            removed.append((file, "max_age"))
        elif max_bytes is not None and left > max_bytes:
            removed.append((file, "max_bytes"))
        else:
            continue
        names[file.number] -= 1
        left -= 0 if names[file.number] else file.size
    gone = {file.path for file, _ in removed}
    packed = (file for file in _packable(files) if file.path not in gone) if packs else ()
    return Choice(tuple(removed), tuple(packed), before, left)


def size_of(files: Iterable[Kept]) -> int:
    """Return the bytes that files take, those of several names once."""
    return sum({file.number: file.size for file in files}.values())


def _removable(files: Iterable[Kept]) -> Iterable[Kept]:
    return (file for file in files if not file.is_live and not file.is_adopted)


def _packable(files: Sequence[Kept]) -> Iterable[Kept]:
    """What no live name needs as it is; packing one name of a live content would store it twice."""
    live = {file.entries[-1].sha256 for file in files if file.is_live}
    return (
        file
        for file in _removable(files)
        if not file.is_packed
        and file.entries[-1].sha256 not in live
        and file.entries[-1].size >= _LEAST_PACKED
    )


def _relative(path: str, roots: Iterable[str]) -> str:
    for root in roots:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return path
