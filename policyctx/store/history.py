"""What happened to the contents of a session, as its journal tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from policyctx.store.entries import entry_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.store.entries import Entry


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one content."""

    what: Literal["saved", "packed", "removed"]
    path: str
    """Below the root."""
    time: float
    """Seconds since 1970, by the clock of that moment."""
    item_id: str | None = None
    entry: Entry | None = None
    """What was saved, where that is known."""
    why: str = ""
    """For what was removed."""


def events(lines: Iterable[object]) -> Iterator[Event]:
    """Yield what the lines of a journal tell, in the order in which it happened."""
    last: dict[str, Entry] = {}
    for line in lines:
        if not isinstance(line, dict) or len(line) != 1:
            continue
        ((kind, value),) = line.items()
        if kind == "saved" and (entry := entry_of(value)) is not None:
            last[entry.path] = entry
            yield Event("saved", entry.path, entry.saved_at, entry.item_id, entry)
        elif kind in {"packed", "removed"} and isinstance(value, dict):
            path, time = value.get("path"), value.get("time")
            if isinstance(path, str) and isinstance(time, (int, float)):
                known = last.get(path)
                item_id = known.item_id if known else None
                yield Event(kind, path, time, item_id, known, str(value.get("why", "")))
