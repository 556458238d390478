"""Which shape is found for which message, and what is no message of any shape."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from policyctx import MessagesError
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.messages.shapes.built_in import ANTHROPIC, BUILT_IN, CHAT, RESPONSES, Shapes

RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
ROLES = (
    'expected "role" to be one of "system", "developer", "user", "assistant", "tool", "function"'
)
CONTENT = 'expected "content", a text or a list of blocks,'
REPLY = {"role": "assistant", "content": None}
OF_ANTHROPIC = [
    {"role": "user", "content": "go"},
    {"role": "user", "content": None},
    {"role": "assistant"},
    {"role": "assistant", "reasoning_content": "hm", "annotations": []},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "of_next_year", "text": "go"}]},
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
    {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"role": "assistant", "content": "x", "usage": {}},
]
OF_CHAT = [
    {"role": "tool", "tool_call_id": "a", "content": "found"},
    {"role": "function", "name": "ls", "content": "found"},
    {"role": "tool", "content": [RESULT]},
    {**REPLY, "tool_calls": []},
    {**REPLY, "function_call": {"name": "ls", "arguments": "{}"}},
    {**REPLY, "refusal": "no"},
    {**REPLY, "audio": {"id": "audio_1"}},
]
OF_RESPONSES = [
    {"type": "message", "role": "user", "content": "go"},
    {"type": "message", "role": "assistant", "content": [], "id": "msg_1", "status": "completed"},
    {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "found"},
    {"type": "reasoning", "summary": [], "content": []},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "mcp_call"},
    {"type": ""},
]


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        *((message, ANTHROPIC) for message in OF_ANTHROPIC),
        *((message, CHAT) for message in OF_CHAT),
        *((message, RESPONSES) for message in OF_RESPONSES),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else type(value).__name__,
)
def test_a_message_has_the_shape_of_its_api(message: dict[str, Any], shape: object) -> None:
    assert BUILT_IN.checked(message, 0) == (shape, message)
    assert BUILT_IN.shaped(message) == (shape, message)
    assert BUILT_IN.checked(message, 0).message is message


def test_a_response_of_anthropic_is_no_item() -> None:
    message: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
    assert BUILT_IN.shaped(message).shape is RESPONSES
    for field in ("usage", "stop_reason"):
        assert BUILT_IN.shaped({**message, field: None}).shape is ANTHROPIC


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({}, 'expected "role" to be a string such as "user", got nothing'),
        ({"content": "go"}, 'expected "role" to be a string such as "user", got nothing'),
        ({"role": 5}, 'expected "role" to be a string such as "user", got a number'),
        ({"type": 5, "content": "go"}, 'expected "role" to be a string'),
        ({"type": "text", "text": "go"}, 'expected "role" to be a string'),
        ({"role": None, "content": "go"}, 'expected "role" to be a string such as "user", got no'),
        ({"role": "robot", "content": "go"}, f'{ROLES}, got "robot"'),
        ({"role": "", "content": "go"}, f'{ROLES}, got ""'),
        ({"role": "x" * 99, "content": "go"}, f'{ROLES}, got "{"x" * 40}…"'),
        ({"role": "human", "content": "", "tool_calls": []}, f'{ROLES}, got "human"'),
        ({"type": "message", "role": "robot", "content": "go"}, f'{ROLES}, got "robot"'),
        ({"role": "user"}, f'{CONTENT} in an object with "role"'),
        ({"role": "user", "text": "go"}, f'{CONTENT} in an object with "role", "text"'),
        ({"role": "tool", "tool_call_id": "a"}, f'{CONTENT} in an object with "role", "tool_call'),
        ({"role": "assistant", "said": "go"}, f'{CONTENT} in an object with "role", "said"'),
        ({"type": "message", "role": "user"}, f'{CONTENT} in an object with "type", "role"'),
        (
            {"role": "user", **dict.fromkeys("abcdefg")},
            f'{CONTENT} in an object with "role", "a", "b", "c", "d", "e", …',
        ),
        (RESULT, 'expected "role" to be a string'),
        ({"type": "tool_use", "id": "a", "name": "ls", "input": {}}, 'expected "role" to be'),
        ({"type": "image", "source": {}}, 'expected "role" to be a string'),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, 'expected "role" to be a'),
        ({"type": "input_text", "text": "go"}, 'expected "role" to be a string'),
        ({"type": "message", "content": "go"}, 'expected "role" to be a string'),
        ({"role": "user", "content": {"text": "go"}}, 'expected "content" to be a string or a'),
        ({"role": "user", "content": [{"text": "go"}]}, "content block 0: expected"),
        (
            {"type": "message", "role": "user", "content": [5]},
            "content block 0: expected an object",
        ),
        ("go", 'expected an object with "role" and "content", got a string'),
        (None, 'expected an object with "role" and "content", got nothing'),
        (5, 'expected an object with "role" and "content", got a number'),
        (["go"], 'expected an object with "role" and "content", got a list'),
    ],
    ids=str,
)
def test_what_is_no_message_is_named(value: object, error: str) -> None:
    with pytest.raises(MessagesError, match=r"^message 3: ") as caught:
        BUILT_IN.checked(value, 3)
    assert str(caught.value).removeprefix("message 3: ").startswith(error)
    assert caught.value.index == 3


class OfAnotherFramework(BaseModel):
    type: str = "human"
    content: str = "go"


class WithParts(BaseModel):
    role: str = "user"
    parts: list[str] = ["go"]


class UnknownItem(BaseModel):
    type: str = "mcp_call"
    name: str = "ls"


class Reasoning(BaseModel):
    type: str = "reasoning"
    summary: list[Any] = []
    content: list[Any] = [{"type": "reasoning_text", "text": "hm"}]


class BareReply(BaseModel):
    role: str = "assistant"
    content: None = None
    tool_calls: list[Any] = [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}]


class WithoutFields: ...


def test_an_object_of_an_sdk_is_the_dict_that_the_sdk_sends() -> None:
    assert BUILT_IN.checked(UnknownItem(), 0) == (RESPONSES, {"type": "mcp_call", "name": "ls"})
    assert BUILT_IN.checked(Reasoning(), 0).shape is RESPONSES
    assert BUILT_IN.checked(BareReply(), 0).shape is CHAT


@pytest.mark.parametrize(
    ("value", "lacking"), [(OfAnotherFramework(), "role"), (WithParts(), "content")]
)
def test_an_object_of_another_framework_is_no_message(value: BaseModel, lacking: str) -> None:
    with pytest.raises(MessagesError) as caught:
        BUILT_IN.checked(value, 0)
    name = type(value).__name__
    hint = "the objects of a framework need its shape: `shapes=[…]`"
    wrong = f'expected a message, got {name} without "{lacking}"; {hint}'
    assert str(caught.value) == f"message 0: {wrong}"


def test_an_object_that_is_no_json_needs_a_shape() -> None:
    with pytest.raises(MessagesError, match=r"got WithoutFields; the objects of a framework need"):
        BUILT_IN.checked(WithoutFields(), 0)


def test_the_shapes_of_a_host_are_asked_in_order_before_the_built_in_ones() -> None:
    class Other(BedrockShape):
        def role(self, message: dict[str, Any]) -> str:
            return "assistant" if message["role"] == "user" else "user"

    message: dict[str, Any] = {"role": "user", "content": [{"text": "go"}]}
    assert Shapes([BedrockShape(), Other()]).role(message) == "user"
    assert Shapes([Other(), BedrockShape()]).role(message) == "assistant"
    plain = {"role": "user", "content": "go"}
    assert Shapes([BedrockShape()]).checked(plain, 0).shape is ANTHROPIC


def test_a_summary_is_written_in_the_first_shape_that_only_one_api_has() -> None:
    item = {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"}
    block = {"role": "user", "content": [{"text": "go"}]}
    shapes = Shapes([BedrockShape()])
    assert shapes.writing([*OF_ANTHROPIC, *OF_CHAT]) is ANTHROPIC
    assert shapes.writing([]) is ANTHROPIC
    assert shapes.writing([OF_CHAT[0], item, block]) is RESPONSES
    written = shapes.writing([OF_CHAT[0], block, item]).written("user", "done")
    assert written == {"role": "user", "content": [{"text": "done"}]}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": "go"}, "go"),
        ({"role": "user", "content": [{"type": "text", "text": "go"}]}, "go"),
        ({"type": "message", "role": "user", "content": "go"}, "go"),
        ({"role": "user", "content": [RESULT]}, None),
        ({"role": "user", "content": ""}, None),
        ({"role": "user", "content": [{"type": "text", "text": "a"}] * 2}, None),
        ({"type": "function_call_output", "call_id": "a", "output": "x"}, None),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, None),
    ],
)
def test_the_text_of_a_message_that_is_one_text(message: dict[str, Any], text: str | None) -> None:
    assert BUILT_IN.text(message) == text


def test_unset_fields_make_no_difference() -> None:
    message = {"role": "user", "content": "go", "name": None}
    assert BUILT_IN.comparable(message) == {"role": "user", "content": "go"}
    item = {"type": "reasoning", "summary": [{"text": "hm", "type": None}], "status": None}
    assert BUILT_IN.comparable(item) == {"type": "reasoning", "summary": [{"text": "hm"}]}


def test_a_call_of_bedrock_behind_an_answer_with_its_id_is_not_one_of_the_provider() -> None:
    """An answer of a tool that the provider runs is in the same message, behind its call."""
    call = {"toolUse": {"toolUseId": "a", "name": "ls", "input": {}}}
    answer = {"toolResult": {"toolUseId": "a", "content": [{"text": "found"}]}}
    kinds = {
        tuple(part.kind for part in BedrockShape().parts({"role": "assistant", "content": blocks}))
        for blocks in ([call, answer], [answer, call])
    }
    assert kinds == {("unknown", "unknown"), ("unknown", "tool_call")}
