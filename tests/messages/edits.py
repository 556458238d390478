"""Edits for tests to make."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from policyctx.definitions.items import UNKNOWN, Item
from policyctx.messages.editing import Edit


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
