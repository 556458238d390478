"""Contents and events of a store as rows for people and as plain values for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from policyctx.store.retain import states_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.store.filesystem import ContextFileSystem
    from policyctx.store.index import IndexEntry
    from policyctx.store.journal import Event
    from policyctx.store.retain import CollectionReport

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_THOUSAND = 1000


def entry_report(entry: IndexEntry, store: ContextFileSystem, session: str) -> dict[str, Any]:
    """Return what is known of a content, for `--json`; its block is left out."""
    known = {k: v for k, v in entry.as_json().items() if k not in {"block", "text_at", "text_as"}}
    return {**known, "path": f"{store.root}/{entry.path}", "session": session}


def entry_rows(stores: dict[str, ContextFileSystem]) -> Iterable[tuple[str, IndexEntry, str]]:
    """Yield session, content and what became of its item, oldest first within a session."""
    for session, store in stores.items():
        states = states_of(store.records(), [str(store.root)])
        for entry in store.list():
            state = states.get((entry.item_id, entry.path))
            yield session, entry, state or ""


def entry_cells(entry: IndexEntry, state: str) -> tuple[object, ...]:
    """Return the cells of a content's row: item, type, tool, tokens, chars, saved, state, path."""
    origin = entry.origin
    return (
        entry.item_id or "",
        origin.item_type if origin else "",
        (origin.tool_name if origin else "") or "",
        origin.tokens if origin and origin.tokens is not None else "",
        entry.chars,
        moment(entry.saved_at),
        state,
        entry.path if entry.same_as is None else f"{entry.path} (same as {entry.same_as})",
    )


def event_report(event: Event, session: str) -> dict[str, Any]:
    """Return an event as plain values, for `--json`."""
    return {
        "time": event.time,
        "what": event.what,
        "item_id": event.item_id,
        "path": event.path,
        "why": event.why or None,
        "session": session,
    }


def collection_report(done: CollectionReport) -> dict[str, Any]:
    """Return what `gc` did as plain values, for `--json`."""
    return {
        "dry_run": done.is_dry_run,
        "removed": [
            {"path": e.path, "item_id": e.item_id, "rule": rule} for e, rule in done.removed
        ],
        "packed": [{"path": e.path, "item_id": e.item_id} for e in done.packed],
        "bytes_before": done.size_before,
        "bytes_after": done.size_after,
    }


def moment(seconds: float) -> str:
    """Return a time as people read it, in UTC; `?` for one that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return "?"


def bytes_shown(number: int) -> str:
    """Return `512 bytes`, `3.4 kB`, `1.2 GB`."""
    value, unit = float(number), 0
    while value >= _THOUSAND and unit < len(_UNITS) - 1:
        value, unit = value / _THOUSAND, unit + 1
    return f"{number} {_UNITS[0]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def counted(number: int, word: str) -> str:
    """Return `1 content`, `2 contents`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
