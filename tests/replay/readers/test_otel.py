"""Traces of model calls, in the attributes of several instrumentations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.messages.reading import items_of
from policyctx.replay.reading import recordings_of
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.conversations import calls, chat_calls, chat_result, results, user
from tests.replay.readers.reading import document_of, lengths, read_document, read_lines, roles

CHAT = [
    {"role": "system", "content": "Be brief."},
    user("List."),
    chat_calls(("c0", "read", '{"p": 1}'), ("c1", "read", "{}")),
    chat_result("c0", "a.txt"),
    chat_result("c1", "b.txt"),
    {"role": "assistant", "content": "Done."},
]
REPLIES = [2, 5]


def value(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(one) for one in given]}}
    return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in attributes.items()]


def span(number: int, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    at = str(1_767_225_600_000_000_000 + number * 10**9)
    made = {"traceId": "ab", "spanId": f"s{number}", "endTimeUnixNano": at}
    return {**made, "attributes": pairs(attributes), **more}


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


def parts(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        result = {"id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [{"type": "tool_call_response", **result}]}
    told = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        arguments = json.loads(call["function"]["arguments"])
        name = call["function"]["name"]
        told.append({"type": "tool_call", "id": call["id"], "name": name, "arguments": arguments})
    return {"role": message["role"], "parts": told}


def semantic(place: int, messages: list[Any] = CHAT) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.input.messages": json.dumps([parts(one) for one in messages[:place]]),
        "gen_ai.output.messages": json.dumps([parts(messages[place])]),
        "gen_ai.usage.input_tokens": 100 * place,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 30,
    }


def structured(place: int) -> dict[str, Any]:
    told = semantic(place)
    names = ("gen_ai.input.messages", "gen_ai.output.messages")
    return {**told, **{name: json.loads(told[name]) for name in names}}


def flattened(place: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-x",
        "llm.token_count.prompt": 100 * place,
        "llm.token_count.completion": 7,
        "llm.token_count.prompt_details.cache_read": 30,
        "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "read"}}',
    }
    for kind, shown in (("input", CHAT[:place]), ("output", [CHAT[place]])):
        for number, message in enumerate(shown):
            at = f"llm.{kind}_messages.{number}.message"
            attributes[f"{at}.role"] = message["role"]
            if message["content"]:
                attributes[f"{at}.content"] = message["content"]
            if "tool_call_id" in message:
                attributes[f"{at}.tool_call_id"] = message["tool_call_id"]
            for call, made in enumerate(message.get("tool_calls", ())):
                of_call = f"{at}.tool_calls.{call}.tool_call"
                attributes[f"{of_call}.id"] = made["id"]
                for name, one in made["function"].items():
                    attributes[f"{of_call}.function.{name}"] = one
    return attributes


def older(place: int) -> dict[str, Any]:
    found = {}
    for key, one in flattened(place).items():
        name = key.replace("llm.input_messages", "gen_ai.prompt")
        name = name.replace("llm.output_messages", "gen_ai.completion")
        name = name.replace(".message.", ".").replace(".tool_call.function", "")
        name = name.replace("llm.tools.0.tool.json_schema", "llm.request.functions.0.name")
        found[name.replace(".tool_call.id", ".id")] = one
    return {**found, "openinference.span.kind": "", "llm.request.type": "chat"}


def bodies(place: int) -> dict[str, Any]:
    reply = {"id": f"r{place}", "choices": [{"message": CHAT[place]}]}
    return {
        **{key: one for key, one in flattened(place).items() if "messages" not in key},
        "input.value": json.dumps({"model": "gpt-x", "messages": CHAT[:place]}),
        "output.value": json.dumps(reply),
    }


FORMS = {f.__name__: f for f in (semantic, structured, flattened, older, bodies)}


def told(recording: Recording) -> list[Any]:
    items = items_of(recording.messages())
    return [(i.kind, i.tool, str(i.text).replace(" ", ""), i.tool_use_id) for i in items]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_span_of_a_model_call_is_a_call_with_its_prompt(form: Any) -> None:
    other = span(9, {"http.method": "POST"})
    recording = document_of(export(*(span(place, form(place)) for place in REPLIES), other))
    assert (recording.format, recording.name) == ("otel", "s")
    assert lengths(recording) == [2, 5]
    assert [call.usage for call in recording.calls] == [
        Usage(170, 30, 0, 7), Usage(470, 30, 0, 7),
    ]  # fmt: skip
    assert [call.at for call in recording.calls] == [1_767_225_602.0, 1_767_225_605.0]
    assert {call.language_model for call in recording.calls} == {"gpt-x"}
    assert bool(recording.calls[0].tools) is (form not in {semantic, structured})
    expected = [
        (i.kind, i.tool, str(i.text).replace(" ", ""), i.tool_use_id) for i in items_of(CHAT)
    ]
    assert told(recording) == expected
    assert recording.not_prompt == {"span of another kind": 1}
    assert recording.not_understood == {}


def test_requests_of_anthropics_api_keep_their_form() -> None:
    messages = [user("List."), calls(("c0", "read")), results(("c0", "a.txt"))]
    request = {"model": "claude-x", "system": "Be brief.", "messages": messages}
    usage = {
        "llm.token_count.prompt": 100,
        "llm.token_count.prompt_details.cache_read": 300,
        "llm.token_count.prompt_details.cache_write": 5,
    }
    asked = {"openinference.span.kind": "LLM", "input.value": json.dumps(request), **usage}
    [call] = document_of(export(span(1, asked))).calls
    assert ([*call.new], call.system) == (messages, "Be brief.")
    assert call.usage == Usage(100, 300, 5, 0)  # this client counts the cache apart


def test_system_instructions_and_tools_are_beside_the_messages() -> None:
    system = [{"type": "text", "content": "Be"}, {"type": "text", "content": "brief."}]
    tools = [{"type": "function", "name": "read", "parameters": {}}]
    beside = {"gen_ai.system_instructions": json.dumps(system)}
    beside["gen_ai.tool.definitions"] = json.dumps(tools)
    [call] = document_of(export(span(1, semantic(1, CHAT[1:]) | beside))).calls
    assert (call.system, call.tools) == ("Be\nbrief.", tools)


def test_messages_may_be_events_of_the_span() -> None:
    events = [
        {"name": "gen_ai.user.message", "attributes": pairs({"content": "List."})},
        {
            "name": "gen_ai.assistant.message",
            "attributes": pairs({"gen_ai.event.content": json.dumps(CHAT[2])}),
        },
        {"name": "gen_ai.tool.message", "attributes": pairs({"content": "a", "id": "c0"})},
        {"name": "gen_ai.choice", "attributes": pairs({"index": 0})},
    ]
    asked = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}
    recording = document_of(export(span(1, asked, events=events)))
    assert roles(recording) == ["user", "assistant", "tool"]
    assert [item.tool for item in items_of(recording.messages())][1:] == ["read", "read", "read"]


def test_images_are_in_the_prompt() -> None:
    blob = {"type": "blob", "mime_type": "image/png", "content": "iVBORw0KGgo="}
    shown = [{"role": "user", "parts": [{"type": "text", "content": "See."}, blob]}]
    asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(shown)}
    recording = document_of(export(span(1, asked)))
    assert [item.kind for item in items_of(recording.messages())] == ["user_message", "image"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"parentSpanId": "s1"}, id="inside"),
        pytest.param({"parentSpanId": "s0"}, id="beside"),
    ],
)
def test_two_spans_of_one_call_are_one(more: dict[str, str]) -> None:
    asked = semantic(2) | {"gen_ai.response.id": "r"}
    without = {key: one for key, one in asked.items() if "messages" not in key}
    recording = document_of(export(span(0, without, **more), span(1, asked, parentSpanId="s9")))
    assert (lengths(recording), recording.not_understood) == ([2], {})
    both = document_of(export(span(1, asked, parentSpanId="s9"), span(2, asked, **more)))
    assert lengths(both) == [2]


def test_a_server_may_give_the_same_id_to_all_responses() -> None:
    asked = semantic(2) | {"gen_ai.response.id": "r"}
    found = read_document(
        export(span(1, asked, traceId="t1"), span(2, asked, traceId="t2"), span(3, semantic(5)))
    )
    assert sum(len(recording.calls) for recording in found) == 3


def test_an_agent_span_with_sums_is_no_call() -> None:
    asked = semantic(2) | {"gen_ai.operation.name": "invoke_agent"}
    recording = document_of(export(span(1, asked), span(2, semantic(2), parentSpanId="s1")))
    assert lengths(recording) == [2]


def test_a_trace_without_a_model_call_is_refused() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "a.txt"}
    with pytest.raises(UnreadableRecordingError, match="2 × span of another kind"):
        list(recordings_of(json.dumps(export(span(1, tool), span(2, tool))).encode(), "s"))


def test_a_call_that_failed_is_none_and_one_without_messages_is_reported() -> None:
    bare = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}
    failed = span(3, {"gen_ai.operation.name": "chat"}, status={"code": "STATUS_CODE_ERROR"})
    document = export(span(2, semantic(2)), failed, span(4, bare))
    recording = document_of(document)
    assert (lengths(recording), recording.not_understood) == (
        [2], {"call without its messages": 1},
    )  # fmt: skip
    with pytest.raises(UnreadableRecordingError, match="2 × call without its messages"):
        list(recordings_of(json.dumps(export(span(1, bare), span(2, bare))).encode(), "s"))


@pytest.mark.parametrize("gone", ["llm.input_messages.0.", "llm.input_messages.1."])
def test_a_call_whose_messages_were_dropped_in_part_is_reported(gone: str) -> None:
    left = {key: one for key, one in flattened(5).items() if not key.startswith(gone)}
    recording = document_of(export(span(2, flattened(2)), span(5, left)))
    assert recording.not_understood == {"call without its messages": 1}


def test_conversations_are_told_apart_by_id_or_trace_and_first_message() -> None:
    named = [
        semantic(place) | {"gen_ai.conversation.id": name} for place in REPLIES for name in "ab"
    ]
    spans = [span(number, one) for number, one in enumerate(named)]
    assert [lengths(one) for one in read_document(export(*spans))] == [[2, 5], [2, 5]]
    helper = [user("Look around."), {"role": "assistant", "content": "Found."}]
    mixed = [span(1, semantic(2)), span(2, semantic(1, helper)), span(3, semantic(5))]
    assert [lengths(one) for one in read_document(export(*mixed))] == [[2, 5], [1]]


def test_a_later_trace_continues_a_conversation_but_the_same_task_again_is_another() -> None:
    first = span(1, semantic(2), traceId="t1")
    later = span(2, semantic(5), traceId="t2")
    again = span(3, semantic(2), traceId="t3")
    found = read_document(export(first, later, again))
    assert [lengths(one) for one in found] == [[2, 5], [2]]


def test_exports_may_be_lines_and_spans_may_be_as_an_sdk_prints_them() -> None:
    lines = read_lines([export(span(place, semantic(place))) for place in REPLIES])
    assert [lengths(one) for one in lines] == [[2, 5]]
    printed = [
        {
            "name": "chat",
            "context": {"trace_id": "0xab", "span_id": f"0x{place}"},
            "parent_id": None,
            "end_time": f"2026-01-01T00:00:0{place}Z",
            "attributes": semantic(place),
        }
        for place in REPLIES
    ]
    [recording] = read_lines(printed)
    assert (recording.format, lengths(recording)) == ("otel", [2, 5])
    assert recording.calls[0].at == 1_767_225_602.0


def test_a_span_without_an_id_is_a_call_and_hides_no_other() -> None:
    nameless = [span(place, semantic(place), spanId="") for place in REPLIES]
    recording = document_of(export(*nameless, span(7, semantic(2))))
    assert len(recording.calls) == 3
    assert [bool(call.id) for call in recording.calls] == [False, False, True]


def test_spans_of_two_traces_with_one_id_are_two_calls() -> None:
    spans = [span(2, semantic(2), traceId=trace) for trace in ("ab", "cd", "ef")]
    below = span(3, semantic(2), traceId="cd", parentSpanId="s2")
    assert sum(len(one.calls) for one in read_document(export(*spans, below))) == 3


def test_an_end_that_is_a_number_is_a_time_and_an_odd_one_is_none() -> None:
    for end, at in (1_767_225_602_000_000_000, 1_767_225_602.0), ("9" * 400, None), ([], None):
        one = span(2, semantic(2), endTimeUnixNano=end)
        assert [call.at for call in document_of(export(one)).calls] == [at]


def test_traces_go_on_with_the_longest_list_that_they_continue() -> None:
    lists = [CHAT[:2], CHAT[:2], CHAT[:5], CHAT[:5]]
    spans = [
        span(at, semantic(len(one), [*one, CHAT[-1]]), traceId=f"t{at}")
        for at, one in enumerate(lists)
    ]
    assert [lengths(one) for one in read_document(export(*spans))] == [[2, 5], [2, 5]]
