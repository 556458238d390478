"""Trajectories in ATIF, of several versions and agents."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.messages.reading import items_of
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import document_of, lengths, read_document, read_lines, roles

Step = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def trajectory(*steps: Step, version: str = "1.6", **more: Any) -> dict[str, Any]:
    agent = {"name": "lyre", "version": "2", "model_name": "gpt-x", "tool_definitions": TOOLS}
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    head = {"schema_version": f"ATIF-v{version}", "session_id": "s", "agent": agent}
    return {**head, "steps": numbered, **more}


def said(text: str, source: str = "user", **more: Any) -> Step:
    return {"source": source, "message": text, **more}


def agent(
    text: str, *names: str, results: Any = None, prompt: int | None = None, **more: Any
) -> Step:
    calls = [{"tool_call_id": n, "function_name": "bash", "arguments": {"run": n}} for n in names]
    step = said(text, "agent", **more)
    if calls:
        step["tool_calls"] = calls
    shown = [{"source_call_id": n, "content": f"{n}.txt"} for n in names]
    if names or results is not None:
        step["observation"] = {"results": shown if results is None else results}
    if prompt is not None:
        step["metrics"] = {"prompt_tokens": prompt, "completion_tokens": 3, "cached_tokens": 40}
    return step


def results_of(recording: Recording) -> list[tuple[str | None, str]]:
    items = items_of(recording.messages())
    return [(i.tool_use_id, str(i.text)) for i in items if i.kind == "tool_result"]


HEAD = (said("Be brief.", "system"), said("List."))


@pytest.mark.parametrize("version", ["1.4", "1.7", "1.8"])
def test_a_step_of_the_agent_is_a_call_with_its_results_and_its_bill(version: str) -> None:
    metrics = {
        "prompt_tokens": 900, "completion_tokens": 7, "cached_tokens": 500, "cost_usd": 0.1,
        "extra": {
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_1h_input_tokens": 200, "ephemeral_5m_input_tokens": 100},
        },
        "prompt_token_ids": [1, 2],
    }  # fmt: skip
    recording = document_of(
        trajectory(
            *HEAD,
            agent("Two.", "a", "b", timestamp="2026-01-01T00:00:00Z", metrics=metrics),
            agent("Done.", prompt=990, model_name="gpt-y", reasoning_content="hm"),
            version=version,
        )
    )
    assert (recording.format, recording.name) == ("atif", "s")
    assert roles(recording) == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert lengths(recording) == [2, 5]
    first, second = recording.calls
    assert first.usage == Usage(100, 500, 300, 7, 200)
    assert (first.language_model, second.language_model) == ("gpt-x", "gpt-y")
    assert (first.at, first.tools) == (1_767_225_600.0, TOOLS)
    assert results_of(recording) == [("a", "a.txt"), ("b", "b.txt")]
    assert recording.not_understood == {}


def test_steps_without_metrics_belong_to_the_reply_before_where_others_have_them() -> None:
    recording = document_of(
        trajectory(*HEAD, agent("Two.", "a", prompt=90), agent("", "b"), agent("Done.", prompt=99))
    )
    assert [call.usage and call.usage.prompt for call in recording.calls] == [90, 99]
    assert lengths(recording) == [2, 6]


def test_each_step_of_the_agent_is_a_call_where_none_has_metrics_and_the_sum_is_taken() -> None:
    total = {"total_prompt_tokens": 300, "total_completion_tokens": 9, "total_cached_tokens": 100}
    recording = document_of(trajectory(*HEAD, agent("", "a"), agent("Done."), final_metrics=total))
    assert lengths(recording) == [2, 4]
    assert recording.bill is not None
    assert recording.bill.usage == Usage(200, 100, 0, 9)


def test_a_step_that_called_no_model_or_was_copied_is_no_call() -> None:
    recording = document_of(
        trajectory(
            *HEAD,
            agent("Old.", "a", prompt=80, is_copied_context=True),
            agent("", "b", prompt=None, llm_call_count=0),
            agent("Done.", prompt=99, llm_call_count=1),
            version="1.7",
            continued_trajectory_ref="next.json",
        )
    )
    assert lengths(recording) == [6]


def test_a_sum_of_several_calls_is_no_bill_of_one() -> None:
    recording = document_of(trajectory(*HEAD, agent("Done.", prompt=99, llm_call_count=3)))
    assert [call.usage for call in recording.calls] == [None]
    assert recording.not_understood == {"sum of several calls": 1}


@pytest.mark.parametrize(
    ("names", "results", "expected"),
    [
        pytest.param(["a"], [{"content": "x"}], [("a", "x")], id="one"),
        pytest.param(["a", "b"], [{"content": "x"}], [("b", "x"), ("a", "")], id="for all"),
        pytest.param(
            ["a", "b"],
            [{"content": "x"}, {"source_call_id": "a", "content": "y"}],
            [("b", "x"), ("a", "y")],
            id="one named",
        ),
        pytest.param(["a"], [{"source_call_id": "a", "content": None}], [("a", "")], id="empty"),
        pytest.param(
            ["a"],
            [{"source_call_id": "a", "content": [{"type": "text", "text": "x"}]}],
            [("a", "x")],
            id="parts",
        ),
        pytest.param(["a", "b"], [], [("a", ""), ("b", "")], id="none"),
    ],
)
def test_each_result_belongs_to_a_call(
    names: list[str], results: list[Any], expected: list[tuple[str, str]]
) -> None:
    recording = document_of(
        trajectory(*HEAD, agent("So.", *names, results=results), agent("Done."))
    )
    assert results_of(recording) == expected


def test_a_call_that_waits_at_the_end_has_no_result() -> None:
    recording = document_of(trajectory(*HEAD, agent("", "a", results=[])))
    assert results_of(recording) == []


def test_a_result_is_what_the_model_was_shown_and_not_the_screen() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iA"}}
    results = [
        {
            "source_call_id": name,
            "content": "x\n\n[stdout]\nx",
            "extra": {"tool_result_metadata": {"raw_tool_result": {"content": content}}},
        }
        for name, content in (("a", "x\n"), ("b", [{"type": "text", "text": "y"}, image]))
    ]
    recording = document_of(trajectory(*HEAD, agent("", "a", "b", results=results)))
    kinds = [(item.kind, item.text) for item in items_of(recording.messages())][-3:]
    assert kinds[:2] == [("tool_result", "x\n"), ("tool_result", "y")]
    assert kinds[2][0] == "image"
    assert recording.not_understood == {}


@pytest.mark.parametrize("field", ["is_error", "tool_result_is_error"])
def test_a_result_that_failed_is_known(field: str) -> None:
    results = [{"source_call_id": "a", "content": "no file", "extra": {field: True}}]
    recording = document_of(trajectory(*HEAD, agent("", "a", results=results)))
    assert recording.messages()[-1]["is_error"] is True


def test_what_is_observed_without_a_call_is_said_to_the_agent() -> None:
    recording = document_of(
        trajectory(*HEAD, agent("{", results=[{"content": "not JSON"}]), agent("Done."))
    )
    assert roles(recording)[-2:] == ["user", "assistant"]
    assert recording.messages()[-2]["content"] == "not JSON"


def test_images_and_sounds_are_named_by_their_file() -> None:
    image = {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}}
    sound = {"type": "audio", "source": {"media_type": "audio/wav", "path": "sounds/1.wav"}}
    shown: Any = [{"type": "text", "text": "See."}, image, sound]
    recording = document_of(trajectory(said(shown), agent("A"), version="1.8"))
    kinds = [item.kind for item in items_of(recording.messages())]
    assert kinds == ["user_message", "image", "unknown", "assistant_message"]
    assert recording.not_understood == {}


def test_sub_agents_are_recordings_of_their_own() -> None:
    inner = trajectory(said("Look."), agent("Found.", prompt=50), session_id="", trajectory_id="t1")
    sides = [
        agent("Side.", prompt=30, extra={"is_sidechain": True, **more})
        for more in ({}, {"agent_id": "a1"}, {"agent_id": "a2"}, {"agent_id": "a1"})
    ]
    recordings = read_document(
        trajectory(*HEAD, agent("", "a", prompt=90), *sides, subagent_trajectories=[inner])
    )
    assert [(one.name, lengths(one)) for one in recordings] == [
        ("s", [2]), ("s#sidechain", [0]), ("s#a1", [0, 1]), ("s#a2", [0]), ("s#s-t1", [1]),
    ]  # fmt: skip


def test_a_trajectory_of_a_sub_agent_alone_is_one_recording() -> None:
    steps = said("Look.", extra={"is_sidechain": True, "agent_id": "a1"})
    assert [one.name for one in read_document(trajectory(steps))] == ["s#a1"]


COMPACTED = {"context_management": {"type": "compaction", "boundary": "replace"}}


@pytest.mark.parametrize(
    ("notices", "prompt", "expected"),
    [
        pytest.param([said("It was summarised.", "system")], 900, "susu", id="by words alone"),
        pytest.param([said("By rule.", "system", extra=COMPACTED)], 8_000, "suu", id="by a mark"),
        pytest.param([said("Older."), said("", "system", extra=COMPACTED)], 900, "suu", id="late"),
    ],
)
def test_a_compaction_begins_the_list_anew(notices: list[Step], prompt: int, expected: str) -> None:
    steps = agent("", "a", prompt=9_000), *notices, said("Go on: a is read.")
    recording = document_of(trajectory(*HEAD, *steps, agent("Done.", prompt=prompt)))
    assert [call.why_anew for call in recording.calls] == [None, "compaction"]
    sent = roles(list(recording.contexts())[-1])
    assert sent == [{"s": "system", "u": "user"}[letter] for letter in expected]


def test_a_prompt_that_shrinks_without_a_word_is_of_another_list() -> None:
    steps = agent("", "a", prompt=9_000), agent("", "b", prompt=900), agent("Done.", prompt=990)
    recording = document_of(trajectory(*HEAD, *steps))
    assert [call.why_anew for call in recording.calls] == [None, "compaction", None]
    assert lengths(recording) == [2, 2, 4]


def test_a_short_prompt_between_long_ones_is_a_call_beside_the_list() -> None:
    steps = agent("", "a", prompt=9_000), agent("A title.", prompt=90), agent("Done.", prompt=9_100)
    recording = document_of(trajectory(*HEAD, *steps))
    assert [call.why_anew for call in recording.calls] == [None, None, None]


def test_trajectories_may_be_lines_or_a_list() -> None:
    two = [trajectory(*HEAD, agent("A")), trajectory(*HEAD, agent("B"), session_id="t")]
    assert [one.name for one in read_lines(two)] == ["s#s", "s#t"]
    assert [one.name for one in read_document(two)] == ["s#s", "s#t"]


def test_what_is_not_understood_is_counted_by_kind() -> None:
    recording = document_of(
        trajectory(
            *HEAD,
            {"source": "judge", "message": "Well done."},
            agent("A", plan=["x"]),
            said([{"type": "sound", "text": "la"}]),  # type: ignore[arg-type]
        )
    )
    assert recording.not_understood == {
        "step of an unknown source": 1,
        "field plan of a step": 1,
        "part of the type sound": 1,
    }
