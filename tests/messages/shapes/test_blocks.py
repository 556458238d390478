from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from policyctx.definitions.items import UNKNOWN, Message
from policyctx.messages.json_text import as_mapping, compact_json
from policyctx.messages.reading import items_of

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}


def types(message: Message) -> list[str]:
    return [item.type for item in items_of([message])]


@pytest.mark.parametrize(
    ("role", "item_type"),
    [
        ("system", "system_prompt"),
        ("developer", "system_prompt"),
        ("user", "user_message"),
        ("assistant", "assistant_message"),
    ],
)
def test_the_role_gives_a_text_its_type(role: str, item_type: str) -> None:
    assert types({"role": role, "content": "hello"}) == [item_type]
    assert types({"role": role, "content": [{"type": "text", "text": "hello"}]}) == [item_type]


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
def test_the_text_of_a_text_block_is_replaced_inside_the_block(kind: str) -> None:
    (item,) = items_of([{"role": "user", "content": [{"type": kind, "text": "hello"}]}])
    assert (item.path, item.text) == (("content", 0, "text"), "hello")


@pytest.mark.parametrize("content", ["", None, []])
def test_a_message_without_content_has_no_items(content: object) -> None:
    assert types({"role": "user", "content": content}) == []


def test_a_message_may_lack_its_content() -> None:
    assert types({"role": "assistant"}) == []


def test_blocks_come_in_the_order_of_the_message() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "reading"},
        {"type": "tool_use", "id": "a", "name": "read", "input": {}},
    ]
    assert types({"role": "assistant", "content": content}) == [
        "thinking", "assistant_message", "tool_call",
    ]  # fmt: skip


def test_a_call_is_known_by_its_tool_its_id_and_its_input_as_compact_json() -> None:
    block = {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "字", "n": 1}}
    (item,) = items_of([{"role": "assistant", "content": [block]}])
    assert (item.tool, item.tool_use_id, item.text) == ("read", "a", '{"path":"字","n":1}')
    assert item.path == ("content", 0, "input")


