from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import BaseModel

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.editing import Edit, edited_message, keep_structure
from policyctx.messages.reading import items_of
from tests.messages.edits import edited
from tests.messages.odd_lists import (
    IMAGE,
    LEGACY_ANSWER,
    LEGACY_CALL,
    REDACTED,
    SEARCH,
    THINKING,
    answer,
    assistant,
    call,
    chat_call,
    chat_calls,
    result,
    text,
    user,
)


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


def test_a_list_of_blocks_in_a_result_is_replaced_by_the_text() -> None:
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


def edit_of(message: Message, *texts: str | None) -> Message | None:
    """Edit the first items of a message: a text each, None for a removal, "=" to leave it."""
    items = items_of([message])
    edits = [Edit(item, text) for item, text in zip(items, texts, strict=False) if text != "="]
    return edited_message(message, edits)


def test_the_input_of_a_call_is_replaced_by_an_object() -> None:
    new = edit_of(conversation()[1], "=", '{"path":"gone"}')
    assert new is not None
    assert new["content"][1] == {
        "type": "tool_use", "id": "a", "name": "read", "input": {"path": "gone"},
    }  # fmt: skip


def test_an_input_that_is_not_json_is_rejected() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        edit_of(conversation()[1], "=", "gone")


@pytest.mark.parametrize(
    ("call", "new"),
    [
        (chat_call("a", '{"n": 1}'), chat_call("a", '{"n":2}')),
        (chat_call("a", {"n": 1}), chat_call("a", {"n": 2})),
        (
            {"id": "a", "type": "custom", "custom": {"name": "run", "input": "1"}},
            {"id": "a", "type": "custom", "custom": {"name": "run", "input": '{"n":2}'}},
        ),
        (
            {"id": "a", "name": "read", "arguments": {"n": 1}},
            {"id": "a", "name": "read", "arguments": {"n": 2}},
        ),
    ],
)
def test_the_input_of_a_chat_call_keeps_its_form(call: dict[str, Any], new: dict[str, Any]) -> None:
    assert edit_of(chat_calls(call), '{"n":2}') == chat_calls(new)


def test_the_arguments_of_a_legacy_call_are_replaced() -> None:
    new = edit_of(LEGACY_CALL, "{}")
    assert new is not None
    assert new["function_call"] == {"name": "read", "arguments": "{}"}


@pytest.mark.parametrize(
    ("kind", "text_kind"),
    [
        ("image", "text"),
        ("document", "text"),
        ("image_url", "text"),
        ("file", "text"),
        ("input_image", "input_text"),
        ("input_file", "input_text"),
    ],
)
def test_a_medium_is_replaced_by_a_text_block(kind: str, text_kind: str) -> None:
    message = user({"type": kind, "detail": "low"}, text("and?"))
    assert edit_of(message, "gone") == user({"type": text_kind, "text": "gone"}, text("and?"))


def test_a_replaced_medium_keeps_its_marker() -> None:
    marked = {"cache_control": {"type": "ephemeral"}}
    message = user({**IMAGE, **marked}, result("a", [{**IMAGE, **marked}]))
    left = {**text("gone"), **marked}
    assert edit_of(message, "gone", "=", "gone") == user(left, result("a", [left]))


def test_an_image_inside_a_result_is_replaced_and_the_result_stays() -> None:
    message = user(result("a", [text("seen"), IMAGE]))
    assert edit_of(message, "=", "gone") == user(result("a", [text("seen"), text("gone")]))


def test_an_image_inside_a_tool_message_is_replaced() -> None:
    assert edit_of(answer("a", [IMAGE]), "=", "gone") == answer("a", [text("gone")])


def test_a_replaced_result_removes_its_nested_items() -> None:
    message = user(result("a", [IMAGE, text("seen"), IMAGE]))
    assert edit_of(message, "gone", "one", None) == user(result("a", "gone"))


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_replaced_result_block_of_a_tool_message_keeps_its_other_fields(role: str) -> None:
    block = {**result("a", [text("seen"), IMAGE]), "is_error": True, "cache_control": {}}
    message = {**user(block, result("b", "x")), "role": role}
    new = edit_of(message, "gone", "=", "=")
    assert new == {"role": role, "content": [{**block, "content": "gone"}, result("b", "x")]}


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_tool_message_without_its_last_result_block_is_gone(role: str) -> None:
    message = {**user(result("a", "x"), result("b", "y")), "role": role}
    assert edit_of(message, None, "=") == {"role": role, "content": [result("b", "y")]}
    assert edit_of(message, None, None) is None


def test_removals_do_not_shift_other_edits() -> None:
    message = user(text("a"), IMAGE, text("b"), result("c", [IMAGE, text("d"), IMAGE]), text("e"))
    new = edit_of(message, None, None, "B", "=", None, "D", "E")
    assert new == user(text("B"), result("c", [text("d"), text("D")]), text("E"))


def test_a_removed_result_takes_its_block_along() -> None:
    message = user(result("a"), result("b"))
    assert edit_of(message, None) == user(result("b"))


