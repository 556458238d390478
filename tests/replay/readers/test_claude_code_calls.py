"""The calls of a model in what Claude Code records, and what each was sent."""

from __future__ import annotations

import pytest

from policyctx.tokens.usage import Usage
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


def billed(this: Record, tokens: int, model: str = "claude-some") -> Record:
    """The same reply, with its usage."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": tokens - 1, "output_tokens": 2}
    return {**this, "message": {**this["message"], "usage": usage, "model": model}}


def test_a_call_contains_the_messages_before_its_reply() -> None:
    records = [
        user("1", None, "go"),
        billed(reply("2", "1", "m1", call("a")), 100),
        user("3", "2", [result("a")]),
        billed(reply("4", "3", "m2", text("done")), 200, model="claude-other"),
    ]
    assert contexts_of(records) == [["go"], ["go", ["a"], ["a"]]]
    first, second = calls_of(records)
    assert (said([*first.new]), said([*second.new])) == (["go"], [["a"], ["a"]])
    assert (first.language_model, second.language_model) == ("claude-some", "claude-other")
    assert (first.usage, second.usage) == (Usage(1, 99, output=2), Usage(1, 199, output=2))


def test_messages_after_the_last_call_are_separate() -> None:
    recording = read_one([*CALLED, user("3", "2", [result("a")])])
    assert said([*recording.after]) == [["a"], ["a"]]


def test_a_message_is_the_same_object_from_call_to_call() -> None:
    records = [*PARALLEL, reply("8", "7", "m3", text("done"))]
    contexts = [list(context) for context in read_lines(records)[0].contexts()]
    assert [[*map(id, context)] for context in contexts] == [
        [*map(id, contexts[-1][: len(context)])] for context in contexts
    ]


def test_a_reply_over_several_lines_is_one_call() -> None:
    records = [PARALLEL[0], *(billed(r, 50) if "id" in r["message"] else r for r in PARALLEL[1:])]
    assert contexts_of(records) == [["go"], ["go", ["a", "b"], ["a", "b"]]]


def test_the_last_line_of_a_reply_gives_the_usage() -> None:
    first = billed(reply("2", "1", "m1", text("so")), 50)
    last = billed(reply("3", "2", "m1", text("be it")), 50)
    last["message"]["usage"]["output_tokens"] = 17
    (called,) = calls_of([user("1", None, "go"), first, last])
    assert called.usage is not None
    assert called.usage.output == 17


def test_a_call_is_as_old_as_its_reply() -> None:
    last = {**reply("2", "1", "m1", text("done")), "timestamp": "1970-01-02T00:00:01.500Z"}
    (called,) = calls_of([user("1", None, "go"), last])
    assert called.at == 86_401.5


def test_a_sub_agent_is_a_recording_of_its_own() -> None:
    records = [
        *CALLED,
        aside(user("s1", None, "look around")),
        billed(aside(reply("s2", "s1", "m2", text("seen"))), 50),
        user("3", "2", [result("a")]),
        billed(reply("4", "3", "m3", text("done")), 80),
        aside(user("t1", None, "look again")),
    ]
    main, first, second = read_lines(records)
    assert [call.usage and call.usage.prompt for call in main.calls] == [None, 80]
    assert [call.usage and call.usage.prompt for call in first.calls] == [50]
    assert said(second.messages()) == ["look again"]
    assert [one.name for one in (main, first, second)] == ["s", "s#s1", "s#t1"]


def test_a_sub_agent_with_an_id_is_called_by_it() -> None:
    side = {**aside(user("s1", None, "look around")), "agentId": "a7"}
    again = {**aside(user("s2", None, "and again")), "agentId": "a7"}
    _, agent = read_lines([*CALLED, side, again])
    assert (agent.name, said(agent.messages())) == ("s#a7", ["and again"])


def test_after_a_compaction_a_call_was_sent_the_summary() -> None:
    records = [
        *DONE,
        record("3", None, "system", subtype="compact_boundary", content="", logicalParentUuid="2"),
        user("4", "3", "the summary", isCompactSummary=True),
        billed(reply("5", "4", "m2", text("going on")), 50),
    ]
    assert contexts_of(records) == [["go"], ["the summary"]]
    assert [call.anew for call in calls_of(records)] == [True, True]


def test_a_prompt_that_was_taken_back_begins_the_context_anew() -> None:
    records = [*CALLED, user("3", "1", "no, wait"), reply("4", "3", "m2", text("yes?"))]
    assert contexts_of(records) == [["go"], ["go", "no, wait"]]
    assert [call.anew for call in calls_of(records)] == [True, True]


def test_a_rewound_branch_can_be_continued() -> None:
    records = [
        *DONE,
        user("3", "1", "no, wait"),
        reply("4", "3", "m2", text("yes?")),
        user("5", "2", "as it was"),
    ]
    assert said(context_of(records)) == ["go", ["done"], "as it was"]


@pytest.mark.parametrize("usage", [{"input_tokens": 0, "output_tokens": 0}])
def test_a_reply_without_billed_tokens_is_not_a_call(usage: object) -> None:
    last = reply("2", "1", "m1", text("done"))
    records = [user("1", None, "go"), {**last, "message": {**last["message"], "usage": usage}}]
    assert calls_of(records) == ()


@pytest.mark.parametrize("usage", [None, {}, "much"])
def test_a_reply_without_usage_is_a_call_without_usage(usage: object) -> None:
    last = reply("2", "1", "m1", text("done"))
    records = [user("1", None, "go"), {**last, "message": {**last["message"], "usage": usage}}]
    assert [call.usage for call in calls_of(records)] == [None]


def test_every_record_is_accounted_for() -> None:
    records = [
        *DONE,
        {"type": "summary", "summary": "has no uuid"},
        record("3", "2", "progress", data={}),
        record("4", "3", "unheard-of"),
        user("5", "4", [{"type": None}]),
        {**user("6", "5", "529"), "isApiErrorMessage": True},
    ]
    recording = read_one(records)
    assert recording.records == 7
    assert recording.not_prompt == {"summary": 1, "progress": 1, "API error": 1}
    assert recording.not_understood == {"unheard-of": 1, "user message": 1}