def test_a_chat_call_has_its_arguments_as_they_were_sent() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"n": 1}'}}
    (item,) = items_of([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert (item.type, item.tool, item.tool_use_id) == ("tool_call", "read", "a")
    assert item.text == '{"n": 1}'


def test_chat_arguments_may_be_an_object() -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": {"n": 1}}}
    (item,) = items_of([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert item.text == '{"n":1}'


def test_a_chat_call_may_lack_the_object_around_its_function() -> None:
    call = {"id": "a", "name": "read", "arguments": "{}"}
    (item,) = items_of([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert (item.tool, item.text) == ("read", "{}")


def test_a_reply_has_its_text_before_its_chat_calls() -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": "{}"}}
    message = {"role": "assistant", "content": "reading", "tool_calls": [call]}
    assert types(message) == ["assistant_message", "tool_call"]


def test_a_result_block_is_replaced_at_its_content() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert (item.type, item.tool_use_id, item.text) == ("tool_result", "a", "found")
    assert item.path == ("content", 0, "content")


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_message_of_a_result_role_is_one_result(role: str) -> None:
    message = {"role": role, "tool_call_id": "a", "name": "read", "content": "found"}
    (item,) = items_of([message])
    assert (item.type, item.tool_use_id, item.tool) == ("tool_result", "a", "read")
    assert (item.path, item.text) == (("content",), "found")


@pytest.mark.parametrize("role", ["tool", "function"])
def test_result_blocks_of_a_tool_message_are_results(role: str) -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "a", "content": "found", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [IMAGE]},
    ]
    first, second, image = items_of([{"role": role, "content": blocks}])
    assert (first.type, first.tool_use_id, first.text) == ("tool_result", "a", "found")
    assert (first.path, first.error) == (("content", 0, "content"), True)
    assert (second.tool_use_id, second.path) == ("b", ("content", 1, "content"))
    assert (image.kind, image.inside) == ("image", 1)


def test_a_tool_message_with_its_own_call_id_is_one_result() -> None:
    block = {"type": "tool_result", "tool_use_id": "b", "content": "found"}
    (item,) = items_of([{"role": "tool", "tool_call_id": "a", "content": [block]}])
    assert (item.tool_use_id, item.path) == ("a", ("content",))


def test_text_beside_result_blocks_of_a_tool_message_is_not_a_user_message() -> None:
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "tool_result", "tool_use_id": "a", "content": "found"},
    ]
    note, result = items_of([{"role": "tool", "content": blocks}])
    assert (note.kind, result.kind) == (UNKNOWN, "tool_result")


def test_the_text_of_a_result_made_of_blocks_is_their_texts_joined_by_a_newline() -> None:
    content = [{"type": "text", "text": "字\n1"}, {"type": "text", "text": "2"}]
    block = {"type": "tool_result", "tool_use_id": "a", "content": content}
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert (item.text, item.counted) == ("字\n1\n2", "字\n1\n2")
    assert item.whole == compact_json(content)


def test_a_list_without_a_text_is_its_compact_json() -> None:
    for content in ([], [1, {"text": 2}], [IMAGE], [{"type": "text", "text": ""}, IMAGE]):
        block = {"type": "tool_result", "tool_use_id": "a", "content": content}
        item, *_ = items_of([{"role": "user", "content": [block]}])
        assert item.text == compact_json(content)


def test_a_result_without_content_has_the_empty_text() -> None:
    (item,) = items_of([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}])
    assert (item.type, item.text) == ("tool_result", "")


@pytest.mark.parametrize(("given", "error"), [(True, True), (False, False), (None, False)])
def test_a_result_is_failed_when_it_says_so(given: object, error: object) -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": given}
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert item.error is error


def test_an_image_in_a_result_is_not_in_its_text_and_not_counted_as_text() -> None:
    content = [{"type": "text", "text": "seen"}, IMAGE]
    block = {"type": "tool_result", "tool_use_id": "a", "content": content}
    item, _ = items_of([{"role": "user", "content": [block]}])
    assert (item.text, item.counted, len(item.media)) == ("seen", "seen", 1)
    assert item.chars == len(compact_json(content))


@pytest.mark.parametrize(
    ("block", "item_type"),
    [
        (IMAGE, "image"),
        ({"type": "image_url", "image_url": {"url": "data:"}}, "image"),
        ({"type": "input_image", "image_url": "data:"}, "image"),
        ({"type": "document", "source": {}}, "document"),
        ({"type": "file", "file": {}}, "document"),
        ({"type": "input_file", "file_id": "f"}, "document"),
    ],
)
def test_a_medium_counts_as_one_medium_and_no_text(block: dict[str, Any], item_type: str) -> None:
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert (item.type, len(item.media), item.counted) == (item_type, 1, "")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, "hm"),
        ({"type": "thinking", "thinking": "", "signature": "s"}, ""),
        ({"type": "redacted_thinking", "data": "EqoB"}, "EqoB"),
    ],
)
def test_thinking_is_its_own_type(block: dict[str, Any], text: str) -> None:
    (item,) = items_of([{"role": "assistant", "content": [block]}])
    assert (item.type, item.text) == ("thinking", text)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "refusal", "refusal": "no"},
        {"type": "reasoning", "summary": []},
        {"type": "text"},
        {"type": "text", "text": 5},
    ],
)
def test_an_unrecognised_block_has_the_type_unknown(block: dict[str, Any]) -> None:
    (item,) = items_of([{"role": "assistant", "content": [block]}])
    assert (item.kind, item.path, item.text) == (UNKNOWN, ("content", 0), compact_json(block))
    assert (item.tool, item.tool_use_id) == (None, None)


@pytest.mark.parametrize(
    ("block", "tool"),
    [
        ({"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}}, "web_search"),
        ({"type": "mcp_tool_use", "id": "a", "name": "read", "input": {}}, "read"),
        ({"type": "web_search_tool_result", "tool_use_id": "a", "content": []}, None),
        ({"type": "code_execution_tool_result", "tool_use_id": "a", "content": {}}, None),
        ({"type": "mcp_tool_result", "tool_use_id": "a", "content": "found"}, None),
    ],
)
def test_a_block_of_a_tool_of_the_provider_stays_and_is_half_of_a_pair(
    block: dict[str, Any], tool: str | None
) -> None:
    (item,) = items_of([{"role": "assistant", "content": [block]}])
    assert (item.kind, item.path, item.text) == (UNKNOWN, ("content", 0), compact_json(block))
    assert (item.tool, item.tool_use_id) == (tool, "a")


def test_the_bytes_of_a_sound_are_not_counted_as_text() -> None:
    block = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert (item.kind, len(item.media), item.counted) == (UNKNOWN, 1, "")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "refusal"])
def test_other_fields_beside_the_content_are_not_items(field: str) -> None:
    assert types({"role": "assistant", "content": "hi", field: "hm"}) == ["assistant_message"]


