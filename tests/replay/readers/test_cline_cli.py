"""Sessions of Cline's command line, and the list that a compaction leaves beside one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from policyctx.definitions.items import author_of
from policyctx.messages.reading import items_of
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import document_of, lengths, roles

Record = dict[str, Any]


def said(number: int, prompt: int) -> Record:
    call = {"type": "tool_use", "id": f"c{number}", "name": "run_commands", "input": {}}
    metrics = {"inputTokens": prompt, "cacheReadTokens": 60, "cacheWriteTokens": 30}
    return {
        "id": f"a{number}",
        "role": "assistant",
        "content": [{"type": "text", "text": "so"}, call],
        "ts": 1_767_225_601_000,
        "modelInfo": {"id": "claude-x", "provider": "anthropic"},
        "metrics": {**metrics, "outputTokens": 7, "cost": 0.1},
    }


def result(number: int) -> Record:
    ran = [{"query": "ls", "result": f"{number}.txt", "success": True}]
    block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": ran}
    return {"id": f"r{number}", "role": "user", "content": [block]}


TYPED = '<user_input mode="act">Go.</user_input>'
FIRST: Record = {"id": "u", "role": "user", "content": [{"type": "text", "text": TYPED}]}


def session(*prompts: int) -> Record:
    turns = [one for n, prompt in enumerate(prompts) for one in (said(n, prompt), result(n))]
    system = "Be brief.\n4. Working Directory: /srv\n</env>"
    head = {"version": 1, "agent": "lead", "sessionId": "s", "origin": {"source": "cli"}}
    return {**head, "messages": [FIRST, *turns], "system_prompt": system}


def compacted(tmp_path: Path, count: int, kept: list[Record], *prompts: int) -> Recording:
    text = {"type": "text", "text": "Context summary: read."}
    summary = {"role": "user", "content": [text], "metadata": {"kind": "compaction_summary"}}
    state = {"source_message_count": count, "messages": [summary, *kept]}
    (tmp_path / "s.compaction.json").write_text(json.dumps(state))
    path = tmp_path / "s.messages.json"
    path.write_text(json.dumps(session(*prompts)))
    (recording,) = recordings_in(path)
    return recording


def test_a_reply_is_a_call_and_its_input_has_what_was_cached() -> None:
    recording = document_of(session(100, 190))
    assert (recording.format, recording.project) == ("cline-cli", "/srv")
    assert lengths(recording) == [1, 3]
    assert [call.usage for call in recording.calls] == [
        Usage(10, 60, 30, 7),
        Usage(100, 60, 30, 7),
    ]
    first = recording.calls[0]
    assert (first.language_model, first.at) == ("claude-x", 1_767_225_601.0)
    assert str(first.system).startswith("Be brief.")
    texts = [(item.kind, item.text) for item in items_of(recording.messages())]
    assert texts[0] == ("user_message", "Go.")
    assert texts[3] == ("tool_result", '[{"query":"ls","result":"0.txt","success":true}]')
    assert recording.not_understood == {}


def test_a_call_that_failed_has_no_bill() -> None:
    assert document_of(session(0)).calls[0].usage is None


def test_the_list_that_a_compaction_left_begins_anew_where_it_was_made(tmp_path: Path) -> None:
    recording = compacted(tmp_path, 5, [said(1, 900), result(1)], 800, 900, 850)
    assert [call.why_anew for call in recording.calls] == [None, None, "compaction"]
    context = list(recording.contexts())[-1]
    assert roles(context) == ["user", "assistant", "user"]
    assert author_of(context[0]) == "summary"
    assert recording.not_prompt == {}


def test_of_an_older_compaction_the_fallen_bill_tells(tmp_path: Path) -> None:
    kept = [said(3, 300), result(3)]
    recording = compacted(tmp_path, 9, kept, 800, 900, 200, 300, 100)
    assert [call.why_anew for call in recording.calls] == [
        None, None, "compaction", None, "compaction",
    ]  # fmt: skip
    assert lengths(recording) == [1, 3, 3, 5, 3]


def test_a_fallen_bill_alone_is_no_compaction() -> None:
    assert {call.why_anew for call in document_of(session(800, 200)).calls} == {None}
