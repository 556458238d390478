from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import Reading, checked_messages, items_of


def user(*blocks: dict[str, Any]) -> Message:
    return {"role": "user", "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(call_id: str | None, content: str = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def reply(*calls: tuple[str | None, str]) -> Message:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": i, "name": name, "input": {}} for i, name in calls],
    }


def test_an_empty_list_has_no_items() -> None:
    assert items_of([]) == ()


def test_items_come_in_the_order_of_the_messages() -> None:
    items = items_of([{"role": "user", "content": "go"}, reply(("a", "read")), user(result("a"))])
    assert [(item.message, item.type) for item in items] == [
        (0, "user_message"), (1, "tool_call"), (2, "tool_result"),
    ]  # fmt: skip


def test_a_result_has_the_tool_of_its_call_and_knows_where_it_was_made() -> None:
    *_, found = items_of([reply(("a", "read")), user(result("a"))])
    assert (found.tool, found.call_message) == ("read", 0)


def test_a_chat_result_finds_its_call_across_the_results_of_others() -> None:
    calls = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": "{}"}}
        for i, n in (("a", "read"), ("b", "search"))
    ]
    messages: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "found"},
        {"role": "tool", "tool_call_id": "a", "content": "text"},
    ]
    assert [(i.tool, i.call_message) for i in items_of(messages)[2:]] == [
        ("search", 0), ("read", 0),
    ]  # fmt: skip


def test_an_id_used_again_belongs_to_the_call_made_last() -> None:
    messages = [reply(("a", "read")), user(result("a")), reply(("a", "write")), user(result("a"))]
    results = [item for item in items_of(messages) if item.type == "tool_result"]
    assert [(item.tool, item.call_message) for item in results] == [("read", 0), ("write", 2)]


def test_an_id_used_twice_in_one_reply_is_answered_in_the_order_of_the_calls() -> None:
    messages = [reply(("a", "read"), ("a", "write")), user(result("a"), result("a"))]
    results = [item for item in items_of(messages) if item.type == "tool_result"]
    assert [item.tool for item in results] == ["read", "write"]


def test_a_result_before_its_call_has_no_call() -> None:
    found, _ = items_of([user(result("a")), reply(("a", "read"))])
    assert (found.tool, found.call_message) == (None, None)


def test_a_second_result_for_one_call_belongs_to_it_too() -> None:
    reading = Reading()
    reading.extend([reply(("a", "read")), user(result("a")), user(result("a", "more"))])
    assert (reading.items[2].tool, reading.items[2].call_message) == ("read", 0)
    assert reading.partners == {0: 1, 1: 0, 2: 0}
    assert [[*reading.bound_to(i)] for i in range(3)] == [[1, 2], [0], [0]]


def test_an_id_that_is_called_again_belongs_to_the_later_call() -> None:
    messages = [
        reply(("a", "read")),
        {"role": "user", "content": "never mind"},
        reply(("a", "write")),
        user(result("a", "1")),
    ]
    found = items_of(messages)[-1]
    assert (found.tool, found.call_message) == ("write", 2)


def test_a_result_without_an_id_answers_no_call() -> None:
    *_, found = items_of([reply(("", "read")), user(result(None))])
    assert found.call_message is None


def test_a_call_knows_its_own_message() -> None:
    _, call = items_of([{"role": "user", "content": "go"}, reply(("a", "read"))])
    assert call.call_message == 1


def legacy_call(name: str) -> Message:
    call = {"name": name, "arguments": "{}"}
    return {"role": "assistant", "content": None, "function_call": call}


def test_a_legacy_call_is_answered_under_its_name() -> None:
    messages: list[Message] = [
        legacy_call("read"),
        {"role": "function", "name": "search", "content": "none"},
        {"role": "function", "name": "read", "content": "found"},
    ]
    _, other, found = items_of(messages)
    assert (other.call_message, found.call_message) == (None, 0)


@pytest.mark.parametrize("role", ["tool", "function"])
def test_result_blocks_of_a_tool_message_belong_to_their_calls(role: str) -> None:
    messages = [
        reply(("a", "read"), ("b", "search")),
        {**user(result("b"), result("a")), "role": role},
    ]
    *_, first, second = items_of(messages)
    assert [(one.tool, one.call_message) for one in (first, second)] == [("search", 0), ("read", 0)]


def test_a_bad_block_beside_a_result_block_of_a_tool_message_is_refused() -> None:
    with pytest.raises(MessagesError, match="message 0: content block 1: expected an object"):
        items_of([{"role": "tool", "content": [result("a"), "text"]}])


def test_the_name_of_a_legacy_call_is_not_an_id() -> None:
    _, found = items_of([legacy_call("read"), user(result("read"))])
    assert found.call_message is None


def test_a_call_and_its_result_know_each_other_by_position() -> None:
    reading = Reading()
    reading.extend([{"role": "user", "content": "go"}, reply(("a", "read"), ("b", "search"))])
    assert reading.partners == {}
    reading.extend([user(result("b"), result("a"))])
    assert reading.partners == {1: 4, 4: 1, 2: 3, 3: 2}


def test_an_item_inside_a_result_inherits_the_tool_and_call_of_the_result() -> None:
    image = {"type": "image", "source": {}}
    found = {"type": "tool_result", "tool_use_id": "a", "content": [image]}
    *_, inside = items_of([reply(("a", "read")), user(found)])
    assert (inside.kind, inside.tool, inside.call_message) == ("image", "read", 0)


