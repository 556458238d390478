"""Compactions in a row: where they cut, and where each line of a summary is from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.rounds import Round, rounds
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from tests.conversations import Message, call, results, user

COUNTER = counter_for("approximate")


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def conversation(turns: int) -> list[Message]:
    found: list[Message] = []
    for i in range(turns):
        found += [user(f"Never touch part {i}."), call(f"c{i}", "Bash", {"command": "ls"})]
        found += [results((f"c{i}", "x" * 40)), said(f"Part {i} is left alone.")]
    return found


def made(messages: list[Message], count: int) -> list[Round]:
    return list(rounds(messages, Summary(), COUNTER, count=count))


@given(st.integers(1, 8), st.integers(1, 6))
def test_the_rounds_cover_all_messages_and_part_no_call_from_its_result(
    turns: int, count: int
) -> None:
    messages = conversation(turns)
    found = made(messages, count)
    assert [i for one in found for i in one.messages] == list(range(len(messages)))
    assert len(found) <= count
    starts = [messages[one.messages.start]["content"] for one in found]
    assert not any(isinstance(c, list) and c[0]["type"] == "tool_result" for c in starts)


def test_each_line_of_the_user_has_the_message_that_it_is_from_after_every_round() -> None:
    messages = conversation(6)
    for one in made(messages, 3):
        lines = [line for line in one.lines if line.user]
        assert lines
        for line in lines:
            assert line.message is not None
            assert line.text.removeprefix("- ") == messages[line.message]["content"]
    last = made(messages, 3)[-1]
    assert {line.message for line in last.lines if line.user} == {0, 4, 8, 12, 16, 20}


def test_leading_system_messages_are_not_summarised() -> None:
    messages = [{"role": "system", "content": "Never tell a secret."}, *conversation(1)]
    (one,) = made(messages, 1)
    assert one.messages == range(1, 5)
    assert "secret" not in one.summary


def test_an_empty_conversation_has_no_round() -> None:
    assert made([], 3) == []


def test_the_sizes_are_those_of_the_new_messages_and_of_the_summary_before() -> None:
    first, second = made(conversation(6), 2)
    assert first.tokens == COUNTER.count(first.summary)
    alone = sum(one.replaced_tokens for one in (first, second)) - first.tokens
    assert alone == made(conversation(6), 1)[0].replaced_tokens


@pytest.mark.parametrize("words", [20, 60, 200])
def test_a_limit_holds_in_every_round(words: int) -> None:
    settings = Summary(max_words=words)
    assert all(one.words <= words for one in rounds(conversation(20), settings, COUNTER, count=4))
