from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from policyctx.definitions.items import Message
from policyctx.messages.reading import Reading
from policyctx.messages.validity import new_problems, new_problems_around


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "read", "input": {}}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "found"}


GO: Message = {"role": "user", "content": "go"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
CALLS: Message = {"role": "assistant", "content": [THINKING, call("a"), call("b")]}
RESULTS: Message = {"role": "user", "content": [result("a"), result("b")]}
GOOD = [GO, CALLS, RESULTS]


def chat(*answers: str) -> list[Message]:
    calls = [
        {"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}} for i in "ab"
    ]
    results = [{"role": "tool", "tool_call_id": i, "content": "found"} for i in answers]
    return [GO, {"role": "assistant", "content": None, "tool_calls": calls}, *results]


def test_an_equal_list_has_no_new_problems() -> None:
    assert new_problems(GOOD, copy.deepcopy(GOOD)) == []


def test_parallel_chat_results_follow_their_call() -> None:
    assert new_problems(chat("a", "b"), chat("b", "a")) == []


def test_a_placeholder_in_a_result_is_valid() -> None:
    after = copy.deepcopy(GOOD)
    after[2]["content"][0]["content"] = "[Content offloaded]"
    assert new_problems(GOOD, after) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            GOOD,
            [GO, CALLS, {**RESULTS, "content": [result("a")]}],
            "the call b has no result right after it",
        ),
        (chat("a", "b"), chat("a"), "the call b has no result right after it"),
        (
            GOOD,
            [GO, {**CALLS, "content": [THINKING, call("a")]}, RESULTS],
            "the result b has no call right before it",
        ),
        (
            chat("a", "b"),
            [*chat("a"), GO, chat("b")[-1]],
            "the result b has no call right before it",
        ),
        (GOOD, [GO, CALLS, GO, RESULTS], "the result a has no call right before it"),
        (GOOD, GOOD[1:], "the list begins with an assistant message"),
        (GOOD, [{**GO, "content": ""}, CALLS, RESULTS], "a message of role user is empty"),
        (GOOD, [{**GO, "content": []}, CALLS, RESULTS], "a message of role user is empty"),
    ],
)
def test_a_broken_rule_is_named(before: list[Message], after: list[Message], problem: str) -> None:
    assert problem in new_problems(before, after)


def gemini(*calls: str) -> list[Message]:
    """The calls, each with its own id; a star is the signature of a call."""
    made = [
        {"functionCall": {"id": one.strip("*"), "name": "read", "args": {}}}
        | ({"thoughtSignature": "c2ln"} if "*" in one else {})
        for one in calls
    ]
    found = [{"functionResponse": {"id": one.strip("*"), "response": {}}} for one in calls]
    go = {"role": "user", "parts": [{"text": "go"}]}
    return [go, {"role": "model", "parts": made}, {"role": "user", "parts": found}]