def test_a_call_is_pending_until_all_of_its_reply_are_answered() -> None:
    reading = Reading()
    told = []
    for message in (reply(("a", "read"), ("b", "read")), user(result("a")), user(result("b"))):
        reading.extend([message])
        told.append(reading.pending)
    assert told == [0, 0, None]


def test_a_call_that_the_agent_went_on_without_is_not_pending() -> None:
    reading = Reading()
    reading.extend([reply(("a", "read")), {"role": "assistant", "content": "never mind"}])
    assert reading.pending is None


def test_an_empty_reply_does_not_end_the_wait_for_an_answer() -> None:
    reading = Reading()
    reading.extend([reply(("a", "read")), {"role": "assistant", "content": ""}])
    assert reading.pending == 0


def test_turns_are_known_by_their_first_messages() -> None:
    reading = Reading()
    reading.extend([{"role": "user", "content": "go"}, reply(("a", "read")), user(result("a"))])
    reading.extend([{"role": "user", "content": "more"}])
    assert reading.turn_starts == [0, 3]


def test_an_invalid_message_is_named_by_its_index_in_the_whole_list() -> None:
    reading = Reading()
    reading.extend([{"role": "user", "content": "go"}] * 3)
    with pytest.raises(MessagesError, match="message 4: expected") as caught:
        reading.extend([{"role": "user", "content": "go"}, {"role": "user", "content": 5}])
    assert caught.value.index == 4
    assert reading.message_count == 3


def test_messages_may_be_checked_from_a_place_on() -> None:
    with pytest.raises(MessagesError) as caught:
        checked_messages([{"role": "user", "content": 5}], first=7)
    assert caught.value.index == 7


def test_an_sdk_object_that_is_not_json_is_rejected() -> None:
    class Block(BaseModel):
        type: str = "image"
        source: object = lambda: None

    with pytest.raises(MessagesError, match="message 0: not JSON"):
        items_of([{"role": "user", "content": [Block()]}])


def test_a_turn_begins_with_a_user_message_that_is_not_a_result() -> None:
    messages = [
        {"role": "user", "content": "go"},
        reply(("a", "read")),
        user(result("a")),
        {"role": "assistant", "content": "done"},
        user(text("more")),
    ]
    assert [item.turn for item in items_of(messages)] == [1, 1, 1, 1, 2]


def test_a_turn_begins_with_words_beside_a_result() -> None:
    messages = [
        {"role": "user", "content": "go"},
        reply(("a", "read")),
        user(result("a"), text("!")),
    ]
    assert items_of(messages)[-1].turn == 2


def test_a_system_prompt_stands_before_the_first_turn() -> None:
    assert items_of([{"role": "system", "content": "Be brief."}])[0].turn == 0


def test_an_item_is_named_by_its_tool_use_id_or_by_its_message() -> None:
    items = items_of([{"role": "user", "content": "go"}, reply(("a", "read"))])
    assert [item.item_id for item in items] == ["msg_001", "a"]


@pytest.mark.parametrize(
    ("messages", "kind"),
    [("hello", "a string"), ({"role": "user"}, "an object"), (None, "nothing"), (5, "a number")],
)
def test_a_value_that_is_not_a_list_is_rejected_with_its_type(messages: object, kind: str) -> None:
    with pytest.raises(MessagesError, match=f"expected a list of messages, got {kind}"):
        checked_messages(messages)


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("hello", 'expected an object with "role" and "content", got a string'),
        ({"content": "hello"}, 'expected "role" to be a string such as "user", got nothing'),
        ({"role": 5}, 'expected "role" to be a string such as "user", got a number'),
        ({"role": "user", "content": 5}, 'expected "content" to be a string or a list'),
        ({"role": "user", "content": {"type": "text"}}, "or a list of blocks, got an object"),
        ({"role": "user", "content": ["hello"]}, "content block 0: expected an object, got a str"),
        ({"role": "user", "content": [None]}, "content block 0: expected an object, got nothing"),
        ({"role": "user", "content": [{"text": "hello"}]}, 'content block 0: expected "type"'),
        ({"role": "assistant", "content": [text("x"), {"type": 5}]}, "content block 1"),
    ],
)
def test_an_invalid_message_is_named_with_the_reason(message: object, wrong: str) -> None:
    with pytest.raises(MessagesError) as caught:
        items_of([{"role": "user", "content": "go"}, message])
    assert str(caught.value).startswith("message 1: ")
    assert wrong in str(caught.value)
    assert caught.value.index == 1


@pytest.mark.parametrize("calls", [5, True, {"id": "a"}, "abc", [5]])
def test_tool_calls_that_are_not_a_list_of_objects_are_rejected(calls: object) -> None:
    with pytest.raises(MessagesError, match="tool_calls"):
        items_of([{"role": "assistant", "content": None, "tool_calls": calls}])


@pytest.mark.parametrize("call", ["read", 5, ["read"]])
def test_a_legacy_call_that_is_not_an_object_is_rejected(call: object) -> None:
    with pytest.raises(MessagesError, match="function_call"):
        items_of([{"role": "assistant", "content": None, "function_call": call}])


@pytest.mark.parametrize("kind", [["image"], {"is": "image"}])
def test_a_part_of_a_result_with_an_odd_type_does_not_stop_the_reading(kind: object) -> None:
    holder = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": kind}]}
    for message in (
        user(holder),
        {"role": "tool", "tool_call_id": "a", "content": [{"type": kind}]},
    ):
        assert [item.type for item in items_of([message])] == ["tool_result"]


def test_good_messages_are_returned_as_they_are() -> None:
    messages = [{"role": "user", "content": "go"}]
    assert checked_messages(messages) is messages
