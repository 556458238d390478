from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from policyctx.testing.strategies import message_lists
from policyctx.tokens.counter import counter_for
from policyctx.tokens.provider_models import ANTHROPIC, OPENAI, provider_model
from policyctx.tokens.request_size import message_tokens
from tests.tokens.test_image_sizes import png
from tests.tokens.test_media import image, image_url

COUNTER = counter_for("o200k_base")

# A request whose count the provider's documentation gives.
WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a given location",
    "input_schema": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "The city"}},
    },
}


def call(name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "a"}}


def test_an_empty_request_counts_the_start_of_the_reply() -> None:
    assert COUNTER.count_messages([]) == 3


def test_a_documented_request_has_its_documented_count() -> None:
    messages = [{"role": "user", "content": "Hello, Claude"}]
    assert COUNTER.count_messages(messages, system="You are a scientist") == 14


def test_texts_count_the_same_however_they_are_given() -> None:
    whole = [{"role": "user", "content": "some words"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "some words"}]}]
    assert COUNTER.count_messages(whole) == COUNTER.count_messages(parts)


def test_a_system_prompt_may_be_blocks() -> None:
    blocks = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
    assert COUNTER.count_messages([], system=blocks) == COUNTER.count_messages([], system="be kind")


def test_a_call_counts_its_name_and_input_and_marks() -> None:
    alone = COUNTER.count_messages([{"role": "assistant", "content": []}])
    called = COUNTER.count_messages([{"role": "assistant", "content": [call()]}])
    texts = COUNTER.count("Read") + COUNTER.count('{"path":"a"}')
    assert called - alone == texts + ANTHROPIC.tool_call


def test_an_openai_call_counts_likewise() -> None:
    function = {"name": "Read", "arguments": '{"path":"a"}'}
    message = {"role": "assistant", "content": None}
    alone = COUNTER.count_messages([message], model=OPENAI)
    called = COUNTER.count_messages(
        [{**message, "tool_calls": [{"id": "c", "type": "function", "function": function}]}]
    )
    texts = COUNTER.count("Read") + COUNTER.count('{"path":"a"}')
    assert called - alone == texts + OPENAI.tool_call


@pytest.mark.parametrize(
    ("message", "marks"),
    [
        (
            {"role": "user", "content": [{"type": "tool_result", "content": "a result"}]},
            ANTHROPIC.message + ANTHROPIC.tool_result,
        ),
        ({"role": "tool", "content": "a result"}, OPENAI.message + OPENAI.tool_result),
        (
            {"role": "user", "name": "Ada", "content": "a result"},
            ANTHROPIC.message + COUNTER.count("Ada"),
        ),
    ],
)
def test_a_result_counts_its_text_and_marks(message: dict[str, Any], marks: int) -> None:
    model = provider_model([message])
    assert message_tokens(COUNTER, message, model) == COUNTER.count("a result") + marks


def test_an_image_counts_by_its_size_wherever_it_is() -> None:
    shown = {"role": "user", "content": [image(png(280, 280))]}
    inner = {"type": "tool_result", "tool_use_id": "a", "content": [image(png(280, 280))]}
    returned = {"role": "user", "content": [inner]}
    assert message_tokens(COUNTER, shown, ANTHROPIC) == 104
    assert message_tokens(COUNTER, returned, ANTHROPIC) == 134
    linked = {"role": "user", "content": [image_url(png(280, 280))]}
    assert COUNTER.count_messages([linked]) == 3 + 4 + 255


def test_tools_of_anthropic_are_sent_as_json_behind_a_prompt() -> None:
    text = COUNTER.count(
        '{"name":"get_weather","description":"Get the current weather in a given location",'
        '"input_schema":{"type":"object","properties":{"location":{"type":"string",'
        '"description":"The city"}}}}'
    )
    assert COUNTER.count_messages([], [WEATHER]) == 3 + 346 + text
    assert COUNTER.count_messages([], []) == 3


def test_tools_of_openai_are_written_out() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "description": "The unit.", "enum": ["C", "F"]},
            "place": {"type": "object", "properties": {"city": {"type": "string"}}},
            "days": {"type": "array", "items": {"properties": {"day": {"type": "integer"}}}},
        },
    }
    function = {"name": "weather", "description": "Get it.", "parameters": parameters}
    lines = ("weather:Get it", "unit:string:The unit", "C", "F", "place:object:", "city:string:",
             "days:array:", "day:integer:")  # fmt: skip
    marks = 12 + 7 + 3 * 3 + 5 * 3 - 3 + 2 * 3
    assert COUNTER.count_messages(
        [], [{"type": "function", "function": function}], model=OPENAI
    ) == 3 + marks + sum(map(COUNTER.count, lines))


def test_thinking_counts_its_text() -> None:
    block = {"type": "thinking", "thinking": "some words", "signature": "c2lnbmVk" * 50}
    message = {"role": "assistant", "content": [block]}
    assert message_tokens(COUNTER, message, ANTHROPIC) == 4 + 2


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "user", "content": None},
        {"role": "user", "content": [None, 5, "bare"]},
        {"role": "user", "content": [{"type": "server_tool_use", "id": "a"}]},
        {"role": "assistant", "tool_calls": [{"function": None}, None]},
        {"role": "user", "content": [{"type": "text", "text": None}]},
    ],
)
def test_odd_messages_are_counted_too(message: dict[str, Any]) -> None:
    assert COUNTER.count_messages([message], [None, {}], {"odd": {1}}) > 0


@given(message_lists())
def test_a_request_is_the_sum_of_its_messages(messages: list[dict[str, Any]]) -> None:
    model = provider_model(messages)
    parts = sum(message_tokens(COUNTER, message, model) for message in messages)
    assert COUNTER.count_messages(messages) == model.request + parts
