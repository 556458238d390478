"""Offload one result by an `ArrivalRule`, with the store alone.

The content is saved and recorded in the session's own store, by the same calls and in the same
order as in a session's turn. Whatever is unusual is left to a session.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from policyctx.definitions.actions import Action
from policyctx.errors import StoreError
from policyctx.planning.arrival_rule import Place
from policyctx.planning.ledger import Ledger, LedgerEntry, is_entry
from policyctx.store.content import Content, Origin
from policyctx.store.opening import session_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policyctx.definitions.items import FileLines
    from policyctx.planning.arrival_rule import ArrivalRule


class SavedArrival(NamedTuple):
    """The text that takes the place of a result, and the damage that the store has found."""

    placeholder: str
    notices: tuple[str, ...]


def saved_arrival(
    rule: ArrivalRule,
    result: Mapping[str, Any],
    given: object,
    *,
    session_id: str,
    root: str | None,
    sources: Mapping[str, FileLines],
) -> SavedArrival | None:
    """Save a result and record the decision; return None if a session has to decide.

    `result` is the block of the result, and `given` the input of its call. After None nothing is
    recorded, so a session decides as if this had not been called.
    """
    if not isinstance(given, dict):
        return None
    store = session_store(rule.store, session_id, root=root)
    where = Place(session_id, str(store.root), os.getcwd(), sources)
    tool_use_id, text = result["tool_use_id"], result["content"]
    try:
        ledger = _ledger(store.records())
        if ledger is None:
            return None
        call = json.dumps(given, ensure_ascii=False)
        arrival = rule.arrival(text, tool_use_id, call, ledger, where)
        if arrival is None:
            return None
        origin = Origin.of(arrival.item, tokens=None, block=dict(result))
        path = arrival.file.relative_path
        [file] = store.save([Content(path, text, path, origin)], recorded=True)
        store.remember([arrival.entry(file).record()])
    except StoreError:
        return None
    return SavedArrival(arrival.placeholder(file), store.notices)


def _ledger(records: Iterable[Mapping[str, Any]]) -> Ledger | None:
    """Return what the session has decided, None if there is more than offloaded items."""
    entries: list[LedgerEntry] = []
    for record in records:
        entry = LedgerEntry.of(record) if is_entry(record) else None
        if entry is None or entry.action is not Action.OFFLOAD:
            return None
        entries.append(entry)
    return Ledger(entries)
