from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from policyctx.messages.editing import Edit, edited
from policyctx.messages.reading import items_of

if TYPE_CHECKING:
    from policyctx.messages.items import Message


def conversation() -> list[Message]:
    return [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": ["x"]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]},
                {"type": "text", "text": "and?"},
            ],
        },
    ]


def test_without_texts_the_very_same_list_comes_back() -> None:
    messages = conversation()
    assert edited(messages, []) is messages


def test_the_text_of_a_string_message_is_replaced() -> None:
    messages = conversation()
    assert edited(messages, [Edit(items_of(messages)[0], "gone")])[0] == {
        "role": "user", "content": "gone",
    }  # fmt: skip


def test_the_text_of_a_block_is_replaced_and_its_neighbours_stay() -> None:
    messages = conversation()
    new = edited(messages, [Edit(items_of(messages)[1], "gone")])[1]
    assert new["content"][0] == {"type": "text", "text": "gone"}
    assert new["content"][1] == messages[1]["content"][1]


def test_a_list_of_blocks_in_a_result_gives_way_to_the_text() -> None:
    messages = conversation()
    result = items_of(messages)[3]
    new = edited(messages, [Edit(result, "gone")])[2]["content"]
    assert new[0] == {"type": "tool_result", "tool_use_id": "a", "content": "gone"}
    assert new[1] == {"type": "text", "text": "and?"}


def test_two_texts_of_one_message_are_both_replaced() -> None:
    messages = conversation()
    *_, result, words = items_of(messages)
    new = edited(messages, [Edit(result, "one"), Edit(words, "two")])[2]["content"]
    assert (new[0]["content"], new[1]["text"]) == ("one", "two")


def test_the_input_is_not_changed() -> None:
    messages = conversation()
    before = copy.deepcopy(messages)
    edited(
        messages, [Edit(item, "gone") for item in items_of(messages) if item.type != "tool_call"]
    )
    assert messages == before


def test_an_untouched_message_is_the_same_object() -> None:
    messages = conversation()
    new = edited(messages, [Edit(items_of(messages)[1], "gone")])
    assert [new[i] is messages[i] for i in range(3)] == [True, False, True]


def test_a_touched_message_shares_nothing_that_can_be_changed() -> None:
    messages = conversation()
    new: Any = edited(messages, [Edit(items_of(messages)[1], "gone")])
    new[1]["content"][1]["input"]["path"].append("y")
    assert messages[1]["content"][1]["input"] == {"path": ["x"]}


class SdkText(BaseModel):
    type: str = "text"
    text: str


def test_the_text_in_an_sdk_object_is_replaced_as_well() -> None:
    message: Message = {"role": "assistant", "content": [SdkText(text="a long answer")]}
    (new,) = edited([message], [Edit(items_of([message])[0], "gone")])
    assert items_of([new])[0].text == "gone"
    assert items_of([message])[0].text == "a long answer"