def test_a_result_has_a_short_text_when_all_inside_is_removed() -> None:
    left = user(result("a", "[Content removed]"))
    assert edit_of(user(result("a", [IMAGE])), "=", None) == left
    assert edit_of(answer("a", [IMAGE]), "=", None) == answer("a", "[Content removed]")


def test_thinking_is_removed_whole() -> None:
    assert edit_of(assistant(THINKING, REDACTED, text("hi")), None, None) == assistant(text("hi"))


@pytest.mark.parametrize(
    ("message", "change"),
    [(assistant(THINKING), "gone"), (assistant(SEARCH), "gone"), (assistant(SEARCH), None)],
)
def test_editing_a_signed_or_unknown_block_is_rejected(
    message: Message, change: str | None
) -> None:
    with pytest.raises(ValueError, match="keeps its bytes"):
        edit_of(message, change)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "go"},
        user(text("go")),
        assistant(call("a")),
        chat_calls(chat_call("a")),
        LEGACY_CALL,
        user(result("a")),
        answer("a"),
        LEGACY_ANSWER,
    ],
)
def test_a_message_without_remaining_content_is_removed(message: Message) -> None:
    assert edit_of(message, None) is None
    other: Message = {"role": "user", "content": "go"}
    assert edited([other, message], [Edit(items_of([other, message])[1], None)]) == [other]


def test_a_reply_that_only_calls_keeps_no_empty_content() -> None:
    message = chat_calls(chat_call("a"), content="reading")
    assert edit_of(message, None) == chat_calls(chat_call("a"))
    message = chat_calls(chat_call("a"), content=[text("reading")])
    assert edit_of(message, None) == chat_calls(chat_call("a"))


def test_a_reply_without_its_calls_keeps_no_empty_list_of_them() -> None:
    message = chat_calls(chat_call("a"), content="reading")
    assert edit_of(message, "=", None) == {"role": "assistant", "content": "reading"}


def test_one_of_two_calls_may_be_removed() -> None:
    message = chat_calls(chat_call("a"), chat_call("b"), content="")
    assert edit_of(message, None) == chat_calls(chat_call("b"), content="")


def test_a_refusal_counts_as_content() -> None:
    message: Message = {"role": "assistant", "content": "no", "refusal": "no!"}
    assert edit_of(message, None) == {"role": "assistant", "content": None, "refusal": "no!"}


def test_reasoning_beside_the_content_is_not_changed() -> None:
    message: Message = {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    assert edit_of(message, "gone") == {**message, "content": "gone"}


def test_blocks_may_come_as_a_tuple() -> None:
    message: Message = {"role": "user", "content": (text("a"), IMAGE)}
    assert edit_of(message, None) == user(IMAGE)
    assert edit_of(message, "=", "gone") == user(text("a"), text("gone"))


def test_a_message_that_cannot_be_copied_is_named() -> None:
    message: Message = {"role": "user", "content": "go", "more": (i for i in "a")}
    with pytest.raises(MessagesError, match="message 0: cannot be copied") as caught:
        edit_of(message, "gone")
    assert caught.value.index == 0


class SdkCall(BaseModel):
    type: str = "tool_use"
    id: str = "a"
    name: str = "read"
    input: dict[str, object]


class SdkFunction(BaseModel):
    name: str = "read"
    arguments: str


class SdkChatCall(BaseModel):
    id: str = "a"
    function: SdkFunction


def test_the_input_of_an_sdk_object_is_replaced_as_well() -> None:
    sent = SdkCall(input={"path": "x"})
    new = edit_of({"role": "assistant", "content": [sent]}, '{"path":"gone"}')
    assert new == {"role": "assistant", "content": [SdkCall(input={"path": "gone"})]}
    assert sent.input == {"path": "x"}


def test_the_arguments_of_an_sdk_object_are_replaced_as_well() -> None:
    sent = SdkChatCall(function=SdkFunction(arguments='{"n": 1}'))
    message: Message = {"role": "assistant", "content": None, "tool_calls": [sent]}
    new = edit_of(message, '{"n":2}')
    assert new is not None
    assert new["tool_calls"] == [SdkChatCall(function=SdkFunction(arguments='{"n":2}'))]
    assert sent.function.arguments == '{"n": 1}'


def test_an_sdk_object_is_removed_whole() -> None:
    message: Message = {"role": "assistant", "content": [SdkText(text="a"), SdkText(text="b")]}
    assert edit_of(message, None) == {"role": "assistant", "content": [SdkText(text="b")]}


REPLY = [
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
]
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
PHOTO = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    ("content", "text", "keeps"),
    [
        (REPLY, "short", True),
        (REPLY, None, False),
        (REPLY, "", False),
        (REPLY, " \n", False),
        ([THINKING, *REPLY], "short", False),
        ([PHOTO], "short", False),
    ],
)
def test_only_new_texts_without_thinking_keep_the_structure(
    content: list[dict[str, Any]], text: str | None, *, keeps: bool
) -> None:
    items = items_of([{"role": "assistant", "content": content}])
    item = next(item for item in items if item.kind != "thinking")
    assert keep_structure(items, [Edit(item, text)]) is keeps
