from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.editing import Edit, edited_message
from policyctx.messages.items import UNKNOWN
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems, new_problems_around
from tests.strategies import message_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Item, Message


@given(messages=message_lists(), data=st.data())
def test_around_the_edits_the_same_is_found_as_in_the_whole_lists(
    messages: list[Message], data: st.DataObject
) -> None:
    items = items_of(messages)
    edits = data.draw(some_edits(items))
    after = aligned(messages, edits)
    changed = {edit.item.message for edit in edits}
    left = [message for message in after if message is not None]
    found = new_problems_around(messages, after, changed, items)
    assert sorted(found) == sorted(new_problems(messages, left))


def some_edits(items: Sequence[Item]) -> st.SearchStrategy[list[Edit]]:
    """Return a strategy for edits of some items, most of them removals."""
    able = [item for item in items if item.kind != UNKNOWN]
    texts = st.sampled_from((None, None, None, '{"short":1}'))
    drawn = st.dictionaries(st.sampled_from(range(len(able) or 1)), texts)
    return drawn.map(
        lambda chosen: [
            Edit(able[i], None if able[i].kind == "thinking" else text)
            for i, text in chosen.items()
            if able
        ]
    )


def aligned(messages: Sequence[Message], edits: Sequence[Edit]) -> list[Message | None]:
    """Return the edited messages, each where it was, None for those that are gone."""
    after: list[Message | None] = list(messages)
    for i in {edit.item.message for edit in edits}:
        after[i] = edited_message(messages[i], [e for e in edits if e.item.message == i])
    return after
