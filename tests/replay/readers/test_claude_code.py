from __future__ import annotations

from collections.abc import Callable

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.readers.claude_code import recognises
from tests.replay.readers.claude_records import (
    CALLED,
    DONE,
    PARALLEL,
    Record,
    aside,
    call,
    calls_of,
    context_of,
    contexts_of,
    record,
    reply,
    result,
    said,
    text,
    user,
)
from tests.replay.readers.reading import read_lines, read_one


def test_a_plain_exchange_is_read_as_it_was() -> None:
    assert context_of(DONE) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [text("done")]},
    ]


def test_the_lines_of_one_api_message_are_one_message() -> None:
    records = [
        user("1", None, "go"),
        reply("2", "1", "m1", text("reading")),
        reply("3", "2", "m1", call("a")),
        user("4", "3", [result("a")]),
    ]
    assert said(context_of(records)) == ["go", ["reading", "a"], ["a"]]


def test_lines_of_one_api_message_are_merged_across_the_results_between_them() -> None:
    assert said(context_of(PARALLEL))[1] == ["a", "b"]


def test_results_of_parallel_calls_are_gathered_into_one_message() -> None:
    assert said(context_of(PARALLEL))[2:] == [["a", "b"], ["done"]]


def test_results_of_different_replies_stay_apart() -> None:
    records = [
        *CALLED,
        user("3", "2", [result("a")]),
        reply("4", "3", "m2", call("b")),
        user("5", "4", [result("b")]),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"], ["b"], ["b"]]


def test_a_prompt_that_was_taken_back_is_left_out_with_its_reply() -> None:
    records = [
        *DONE,
        user("3", "2", "mistyped"),
        reply("4", "3", "m2", text("what?"), call("a")),
        user("5", "4", [result("a")]),
        user("6", "2", "typed well"),
        reply("7", "6", "m3", text("sure")),
    ]
    assert said(context_of(records)) == ["go", ["done"], "typed well", ["sure"]]


def test_a_sub_agent_is_left_out() -> None:
    records = [
        *CALLED,
        aside(user("s1", None, "look around")),
        aside(reply("s2", "s1", "m2", text("seen"))),
        user("3", "2", [result("a")]),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"]]


def test_a_sub_agent_that_wrote_last_is_left_out() -> None:
    records = [*CALLED, aside(user("s1", "2", "look around"))]
    assert said(context_of(records)) == ["go", ["a"]]


def test_a_sub_agents_own_file_is_read_as_its_own_session() -> None:
    records = [
        aside(user("s1", None, "look around")),
        aside(reply("s2", "s1", "m2", text("seen"))),
    ]
    assert said(context_of(records)) == ["look around", ["seen"]]


def test_a_compaction_boundary_is_a_new_root() -> None:
    records = [
        *DONE,
        record("3", None, "system", subtype="compact_boundary", content="", logicalParentUuid="2"),
        user("4", "3", "the summary", isCompactSummary=True),
        reply("5", "4", "m2", text("going on")),
    ]
    assert said(context_of(records)) == ["the summary", ["going on"]]


def test_messages_that_a_compaction_keeps_stand_behind_its_summary() -> None:
    kept = {"preservedMessages": {"uuids": ["2", "3", "4", "gone"]}}
    edge = record("5", None, "system", subtype="compact_boundary", compactMetadata=kept)
    records = [
        *CALLED,
        reply("3", "2", "m1", call("b")),
        user("4", "2", [result("a"), result("b")]),
        edge,
        user("6", "5", "the summary", isCompactSummary=True),
        user("7", "6", "/compact"),
        reply("8", "7", "m2", text("going on")),
    ]
    context = context_of(records)
    assert said(context) == [
        "the summary", ["a", "b"], ["a", "b"], "/compact", ["going on"],
    ]  # fmt: skip
    assert [call.why_anew for call in calls_of(records)] == [None, "compaction"]


def test_an_older_compaction_is_a_root_without_a_boundary() -> None:
    records = [
        *DONE,
        user("3", None, "the summary", isCompactSummary=True),
        reply("4", "3", "m2", text("going on")),
    ]
    assert said(context_of(records)) == ["the summary", ["going on"]]


def test_a_reply_may_begin_with_a_string() -> None:
    first = record("2", "1", "assistant", message={"id": "m1", "role": "assistant", "content": "a"})
    records = [user("1", None, "go"), first, reply("3", "2", "m1", text("b"))]
    assert said(context_of(records)) == ["go", "a", ["b"]]


@pytest.mark.parametrize("repeated", [lambda r: [*r, *r], lambda r: [x for x in r for _ in "ab"]])
def test_a_record_that_is_written_twice_counts_once(
    repeated: Callable[[list[Record]], list[Record]],
) -> None:
    records = [*CALLED, user("3", "2", [result("a")]), reply("4", "3", "m2", text("done"))]
    twice = repeated(records)
    assert said(context_of(twice)) == said(context_of(records))
    assert contexts_of(twice) == contexts_of(records)
    recording = read_one(twice)
    assert recording.records == 8
    assert recording.not_prompt == {"repeated record": 4}


def test_a_record_that_is_not_a_message_links_the_chain() -> None:
    records = [
        *CALLED,
        record("p1", "2", "progress", data={}),
        record("p2", "p1", "attachment", attachment={}),
        user("3", "p2", [result("a")]),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"]]


def test_records_before_a_missing_parent_are_kept() -> None:
    records = [
        *DONE,
        {"type": "summary", "summary": "has no uuid"},
        user("4", "3 is missing", "and now?"),
    ]
    assert said(context_of(records)) == ["go", ["done"], "and now?"]


def test_a_sub_agent_does_not_stand_in_for_a_missing_parent() -> None:
    records = [
        *CALLED,
        aside(user("s1", None, "look around")),
        aside(reply("s2", "s1", "m2", text("seen"))),
        user("3", "missing", [result("a")]),
        reply("4", "3", "m3", text("done")),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"], ["done"]]


def test_a_cyclic_chain_ends() -> None:
    records = [user("1", "2", "go"), reply("2", "1", "m1", text("done"))]
    assert said(context_of(records)) == ["go", ["done"]]


def test_an_api_error_record_links_the_chain_without_being_a_message() -> None:
    failed = reply("2", "1", "m1", text("API Error: 529"))
    records = [
        user("1", None, "go"),
        {**failed, "isApiErrorMessage": True},
        user("3", "2", "again"),
    ]
    assert said(context_of(records)) == ["go", "again"]


def test_a_call_without_a_result_is_kept() -> None:
    records = [*CALLED, user("3", "2", "never mind")]
    assert said(context_of(records)) == ["go", ["a"], "never mind"]


def test_two_prompts_in_a_row_stay_two_messages() -> None:
    records = [user("1", None, [text("go")]), user("2", "1", [text("and hurry")])]
    assert said(context_of(records)) == [["go"], ["and hurry"]]


def test_the_repeated_result_beside_a_message_is_ignored() -> None:
    records = [*CALLED, user("3", "2", [result("a")], toolUseResult={"stdout": "again"})]
    assert context_of(records)[-1] == {"role": "user", "content": [result("a")]}


def test_a_file_without_a_message_is_rejected() -> None:
    with pytest.raises(UnreadableRecordingError, match="no message is in it") as raised:
        read_lines([user("1", None, [{"type": None}])])
    assert raised.value.format == "claude-code"


@pytest.mark.parametrize(
    ("this", "known"),
    [
        (user("1", None, "go"), True),
        (reply("1", "0", "m1", text("done")), True),
        (aside(user("1", None, "go")), True),
        (record("1", None, "progress"), False),
        (user("1", None, None), False),
        ({**user("1", None, "go"), "isApiErrorMessage": True}, False),
        ({"type": "user", "message": {"content": "go"}}, False),
        ({"role": "user", "content": "go"}, False),
        ({"messages": [{"role": "user", "content": "go"}]}, False),
        ({}, False),
    ],
)
def test_a_message_with_its_links_is_recognised(this: Record, known: object) -> None:
    assert recognises(this) is known
