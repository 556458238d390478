"""Sessions of Qwen Code."""

from __future__ import annotations

from typing import Any

from policyctx.messages.reading import items_of
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import lengths, read_one, roles

Record = dict[str, Any]


def record(kind: str, uuid: str, parent: str | None, *parts: Record, **more: Any) -> Record:
    role = "model" if kind == "assistant" else "user"
    said = {"message": {"role": role, "parts": list(parts)}} if kind != "system" else {}
    links = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/srv"}
    return {**links, "timestamp": "2026-01-01T00:00:01Z", "type": kind, **said, **more}


def user(uuid: str, parent: str | None, words: str, **more: Any) -> Record:
    return record("user", uuid, parent, {"text": words}, **more)


def reply(uuid: str, parent: str, *parts: Record, **more: Any) -> Record:
    bill = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 9}
    bill |= {"thoughtsTokenCount": 4, "totalTokenCount": 109}
    return record("assistant", uuid, parent, *parts, model="qwen-x", usageMetadata=bill, **more)


def call(call_id: str) -> Record:
    return {"functionCall": {"id": call_id, "name": "read_file", "args": {"path": "a"}}}


def result(uuid: str, parent: str, call_id: str, **more: Any) -> Record:
    response = {"output": f"of {call_id}", **more}
    answer = {"id": call_id, "name": "read_file", "response": response}
    return record("tool_result", uuid, parent, {"functionResponse": answer})


def note(uuid: str, parent: str, subtype: str, **payload: Any) -> Record:
    return record("system", uuid, parent, subtype=subtype, systemPayload=payload)


START = [user("u", None, "go"), reply("a", "u", {"text": "so"}, call("1"), call("2"))]
TURN = [*START, result("r", "a", "1"), result("q", "r", "2")]


def test_a_reply_is_a_call_with_its_bill_and_its_results_are_one_message() -> None:
    thought = {"text": "hm", "thought": True}
    recording = read_one([*TURN, reply("b", "q", thought, {"text": "done"})])
    assert (recording.format, recording.project) == ("qwen-code", "/srv")
    assert roles(recording) == ["user", "assistant", "user", "assistant"]
    assert lengths(recording) == [1, 3]
    assert [one.usage for one in recording.calls] == [Usage(40, 60, output=9)] * 2
    assert [(one.language_model, one.at) for one in recording.calls] == [
        ("qwen-x", 1767225601.0)
    ] * 2
    kinds = [(one.kind, one.text) for one in items_of(recording.messages())]
    assert kinds[1:] == [
        ("assistant_message", "so"),
        ("tool_call", '{"path":"a"}'),
        ("tool_call", '{"path":"a"}'),
        ("tool_result", "of 1"),
        ("tool_result", "of 2"),
        ("thinking", "hm"),
        ("assistant_message", "done"),
    ]


def test_thoughts_that_are_billed_beside_the_reply_are_output() -> None:
    bill = {"promptTokenCount": 100, "candidatesTokenCount": 9, "thoughtsTokenCount": 4}
    for total, output in ({}, 9), ({"totalTokenCount": 113}, 13), ({"totalTokenCount": 0}, 9):
        one = record("assistant", "a", "u", {"text": "so"}, usageMetadata={**bill, **total})
        assert [call.usage for call in read_one([START[0], one]).calls] == [
            Usage(100, output=output)
        ]


def test_a_record_that_is_written_again_goes_on_and_has_the_newest_bill() -> None:
    first = record("assistant", "a", "u", {"text": "hm", "thought": True})
    recording = read_one([START[0], first, START[1], *TURN[2:], reply("b", "q", {"text": "done"})])
    assert lengths(recording) == [1, 3]
    assert [block["type"] for block in recording.messages()[1]["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert [one.usage for one in recording.calls] == [Usage(40, 60, output=9)] * 2


def test_a_failed_call_has_its_error() -> None:
    answer = {"id": "1", "name": "read_file", "response": {"error": "no such file"}}
    failed = record("tool_result", "r", "a", {"functionResponse": answer})
    (block,) = read_one([*START, failed]).messages()[2]["content"]
    assert (block["content"], block["is_error"]) == ("no such file", True)


def test_what_a_rewind_took_back_is_left_out() -> None:
    back = note("w", "u", "rewind", truncatedCount=3)
    records = [*TURN, reply("b", "q", {"text": "done"}), back, user("v", "w", "not so")]
    recording = read_one([*records, reply("c", "v", {"text": "else"})])
    assert [one.why_anew for one in recording.calls] == [None, None, "rewind"]
    said = [one["content"][0]["text"] for one in [*recording.contexts()][-1]]
    assert said == ["go", "not so"]


def test_a_compression_begins_the_list_anew_with_what_it_kept() -> None:
    history = [
        {"role": "user", "parts": [{"text": "All was read."}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
    ]
    info = {"originalTokenCount": 900, "newTokenCount": 90}
    small = note("k", "q", "chat_compression", info=info, compressedHistory=history)
    recording = read_one([*TURN, small, user("v", "k", "on"), reply("c", "v", {"text": "done"})])
    assert [one.why_anew for one in recording.calls] == [None, "compaction"]
    assert lengths(recording) == [1, 3]
    assert [one.author for one in items_of(recording.messages())][:3] == ["summary", "", ""]


def test_what_the_program_writes_for_the_user_says_so() -> None:
    told = user("v", "q", "A task has ended.", subtype="notification")
    recording = read_one([*TURN, told, reply("b", "v", {"text": "done"})])
    assert items_of(recording.messages())[-2].author == "program"


def test_every_record_is_accounted_for() -> None:
    odd = record("assistant", "b", "q", {"hologram": {"data": "x"}})
    records = [*TURN, note("n", "q", "ui_telemetry"), odd, {"type": "odd", "sessionId": "s"}]
    recording = read_one(records)
    assert recording.not_prompt == {"system ui_telemetry": 1}
    assert recording.not_understood == {"block of the type hologram": 1, "odd": 1}
    assert recording.records == 7


def test_records_that_name_each_other_as_parents_end_a_context() -> None:
    circle = [user("x", "y", "one"), user("y", "x", "two"), user("z", "z", "three")]
    recording = read_one([*circle, user("v", "x", "four"), user("w", "z", "five")])
    assert items_of(recording.messages())[-1].text == "five"
