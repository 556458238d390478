"""Items of the Responses API: how calls are paired, and what counts as one reply."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policyctx.definitions.items import Message
from policyctx.messages.reading import Reading
from policyctx.messages.validity import new_problems

GO: Message = {"role": "user", "content": "go"}
EASY: Message = {"role": "assistant", "content": "I look."}
SUMMARY: Message = {"type": "message", "role": "user", "content": "So far."}
NOTED: Message = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Noted."}],
}
COMPACTION: Message = {"type": "compaction", "encrypted_content": "gAAA"}


def call(call_id: str, name: str = "read") -> Message:
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": call_id,
        "name": name,
        "arguments": "{}",
    }


def output(call_id: str) -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": "found"}


def reasoning(name: str) -> Message:
    return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": "gAAA"}


def read(messages: Sequence[Message]) -> Reading:
    reading = Reading()
    reading.extend(messages)
    return reading


def test_parallel_calls_of_one_id_are_paired_in_their_order() -> None:
    messages = [GO, call("a", "read"), call("a", "write"), output("a"), output("a")]
    assert [item.tool for item in read(messages).items] == [None, "read", "write", "read", "write"]


def test_a_call_with_an_empty_id_has_its_output() -> None:
    assert read([GO, call(""), output("")]).partners == {1: 2, 2: 1}


def test_an_easy_message_continues_the_reply_that_its_reasoning_begins() -> None:
    reading = read([GO, reasoning("1"), EASY, call("a"), output("a"), EASY, GO])
    assert reading.reply_of(2) == range(1, 4)
    assert list(reading.thought_of(2)) == [1, 2, 3]
    assert reading.is_bound(1)
    assert reading.reply_of(5) == range(5, 6)


def test_reasoning_and_the_easy_message_behind_it_are_not_parted() -> None:
    messages = [GO, reasoning("1"), EASY, call("a"), output("a"), GO]
    assert new_problems(messages, messages[:1] + messages[2:]) == [
        "a reply begins without the reasoning that led to it"
    ]
    assert new_problems(messages, [GO, *messages[:2], GO]) == [
        "reasoning is not followed by what it led to"
    ]


def test_a_text_that_a_client_wrote_needs_no_reasoning() -> None:
    messages = [GO, reasoning("1"), call("a"), output("a"), GO]
    assert new_problems(messages, [SUMMARY, NOTED, GO]) == []


def test_a_text_of_the_provider_needs_its_reasoning() -> None:
    said = NOTED | {"id": "msg_1"}
    assert new_problems([GO, reasoning("1"), said, GO], [GO, said, GO]) == [
        "a reply begins without the reasoning that led to it"
    ]


@pytest.mark.parametrize(
    "behind",
    [
        [call("a"), output("a")],
        [{"type": "web_search_call", "id": "ws_1", "status": "completed"}],
        [EASY, call("a"), output("a")],
    ],
)
def test_a_text_of_a_client_may_leave_a_reply_without_reasoning(behind: list[Message]) -> None:
    """Before, the next item of the reply then seemed to have lost its reasoning."""
    assert new_problems([GO, NOTED, *behind, GO], [GO, *behind, GO]) == []


@pytest.mark.parametrize("between", [[GO], [reasoning("1"), NOTED | {"id": "msg_1"}]])
def test_behind_a_text_of_a_client_a_message_of_another_shape_needs_no_reasoning(
    between: list[Message],
) -> None:
    made = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    chat: list[Message] = [
        {"role": "assistant", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
    ]
    assert new_problems([GO, NOTED, *between, *chat, GO], [GO, NOTED, *chat, GO]) == []


def test_behind_a_text_of_a_client_an_item_needs_the_reasoning_that_led_to_it() -> None:
    messages = [GO, NOTED, reasoning("1"), call("a"), output("a"), GO]
    assert new_problems(messages, messages[:2] + messages[3:]) == [
        "a reply begins without the reasoning that led to it"
    ]


def test_a_list_may_begin_with_an_item_of_the_provider() -> None:
    messages = [GO, reasoning("1"), call("a"), output("a"), COMPACTION, GO]
    assert new_problems(messages, [COMPACTION, SUMMARY, NOTED, GO]) == []


def test_a_list_may_end_with_an_item_of_an_unknown_type_but_not_with_a_reply() -> None:
    picture = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    reply = {"type": "message", "role": "assistant", "content": "done"}
    go = {"role": "user", "content": "go"}
    assert new_problems([go, picture, go], [go, picture]) == []
    assert new_problems([go, reply, go], [go, reply]) == ["the list ends with an assistant message"]


def test_an_empty_item_begins_a_reply_of_its_own() -> None:
    use = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    asked: Message = {"role": "assistant", "content": [use]}
    empty: Message = {"type": "message", "role": "assistant", "content": []}
    assert read([asked]).pending == 0
    assert read([asked, empty, EASY]).pending is None
    growing = read([asked, empty])
    growing.extend([EASY])
    assert growing.pending is None


def test_a_message_with_thinking_of_its_own_is_a_reply_of_its_own() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": "EqoB"}
    whole: Message = {"role": "assistant", "content": [thinking, {"type": "text", "text": "so"}]}
    reading = read([GO, NOTED, whole, EASY])
    assert reading.reply_of(1) == range(1, 2)
    assert reading.reply_of(2) == range(2, 3)
    assert not reading.is_bound(2)
