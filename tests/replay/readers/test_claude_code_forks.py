"""Branches in the records of Claude Code: parallel calls, and what was really taken back."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.replay.readers.claude_records import (
    CALLED,
    DONE,
    PARALLEL,
    Record,
    call,
    calls_of,
    context_of,
    contexts_of,
    reply,
    result,
    said,
    text,
    user,
)
from tests.replay.readers.reading import read_lines, read_one

WORDS = "the quick brown fox jumps over the lazy dog " * 20


def billed(this: Record, tokens: int) -> Record:
    """The same reply, with the bill for its prompt."""
    usage = {"input_tokens": tokens, "output_tokens": 2}
    return {**this, "message": {**this["message"], "usage": usage}}


def without_id(this: Record) -> Record:
    """The same reply, as a recording without the ids of messages has it."""
    return {**this, "message": {k: v for k, v in this["message"].items() if k != "id"}}


def is_anew(records: list[Record]) -> list[bool]:
    return [one.anew for one in calls_of(records)]


@pytest.mark.parametrize("follows", ["4", "5", "6"])
@pytest.mark.parametrize("names", [("m1", "m1", "m1"), ("m1", "m2", "m3"), ("", "", "")])
def test_parallel_results_all_stay_wherever_the_chain_continues(
    names: tuple[str, str, str], follows: str
) -> None:
    replies = [
        reply("2", "1", names[0], call("a")),
        reply("3", "2", names[1], call("b")),
        reply("x", "3", names[2], call("c")),
    ]
    if not names[0]:
        replies = [without_id(one) for one in replies]
    records = [
        user("1", None, "go"),
        *replies,
        user("4", "2", [result("a")]),
        user("5", "3", [result("b")]),
        user("6", "x", [result("c")]),
        reply("7", follows, "m9", text("done")),
    ]
    messages = said(context_of(records))
    assert messages[-2:] == [["a", "b", "c"], ["done"]]
    assert [one for message in messages[1:-2] for one in message] == ["a", "b", "c"]  # type: ignore[attr-defined]
    assert not any(is_anew(records)[1:])


def test_lines_with_one_request_id_are_one_reply() -> None:
    lines = [without_id(reply(u, p, "", call(c))) for u, p, c in [("2", "1", "a"), ("3", "2", "b")]]
    records = [user("1", None, "go"), *({**one, "requestId": "r"} for one in lines)]
    assert said(context_of(records)) == ["go", ["a", "b"]]
    assert len(calls_of(records)) == 1


@pytest.mark.parametrize("more", [{}, {"isMeta": True}])
def test_a_text_beside_the_first_of_two_results_stays(more: Record) -> None:
    records = [
        user("1", None, "go"),
        reply("2", "1", "m1", call("a")),
        reply("3", "2", "m1", call("b")),
        user("4", "2", [result("a")]),
        user("5", "4", "about a", **more),
        user("6", "3", [result("b")]),
        user("7", "6", "about b", **more),
        reply("8", "7", "m2", text("done")),
    ]
    assert said(context_of(records))[2:] == [["a", "b"], "about a", "about b", ["done"]]
    assert is_anew(records) == [True, False]


def test_a_prompt_written_while_calls_run_follows_their_results() -> None:
    records = [
        *CALLED,
        user("3", "2", "hurry"),
        user("4", "2", [result("a")]),
        reply("5", "4", "m2", text("done")),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a", "hurry"], ["done"]]
    assert is_anew(records) == [True, False]


def test_a_prompt_written_while_the_model_replies_is_not_lost() -> None:
    records = [
        *DONE,
        user("3", "2", "one"),
        user("4", "3", "two"),
        reply("5", "3", "m2", text("!")),
    ]
    assert said(context_of(records)) == ["go", ["done"], "one", "two", ["!"]]
    assert is_anew(records) == [True, False]


def test_a_reply_that_was_tried_again_is_left_out() -> None:
    records = [
        user("1", None, "go"),
        reply("2", "1", "m1", text("I beg")),
        reply("3", "1", "m2", text("done")),
    ]
    assert said(context_of(records)) == ["go", ["done"]]


def test_a_late_result_of_a_call_that_was_taken_back_changes_nothing() -> None:
    records = [
        *CALLED,
        user("3", "1", "no, wait"),
        reply("4", "3", "m2", text("yes?")),
        user("5", "2", [result("a")]),
        user("6", "4", "listen"),
        reply("7", "6", "m3", text("sure")),
    ]
    assert contexts_of(records)[1:] == [
        ["go", "no, wait"],
        ["go", "no, wait", ["yes?"], "listen"],
    ]
    assert is_anew(records) == [True, True, False]
    assert read_lines(records)[0].not_prompt == {"message that no call was made with": 2}


def branched(*, before: int, first: int, second: int, prompt: str = "typed well") -> list[Record]:
    """A prompt that hangs beside an earlier one, with the bills of the three calls."""
    return [
        user("1", None, "go"),
        billed(reply("2", "1", "m1", text("done")), before),
        user("3", "2", WORDS),
        billed(reply("4", "3", "m2", text(WORDS)), first),
        user("5", "2", prompt),
        billed(reply("6", "5", "m3", text("sure")), second),
    ]


def test_a_branch_with_growing_usage_removes_nothing() -> None:
    records = branched(before=1_000, first=1_200, second=1_400)
    assert said(context_of(records)) == [
        "go",
        ["done"],
        [WORDS][0],
        [WORDS],
        "typed well",
        ["sure"],
    ]
    assert is_anew(records) == [True, False, False]


@pytest.mark.parametrize("second", [1_010, 1_190])
def test_a_branch_with_falling_usage_removes_the_other_branch(second: int) -> None:
    records = branched(before=1_000, first=1_200, second=second)
    assert said(context_of(records)) == ["go", ["done"], "typed well", ["sure"]]
    assert is_anew(records) == [True, False, True]


def test_a_longer_prompt_may_replace_a_shorter_one() -> None:
    # The bill is higher than before, but not by as much as with both prompts and the reply.
    records = branched(before=1_000, first=1_200, second=1_600, prompt=WORDS * 3)
    assert said(context_of(records)) == ["go", ["done"], WORDS * 3, ["sure"]]


def test_a_branch_that_a_reply_begins_is_judged_by_its_bill() -> None:
    records = [
        user("1", None, "go"),
        billed(reply("2", "1", "m1", call("a")), 1_000),
        user("3", "2", [result("a")]),
        billed(reply("4", "2", "m2", call("b")), 1_100),
        user("5", "4", [result("b")]),
        billed(reply("6", "3", "m3", text("done")), 1_200),
    ]
    assert said(context_of(records)) == ["go", ["a"], ["a"], ["b"], ["b"], ["done"]]
    assert is_anew(records) == [True, False, False]


def test_an_open_branch_at_the_end_removes_the_other_branches() -> None:
    recording = read_one(
        [*DONE, user("3", "2", "one"), user("4", "2", "two"), user("5", "2", "three")]
    )
    assert said(recording.messages()) == ["go", ["done"], "three"]
    assert recording.not_prompt == {"message that no call was made with": 2}


@pytest.mark.parametrize("seed", range(40))
def test_no_order_of_parallel_lines_loses_anything(seed: int) -> None:
    """Lines as Claude Code may write them: each result hangs on its call, replies on any result."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    records, tip, ids = [user("0", None, "go")], "0", []
    for turn in range(5):
        lines = [f"{turn}c{i}" for i in range(rng.randint(1, 4))]
        pending: list[str] = []
        for line in lines:
            records.append(reply(line, tip, f"m{turn}", call(line)))
            tip = line
            pending.append(line)
            while pending and rng.random() < 0.3:
                one = pending.pop(rng.randrange(len(pending)))
                records.append(user(f"r{one}", one, [result(one)]))
        rng.shuffle(pending)
        records += [user(f"r{one}", one, [result(one)]) for one in pending]
        ids += lines
        tip = f"r{rng.choice(lines)}"
    records.append(reply("end", tip, "end", text("done")))
    messages = said(context_of(records))
    assert [one for message in messages[1::2] for one in message][:-1] == ids  # type: ignore[attr-defined]
    answered = [sorted(message) for message in messages[2::2]]  # type: ignore[call-overload]
    assert answered == [sorted(message) for message in messages[1:-1:2]]  # type: ignore[call-overload]
    assert not any(is_anew(records)[1:])


