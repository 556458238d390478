"""Bare message lists, and logs of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from openai.types.responses.response_input_item_param import ResponseInputItemParam

from policyctx.errors import UnreadableRecordingError
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import lengths, read_document, read_lines, read_one, roles

Record = dict[str, Any]
SYSTEM: Record = {"role": "system", "content": "You are."}
GO: Record = {"role": "user", "content": "go"}
SO: Record = {"role": "assistant", "content": "so"}
ON: Record = {"role": "user", "content": "on"}


@pytest.mark.parametrize("read", [read_lines, read_document])
def test_messages_are_one_recording(read: Any) -> None:
    (recording,) = read([SYSTEM, GO, SO, ON, SO])
    assert (recording.name, recording.format, lengths(recording)) == ("s", "chat", [2, 4])
    assert recording.messages() == [SYSTEM, GO, SO, ON, SO]


def test_a_list_a_line_is_a_recording_each() -> None:
    found = read_lines([{"messages": [GO, SO]}, [GO, SO, ON]])
    assert [one.name for one in found] == ["s#1", "s#2"]
    assert [len(one.messages()) for one in found] == [2, 3]


def test_a_record_that_is_not_a_message_is_counted() -> None:
    recording = read_one([GO, {"note": "x"}, {"role": "user", "content": 5}, SO])
    assert recording.not_understood == {"record that is not a message": 1, "user message": 1}
    assert recording.records == 4


def request(*messages: Record, **more: Any) -> Record:
    return {"model": "gpt-x", "messages": [*messages], **more}


def response(prompt: int) -> Record:
    usage = {"prompt_tokens": prompt, "completion_tokens": 1}
    return {"choices": [{"message": {**SO, "refusal": None}}], "usage": usage, "created": 86_400}


def test_requests_that_go_on_are_one_conversation() -> None:
    log = [
        {"request": request(GO), "response": response(10)},
        {"request": request(GO, SO, ON), "response": response(20)},
    ]
    recording = read_one(log)
    assert lengths(recording) == [1, 3]
    assert [call.usage for call in recording.calls] == [Usage(10, output=1), Usage(20, output=1)]
    assert (recording.calls[0].language_model, recording.calls[0].at) == ("gpt-x", 86_400.0)
    assert recording.after == (SO,)


def test_a_message_stays_the_same_object_when_a_cache_mark_moves() -> None:
    marked = {"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}
    first = request({"role": "user", "content": [marked]})
    recording = read_one([first, request(GO, SO, ON)])
    assert [call.anew for call in recording.calls] == [True, False]
    assert [*recording.calls[1].new] == [SO, ON]


def test_a_message_stays_the_same_object_when_a_mark_inside_a_result_moves() -> None:
    def answer(**mark: object) -> dict[str, object]:
        part = {"type": "text", "text": "found", **mark}
        result = {"type": "tool_result", "tool_use_id": "a", "content": [part]}
        return {"role": "user", "content": [result]}

    called = {"type": "tool_use", "id": "a", "name": "Find", "input": {}}
    reply = {"role": "assistant", "content": [called]}
    first = request(GO, reply, answer(cache_control={"type": "ephemeral"}))
    recording = read_one([first, request(GO, reply, answer(), SO, ON)])
    assert [call.anew for call in recording.calls] == [True, False]


def test_a_beginning_that_changed_begins_the_context_anew() -> None:
    log = [request(GO, SO, ON), request(GO, {"role": "assistant", "content": "in short"})]
    recording = read_one(log)
    assert [call.anew for call in recording.calls] == [True, True]
    assert roles([*recording.calls[1].new]) == ["user", "assistant"]


def test_conversations_are_distinguished_by_their_first_message() -> None:
    other = {"role": "user", "content": "another task"}
    log = [request(GO), request(other), request(GO, SO, ON), request(other, SO, ON)]
    found = read_lines(log)
    assert [lengths(one) for one in found] == [[1, 3], [1, 3]]
    assert [one.name for one in found] == ["s#1", "s#2"]


@pytest.mark.parametrize(
    "wrapped",
    [
        {"request": {"body": request(GO)}},
        {"body": request(GO), "custom_id": "1", "url": "/v1/chat/completions"},
        {"kwargs": request(GO)},
        {"input": request(GO), "output": response(10)},
        request(GO, response=response(10)),
        {"request": request(GO), "response": {"status": 200, "body": response(10)}},
    ],
)
def test_a_request_is_found_in_its_wrapper(wrapped: Record) -> None:
    recording = read_one([wrapped, wrapped])
    assert (recording.format, lengths(recording)) == ("request-log", [1, 1])


def test_requests_of_the_other_api_are_read() -> None:
    usage = {"input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 1}
    said = {"role": "assistant", "content": [{"type": "text", "text": "so"}], "usage": usage}
    asked = request(GO, system="You are.", tools=[{"name": "sh"}])
    recording = read_one([{"request": asked, "response": said}, {"note": "no request"}])
    (call,) = recording.calls
    assert (call.usage, call.system, call.tools) == (
        Usage(4, 6, output=1),
        "You are.",
        [{"name": "sh"}],
    )
    assert recording.after == ({"role": "assistant", "content": said["content"]},)
    assert recording.not_understood == {"record that is not a request": 1}


ASKED: Record = {"type": "message", "role": "user", "content": "go"}
THOUGHT: Record = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL: Record = {"type": "function_call", "name": "sh", "arguments": "{}", "call_id": "c"}
OUTPUT: Record = {"type": "function_call_output", "call_id": "c", "output": "done"}
ANSWER: Record = {"type": "message", "role": "assistant", "content": [], "id": "msg_1"}


def items_request(*items: Record, **more: Any) -> Record:
    return {"model": "gpt-x", "instructions": "You are.", "input": [*items], **more}


def items_response(prompt: int, *items: Record, **more: Any) -> Record:
    details = {"cached_tokens": prompt // 2}
    usage = {"input_tokens": prompt, "input_tokens_details": details, "output_tokens": 3}
    response = {"object": "response", "model": "gpt-x-1", "created_at": 86_400, "usage": usage}
    return {**response, "output": [*items], **more}


@pytest.mark.parametrize("read", [read_lines, read_document])
@pytest.mark.parametrize("first", [ASKED, GO, THOUGHT, CALL])
def test_items_are_one_recording(first: Record, read: Any) -> None:
    listed = [first, {**THOUGHT, "id": "r"}, CALL, OUTPUT, {"type": "web_search_call"}, ANSWER, GO]
    (recording,) = read(listed)
    starts = 0 if first in (THOUGHT, CALL) else 1
    assert (recording.format, lengths(recording)) == ("chat", [starts, 4])
    assert recording.messages() == listed
    assert (recording.records, recording.not_understood) == (7, {})


def test_each_type_of_item_of_the_sdk_is_an_item() -> None:
    kinds = [get_type_hints(one).get("type", str) for one in get_args(ResponseInputItemParam)]
    named = {name for kind in kinds for name in _literals(kind)}
    assert {"mcp_list_tools", "image_generation_call", "item_reference"} < named
    listed = [
        GO,
        *(
            {"type": name, "role": "user", "content": "x"}
            if name == "message"
            else {"type": name, "call_id": "c", "id": "c"}
            for name in sorted(named)
        ),
        SO,
    ]
    recording = read_one(listed)
    assert recording.not_understood == {}
    assert recording.messages() == listed


def _literals(kind: Any) -> Iterator[str]:
    """The texts in a type, such as `Required[Literal["message"]]`."""
    for one in get_args(kind):
        if isinstance(one, str):
            yield one
        else:
            yield from _literals(one)


def test_a_message_of_the_model_joins_the_call_before_it() -> None:
    recording = read_one([GO, THOUGHT, ANSWER, CALL, OUTPUT, {"type": "shell_call_output"}, ANSWER])
    assert lengths(recording) == [1, 6]


def test_what_stands_beside_a_reply_is_no_call() -> None:
    listing = {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": []}
    so = {"role": "assistant", "content": "so"}
    recording = read_one([listing, GO, THOUGHT, so, CALL, OUTPUT, {"type": "compaction"}, so])
    assert lengths(recording) == [2, 7]


@pytest.mark.parametrize(
    "other",
    [{"type": "event"}, {"type": 5}, {"type": "text", "text": "x"}, {"type": "program", "id": "a"}],
)
def test_records_with_a_type_that_no_item_has_are_no_messages(other: Record) -> None:
    with pytest.raises(UnreadableRecordingError, match="none of the known formats"):
        read_lines([other, other])


def test_requests_of_the_responses_api_are_one_conversation() -> None:
    first = {"request": items_request(ASKED), "response": items_response(10, THOUGHT, CALL)}
    whole = items_request(ASKED, THOUGHT, CALL, OUTPUT)
    second = {"request": whole, "response": items_response(30, ANSWER)}
    recording = read_one([first, second])
    assert (recording.format, lengths(recording)) == ("request-log", [1, 4])
    assert [call.usage for call in recording.calls] == [
        Usage(5, 5, output=3),
        Usage(15, 15, output=3),
    ]
    call = recording.calls[1]
    assert (call.system, call.language_model, call.at) == ("You are.", "gpt-x-1", 86_400.0)
    assert recording.messages() == [ASKED, THOUGHT, CALL, OUTPUT, ANSWER]
    assert recording.not_understood == {}


def test_a_request_that_continues_a_response_has_its_history() -> None:
    log = [
        items_request(ASKED, response=items_response(10, THOUGHT, CALL, id="resp_1")),
        items_request(
            OUTPUT, previous_response_id="resp_1", response=items_response(30, ANSWER, id="resp_2")
        ),
        items_request(GO, previous_response_id="resp_2"),
    ]
    recording = read_one(log)
    assert lengths(recording) == [1, 4, 6]
    assert recording.messages() == [ASKED, THOUGHT, CALL, OUTPUT, ANSWER, GO]


def test_a_request_may_begin_with_the_result_of_a_call() -> None:
    assert read_one([items_request(OUTPUT, previous_response_id="resp_9")]).messages() == [OUTPUT]


def test_an_input_that_is_a_text_is_a_message() -> None:
    log = [
        {"model": "gpt-x", "instructions": "You are.", "input": "go"},
        {"request": {"model": "gpt-x", "input": "go"}, "response": items_response(10, ANSWER)},
    ]
    assert read_one(log).messages() == [GO, ANSWER]


@pytest.mark.parametrize(
    "record",
    [
        {"model": "text-embedding-x", "input": "go"},
        {"model": "text-embedding-x", "input": ["go", "on"]},
        {"id": 1, "input": [GO], "target": "so"},
    ],
)
def test_an_input_of_another_api_is_not_a_request(record: Record) -> None:
    with pytest.raises(UnreadableRecordingError):
        read_lines([record])


@pytest.mark.parametrize(
    "wrapped",
    [
        {"request": {"body": items_request(ASKED)}},
        {"body": items_request(ASKED), "custom_id": "1", "url": "/v1/responses"},
        {"input": items_request(ASKED), "output": items_response(10, ANSWER)},
        items_request(ASKED, response=items_response(10, ANSWER)),
        {"request": items_request(ASKED), "response": {"body": items_response(10, ANSWER)}},
    ],
)
def test_a_request_of_the_responses_api_is_found_in_its_wrapper(wrapped: Record) -> None:
    recording = read_one([wrapped, wrapped])
    assert (recording.format, lengths(recording)) == ("request-log", [1, 1])
