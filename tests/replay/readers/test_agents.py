"""The recordings of command-line agents that are read by one small module each."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.definitions.items import author_of
from policyctx.messages.reading import items_of
from policyctx.replay.recording import SummedBill
from policyctx.tokens.usage import Usage
from tests.replay.readers import copilot_records as copilot
from tests.replay.readers.reading import (
    document_of,
    lengths,
    read_document,
    read_lines,
    read_one,
    roles,
)

Record = dict[str, Any]


def gemini(*messages: Record) -> Record:
    return {"sessionId": "s", "projectHash": "p", "messages": list(messages)}


SHOWN: Record = {"functionResponse": {"id": "a", "name": "sh", "response": {"output": "done"}}}
CALL: Record = {"id": "a", "name": "sh", "args": {"cmd": "ls"}, "status": "success"}


def test_a_reply_of_gemini_carries_its_calls_and_their_results() -> None:
    tokens = {"input": 100, "cached": 60, "output": 5, "thoughts": 2}
    reply = {"type": "gemini", "content": "so", "tokens": tokens, "model": "gemini-x",
             "toolCalls": [{**CALL, "result": [SHOWN]}], "thoughts": [{"subject": "hm"}],
             "timestamp": "2026-01-01T00:00:01Z"}  # fmt: skip
    recording = document_of(gemini({"type": "user", "content": "go"}, reply))
    user, said, result = recording.messages()
    assert user == {"role": "user", "content": "go"}
    assert [block["type"] for block in said["content"]] == ["text", "tool_use"]
    assert result["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]
    (call,) = recording.calls
    assert (call.usage, call.language_model) == (Usage(40, 60, output=7), "gemini-x")
    assert call.at == 1767225601.0


def test_a_call_of_gemini_may_fail_or_stay_without_a_result() -> None:
    failed = {"functionResponse": {"response": {"error": "no such file"}}}
    calls = [{**CALL, "result": [failed], "status": "error"}, {**CALL, "id": "b"}]
    recording = document_of(gemini({"type": "gemini", "content": "", "toolCalls": calls}))
    (result,) = recording.after[1]["content"]
    assert (result["content"], result["is_error"]) == ("no such file", True)


def test_an_image_that_gemini_was_shown_is_an_image() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    recording = document_of(gemini({"type": "user", "content": [{"text": "see"}, image]}))
    assert [block["type"] for block in recording.messages()[0]["content"]] == ["text", "image"]


def test_gemini_notes_to_the_user_are_not_prompt() -> None:
    notes = [{"type": "info", "content": "update!"}, {"type": "unheard-of"}]
    recording = document_of(gemini({"type": "user", "content": "go"}, *notes))
    assert recording.not_prompt == {"info": 1}
    assert recording.not_understood == {"unheard-of": 1}


def test_gemini_lines_may_rewind() -> None:
    head = {"sessionId": "s", "projectHash": "p"}
    records = [
        head,
        {"id": "1", "type": "user", "content": "go"},
        {"id": "2", "type": "gemini", "content": "what?"},
        {"$rewindTo": "2"},
        {"id": "3", "type": "gemini", "content": "sure"},
    ]
    recording = read_one(records)
    assert lengths(recording) == [1, 1]
    assert recording.messages()[1]["content"] == [{"type": "text", "text": "sure"}]


LINES_HEAD: Record = {"sessionId": "s", "projectHash": "p"}
GO: Record = {"id": "1", "type": "user", "content": "go"}
TOKENS: Record = {"input": 100, "cached": 60, "output": 5}


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ({"content": None}, None),
        ({}, None),
        ({"content": {"text": "hi"}}, "hi"),
    ],
)
def test_a_gemini_prompt_may_be_nothing_or_one_part(said: Record, content: object) -> None:
    reply = {"id": "2", "type": "gemini", "content": {"text": "so"}, "tokens": TOKENS}
    recording = read_one([LINES_HEAD, {"id": "1", "type": "user", **said}, reply])
    assert [message["content"] for message in recording.messages()] == [
        content,
        [{"type": "text", "text": "so"}],
    ]
    assert [call.usage for call in recording.calls] == [Usage(40, 60, output=5)]


def test_a_gemini_rewind_to_an_unknown_id_removes_all_messages() -> None:
    records = [LINES_HEAD, GO, {"$rewindTo": "lost"}, {**GO, "id": "2", "content": "anew"}]
    assert [message["content"] for message in read_one(records).messages()] == ["anew"]


def test_the_newest_version_of_a_gemini_message_counts() -> None:
    said = {"id": "2", "type": "gemini", "content": "so"}
    called = {**said, "tokens": TOKENS, "toolCalls": [{**CALL, "result": [SHOWN]}]}
    touched = {"$set": {"lastUpdated": "2026-01-01T00:00:01Z"}}
    last = {"id": "3", "type": "gemini", "content": "done"}
    records = [LINES_HEAD, GO, said, touched, {**said, "tokens": TOKENS}, called, touched, last]
    recording = read_one(records)
    assert lengths(recording) == [1, 3]
    assert roles(recording) == ["user", "assistant", "user", "assistant"]
    assert recording.calls[0].usage == Usage(40, 60, output=5)
    assert recording.records == 8
    assert recording.not_prompt["earlier version of a message"] == 2


def test_a_session_of_gemini_may_get_a_new_list_of_messages() -> None:
    reply = {"id": "2", "type": "gemini", "content": "so"}
    masked = [{**GO, "content": [{"text": "in short"}]}, reply]
    records = [LINES_HEAD, GO, reply, {"$set": {"messages": masked}}, {**reply, "id": "3"}]
    recording = read_one(records)
    assert [call.anew for call in recording.calls] == [True, True]
    assert recording.calls[1].new[0]["content"] == "in short"
    assert len(recording.calls[1].new) == 2


def test_a_new_list_of_gemini_with_a_snapshot_is_a_compaction() -> None:
    reply = {"id": "2", "type": "gemini", "content": "so"}
    snapshot = {"id": "4", "type": "user", "content": [{"text": "<state_snapshot>All is read."}]}
    small = [GO, snapshot, {"id": "5", "type": "gemini", "content": "Got it."}]
    longer = {**small[2], "content": "Got it. So:"}
    ending = [{"$set": {"messages": small}}, longer, {**reply, "id": "6"}]
    masked = {"$set": {"messages": [{**GO, "content": "in short"}, snapshot, longer]}}
    recording = read_one([LINES_HEAD, GO, reply, *ending, masked, {**reply, "id": "7"}])
    assert [call.why_anew for call in recording.calls] == [None, "compaction", "change"]
    assert author_of(recording.calls[1].new[1]) == "summary"


def test_a_new_list_of_gemini_that_says_the_same_changes_nothing() -> None:
    response = {"functionResponse": {**SHOWN["functionResponse"], "id": "a"}}
    reply = {
        "id": "2",
        "type": "gemini",
        "content": "so",
        "toolCalls": [{**CALL, "result": [SHOWN]}],
    }
    synced = [
        {**GO, "content": [{"text": "go"}]},
        {**reply, "content": [{"text": "so"}, {"functionCall": {"id": "a", "name": "sh"}}]},
        {"id": "r", "type": "user", "content": [response]},
    ]
    last = {"id": "3", "type": "gemini", "content": "done"}
    recording = read_one([LINES_HEAD, GO, reply, {"$set": {"messages": synced}}, last])
    assert [call.anew for call in recording.calls] == [True, False]
    assert roles(recording) == ["user", "assistant", "user", "assistant"]


def test_a_masked_result_of_gemini_holds_that_of_its_call_alone() -> None:
    other = {"functionResponse": {"id": "b", "response": {"output": "other"}}}
    calls = [{**CALL, "result": [SHOWN, other]}, {**CALL, "id": "b", "result": [SHOWN, other]}]
    recording = document_of(gemini({"type": "gemini", "content": "", "toolCalls": calls}))
    assert [block["content"] for block in recording.after[1]["content"]] == ["done", "other"]


@pytest.mark.parametrize("odd", [{"type": "text"}, {"text": 5}, {"type": []}, {}])
def test_an_odd_part_of_a_gemini_result_is_kept_as_it_is(odd: Record) -> None:
    call = {**CALL, "result": [odd]}
    recording = document_of(gemini({"type": "gemini", "content": "", "toolCalls": [call]}))
    ((result,),) = [message["content"] for message in recording.after[1:]]
    assert isinstance(result["content"][0]["type"], str)


def test_a_gemini_record_that_is_not_a_message_is_counted() -> None:
    recording = document_of(gemini({"type": "user", "content": "go"}, 7))  # type: ignore[arg-type]
    assert recording.not_understood == {"record about the session": 1}


def test_a_copilot_session_is_read_from_its_events() -> None:
    asked = {"toolCallId": "a", "name": "view", "arguments": {"path": "x"}}
    records = [
        copilot.event("session.start", sessionId="s"),
        copilot.event("session.model_change", newModel="gpt-x"),
        copilot.GO,
        copilot.event("assistant.message", content="so", toolRequests=[asked]),
        copilot.event("tool.execution_start", toolCallId="a"),
        copilot.event(
            "tool.execution_complete", toolCallId="a", success=True, result={"content": "x"}
        ),
        copilot.event("assistant.message", content="done"),
        copilot.event("unheard-of"),
    ]
    recording = read_one(records)
    assert roles(recording) == ["user", "assistant", "tool", "assistant"]
    assert recording.messages()[1]["tool_calls"][0]["function"]["arguments"] == '{"path":"x"}'
    assert recording.messages()[2] == {"role": "tool", "tool_call_id": "a", "content": "x"}
    assert [call.language_model for call in recording.calls] == ["gpt-x", "gpt-x"]
    assert recording.not_understood == {"unheard-of": 1}


def test_a_failed_copilot_tool_is_marked_as_error() -> None:
    failed = copilot.event(
        "tool.execution_complete", toolCallId="a", success=False, error={"message": "no"}
    )
    recording = read_one([copilot.GO, failed])
    assert recording.messages()[1]["content"] == "no"
    assert recording.messages()[1]["is_error"] is True


def test_a_sub_agent_of_copilot_is_a_recording_of_its_own() -> None:
    aside = copilot.event("assistant.message", content="seen", parentToolCallId="a")
    main, agent = read_lines([copilot.GO, aside])
    assert (main.name, agent.name, len(agent.calls)) == ("s", "s#a", 1)


def test_a_copilot_compaction_starts_a_new_context() -> None:
    done = copilot.event("session.compaction_complete", success=True, summaryContent="in short")
    records = [copilot.GO, copilot.event("assistant.message", content="so"), done]
    recording = read_one([*records, copilot.event("assistant.message", content="on")])
    assert [m["content"] for m in recording.messages()] == ["in short", "on"]


TREE: Record = {"node": {"children": [{"text": "one"}, {"text": "two", "lineBreakBefore": True}]}}


def asked(text: str, **metadata: Any) -> Record:
    response = [{"value": "so"}, {"kind": "inlineReference"}]
    result = {"metadata": metadata}
    return {"message": {"text": text}, "response": response, "result": result,
            "modelId": "copilot/gpt-x", "timestamp": 1_767_225_601_000}  # fmt: skip


def rounds() -> Record:
    call = {"id": "a", "name": "read_file", "arguments": '{"path":"x"}'}
    results = {"a": {"content": [{"value": TREE}]}}
    answered = [{"response": "hm", "toolCalls": [call]}, {"response": "done", "toolCalls": []}]
    return {"toolCallRounds": answered, "toolCallResults": results}


def test_each_round_of_a_copilot_chat_is_a_call() -> None:
    chat = {"version": 3, "requests": [asked("go", **rounds()), asked("thanks")]}
    recording = document_of(chat)
    assert roles(recording) == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert lengths(recording) == [1, 3, 5]
    assert recording.messages()[2]["content"] == "one\ntwo"
    assert recording.messages()[5]["content"] == "so"
    assert (recording.calls[0].language_model, recording.calls[0].at) == ("gpt-x", 1767225601.0)


def test_the_changes_of_a_copilot_chat_are_carried_out() -> None:
    records = [
        {"kind": 0, "v": {"version": 3, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [asked("go"), asked("undone")]},
        {"kind": 2, "k": ["requests"], "v": [asked("on")], "i": 1},
        {"kind": 1, "k": ["requests", 0, "message", "text"], "v": "go!"},
        {"kind": 1, "k": ["nowhere", "to", "go"], "v": 1},
    ]
    recording = read_one(records)
    said = [m["content"] for m in recording.messages() if m["role"] == "user"]
    assert said == ["go!", "on"]
    assert recording.not_understood == {"change that does not fit": 1}


def trajectory(*history: Record, info: Record | None = None, **more: Any) -> Record:
    trajectory = [{"action": "ls"}]
    return {"trajectory": trajectory, "history": list(history), "info": info or {}, **more}


def test_a_result_of_swe_agent_names_its_call_in_a_list() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    history: list[Record] = [
        {"role": "system", "content": "You are.", "agent": "main"},
        {"role": "assistant", "content": "so", "agent": "main", "tool_calls": [call]},
        {"role": "tool", "content": "x", "agent": "main", "tool_call_ids": ["a"]},
    ]
    config = {"agent": {"model": {"name": "gpt-x"}}}
    recording = document_of(trajectory(*history, replay_config=config))
    assert recording.messages()[2] == {"role": "tool", "content": "x", "tool_call_id": "a"}
    assert recording.messages()[1]["tool_calls"] == [call]
    assert [one.language_model for one in recording.calls] == ["gpt-x"]


def test_each_agent_of_swe_agent_is_a_recording() -> None:
    history = [{"role": "user", "content": "go", "agent": name} for name in ("main", "retry")]
    assert [one.name for one in read_document(trajectory(*history))] == ["s", "s#retry"]


def test_swe_agent_usage_is_read_as_a_sum() -> None:
    history = [
        {"role": role, "content": "x"} for role in ("user", "assistant", "user", "assistant")
    ]
    stats = {"instance_cost": 0.1, "tokens_sent": 900, "tokens_received": 30, "api_calls": 2}
    recording = document_of(trajectory(*history, info={"model_stats": stats}))
    assert recording.bill == SummedBill(Usage(900, output=30), 2)
    assert [call.usage for call in recording.calls] == [None, None]


@pytest.mark.parametrize("stats", [None, {}, {"tokens_sent": 0}, {"tokens_sent": "many"}])
def test_swe_agent_usage_may_be_missing(stats: object) -> None:
    history = [{"role": "assistant", "content": "x"}]
    assert document_of(trajectory(*history, info={"model_stats": stats})).bill is None


def test_a_sum_of_several_agents_is_given_to_none() -> None:
    history = [{"role": "assistant", "content": "x", "agent": name} for name in ("main", "retry")]
    found = read_document(trajectory(*history, info={"model_stats": {"tokens_sent": 9}}))
    assert [one.bill for one in found] == [None, None]


def test_thinking_of_swe_agent_stands_before_its_words() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "x"}]
    said = {"role": "assistant", "content": "so", "thinking_blocks": blocks}
    recording = document_of(trajectory(said))
    assert recording.after[0]["content"] == [*blocks, {"type": "text", "text": "so"}]


def test_provider_responses_are_not_part_of_mini_swe_agent_prompts() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5}
    extra = {"response": {"usage": usage, "model": "gpt-x", "created": 86_400}}
    document = {
        "trajectory_format": "mini-swe-agent-1",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "so", "extra": extra},
            {"role": "exit", "content": "Submitted"},
        ],
    }
    recording = document_of(document)
    assert recording.messages()[1] == {"role": "assistant", "content": "so"}
    (call,) = recording.calls
    assert (call.usage, call.language_model, call.at) == (Usage(100, output=5), "gpt-x", 86_400.0)
    assert recording.not_prompt == {"exit message": 1}


def test_what_mini_swe_agent_writes_is_not_the_users() -> None:
    templates = {
        "instance_template": "Please solve this: {{task}}",
        "format_error_template": "Please give ONE action, found {{actions|length}}.",
        "action_observation_template": "<returncode>{{output.returncode}}</returncode>",
        "timeout_template": "{{action}}",
    }
    texts = [
        "Please solve this: x",
        "<returncode>0</returncode>",
        "Please give ONE action, found 2.",
    ]
    document = {
        "info": {"config": {"agent": {**templates, "step_limit": 250}}, "submission": "+ x\n"},
        "trajectory_format": "mini-swe-agent-1",
        "messages": [{"role": "user", "content": text} for text in [*texts, "+ x", "Stop."]],
    }
    written = [author_of(message) for message in document_of(document).messages()]
    assert written == ["", "program", "program", "program", ""]


def test_the_context_that_gemini_adds_says_where_it_works_and_that_no_user_wrote_it() -> None:
    told = (
        "<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - /srv/app\n"
        "- **Directory Structure:**\n</session_context>"
    )
    first = {"id": "1", "type": "user", "content": [{"text": told}]}
    records = [
        {"sessionId": "s", "projectHash": "p"},
        {"$set": {"messages": [first]}},
        {"id": "2", "type": "user", "content": [{"text": "go"}]},
        {"id": "3", "type": "gemini", "content": "so"},
    ]
    recording = read_one(records)
    assert recording.project == "/srv/app"
    assert [one.author for one in items_of(recording.messages())] == ["program", "", ""]