@pytest.mark.parametrize(
    ("block", "media_type"),
    [
        (IMAGE, "image/png"),
        ({"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}, None),
        ({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG"}}, "image/gif"),
        ({"type": "input_image", "image_url": "data:image/webp,x"}, "image/webp"),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JV"}},
            "application/pdf",
        ),
        ({"type": "input_file", "file_data": "data:text/csv,a"}, "text/csv"),
        ({"type": "input_file", "file_id": "f"}, None),
    ],
)
def test_a_medium_has_the_media_type_of_its_block(
    block: dict[str, Any], media_type: str | None
) -> None:
    (item,) = items_of([{"role": "user", "content": [block]}])
    assert item.media_type == media_type


def test_an_image_in_a_result_is_an_item_after_it() -> None:
    content = [{"type": "text", "text": "seen"}, IMAGE]
    block = {"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": True}
    words = {"type": "text", "text": "and?"}
    items = items_of([{"role": "user", "content": [words, block, words]}])
    assert [item.kind for item in items] == [
        "user_message", "tool_result", "image", "user_message",
    ]  # fmt: skip
    image = items[2]
    assert (image.path, image.inside) == (("content", 1, "content", 1), 1)
    assert (image.media_type, len(image.media), image.counted) == ("image/png", 1, "")
    assert (image.tool_use_id, image.error) == ("a", True)


def test_an_image_in_the_message_of_a_tool_is_an_item_after_it() -> None:
    content = [{"type": "image_url", "image_url": {"url": "data:"}}]
    result, image = items_of([{"role": "tool", "tool_call_id": "a", "content": content}])
    assert (result.path, image.path, image.inside) == (("content",), ("content", 0), 0)


def test_items_inside_of_a_result_are_numbered_by_its_id() -> None:
    content = [IMAGE, {"type": "text", "text": "seen"}, {"type": "document", "source": {}}]
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    items = items_of([{"role": "user", "content": [block]}])
    assert [item.item_id for item in items] == ["toolu_1", "toolu_1-1", "toolu_1-2"]


def test_items_inside_of_a_result_without_an_id_are_numbered_by_its_message() -> None:
    block = {"type": "tool_result", "content": [IMAGE, IMAGE]}
    items = items_of([{"role": "user", "content": [block]}])
    assert [item.item_id for item in items] == ["msg_001", "msg_001-1", "msg_001-2"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_each_part_of_a_system_prompt_is_an_item(role: str) -> None:
    parts = [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]
    items = items_of([{"role": role, "content": parts}])
    assert [(item.kind, item.path) for item in items] == [
        ("system_prompt", ("content", 0, "text")), ("system_prompt", ("content", 1, "text")),
    ]  # fmt: skip


def test_a_legacy_call_has_no_id() -> None:
    call = {"name": "read", "arguments": '{"n": 1}'}
    (item,) = items_of([{"role": "assistant", "content": None, "function_call": call}])
    assert (item.kind, item.tool, item.tool_use_id) == ("tool_call", "read", None)
    assert (item.path, item.text) == (("function_call",), '{"n": 1}')


def test_a_custom_call_has_its_input_as_it_was_sent() -> None:
    call = {"id": "a", "type": "custom", "custom": {"name": "write", "input": "print(1)"}}
    (item,) = items_of([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert (item.tool, item.tool_use_id, item.text) == ("write", "a", "print(1)")


def test_ids_and_names_that_are_not_strings_are_ignored() -> None:
    block = {"type": "tool_use", "id": 5, "name": ["read"], "input": {}}
    (item,) = items_of([{"role": "assistant", "content": [block]}])
    assert (item.tool_use_id, item.tool) == (None, None)


class SdkBlock(BaseModel):
    type: str = "tool_use"
    id: str = "a"
    name: str = "read"
    input: dict[str, int] = {}


def test_the_object_of_an_sdk_is_read_like_the_block_that_it_stands_for() -> None:
    (item,) = items_of([{"role": "assistant", "content": [SdkBlock()]}])
    assert (item.type, item.tool, item.tool_use_id) == ("tool_call", "read", "a")


def test_a_map_is_seen_as_itself() -> None:
    block = {"type": "text", "text": "hello"}
    assert as_mapping(block) is block


def test_any_other_object_is_seen_under_the_name_of_its_class() -> None:
    assert as_mapping(5) == {"type": "int", "value": 5}


def test_a_sound_in_a_result_is_neither_counted_as_text_nor_an_item() -> None:
    content = [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]
    (item,) = items_of([{"role": "tool", "tool_call_id": "a", "content": content}])
    assert (item.kind, len(item.media), item.counted) == ("tool_result", 1, "[]")
