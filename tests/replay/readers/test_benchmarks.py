"""The results of benchmarks and evaluations: many conversations in one file."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.reading import recordings_of
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import (
    document_of,
    lengths,
    read_document,
    read_lines,
    read_one,
    roles,
)

Record = dict[str, Any]
GREETING: Record = {"role": "assistant", "content": "Hi!", "tool_calls": None}
USER: Record = {"role": "user", "content": "go"}


ODD: list[Any] = [7, None, "x", []]
EVENT: Record = {"source": "user", "timestamp": "2026-01-01T00:00:01Z"}
CHAT: Record = {"version": 3, "requests": [{"message": {"text": "go"}}, *ODD]}


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"simulations": [{"messages": [USER, *ODD]}]}, "record that is not a message"),
        ([{"task_id": 1, "traj": [USER, *ODD]}], "record that is not a message"),
        (
            {"version": 2, "eval": {}, "samples": [{"messages": [USER, *ODD]}]},
            "record that is not a message",
        ),
        (
            {"instance_id": "i", "history": [{**EVENT, "action": "message"}, *ODD]},
            "record that is not an event",
        ),
        (CHAT, "record that is not a request"),
    ],
    ids=["tau2", "tau-bench", "inspect", "openhands", "copilot-chat"],
)
def test_values_that_are_not_objects_are_counted(document: object, name: str) -> None:
    recording = document_of(document)
    assert recording.not_understood == {name: 4}
    assert recording.records == 5
    assert len(recording.messages()) == 1


@pytest.mark.parametrize("odd", [{}, [], None])
def test_an_odd_id_of_an_openhands_event_is_tolerated(odd: object) -> None:
    events = [
        {**EVENT, "id": odd, "action": "message", "args": {"content": "go"}},
        {**EVENT, "action": "condensation", "args": {"forgotten_event_ids": [odd]}},
    ]
    assert roles(document_of({"instance_id": "i", "history": events})) == ["user"]


def test_simulations_without_messages_are_counted() -> None:
    recording = document_of({"simulations": [{"messages": [USER]}, {"messages": []}, 5]})
    assert recording.not_understood == {"simulation without a conversation": 2}


def test_a_role_that_tau2_does_not_have_is_counted_by_its_name() -> None:
    recording = document_of(simulation(USER, {"role": "judge", "content": "hm"}))
    assert recording.not_understood == {"judge message": 1}


def test_each_task_of_tau_bench_is_a_recording() -> None:
    traj = [USER, {"role": "assistant", "content": "so"}]
    tasks = [{"task_id": 4, "trial": trial, "traj": traj} for trial in (0, 0, 1)]
    found = read_document([*tasks, {"task_id": 5, "traj": []}])
    assert [one.name for one in found] == ["s#4-0", "s#4-0-2", "s#4-1"]
    assert [len(one.calls) for one in found] == [1, 1, 1]


def simulation(*messages: Record) -> Record:
    info = {"agent_info": {"llm": "gpt-x"}, "environment_info": {"policy": "Be kind."}}
    return {"info": info, "simulations": [{"task_id": "8", "trial": 3, "messages": [*messages]}]}


def test_a_greeting_of_tau2_was_written_by_no_model() -> None:
    recording = document_of(simulation(GREETING, USER, {"role": "assistant", "content": "so"}))
    assert (recording.name, lengths(recording)) == ("s#8-3", [2])
    assert (recording.calls[0].system, recording.calls[0].language_model) == ("Be kind.", "gpt-x")


def test_calls_and_results_of_tau2_take_the_form_of_the_api() -> None:
    call = {"id": "a", "name": "find", "arguments": {"名": "张"}, "requestor": "assistant"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    reply = {"role": "assistant", "content": "", "tool_calls": [call], "usage": usage}
    result = {"role": "tool", "id": "a", "content": "x", "requestor": "assistant", "error": True}
    recording = document_of(simulation(USER, reply, result))
    function = {"name": "find", "arguments": '{"名":"张"}'}
    calls = [{"id": "a", "type": "function", "function": function}]
    assert recording.messages()[1]["tool_calls"] == calls
    expected = {"role": "tool", "tool_call_id": "a", "content": "x", "is_error": True}
    assert recording.messages()[2] == expected
    assert recording.calls[0].usage == Usage(9, output=1)


def test_calls_of_the_simulated_user_are_not_in_the_prompt() -> None:
    call = {"id": "u", "name": "look", "arguments": {}, "requestor": "user"}
    asked = {"role": "user", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "id": "u", "content": "x", "requestor": "user"}
    recording = document_of(simulation(USER, asked, {"role": "tool", "tool_messages": [result]}))
    assert roles(recording) == ["user"]
    assert sum(recording.not_prompt.values()) == 2


def message(call_id: str, **said: Any) -> Record:
    response: Record = {"id": f"of {call_id}", "model": "gpt-x", "usage": {"prompt_tokens": 9}}
    origin: Record = {"tool_call_id": call_id, "function_name": "sh", "model_response": response}
    if said:
        response["choices"] = [{"message": {"role": "assistant", **said}}]
    return origin


def happened(number: int, **more: Any) -> Record:
    return {"id": number, "timestamp": "2026-01-01T00:00:01", "source": "agent", **more}


CALLS = [{"id": c, "function": {"name": "sh", "arguments": "{}"}} for c in ("a", "b")]
TASK = happened(1, source="user", action="message", args={"content": "go"})


def test_one_response_of_openhands_may_have_several_actions() -> None:
    origin = message("a", content="so", tool_calls=CALLS)
    also = {**message("b"), "model_response": origin["model_response"]}
    around = {"metadata": {"prefix": "[", "suffix": "]"}}
    events = [
        happened(0, action="system", args={"content": "You are.", "tools": [{"name": "sh"}]}),
        TASK,
        happened(2, action="run", args={}, tool_call_metadata=origin),
        happened(3, observation="run", content="1", extras=around, tool_call_metadata=origin),
        happened(4, action="run", args={}, tool_call_metadata=also),
        happened(5, observation="error", content="2", tool_call_metadata=also),
    ]
    recording = read_one(events)
    assert roles(recording) == ["system", "user", "assistant", "tool", "tool"]
    assert [m["content"] for m in recording.messages()[3:]] == ["[1]", "2"]
    assert recording.messages()[4]["is_error"] is True
    (call,) = recording.calls
    assert (call.usage, call.language_model) == (Usage(9), "gpt-x")
    assert (call.tools, call.at) == ([{"name": "sh"}], 1767225601.0)


def test_an_instance_of_openhands_is_a_recording_in_lines_and_documents() -> None:
    instance = {"instance_id": "fix-1", "history": [TASK]}
    (in_document,) = read_document(instance)
    first, second = read_lines([instance, instance])
    assert [one.name for one in (in_document, first, second)] == ["s#fix-1", "s#fix-1", "s#fix-1-2"]


def test_a_long_observation_of_openhands_lost_its_middle() -> None:
    origin = message("a", content="so", tool_calls=CALLS[:1])
    observed = happened(
        3, observation="run", content="a" * 99 + "z" * 99, tool_call_metadata=origin
    )
    metadata = {"llm_config": {"max_message_chars": 10}}
    recording = document_of({"instance_id": "i", "metadata": metadata, "history": [TASK, observed]})
    said = recording.messages()[1]["content"]
    assert said.startswith("aaaaa\n")
    assert said.endswith("\nzzzzz")


def test_events_condensed_by_openhands_are_replaced_by_the_summary() -> None:
    also = happened(2, source="user", action="message", args={"content": "and"})
    condensed = happened(
        3, action="condensation", args={"forgotten_event_ids": [1], "summary": "in short"}
    )
    said = happened(4, action="message", args={"content": "done"})
    recording = read_one([TASK, also, condensed, said])
    assert [m["content"] for m in recording.messages()] == ["in short", "and", "done"]


def test_an_action_without_its_response_is_put_together() -> None:
    origin = {"tool_call_id": "a", "function_name": "sh", "model_response": None}
    ran = happened(2, action="run", args={"command": "ls", "thought": "hm"},
                   tool_call_metadata=origin)  # fmt: skip
    reply = read_one([TASK, ran]).messages()[1]
    assert reply["content"] == "hm"
    assert reply["tool_calls"][0]["function"] == {"name": "sh", "arguments": '{"command":"ls"}'}


def sdk(kind: str, **more: Any) -> Record:
    return {"kind": kind, "source": "agent", "timestamp": "2026-01-01T00:00:01", **more}


def acted(event: str, call: str, response: str = "r") -> Record:
    call_ = {"id": call, "name": "sh", "arguments": '{"cmd":"ls"}'}
    thought = [{"type": "text", "text": "hm"}]
    return sdk("ActionEvent", id=event, tool_call_id=call, tool_name="sh", tool_call=call_,
               llm_response_id=response, thought=thought)  # fmt: skip


def seen(event: str, call: str, **more: Any) -> Record:
    observation = {"content": [{"type": "text", "text": "done"}], **more}
    return sdk("ObservationEvent", id=event, tool_call_id=call, observation=observation)


ASKED = sdk("MessageEvent", id="1", source="user",
            llm_message={"role": "user", "content": [{"type": "text", "text": "go"}]})  # fmt: skip


def test_the_sdk_of_openhands_is_read_by_the_kinds_of_its_events() -> None:
    prompt = sdk("SystemPromptEvent", id="0", system_prompt={"type": "text", "text": "You are."},
                 tools=[{"name": "sh"}])  # fmt: skip
    events = [prompt, ASKED, acted("2", "a"), acted("3", "b"), seen("4", "a"),
              seen("5", "b", is_error=True), sdk("PauseEvent"), sdk("NewEvent")]  # fmt: skip
    recording = read_one(events)
    assert roles(recording) == ["system", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in recording.messages()[2]["tool_calls"]] == ["a", "b"]
    assert recording.messages()[4]["is_error"] is True
    assert [(one.tools, one.at) for one in recording.calls] == [([{"name": "sh"}], 1767225601.0)]
    assert recording.not_prompt == {"PauseEvent": 1}
    assert recording.not_understood == {"NewEvent": 1}


def test_a_condensation_of_the_sdk_leaves_its_summary() -> None:
    condensed = sdk(
        "Condensation", forgotten_event_ids=["2", "4"], summary="in short", summary_offset=1
    )
    events = [ASKED, acted("2", "a"), seen("4", "a"), condensed, acted("6", "c", "r2")]
    recording = document_of({"instance_id": "i", "history": events})
    assert [call.anew for call in recording.calls] == [True, True]
    assert [*recording.calls[1].new][1]["content"] == "in short"


def log(*messages: Record, **more: Any) -> Record:
    sample = {"id": 1, "epoch": 1, "messages": [*messages], **more}
    return {"version": 2, "eval": {"model": "openai/gpt-x"}, "samples": [sample]}


def called(reply: str, usage: Record, **more: Any) -> Record:
    output = {"choices": [{"message": {"id": reply}}], "usage": usage}
    at = "2026-01-01T00:00:01+00:00"
    return {"event": "model", "timestamp": at, "output": output, **more}


REPLY: Record = {"id": "r", "role": "assistant", "content": "so", "source": "generate"}


@pytest.mark.parametrize(
    ("total", "usage"), [(105, Usage(40, 60, output=5)), (165, Usage(100, 60, output=5))]
)
def test_input_of_inspect_is_read_with_the_cached_or_without(total: int, usage: Usage) -> None:
    billed = {"input_tokens": 100, "output_tokens": 5, "input_tokens_cache_read": 60}
    events = [called("r", {**billed, "total_tokens": total}, tools=[{"name": "sh"}])]
    events += [called("grade", billed), {"event": "score"}]
    recording = document_of(log(USER, REPLY, events=events))
    (call,) = recording.calls
    assert (call.usage, call.tools, call.at) == (usage, [{"name": "sh"}], 1767225601.0)
    assert recording.not_prompt == {"event": 2, "model call beside the conversation": 1}


def test_parts_of_inspect_take_the_form_of_the_api() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image", "image": "attachment://f00"},
        {"type": "reasoning", "reasoning": "hm", "signature": "x"},
    ]
    failed = {"role": "tool", "tool_call_id": "a", "content": "", "error": {"message": "no"}}
    asked = {**REPLY, "tool_calls": [{"id": "a", "function": "sh", "arguments": {"n": 1}}]}
    user = {"role": "user", "content": parts}
    recording = document_of(log(user, asked, failed, attachments={"f00": "data:image/png,x"}))
    said, reply, result = recording.messages()
    image = {"type": "image_url", "image_url": {"url": "data:image/png,x"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    assert said["content"] == [parts[0], image, thinking]
    assert reply["tool_calls"][0]["function"] == {"name": "sh", "arguments": '{"n":1}'}
    assert (result["content"], result["is_error"]) == ("no", True)


def test_a_reply_from_the_data_set_is_not_a_call() -> None:
    assert lengths(document_of(log(USER, {**REPLY, "source": "input"}, USER, REPLY))) == [3]


def archive(**files: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(f"{name.replace('__', '/')}.json", text)
    return content.getvalue()


def test_an_archive_of_inspect_reads_as_its_document() -> None:
    document = log(USER, REPLY)
    sample = json.dumps(document.pop("samples")[0])
    packed = archive(header=json.dumps(document), samples__1=sample, samples__2="{torn")
    (recording,) = recordings_of(packed, "s.eval", partial=True)
    assert (recording.name, roles(recording)) == ("s.eval#1-1", ["user", "assistant"])
    assert sum(recording.not_understood.values()) == 1


def test_an_archive_that_was_never_finished_is_read() -> None:
    document = log(USER, REPLY)
    sample = json.dumps(document.pop("samples")[0])
    packed = archive(_journal__start=json.dumps(document), samples__1=sample)
    assert len(list(recordings_of(packed, "s.eval"))) == 1


def test_a_torn_file_of_an_archive_is_counted() -> None:
    document = log(USER, REPLY)
    sample = json.dumps(document.pop("samples")[0] | {"filler": [*range(2_000)]})
    packed = archive(header=json.dumps(document), samples__1=sample, samples__2=sample)
    # The data of the first file begin after its name, of 14 characters.
    place = packed.index(b"samples/1.json") + 14 + 200
    torn = packed[:place] + bytes(100) + packed[place + 100 :]
    (recording,) = recordings_of(torn, "s.eval", partial=True)
    assert sum(recording.not_understood.values()) == 1


def declaring(size: int, *contents: bytes) -> bytes:
    """An archive of inspect whose samples are declared to unpack to `size` bytes each."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"version": 2, "eval": {}}))
        for number, content in enumerate(contents):
            packed.writestr(f"samples/{number}.json", content)
            packed.infolist()[-1].file_size = size
    return file.getvalue()


SAMPLE = json.dumps({"id": 1, "epoch": 1, "messages": [USER]}).encode()


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (declaring(3 * 2**30, SAMPLE), "samples/0.json unpacks to 3,221,225,472 bytes; the limit"),
        (declaring(2**27, *[SAMPLE] * 9), "its files unpack to 1,207,959,552 bytes; the limit is"),
    ],
    ids=["one file", "all files"],
)
def test_an_archive_that_unpacks_to_too_much_is_refused(packed: bytes, why: str) -> None:
    with pytest.raises(UnreadableRecordingError) as raised:
        list(recordings_of(packed, "s.eval"))
    assert raised.value.why.startswith(why)
    assert not raised.value.is_other


@pytest.mark.slow
def test_an_archive_is_unpacked_no_further_than_it_declares() -> None:
    packed = declaring(len(SAMPLE), SAMPLE, SAMPLE + b" " * 2**28)
    tracemalloc.start()
    (recording,) = recordings_of(packed, "s.eval", partial=True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**24
    assert recording.not_understood == {"file that is not JSON, or packed in an unknown way": 1}
