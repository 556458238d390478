from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.readers.claude_code import recognises
from policyctx.replay.reading import recordings_of
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policyctx.messages.items import Message
    from policyctx.replay.model_call import ModelCall
    from policyctx.replay.recording import Recording

Record = dict[str, Any]


def record(uuid: str, parent: str | None, kind: str, **more: Any) -> Record:
    links = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False}
    return {"type": kind, **links, **more}


def user(uuid: str, parent: str | None, content: object, **more: Any) -> Record:
    return record(uuid, parent, "user", message={"role": "user", "content": content}, **more)


def reply(uuid: str, parent: str | None, message_id: str, *blocks: Record) -> Record:
    message = {"id": message_id, "role": "assistant", "content": list(blocks)}
    return record(uuid, parent, "assistant", message=message)


def aside(this: Record) -> Record:
    """The same record, in a sub-agent's conversation."""
    return {**this, "isSidechain": True}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def call(call_id: str) -> Record:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}


def result(call_id: str) -> Record:
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"of {call_id}"}


def said(messages: list[Message]) -> list[object]:
    """What the messages hold in short: a string, or the words and ids of the blocks."""
    return [
        content
        if isinstance(content := message["content"], str)
        else [b.get("text") or b.get("id") or b.get("tool_use_id") for b in content]
        for message in messages
    ]


def read(records: Sequence[Record]) -> list[Recording]:
    return list(recordings_of("\n".join(map(json.dumps, records)).encode(), "s.jsonl"))


def context_of(records: Sequence[Record]) -> list[Message]:
    return read(records)[0].messages()


def contexts_of(records: Sequence[Record]) -> list[list[object]]:
    return [said(context) for context in read(records)[0].contexts()]


def calls_of(records: Sequence[Record]) -> tuple[ModelCall, ...]:
    return read(records)[0].calls


DONE = [user("1", None, "go"), reply("2", "1", "m1", text("done"))]
CALLED = [user("1", None, "go"), reply("2", "1", "m1", call("a"))]


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


PARALLEL = [
    user("1", None, "go"),
    reply("2", "1", "m1", call("a")),
    user("3", "2", [result("a")]),
    reply("4", "2", "m1", call("b")),
    user("5", "4", [result("b")]),
    reply("6", "5", "m2", text("done")),
]


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
    (recording,) = read(twice)
    assert recording.records == 8
    assert recording.not_prompt == {"repeated record": 4}


def test_a_record_that_is_no_message_is_a_link_in_the_chain() -> None:
    records = [
        *CALLED,
        record("p1", "2", "progress", data={}),
        record("p2", "p1", "attachment", attachment={}),
        user("3", "p2", [result("a")]),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"]]


def test_what_came_before_a_missing_parent_is_kept() -> None:
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


def test_a_chain_that_bites_its_tail_ends() -> None:
    records = [user("1", "2", "go"), reply("2", "1", "m1", text("done"))]
    assert said(context_of(records)) == ["go", ["done"]]


def test_an_error_of_the_api_is_no_message_but_a_link() -> None:
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


def test_the_repeated_result_beside_a_message_is_no_part_of_it() -> None:
    records = [*CALLED, user("3", "2", [result("a")], toolUseResult={"stdout": "again"})]
    assert context_of(records)[-1] == {"role": "user", "content": [result("a")]}


def test_a_file_without_a_message_is_no_recording() -> None:
    with pytest.raises(UnreadableRecordingError, match="no message is in it") as raised:
        read([user("1", None, [{"type": None}])])
    assert raised.value.format == "claude-code"


def billed(this: Record, tokens: int, model: str = "claude-some") -> Record:
    """The same reply, with its usage."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": tokens - 1, "output_tokens": 2}
    return {**this, "message": {**this["message"], "usage": usage, "model": model}}


def test_a_call_was_sent_what_came_before_its_reply() -> None:
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


def test_what_came_after_the_last_call_stays_apart() -> None:
    (recording,) = read([*CALLED, user("3", "2", [result("a")])])
    assert said([*recording.after]) == [["a"], ["a"]]


def test_a_message_is_the_same_object_from_call_to_call() -> None:
    records = [*PARALLEL, reply("8", "7", "m3", text("done"))]
    contexts = [list(context) for context in read(records)[0].contexts()]
    assert [[*map(id, context)] for context in contexts] == [
        [*map(id, contexts[-1][: len(context)])] for context in contexts
    ]


def test_a_reply_over_several_lines_is_one_call() -> None:
    records = [PARALLEL[0], *(billed(r, 50) if "id" in r["message"] else r for r in PARALLEL[1:])]
    assert contexts_of(records) == [["go"], ["go", ["a", "b"], ["a", "b"]]]


def test_the_last_line_of_a_reply_tells_what_was_billed() -> None:
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
    main, first, second = read(records)
    assert [call.usage and call.usage.prompt for call in main.calls] == [None, 80]
    assert [call.usage and call.usage.prompt for call in first.calls] == [50]
    assert said(second.messages()) == ["look again"]
    assert [one.name for one in (main, first, second)] == ["s.jsonl", "s.jsonl#s1", "s.jsonl#t1"]


def test_a_sub_agent_with_an_id_is_called_by_it() -> None:
    side = {**aside(user("s1", None, "look around")), "agentId": "a7"}
    again = {**aside(user("s2", None, "and again")), "agentId": "a7"}
    _, agent = read([*CALLED, side, again])
    assert (agent.name, said(agent.messages())) == ("s.jsonl#a7", ["and again"])


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


def test_what_was_taken_back_can_be_gone_on_with() -> None:
    records = [
        *DONE,
        user("3", "1", "no, wait"),
        reply("4", "3", "m2", text("yes?")),
        user("5", "2", "as it was"),
    ]
    assert said(context_of(records)) == ["go", ["done"], "as it was"]


@pytest.mark.parametrize("usage", [{"input_tokens": 0, "output_tokens": 0}])
def test_a_reply_that_was_billed_nothing_is_no_call(usage: object) -> None:
    last = reply("2", "1", "m1", text("done"))
    records = [user("1", None, "go"), {**last, "message": {**last["message"], "usage": usage}}]
    assert calls_of(records) == ()


@pytest.mark.parametrize("usage", [None, {}, "much"])
def test_a_reply_that_does_not_tell_is_a_call_without_usage(usage: object) -> None:
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
    (recording,) = read(records)
    assert recording.records == 7
    assert recording.not_prompt == {"summary": 1, "progress": 1, "API error": 1}
    assert recording.not_understood == {"unheard-of": 1, "user message": 1}


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
