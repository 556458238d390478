"""`ContextItem`: the state of one item of a session's context.

The fields are those of the PRD context-filesystem. They are never part of the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from policyctx.definitions.items import Item
from policyctx.planning.conversation import Conversation
from policyctx.planning.ledger import Ledger, LedgerEntry


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One item of a context: its identity, and whether it is still in the context."""

    item_id: str
    type: str
    """The item type of the policy."""
    tool: str | None = None
    tool_use_id: str | None = None
    offloaded: bool = False
    """Whether a step moved its content to a file of the store."""
    offload_path: str | None = None
    """Absolute path of that file."""
    destroyed: bool = False
    """Whether its content is no longer in the context, replaced by a placeholder or removed."""


def context_items(
    conversation: Conversation | None, ledger: Ledger, root: str
) -> tuple[ContextItem, ...]:
    """Return the items that left the session and are not in the list, then those of the list.

    `conversation` is the list that was given last, None if none was given since the start; `root`
    is the absolute path of the store's folder.
    """
    known = {} if conversation is None else conversation.entries()
    here = {entry.key for entry in known.values()}
    away = [_left(entry, root) for key, entry in ledger.entries.items() if key not in here]
    there = () if conversation is None else _in_list(conversation, known, root)
    return (*away, *there)


def _in_list(
    conversation: Conversation, known: dict[int, LedgerEntry], root: str
) -> Iterator[ContextItem]:
    for position, item in enumerate(conversation.items):
        if position in known:
            yield _left(known[position], root)
        elif item.inside in known:
            around = known[item.inside]
            yield _seen(item, path=_path(around, root), destroyed=True)
        else:
            yield _seen(item)


def _left(entry: LedgerEntry, root: str) -> ContextItem:
    path = _path(entry, root)
    return ContextItem(
        entry.item_id,
        entry.item_type,
        entry.tool,
        entry.key.tool_use_id,
        offloaded=path is not None,
        offload_path=path,
        destroyed=True,
    )


def _seen(item: Item, *, path: str | None = None, destroyed: bool = False) -> ContextItem:
    return ContextItem(
        item.item_id,
        item.type,
        item.tool,
        item.tool_use_id,
        offloaded=path is not None,
        offload_path=path,
        destroyed=destroyed,
    )


def _path(entry: LedgerEntry, root: str) -> str | None:
    return None if entry.relative_path is None else f"{root}/{entry.relative_path}"
