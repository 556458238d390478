"""Edits for tests to make."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from policyctx.definitions.items import UNKNOWN, Item, Message
from policyctx.messages.editing import Edit, edited_message


def some_edits(items: Sequence[Item]) -> st.SearchStrategy[list[Edit]]:
    """Return a strategy for edits of some of the items, most of them removals."""
    able = [item for item in items if item.kind != UNKNOWN]
    if not able:
        return st.just([])
    texts = st.sampled_from((None, None, None, '{"short":"字"}'))
    chosen = st.dictionaries(st.sampled_from(range(len(able))), texts)
    return chosen.map(lambda found: [_edit(able[i], text) for i, text in found.items()])


def _edit(item: Item, text: str | None) -> Edit:
    return Edit(item, None if item.kind == "thinking" else text)


def edited(messages: Sequence[Message], edits: Sequence[Edit]) -> Sequence[Message]:
    """Return the messages with the edits made; a message without edits is the same object."""
    by_message = [[edit for edit in edits if edit.item.message == i] for i in range(len(messages))]
    pairs = zip(messages, by_message, strict=True)
    new = [edited_message(message, its) if its else message for message, its in pairs]
    return [message for message in new if message is not None]
