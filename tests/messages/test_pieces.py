from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from policyctx.definitions.items import Medium, RequestMark
from policyctx.messages.editing import pieces_of, provider_of, request_content
from policyctx.messages.shapes.responses import INPUT_FIELDS

IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGVhZA==", "detail": "auto"}
SEEN = Medium("image", "openai", IMAGE["image_url"], 22)
FUNCTION_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path":"a"}',
    "status": "completed",
}


def message(*parts: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [*parts]}


@pytest.mark.parametrize(
    ("item", "pieces"),
    [
        (
            message({"type": "input_text", "text": "hi"}, IMAGE, role="user"),
            [RequestMark.MESSAGE, "hi", SEEN],
        ),
        ({"type": "message", "role": "user", "content": "hi"}, [RequestMark.MESSAGE, "hi"]),
        (
            message({"type": "output_text", "text": "hello", "annotations": [{"n": 1}]}),
            [RequestMark.MESSAGE, "hello"],
        ),
        (
            message({"type": "refusal", "refusal": "I will not"}),
            [RequestMark.MESSAGE, "I will not"],
        ),
        (
            message({"type": "input_file", "file_id": "file_1"}, role="user"),
            [RequestMark.MESSAGE, Medium("document", "openai")],
        ),
        (FUNCTION_CALL, [RequestMark.TOOL_CALL, "read", '{"path":"a"}']),
        (
            {"type": "function_call_output", "call_id": "call_1", "output": "done"},
            [RequestMark.MESSAGE, RequestMark.TOOL_RESULT, "done"],
        ),
        (
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "done"}, IMAGE],
            },
            [RequestMark.MESSAGE, RequestMark.TOOL_RESULT, "done", SEEN],
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
            [RequestMark.TOOL_CALL, "patch", "*** Begin"],
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "c", "output": "applied"},
            [RequestMark.MESSAGE, RequestMark.TOOL_RESULT, "applied"],
        ),
        (
            {
                "type": "apply_patch_call",
                "call_id": "c",
                "operation": {"type": "delete_file", "path": "a"},
                "status": "completed",
            },
            [RequestMark.TOOL_CALL, '{"type":"delete_file","path":"a"}'],
        ),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}, "status": "x"},
            [RequestMark.TOOL_CALL, '{"type":"wait"}'],
        ),
        (
            {"type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}]},
            [RequestMark.TOOL_CALL, '[{"type":"wait"}]'],
        ),
        (
            {
                "type": "local_shell_call",
                "call_id": "c",
                "action": {"type": "exec", "command": ["ls"]},
                "status": "completed",
            },
            [RequestMark.TOOL_CALL, '{"type":"exec","command":["ls"]}'],
        ),
        (
            {"type": "local_shell_call_output", "id": "c", "output": '{"output":"a"}'},
            [RequestMark.MESSAGE, RequestMark.TOOL_RESULT, '{"output":"a"}'],
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]},
            [RequestMark.MESSAGE, RequestMark.TOOL_RESULT, '{"stdout":"a"}'],
        ),
        (
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"},
            },
            [
                RequestMark.MESSAGE,
                RequestMark.TOOL_RESULT,
                Medium("image", "openai", "data:image/png;base64,AA", 22),
            ],
        ),
        (
            {"type": "computer_call_output", "call_id": "c", "output": {"file_id": "f"}},
            ['{"type":"computer_call_output","call_id":"c","output":{"file_id":"f"}}'],
        ),
        (
            {"type": "web_search_call", "id": "w", "status": "completed"},
            ['{"type":"web_search_call","id":"w","status":"completed"}'],
        ),
        (
            {"type": "compaction", "encrypted_content": "gAAAA"},
            [Medium("reasoning", "openai", "gAAAA")],
        ),
    ],
)
def test_an_item_of_the_responses_api_has_its_texts_and_marks(
    item: dict[str, Any], pieces: list[Any]
) -> None:
    assert list(pieces_of(item)) == pieces


def reasoning(**fields: Any) -> list[Any]:
    return list(pieces_of({"type": "reasoning", "id": "rs_1", "summary": [], **fields}))


def test_reasoning_has_the_texts_of_its_summary_and_content() -> None:
    summary = [{"type": "summary_text", "text": "a summary"}]
    content = [{"type": "reasoning_text", "text": "a thought"}]
    assert reasoning(summary=summary, content=content) == ["a summary", "a thought"]
    assert reasoning(summary=summary, encrypted_content="gAAAA") == ["a summary"]


def test_reasoning_without_texts_has_its_encrypted_content() -> None:
    encrypted = "gAAAA" * 100
    assert reasoning(encrypted_content=encrypted) == [Medium("reasoning", "openai", encrypted)]
    assert reasoning() == reasoning(encrypted_content=None) == []


def test_base64_texts_are_not_copied() -> None:
    url = "data:image/png;base64," + "aGVhZA==" * 100
    (_, medium) = pieces_of(message({"type": "input_image", "image_url": url}))
    assert isinstance(medium, Medium)
    assert medium.data is url
    assert medium.data[medium.data_start :] == "aGVhZA==" * 100
    (_, bare) = pieces_of(
        message({"type": "image", "source": {"type": "base64", "data": url[22:]}})
    )
    assert isinstance(bare, Medium)
    assert bare.data_start == 0


def test_an_sdk_object_has_the_pieces_of_its_dict() -> None:
    call = ResponseFunctionToolCall.model_validate(FUNCTION_CALL)
    assert list(pieces_of(call)) == list(pieces_of(FUNCTION_CALL))  # type: ignore[arg-type]
    said = message({"type": "output_text", "text": "hello", "annotations": []})
    sent = ResponseOutputMessage(id="msg_1", status="completed", **said)
    assert list(pieces_of(sent)) == [RequestMark.MESSAGE, "hello"]  # type: ignore[arg-type]
    calls = [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
    chat = {"role": "assistant", "content": "hello", "tool_calls": calls}
    reply = ChatCompletionMessage.model_validate(chat)
    assert list(pieces_of(reply)) == [  # type: ignore[arg-type]
        RequestMark.MESSAGE, "hello", RequestMark.TOOL_CALL, "read", "{}",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["function_call", "reasoning", "item_reference"])
def test_a_list_with_items_of_the_responses_api_is_openais(kind: str) -> None:
    assert provider_of([{"role": "user", "content": "hi"}, {"type": kind, "id": "a"}]) == "openai"


@pytest.mark.parametrize("system", ["be kind", [{"type": "text", "text": "be kind"}]])
def test_the_system_prompt_is_part_of_the_content(system: object) -> None:
    messages = [{"role": "user", "content": "hi"}]
    content = request_content(messages, system)
    assert content.pieces == [RequestMark.MESSAGE, "hi", "be kind"]
    assert content.body == {"messages": messages, "system": system}


def test_items_of_the_responses_api_have_no_body_for_the_messages_api() -> None:
    content = request_content([{"role": "user", "content": "hi"}, FUNCTION_CALL])
    assert (content.body, content.provider) == (None, "openai")


@pytest.mark.parametrize("kind", INPUT_FIELDS)
def test_each_call_that_the_client_runs_counts_as_a_call_and_its_output_as_a_result(
    kind: str,
) -> None:
    call = {"type": kind, "call_id": "c", "name": "n", INPUT_FIELDS[kind]: "given"}
    assert next(iter(pieces_of(call))) is RequestMark.TOOL_CALL
    url = {"image_url": IMAGE["image_url"]}
    output = {"type": f"{kind}_output", "call_id": "c", "output": url}
    assert RequestMark.TOOL_RESULT in [*pieces_of(output)]
