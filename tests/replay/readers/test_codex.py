from __future__ import annotations

from typing import Any

import pytest

from policyctx.definitions.items import Authored
from policyctx.messages.reading import Reading, is_message, items_of
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import lengths, read_one, roles

Record = dict[str, Any]
AT = "2026-01-01T00:00:01Z"


def item(kind: str, **more: Any) -> Record:
    return {"timestamp": AT, "type": "response_item", "payload": {"type": kind, **more}}


def said(role: str, text: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def call(call_id: str) -> Record:
    return item("function_call", name="sh", arguments='{"cmd":"ls"}', call_id=call_id)


def output(call_id: str, text: Any = "done") -> Record:
    return item("function_call_output", call_id=call_id, output=text)


def counted(total: int, prompt: int, cached: int = 0, **more: Any) -> Record:
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": 7}
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": last}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info, **more}}


def beside(kind: str, **more: Any) -> Record:
    return {"type": kind, "payload": more}


TURN = [said("user", "go"), call("a"), call("b"), output("a"), output("b")]


def test_items_are_kept_as_they_were_recorded() -> None:
    thought = item(
        "reasoning", id="rs_1", summary=[], content=None, encrypted_content="gAAA", status=None
    )
    search = item("web_search_call", status="completed", action={"type": "search", "query": "x"})
    records = [said("user", "go"), thought, search, said("assistant", "so"), *TURN[1:]]
    assert read_one(records).messages() == [record["payload"] for record in records]


def test_the_items_of_a_reply_follow_one_call_of_the_model() -> None:
    thought = item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    recording = read_one([said("user", "go"), thought, said("assistant", "so"), *TURN[1:]])
    assert lengths(recording) == [1]
    expected = ["user", "assistant", "assistant", "assistant", "assistant", "tool", "tool"]
    assert roles(recording) == expected
    reply = Reading()
    reply.extend(recording.messages())
    assert reply.reply_of(2) == range(1, 5)


@pytest.mark.parametrize(
    ("recorded", "sent"),
    [
        ({"content": "done", "success": True}, "done"),
        (
            {"content": [{"type": "input_text", "text": "done"}]},
            [{"type": "input_text", "text": "done"}],
        ),
        ({"exit": 0}, '{"exit":0}'),
    ],
)
def test_an_output_that_is_an_object_becomes_what_was_sent(recorded: Record, sent: Any) -> None:
    recording = read_one([said("user", "go"), call("a"), output("a", recorded)])
    assert recording.messages()[2] == {**output("a")["payload"], "output": sent}


def test_the_usage_record_after_the_results_belongs_to_the_reply() -> None:
    recording = read_one([*TURN, counted(100, 100, cached=60), said("assistant", "done")])
    first, second = recording.calls
    assert first.usage == Usage(40, 60, output=7)
    assert second.usage is None
    assert lengths(recording) == [1, 5]


@pytest.mark.parametrize("info", [None, {}, {"total_token_usage": None}])
def test_an_empty_count_bills_no_call(info: object) -> None:
    empty = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    recording = read_one([*TURN, empty, counted(100, 100)])
    assert [one.usage for one in recording.calls] == [Usage(100, output=7)]


def test_a_repeated_count_bills_no_second_call() -> None:
    records = [*TURN, counted(100, 100), counted(100, 0), call("c"), output("c")]
    recording = read_one([*records, counted(250, 150)])
    assert [one.usage and one.usage.prompt for one in recording.calls] == [100, 150]


def test_a_compaction_replaces_the_context() -> None:
    history = [said("user", "the summary")["payload"], {"type": "compaction"}]
    compacted = beside("compacted", message="", replacement_history=history)
    recording = read_one([*TURN, counted(9, 9), compacted, call("c")])
    assert lengths(recording) == [1, 2]
    assert [one.anew for one in recording.calls] == [True, True]
    assert recording.not_prompt["message that no call was made with"] == 4


def test_an_older_compaction_keeps_user_messages() -> None:
    compacted = beside("compacted", message="in short")
    recording = read_one([*TURN, compacted, said("assistant", "going on")])
    assert [m["content"] for m in recording.calls[1].new][1:] == ["in short"]
    assert roles([*recording.calls[1].new]) == ["user", "user"]


def test_turns_that_were_rolled_back_are_left_out() -> None:
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    records = [*TURN, counted(9, 9), said("user", "mistyped"), said("assistant", "what?")]
    last = [*read_one([*records, back, said("user", "typed well"), call("c")]).contexts()][-1]
    assert [m["content"][0]["text"] for m in last if m.get("role") == "user"] == [
        "go",
        "typed well",
    ]


def test_system_prompt_and_model_are_those_of_the_session() -> None:
    head = beside("session_meta", base_instructions={"text": "You are."})
    recording = read_one([head, beside("turn_context", model="gpt-x"), *TURN])
    assert (recording.calls[0].system, recording.calls[0].language_model) == ("You are.", "gpt-x")
    assert recording.calls[0].at == 1767225601.0


def test_a_custom_call_and_its_output_are_paired() -> None:
    custom = item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c")
    answer = item("custom_tool_call_output", call_id="c", output=[{"type": "input_text"}])
    called, result = items_of(read_one([said("user", "go"), custom, answer]).after)
    assert (called.tool, called.text) == ("apply_patch", "*** Begin")
    assert (result.tool, result.text) == ("apply_patch", '[{"type":"input_text"}]')


def test_items_without_an_envelope_are_read() -> None:
    head = {"id": "s", "timestamp": AT, "instructions": "You are."}
    recording = read_one([head, *(record["payload"] for record in TURN)])
    assert roles(recording) == ["user", "assistant", "assistant", "tool", "tool"]
    assert recording.calls[0].system == "You are."


def test_a_snapshot_in_a_replacement_history_is_left_out() -> None:
    history = [said("user", "the summary")["payload"], {"type": "ghost_snapshot", "commit": "c"}]
    recording = read_one([*TURN, beside("compacted", replacement_history=history), call("c")])
    assert recording.messages() == [history[0], call("c")["payload"]]


@pytest.mark.parametrize(
    "odd", [5, {"type": ["message"]}, {"type": "function_call", "arguments": 5}]
)
def test_an_odd_item_of_a_replacement_history_is_counted(odd: object) -> None:
    history = [said("user", "the summary")["payload"], odd]
    recording = read_one([*TURN, beside("compacted", replacement_history=history), call("c")])
    assert recording.messages() == [history[0], call("c")["payload"]]
    assert sum(recording.not_understood.values()) == 1


def test_every_record_is_accounted_for() -> None:
    records = [*TURN, item("ghost_snapshot"), item("unheard-of"), beside("world_state"), {"a": 1}]
    recording = read_one(records)
    assert recording.records == 9
    assert recording.not_prompt == {"response_item ghost_snapshot": 1, "world_state": 1}
    assert recording.not_understood == {"response_item unheard-of": 1, "header": 1}


@pytest.mark.parametrize(
    "odd",
    [
        item("message", role="assistant", content=[{"type": "output_text", "text": "x"}, {}]),
        item("message", role="assistant", content=[{"type": ["output_text"], "text": "x"}]),
        item("message", role=5, content="x"),
    ],
)
def test_an_odd_part_of_a_reply_is_counted_and_spoils_no_other(odd: Record) -> None:
    recording = read_one([*TURN, odd, said("assistant", "done")])
    assert recording.not_understood == {"response_item message": 1}
    expected = ["user", "assistant", "assistant", "tool", "tool", "assistant"]
    assert roles(recording) == expected
    assert all(map(is_message, recording.messages()))


def started(window: int | None) -> Record:
    return beside("event_msg", type="task_started", model_context_window=window)


def test_the_window_is_the_one_that_the_rollout_records() -> None:
    told = counted(100, 100)
    told["payload"]["info"]["model_context_window"] = 121_600
    records = [
        *TURN, counted(90, 90), said("assistant", "so"),
        started(258_400), said("user", "on"), said("assistant", "yes"), told,
        said("user", "on"), said("assistant", "yes"),
        started(None), said("user", "on"), said("assistant", "yes"),
    ]  # fmt: skip
    windows = [call.window for call in read_one(records).calls]
    assert windows == [None, None, 258_400, 121_600, None]


def test_answers_of_sub_agents_are_messages_of_the_prompt() -> None:
    content = [{"type": "input_text", "text": "No findings."}]
    answer = item("agent_message", author="/root/review", recipient="/root", content=content)
    beside_it = beside("inter_agent_communication_metadata", trigger_turn=False)
    records = [*TURN, counted(10, 10), beside_it, answer, said("assistant", "so")]
    recording = read_one(records)
    assert recording.not_understood == {}
    added = recording.messages()[-2]
    assert added == {"type": "message", "role": "user", "content": content}
    assert isinstance(added, Authored)
    assert added.author == "program"
    assert lengths(recording) == [1, 6]


def billed(*records: Record) -> list[int | None]:
    """The prompt that each call was billed for."""
    return [None if one.usage is None else one.usage.prompt for one in read_one(records).calls]


def test_a_bill_before_each_reply_is_of_the_reply_that_follows() -> None:
    # As 0.57 and 0.58 write it; the sum is repeated when the next turn begins.
    first = [said("user", "go"), counted(10, 10), call("a"), output("a")]
    second = [beside("turn_context"), counted(10, 10), counted(30, 20), call("b"), output("b")]
    third = [beside("turn_context"), counted(30, 20), counted(60, 30), said("assistant", "so")]
    assert billed(*first, *second, *third) == [10, 20, 30]


def test_an_aborted_reply_leaves_its_bill_to_no_other_call() -> None:
    first = [said("user", "go"), counted(10, 10), call("a"), output("a")]
    aborted = [counted(30, 20), beside("event_msg", type="turn_aborted"), said("user", "wait")]
    assert billed(*first, *aborted, counted(60, 30), call("b")) == [10, 30]


def test_bills_after_the_replies_of_a_resumed_session_are_of_the_replies_before() -> None:
    first = [said("user", "go"), counted(10, 10), call("a"), output("a")]
    later = [call("b"), output("b"), counted(30, 20), call("c"), output("c"), counted(60, 30)]
    assert billed(*first, *later) == [10, 20, 30]


def test_a_reply_that_the_answer_of_a_sub_agent_interrupts_is_one_call() -> None:
    thought = item("reasoning", summary=[])
    answer = item("agent_message", content=[{"type": "input_text", "text": "Done."}])
    records = [said("user", "go"), thought, answer, thought, call("a"), output("a")]
    assert billed(*records, counted(10, 10)) == [10]


def used(total: int, prompt: int) -> Record:
    """What is billed for a reply, as Codex 0.171 writes it right behind the reply."""
    usage = {"input_tokens": prompt, "cached_input_tokens": 0, "output_tokens": 7}
    sums = {"thread_token_usage": {"input_tokens": total}, "turn_token_usage": {}}
    return beside("token_usage_record", response_id=f"resp_{total}", usage=usage, **sums)


def test_a_usage_record_ends_the_reply_that_it_bills() -> None:
    replies = [call("a"), used(90, 90), output("a"), counted(90, 90), said("assistant", "so")]
    recording = read_one([said("user", "go"), *replies, used(200, 110), call("b"), used(330, 130)])
    assert [one.usage and one.usage.prompt for one in recording.calls] == [90, 110, 130]
    assert recording.not_understood == {}


def test_a_usage_record_without_a_reply_bills_no_call() -> None:
    recording = read_one([used(5, 5), *TURN, used(105, 100)])
    assert [one.usage and one.usage.prompt for one in recording.calls] == [100]


def test_what_the_user_typed_shows_in_the_items_of_newer_versions() -> None:
    typed = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "go"}]}
    shown = {"type": "event_msg", "payload": {"type": "item_completed", "item": typed}}
    around = said("user", "<environment_context>bash</environment_context>")
    recording = read_one([around, said("user", "go"), shown, said("assistant", "so")])
    assert [one.author for one in items_of(recording.messages())] == ["program", "", ""]


def test_what_was_written_to_the_cache_is_known() -> None:
    bill = counted(100, 100, 40)
    bill["payload"]["info"]["last_token_usage"]["cache_write_input_tokens"] = 50
    recording = read_one([*TURN, bill])
    assert [one.usage for one in recording.calls] == [Usage(10, 40, 50, 7)]


@pytest.mark.parametrize(("said", "known"), [({}, None), ({"cache_write_input_tokens": 0}, 0)])
def test_a_bill_without_writes_is_told_from_one_that_does_not_speak_of_them(
    said: Record, known: int | None
) -> None:
    bill = counted(100, 100, 40)
    bill["payload"]["info"]["last_token_usage"] |= said
    [one] = read_one([*TURN, bill]).calls
    assert one.usage == Usage(60, 40, 0, 7, known)
