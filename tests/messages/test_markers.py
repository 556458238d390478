"""`cache_control` markers: where they may be, and what an item is without them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anthropic.types import TextBlock
from pydantic import BaseModel, ConfigDict

from policyctx.definitions.items import Message
from policyctx.messages.editing import block_of
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import markers_of, places_of, unmarked, with_markers
from policyctx.messages.reading import items_of
from tests.conversations import call, picture

MARKED = {"cache_control": {"type": "ephemeral"}}
MARKER = MARKED["cache_control"]


class Frozen(BaseModel):
    """A block of an SDK that declares the field."""

    model_config = ConfigDict(extra="forbid")
    type: str = "text"
    text: str
    cache_control: dict[str, str] | None = None


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": content, **more}


def user(*blocks: Any, **more: Any) -> Message:
    return {"role": "user", "content": [*blocks], **more}


def test_a_marker_may_be_on_the_message_a_block_and_a_block_in_a_result() -> None:
    message = user(text("a"), result([text("b"), text("c", **MARKED)], **MARKED), **MARKED)
    assert list(markers_of(message)) == [(), ("content", 1), ("content", 1, "content", 1)]
    assert unmarked(message) == user(text("a"), result([text("b"), text("c")]))
    assert places_of(message) == [
        (),
        ("content", 0),
        ("content", 1),
        ("content", 1, "content", 0),
        ("content", 1, "content", 1),
    ]


@pytest.mark.parametrize("content", ["words", None, [], ["odd", None], [text("a")]])
def test_a_message_without_markers_is_the_same_object(content: Any) -> None:
    message = {"role": "tool", "content": content}
    assert unmarked(message) is message
    assert with_markers(message, {}) is message
    assert markers_of(message) == {}


def test_markers_are_put_into_a_copy() -> None:
    message = user(text("a", **MARKED), result([text("b")]))
    before = copy.deepcopy(message)
    moved = with_markers(message, {("content", 1, "content", 0): MARKER})
    assert moved == user(text("a"), result([text("b", **MARKED)]))
    assert message == before
    assert with_markers(moved, markers_of(moved)) is moved


def test_a_field_of_that_name_in_the_input_of_a_call_is_data() -> None:
    message = call("a", "write", {**MARKED, "blocks": [MARKED]})
    assert unmarked(message) is message
    assert items_of([message])[0].text == compact_json({**MARKED, "blocks": [MARKED]})


def test_a_field_of_that_name_in_the_text_of_a_result_is_data() -> None:
    message = user(result(compact_json([MARKED])))
    assert unmarked(message) is message
    assert items_of([message])[0].text == compact_json([MARKED])


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(type="text", text="a", citations=None),
        Frozen(text="a"),
    ],
)
def test_the_marker_of_an_sdk_block_is_put_and_removed_in_a_copy(block: Any) -> None:
    message = user(block)
    sent = block.model_dump()
    marked = with_markers(message, {("content", 0): MARKER})
    assert markers_of(marked) == {("content", 0): MARKER}
    assert marked["content"][0].model_dump() == {**sent, **MARKED}
    assert unmarked(marked)["content"][0].model_dump() == sent
    assert unmarked(marked) == message
    assert block.model_dump() == sent
    assert unmarked(message) is message


@pytest.mark.parametrize(
    "message",
    [
        user(text("a")),
        user(picture()),
        user({"type": "search_result", "source": "x"}),
        user(result([text("b"), picture()])),
        user(result([TextBlock(type="text", text="a")])),
        {"role": "tool", "tool_call_id": "a", "content": [text("b"), text("c")]},
        {"role": "tool", "content": [result([text("b")])]},
    ],
)
def test_items_and_saved_blocks_are_the_same_with_markers_everywhere(message: Message) -> None:
    marked = with_markers(message, dict.fromkeys(places_of(message), MARKER))
    assert len(markers_of(marked)) == len(places_of(message))
    pairs = list(zip(items_of([marked]), items_of([message]), strict=True))
    for ours, theirs in pairs:
        assert ours == theirs
        assert block_of(marked, ours) == block_of(message, theirs)