def signed_chat(*calls: str) -> list[Message]:
    answers = [call.strip("*") for call in calls]
    go, asked, *found = chat(*answers)
    made = [call for call in asked["tool_calls"] if call["id"] in answers]
    for call, name in zip(made, calls, strict=True):
        if "*" in name:
            call["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    return [go, asked | {"tool_calls": made}, *found]


@pytest.mark.parametrize("of", [gemini, signed_chat])
@pytest.mark.parametrize(
    ("before", "after", "lacking"),
    [
        (("a*", "b"), ("b",), "b"),
        (("a*", "b"), ("a*",), ""),
        (("a*", "b*"), ("b*",), ""),
        (("a", "b"), ("b",), ""),
        (("a", "b*"), ("a",), ""),
    ],
)
def test_a_call_needs_the_signature_of_the_signed_call_before_it(
    of: Callable[..., list[Message]], before: Sequence[str], after: Sequence[str], lacking: str
) -> None:
    problem = f"the call {lacking} lacks the signature of its message"
    assert new_problems(of(*before), of(*after)) == ([problem] if lacking else [])
    reading = Reading()
    reading.extend(of(*before)[:2])
    around = new_problems_around(of(*before)[:2], of(*after)[:2], {1}, reading)
    assert (problem in around) == bool(lacking)


def test_a_system_prompt_does_not_hide_that_an_assistant_begins() -> None:
    system: Message = {"role": "system", "content": "Be brief."}
    problems = new_problems([system, *GOOD], [system, *GOOD[1:]])
    assert problems == ["the list begins with an assistant message"]


def test_a_list_may_begin_with_an_item_that_stands_for_what_was_before_it() -> None:
    asked: Message = {"type": "message", "role": "user", "content": "go"}
    compaction: Message = {"type": "compaction", "encrypted_content": "gAAA"}
    thought: Message = {"type": "reasoning", "summary": [], "encrypted_content": "gAAB"}
    before = [asked, thought, compaction, asked]
    assert new_problems(before, before[1:]) == []


@pytest.mark.parametrize("role", ["tool", "function"])
def test_result_blocks_of_a_tool_message_answer_calls(role: str) -> None:
    answers = {**RESULTS, "role": role}
    assert new_problems(GOOD, [GO, CALLS, answers]) == []
    split = [{"role": role, "content": [block]} for block in reversed(RESULTS["content"])]
    assert new_problems(GOOD, [GO, CALLS, *split]) == []
    assert new_problems([GO, CALLS, answers], [GO, answers]) == [
        "the result a has no call right before it", "the result b has no call right before it",
    ]  # fmt: skip


def test_problems_of_the_input_are_not_new_problems() -> None:
    broken = [CALLS, {"role": "user", "content": [result("b"), result("lost")]}]
    assert new_problems(broken, copy.deepcopy(broken)) == []


def test_one_more_of_an_old_problem_is_a_new_one() -> None:
    twice = [GO, CALLS, RESULTS, CALLS, RESULTS]
    once_broken = [GO, CALLS, RESULTS, CALLS]
    assert new_problems(once_broken, [GO, CALLS, CALLS]) == [
        "the call a has no result right after it", "the call b has no result right after it",
    ]  # fmt: skip
    assert new_problems(once_broken, twice) == []


@pytest.mark.parametrize("change", [{"thinking": "hm!"}, {"signature": "t"}, {"new": 1}])
def test_every_byte_of_a_thinking_block_counts(change: dict[str, Any]) -> None:
    after = copy.deepcopy(GOOD)
    after[1]["content"][0].update(change)
    assert new_problems(GOOD, after) == ["the bytes of a thinking block changed"]


def test_thinking_may_be_taken_out_whole() -> None:
    after = [GO, {**CALLS, "content": CALLS["content"][1:]}, RESULTS]
    assert new_problems(GOOD, after) == []


def test_a_chat_reply_that_only_calls_is_not_empty() -> None:
    empty = {**chat("a", "b")[1], "content": ""}
    assert new_problems(chat("a", "b"), [GO, empty, *chat("a", "b")[2:]]) == []


def test_a_list_may_end_with_the_reply_that_it_ended_with() -> None:
    reply: Message = {"role": "assistant", "content": "done"}
    assert new_problems([*GOOD, reply], [*GOOD[1:], reply][-1:]) == [
        "the list begins with an assistant message"
    ]


def test_a_reply_that_an_edit_left_at_the_end_is_a_problem() -> None:
    reply: Message = {"role": "assistant", "content": "done"}
    assert new_problems([*GOOD, reply, GO], [*GOOD, reply]) == [
        "the list ends with an assistant message"
    ]


def test_a_reply_with_only_thinking_is_a_problem() -> None:
    reply: Message = {"role": "assistant", "content": [THINKING, {"type": "text", "text": "hi"}]}
    assert new_problems([GO, reply, GO], [GO, {**reply, "content": [THINKING]}, GO]) == [
        "an assistant message holds nothing but thinking"
    ]


def test_the_results_of_one_reply_may_come_in_messages_of_their_own() -> None:
    image = {"type": "image", "source": {}}
    first: Message = {"role": "user", "content": [{**result("a"), "content": [image]}]}
    second: Message = {"role": "user", "content": [result("b")]}
    assert new_problems(GOOD, [GO, CALLS, first, second]) == []
    assert new_problems([GO, CALLS, first, second], [GO, CALLS, first]) == [
        "the call b has no result right after it"
    ]


def test_a_refusal_without_content_is_neither_empty_nor_only_thinking() -> None:
    refusal: Message = {"role": "assistant", "content": None, "refusal": "no"}
    assert new_problems([GO, {**refusal, "content": "no"}, GO], [GO, refusal, GO]) == []


def test_the_result_of_a_tool_may_be_empty() -> None:
    empty = [*chat("a"), {"role": "tool", "tool_call_id": "b", "content": ""}]
    assert new_problems(chat("a", "b"), empty) == []
