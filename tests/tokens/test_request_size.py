from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given

from policyctx.definitions.items import Piece
from policyctx.messages.editing import pieces_of, provider_of
from policyctx.testing.strategies import message_lists
from policyctx.tokens import sizes
from policyctx.tokens.sizes import ANTHROPIC, OPENAI, ProviderModel, provider_model
from tests.tokens.requests import COUNTER, request_tokens
from tests.tokens.test_image_sizes import png
from tests.tokens.test_media import image, image_url

# A request whose count the provider's documentation gives.
WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a given location",
    "input_schema": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "The city"}},
    },
}


def piece_tokens(pieces: Iterable[Piece], model: ProviderModel) -> int:
    return sizes.request_tokens(COUNTER, pieces, None, model) - model.request


def call(name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"path": "a"}}


def test_an_empty_request_counts_the_start_of_the_reply() -> None:
    assert request_tokens([]) == 3


def test_a_documented_request_has_its_documented_count() -> None:
    messages = [{"role": "user", "content": "Hello, Claude"}]
    assert request_tokens(messages, system="You are a scientist") == 14


def test_texts_count_the_same_however_they_are_given() -> None:
    whole = [{"role": "user", "content": "some words"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "some words"}]}]
    assert request_tokens(whole) == request_tokens(parts)


def test_a_system_prompt_may_be_blocks() -> None:
    blocks = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
    assert request_tokens([], system=blocks) == request_tokens([], system="be kind")


def test_a_call_counts_its_name_and_input_and_marks() -> None:
    alone = request_tokens([{"role": "assistant", "content": []}])
    called = request_tokens([{"role": "assistant", "content": [call()]}])
    texts = COUNTER.count("Read") + COUNTER.count('{"path":"a"}')
    assert called - alone == texts + ANTHROPIC.tool_call


def test_an_openai_call_counts_likewise() -> None:
    function = {"name": "Read", "arguments": '{"path":"a"}'}
    message = {"role": "assistant", "content": None}
    alone = request_tokens([message], model=OPENAI)
    called = request_tokens(
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
    model = provider_model(provider_of([message]))
    assert piece_tokens(pieces_of(message), model) == COUNTER.count("a result") + marks


def test_an_image_counts_by_its_size_wherever_it_is() -> None:
    shown = {"role": "user", "content": [image(png(280, 280))]}
    inner = {"type": "tool_result", "tool_use_id": "a", "content": [image(png(280, 280))]}
    returned = {"role": "user", "content": [inner]}
    assert piece_tokens(pieces_of(shown), ANTHROPIC) == 104
    assert piece_tokens(pieces_of(returned), ANTHROPIC) == 134
    linked = {"role": "user", "content": [image_url(png(280, 280))]}
    assert request_tokens([linked]) == 3 + 4 + 255


def test_tools_of_anthropic_are_sent_as_json_behind_a_prompt() -> None:
    text = COUNTER.count(
        '{"name":"get_weather","description":"Get the current weather in a given location",'
        '"input_schema":{"type":"object","properties":{"location":{"type":"string",'
        '"description":"The city"}}}}'
    )
    assert request_tokens([], [WEATHER]) == 3 + 346 + text
    assert request_tokens([], []) == 3


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
    assert request_tokens(
        [], [{"type": "function", "function": function}], model=OPENAI
    ) == 3 + marks + sum(map(COUNTER.count, lines))


def test_flat_tools_of_openai_count_like_nested_ones() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": []}
    function = {"name": "weather", "description": "Get it.", "parameters": parameters}
    nested = [{"type": "function", "function": function}]
    flat = [{"type": "function", "strict": True, **function}]
    assert request_tokens([], flat, model=OPENAI) == request_tokens([], nested, model=OPENAI)


def test_a_custom_tool_of_openai_counts_its_grammar() -> None:
    tool = {"type": "custom", "name": "patch", "description": "Edit."}
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: line+"}
    plain = request_tokens([], [tool], model=OPENAI)
    defined = request_tokens([], [{**tool, "format": grammar}], model=OPENAI)
    assert defined - plain == COUNTER.count("start: line+")


def test_the_same_conversation_counts_the_same_in_both_apis_of_openai() -> None:
    function = {"name": "read", "arguments": '{"path":"a"}'}
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "a result"},
    ]
    said = {"type": "output_text", "text": "I look"}
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "system", "content": "be kind"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "message", "role": "assistant", "content": [said]},
        {"type": "function_call", "call_id": "c", **function},
        {"type": "function_call_output", "call_id": "c", "output": "a result"},
    ]
    assert request_tokens(items) == request_tokens(chat)


# 3/4 of the base64 text, less 650 bytes, at 4 bytes a token.
@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (800, 0), (872, 1), (4_000, 588)])
def test_encrypted_reasoning_is_estimated_from_its_length(chars: int, tokens: int) -> None:
    item = {"type": "reasoning", "summary": [], "encrypted_content": "g" * chars}
    assert request_tokens([item]) == OPENAI.request + tokens


def test_thinking_counts_its_text() -> None:
    block = {"type": "thinking", "thinking": "some words", "signature": "c2lnbmVk" * 50}
    message = {"role": "assistant", "content": [block]}
    assert piece_tokens(pieces_of(message), ANTHROPIC) == 4 + 2


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
    assert request_tokens([message], [None, {}], {"odd": {1}}) > 0


@given(message_lists())
def test_a_request_is_the_sum_of_its_messages(messages: list[dict[str, Any]]) -> None:
    model = provider_model(provider_of(messages))
    parts = sum(piece_tokens(pieces_of(message), model) for message in messages)
    assert request_tokens(messages) == model.request + parts
