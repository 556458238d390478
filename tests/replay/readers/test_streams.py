"""What Claude Code, Qwen Code and Gemini CLI print as stream-json."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.messages.reading import items_of
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import lengths, read_lines, read_one, roles

Record = dict[str, Any]
INIT = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/srv", "tools": ["Bash"]}


def line(kind: str, side: str | None = None, **message: Any) -> Record:
    role = {"role": kind, "type": "message", "model": "claude-x"} if kind == "assistant" else {}
    beside = {"parent_tool_use_id": side, "session_id": "s", "uuid": "u"}
    return {"type": kind, "message": {"role": kind, **role, **message}, **beside}


def block(reply: str, content: Record, prompt: int = 90, **more: Any) -> Record:
    usage = {"input_tokens": prompt, "cache_read_input_tokens": 10, "output_tokens": 1}
    return line("assistant", id=reply, content=[content], usage=usage, **more)


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def call(call_id: str) -> Record:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}}


def result(*call_ids: str, **more: Any) -> Record:
    blocks = [
        {"type": "tool_result", "tool_use_id": one, "content": f"of {one}"} for one in call_ids
    ]
    return line("user", content=blocks, **more)


def end(prompt: int, output: int) -> Record:
    usage = {"input_tokens": prompt, "cache_read_input_tokens": 0, "output_tokens": output}
    return {"type": "result", "subtype": "success", "session_id": "s", "usage": usage}


def shown(recording: Recording) -> list[tuple[str, str | None, str]]:
    return [(one.kind, one.tool, one.text) for one in items_of(recording.messages())]


def test_the_lines_of_a_reply_are_one_call_and_its_results_one_message() -> None:
    recording = read_one([
        INIT, block("m1", text("so")), block("m1", call("a")), block("m1", call("b")),
        result("a"), result("b"), block("m2", text("done")),
    ])  # fmt: skip
    assert (recording.format, recording.project) == ("claude-stream-json", "/srv")
    assert roles(recording) == ["assistant", "user", "assistant"]
    assert lengths(recording) == [0, 2]
    assert [one.usage for one in recording.calls] == [Usage(90, 10, output=1)] * 2
    assert [one.language_model for one in recording.calls] == ["claude-x"] * 2
    assert recording.not_prompt == {"system init": 1}


def test_a_call_whose_results_came_before_the_rest_of_its_reply_is_one_call() -> None:
    lines = [block("m1", call("a")), result("a"), block("m1", call("b")), result("b")]
    recording = read_one([INIT, *lines, block("m2", text("done"))])
    assert roles(recording) == ["assistant", "user", "assistant"]
    assert [len(one["content"]) for one in recording.messages()] == [2, 2, 1]


def test_the_output_that_is_billed_as_a_sum_is_shared_by_the_length_of_the_replies() -> None:
    lines = [block("m1", text("a" * 20)), block("m1", call("a")), result("a")]
    recording = read_one([INIT, *lines, block("m2", text("b" * 400)), end(200, 100)])
    first, second = [call.usage.output for call in recording.calls if call.usage]
    assert first + second == 100
    assert 0 < first < second


@pytest.mark.parametrize("sums", [(90, 100), (200, 1)])
def test_a_sum_that_is_not_of_these_calls_is_left_out(sums: tuple[int, int]) -> None:
    lines = [block("m1", call("a")), result("a"), block("m2", text("done")), end(*sums)]
    assert [one.usage and one.usage.output for one in read_one([INIT, *lines]).calls] == [1, 1]


def test_runs_of_one_session_have_sums_of_their_own_or_of_all_so_far() -> None:
    turn = [block("m1", text("so")), end(100, 7), INIT, block("m2", text("done"))]
    for last in (end(100, 4), end(200, 11)):
        outputs = [one.usage and one.usage.output for one in read_one([INIT, *turn, last]).calls]
        assert sum(one or 0 for one in outputs) == 11


def test_a_sum_of_all_runs_leaves_the_parts_of_earlier_replies_as_they_are() -> None:
    lines: list[Record] = []
    for turn, sums in enumerate([(100, 7), (200, 11), (300, 18)]):
        lines += [INIT, block(f"m{turn}", text("word " * 9**turn)), end(*sums)]
    assert [one.usage and one.usage.output for one in read_one(lines).calls] == [7, 4, 7]


def test_a_sum_of_all_runs_counts_for_the_replies_of_a_run_without_a_sum_of_its_own() -> None:
    first, second = block("m1", text("so")), block("m2", text("so"))
    recording = read_one([INIT, first, end(1, 7), second, end(200, 10)])
    assert [one.usage and one.usage.output for one in recording.calls] == [5, 5]


def test_a_reply_whose_content_is_a_text_keeps_it() -> None:
    lines = [line("assistant", id="m1", content="so"), block("m1", call("a")), result("a")]
    recording = read_one([INIT, *lines, line("assistant", id="m2", content="done")])
    assert roles(recording) == ["assistant", "user", "assistant"]
    assert shown(recording)[0] == ("assistant_message", None, "so")
    assert shown(recording)[-1] == ("assistant_message", None, "done")


def qwen(content: Record, prompt: int = 0, cached: int = 0) -> Record:
    usage = {"input_tokens": prompt, "output_tokens": 5 if prompt else 0}
    if prompt:
        usage |= {"cache_read_input_tokens": cached, "total_tokens": prompt + 5}
    return line("assistant", id=f"{content}", content=[content], usage=usage)


def test_qwen_code_bills_the_last_line_of_a_reply_and_counts_what_was_cached_twice() -> None:
    lines = [qwen(text("so")), qwen(call("a"), 100, 60), result("a"), qwen(text("done"), 130)]
    recording = read_one([INIT, *lines, end(230, 10)])
    assert lengths(recording) == [0, 2]
    assert [one.usage for one in recording.calls] == [Usage(40, 60, output=5), Usage(130, output=5)]


def test_a_sub_agent_is_a_recording_of_its_own() -> None:
    inside = [line("user", "c1", content=[text("look")])]
    inside += [line("assistant", "c1", id="n1", content=[text("seen")], usage={"input_tokens": 9})]
    lines = [block("m1", call("c1")), *inside, result("c1"), block("m2", text("done"))]
    main, side = read_lines([INIT, *lines])
    assert (main.name, side.name) == ("s", "s#c1")
    assert roles(main) == ["assistant", "user", "assistant"]
    assert roles(side) == ["user", "assistant"]


def test_a_compaction_begins_the_list_anew() -> None:
    edge = {"type": "system", "subtype": "compact_boundary", "session_id": "s"}
    summary = line("user", content="All was listed.") | {"isSynthetic": True}
    lines = [block("m1", call("a")), result("a"), edge, summary, block("m2", text("done"))]
    recording = read_one([INIT, *lines])
    assert [one.why_anew for one in recording.calls] == [None, "compaction"]
    assert lengths(recording) == [0, 1]
    assert [one.author for one in items_of(recording.messages())][:1] == ["summary"]


def test_messages_that_a_compaction_keeps_stand_behind_its_summary() -> None:
    kept = {"preserved_messages": {"uuids": ["u2", "u3", "gone"]}}
    edge = {"type": "system", "subtype": "compact_boundary", "session_id": "s"}
    summary = line("user", content="All was listed.") | {"isSynthetic": True}
    parts = [
        block("m1", text("so")) | {"uuid": "u2"},
        block("m1", call("a")) | {"uuid": "u3"},
        result("a") | {"uuid": "u4"},
    ]
    ending = [edge | {"compact_metadata": kept}, summary, block("m2", text("done"))]
    recording = read_one([INIT, *parts, *ending])
    assert roles(recording) == ["user", "assistant", "assistant"]
    assert lengths(recording) == [0, 2]


def test_errors_and_parts_of_lines_are_no_prompt_and_the_rest_is_counted() -> None:
    error = block("e", text("API Error: no connection"), model="<synthetic>")
    part: Record = {
        "type": "stream_event",
        "event": {},
        "session_id": "s",
        "parent_tool_use_id": None,
    }
    odd = block("m1", {"type": "hologram", "data": "x"})
    recording = read_one([INIT, error, part, block("m1", text("so")), odd, {"type": "brand-new"}])
    assert len(recording.calls) == 1
    assert recording.not_prompt == {"system init": 1, "API error": 1, "stream_event": 1}
    assert recording.not_understood == {"block of the type hologram": 1, "brand-new": 1}


def of_gemini(kind: str, **more: Any) -> Record:
    return {"type": kind, "timestamp": "2026-01-01T00:00:01Z", **more}


def said(words: str, role: str = "assistant") -> Record:
    delta = {"delta": True} if role == "assistant" else {}
    return of_gemini("message", role=role, content=words, **delta)


def used(call_id: str) -> Record:
    return of_gemini("tool_use", tool_name="ls", tool_id=call_id, parameters={"path": "."})


def gave(call_id: str, **more: Any) -> Record:
    return of_gemini("tool_result", tool_id=call_id, **(more or {"output": f"of {call_id}"}))


def stats(prompt: int, cached: int, total: int) -> Record:
    sums = {"input_tokens": prompt, "output_tokens": 5, "cached": cached, "total_tokens": total}
    return of_gemini("result", status="success", stats=sums)


START = of_gemini("init", session_id="s", model="gemini-x")


def test_the_stream_of_gemini_has_calls_results_and_a_sum() -> None:
    turns = [said("go", "user"), said("I "), said("look."), used("a"), used("b"), gave("a")]
    turns += [gave("b", status="error", error={"type": "x", "message": "none"}), said("done")]
    recording = read_one([START, *turns, stats(300, 200, 312)])
    assert recording.format == "gemini-stream-json"
    assert roles(recording) == ["user", "assistant", "user", "assistant"]
    assert lengths(recording) == [1, 3]
    assert shown(recording)[1:5] == [
        ("assistant_message", None, "I look."),
        ("tool_call", "ls", '{"path":"."}'),
        ("tool_call", "ls", '{"path":"."}'),
        ("tool_result", "ls", "of a"),
    ]
    failed = recording.messages()[2]["content"][1]
    assert (failed["content"], failed["is_error"]) == ("none", True)
    assert recording.bill is not None
    assert recording.bill.usage == Usage(100, 200, output=12)
    assert [(one.language_model, one.at) for one in recording.calls] == [
        ("gemini-x", 1767225601.0)
    ] * 2


def test_runs_of_gemini_in_one_file_go_on_or_are_recordings_of_their_own() -> None:
    run = [START, said("go", "user"), said("done"), stats(100, 0, 105)]
    (one,) = read_lines([*run, *run])
    assert (len(one.calls), one.bill and one.bill.usage.prompt) == (2, 200)
    other = {**START, "session_id": "t"}
    first, second = read_lines([*run, other, *run[1:]])
    assert [len(first.calls), len(second.calls)] == [1, 1]
    assert (first.name, second.name) == ("s", "s#t")


def test_a_warning_of_gemini_is_no_prompt_and_the_rest_is_counted() -> None:
    warning = of_gemini("error", severity="warning", message="Loop detected")
    recording = read_one([START, said("go", "user"), said("done"), warning, of_gemini("odd")])
    assert recording.not_prompt == {"init": 1, "error": 1}
    assert recording.not_understood == {"odd": 1}