def resumed(bill: int, *between: Record) -> list[Record]:
    """A session whose chain is broken before its second prompt, and the bill of what follows."""
    return [
        user("1", None, WORDS),
        billed(reply("2", "1", "m1", text("well")), 1_000),
        *between,
        user("3", None, "go on"),
        billed(reply("4", "3", "m2", text("done")), bill),
    ]


def test_a_resumed_session_goes_on_if_its_bill_shows_that_the_history_was_sent() -> None:
    assert is_anew(resumed(1_010)) == [True, False]
    assert contexts_of(resumed(1_010))[-1] == [WORDS, ["well"], "go on"]


def test_a_root_whose_bill_shows_a_short_list_begins_a_new_one() -> None:
    assert [one.why_anew for one in calls_of(resumed(810))] == [None, "change"]


def test_a_root_after_a_compaction_is_a_compaction_whatever_its_bill() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    records = resumed(1_010, {**boundary, "sessionId": "s"})
    assert [one.why_anew for one in calls_of(records)] == [None, "compaction"]


def at(second: int, this: Record) -> Record:
    return {**this, "timestamp": f"2026-01-01T00:00:{second:02}Z"}


def copied(records: Sequence[Record]) -> list[Record]:
    """The same messages under new uuids, as a session that was taken up again has them."""
    renamed = {one["uuid"]: f"copy of {one['uuid']}" for one in records}
    links = ("uuid", "parentUuid")
    return [one | {key: renamed.get(one[key]) for key in links} for one in records]


def test_a_list_that_is_written_again_is_not_counted_twice() -> None:
    first = [at(second, one) for second, one in enumerate(PARALLEL)]
    more = [
        at(10, user("10", "copy of 6", "and now?")),
        at(11, reply("11", "10", "m3", call("c"))),
        at(12, user("12", "11", [result("c")])),
    ]
    recording = read_one([*first, *copied(first), *more])
    assert [len(one.new) for one in recording.calls] == [1, 2, 2]
    assert said(recording.messages()) == [
        "go", ["a", "b"], ["a", "b"], ["done"], "and now?", ["c"], ["c"],
    ]  # fmt: skip
    assert recording.not_prompt == {"repeated record": len(first)}
