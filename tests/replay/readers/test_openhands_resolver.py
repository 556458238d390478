"""What the resolver of OpenHands writes: one issue a line, with events that have no envelope."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.replay.reading import recordings_of
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import document_of, lengths, read_lines, read_one, roles

Record = dict[str, Any]

ISSUE = {"owner": "me", "repo": "tool", "number": 7, "title": "It breaks", "body": "Mend it."}
ASKED = {"content": "Fix the issue.", "action": "message", "wait_for_response": False}
RAN = {"command": "ls", "thought": "I look.", "blocking": False, "hidden": False, "action": "run"}
SAW = {"content": "a.py", "command": "ls", "exit_code": 0, "hidden": False, "observation": "run"}
DONE = {"outputs": {}, "thought": "It is mended.", "action": "finish"}


def resolved(*history: object, **more: Any) -> Record:
    output = {"issue": ISSUE, "issue_type": "issue", "instruction": "Fix the issue."}
    return {**output, "base_commit": "c0", "git_patch": "", "history": list(history), **more}


def test_an_issue_is_read_with_its_calls_and_results() -> None:
    (recording,) = read_lines([resolved(ASKED, RAN, SAW, DONE), resolved()])[:1]
    assert recording.name == "s#me/tool#7"
    assert recording.format == "openhands"
    user, reply, result, end = recording.messages()
    assert user == {"role": "user", "content": "Fix the issue."}
    assert reply["content"] == "I look."
    (call,) = reply["tool_calls"]
    assert call["function"] == {"name": "run", "arguments": '{"command":"ls"}'}
    assert result == {"role": "tool", "tool_call_id": call["id"], "name": "run", "content": "a.py"}
    assert end == {"role": "assistant", "content": "It is mended."}
    assert lengths(recording) == [1, 3]
    assert recording.records == 4


@pytest.mark.parametrize("history", [[RAN, SAW], [[RAN, SAW]]])
def test_the_instruction_is_the_prompt_of_a_history_without_it(history: list[object]) -> None:
    recording = document_of(resolved(*history))
    assert roles(recording) == ["user", "assistant", "tool"]
    assert recording.messages()[0]["content"] == "Fix the issue."


def test_each_issue_is_a_recording_of_its_own() -> None:
    other = {**resolved(ASKED, RAN, SAW), "issue": {**ISSUE, "number": 8}}
    found = read_lines([resolved(ASKED, RAN, SAW), other])
    assert [one.name for one in found] == ["s#me/tool#7", "s#me/tool#8"]


def test_arguments_may_stand_in_args() -> None:
    ran = {"action": "run", "args": {"command": "ls", "thought": "I look."}}
    saw = {"observation": "run", "content": "a.py", "extras": {"metadata": {"suffix": "!"}}}
    recording = document_of(resolved(ran, saw))
    assert recording.messages()[1]["tool_calls"][0]["function"]["arguments"] == '{"command":"ls"}'
    assert recording.messages()[2]["content"] == "a.py!"


def test_parallel_actions_get_their_results_in_order() -> None:
    failed = {"content": "no such file", "observation": "error"}
    recording = document_of(resolved(ASKED, RAN, {**RAN, "command": "cat x"}, SAW, failed))
    calls = [message["tool_calls"][0]["id"] for message in recording.messages()[1:3]]
    results = recording.messages()[3:]
    assert [one["tool_call_id"] for one in results] == calls
    assert results[1]["is_error"] is True


def test_an_observation_answers_an_action_of_its_own_kind() -> None:
    thinks = {"thought": "Hm.", "action": "think"}
    _, _, ran, result = document_of(resolved(ASKED, thinks, RAN, SAW)).messages()
    assert result["tool_call_id"] == ran["tool_calls"][0]["id"]


def test_an_issue_that_failed_before_it_began_is_counted() -> None:
    begun = resolved(ASKED, RAN, SAW)
    recording = read_one([{**resolved(error="no access"), "instruction": ""}, begun])
    assert recording.not_understood == {"instance without a conversation": 1}


def test_a_file_that_is_written_keeps_its_content() -> None:
    wrote = {"path": "a.py", "content": "x = 1", "thought": "", "action": "write"}
    function = document_of(resolved(ASKED, wrote)).messages()[1]["tool_calls"][0]["function"]
    assert function["arguments"] == '{"path":"a.py","content":"x = 1"}'


def test_messages_of_the_user_answer_those_of_the_agent() -> None:
    asks = {"content": "Which one?", "action": "message", "wait_for_response": True}
    tells = {"content": "The first.", "action": "message", "wait_for_response": False}
    expected = ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert roles(document_of(resolved(ASKED, asks, tells, RAN, SAW, asks))) == expected


def test_the_metrics_give_the_usage_of_each_call() -> None:
    used = {"prompt_tokens": 100, "cache_read_tokens": 60, "completion_tokens": 5}
    metrics = {"accumulated_cost": 0.1, "token_usages": [used, {**used, "prompt_tokens": 140}]}
    recording = document_of(resolved(ASKED, RAN, SAW, DONE, metrics=metrics))
    assert [call.usage for call in recording.calls] == [Usage(40, 60, 0, 5), Usage(80, 60, 0, 5)]


def test_metrics_of_more_calls_than_were_found_are_not_guessed_at() -> None:
    metrics = {"token_usages": [{"prompt_tokens": 100}] * 3}
    recording = document_of(resolved(ASKED, RAN, SAW, DONE, metrics=metrics))
    assert [call.usage for call in recording.calls] == [None, None]


def test_states_and_unknown_records_are_counted() -> None:
    state = {"agent_state": "running", "observation": "agent_state_changed", "content": ""}
    recording = document_of(resolved(ASKED, state, 7, {"what": 1}))
    assert recording.not_prompt == {"agent_state_changed": 1}
    assert recording.not_understood == {"record that is not an event": 1, "event without a kind": 1}
    assert recording.records == 4


def test_a_line_of_another_kind_is_not_taken_for_an_issue() -> None:
    line = b'{"issue": 1, "instruction": "x"}\n{"role": "user", "content": "hi"}\n'
    (recording,) = recordings_of(line, "s", partial=True)
    assert recording.format == "chat"


def test_an_issue_that_failed_before_it_began_has_no_conversation() -> None:
    failed = {**resolved(), "history": None, "error": "x"}
    first, last = read_lines([failed, resolved(ASKED, RAN, SAW, DONE)])
    assert len(first.calls) == 0
    assert len(last.calls) == 2


def test_an_instance_id_beside_an_issue_changes_nothing() -> None:
    assert len(read_one([resolved(ASKED, RAN, SAW, DONE, instance_id=None)]).calls) == 2
