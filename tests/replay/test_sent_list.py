from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.markers import MarkedBlock
from policyctx.planning.facts import Facts
from policyctx.replay.recording import MarkedPlace
from policyctx.replay.sent_list import MessageBlocks, SentList, alike
from policyctx.tokens.counter import counter_for
from tests.conversations import session_of, user

FACTS = Facts("s", "/root", counter_for("approximate"))


def test_a_grown_list_shares_all_sent_messages() -> None:
    sent, messages = SentList(MessageBlocks()), session_of("x" * 400, "y" * 800)
    first = sent.sent(messages[:3], FACTS)
    second = sent.sent(messages, FACTS)
    assert (first.head, first.kept, first.end) == (1, 0, 4)
    assert (second.kept, second.end) == (4, 6)
    assert second.tokens - first.tokens == sum(block.tokens for block in second.blocks)


def test_a_change_ends_the_shared_prefix() -> None:
    sent, messages = SentList(MessageBlocks()), session_of("x" * 400, "y" * 800)
    sent.sent(messages, FACTS)
    changed = [*messages[:2], user("changed"), *messages[3:]]
    prompt = sent.sent(changed, FACTS)
    assert prompt.kept == 1 + 2
    assert prompt.tokens == SentList(MessageBlocks()).sent(changed, FACTS).tokens


def test_an_equal_message_is_shared_though_it_is_another_object() -> None:
    sent, messages = SentList(MessageBlocks()), session_of("x" * 400)
    sent.sent(messages, FACTS)
    assert sent.sent(deepcopy(messages), FACTS).kept == 1 + 3


def test_two_branches_of_a_list_are_independent() -> None:
    messages = session_of("x" * 400, "y" * 800)
    one = SentList(MessageBlocks())
    one.sent(messages[:3], FACTS)
    other = one.branched()
    changed = [*messages[:2], user("changed")]
    assert other.sent(changed, FACTS).kept == 1 + 2
    assert one.sent(messages, FACTS).kept == 1 + 3
    assert other.sent([*changed, *messages[3:]], FACTS).kept == 1 + 3


def test_system_prompt_and_tools_count_and_come_first() -> None:
    with_system = Facts("s", "/root", FACTS.counter, beside=("s" * 4_000,))
    sent, messages = SentList(MessageBlocks()), session_of("x" * 400)
    alone = SentList(MessageBlocks()).sent(messages, FACTS)
    assert sent.sent(messages, with_system).tokens == alone.tokens + 1_000
    other = sent.sent([user("other")], with_system)
    assert (other.head, other.kept) == (2, 2)
    assert sent.sent([user("other")], FACTS).kept == 0


def test_a_block_is_known_by_its_content_and_not_by_its_marker() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    plain = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    blocks = MessageBlocks()
    one = SentList(blocks).sent(plain, FACTS).blocks
    assert SentList(blocks).sent([{"role": "user", "content": [marked]}], FACTS).blocks == one
    assert SentList(blocks).sent([user("a")], FACTS).blocks == one
    assert SentList(blocks).sent([user("b")], FACTS).blocks != one


def test_markers_are_counted_in_blocks_of_the_prompt() -> None:
    with_system = Facts("s", "/root", FACTS.counter, beside=([{"type": "text", "text": "s"}],))
    marks = [MarkedPlace(None, MarkedBlock(0, 3_600)), MarkedPlace(2, MarkedBlock(0))]
    prompt = SentList(MessageBlocks()).sent(session_of("x" * 400), with_system, marks=marks)
    assert prompt.marks == (MarkedBlock(1, 3_600), MarkedBlock(4))


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_the_common_beginning_is_found(some: list[int], others: list[int]) -> None:
    messages = [user(str(i)) for i in range(4)]
    one, other = ([messages[i] for i in numbers] for numbers in (some, others))
    pairs = zip(some, others, strict=False)
    expected = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(some), len(others)))
    assert alike(one, other) == expected


@pytest.mark.parametrize("at", [0, 1, 7, 63, 99])
def test_one_difference_is_found_wherever_it_is(at: int) -> None:
    one = [user(str(i)) for i in range(100)]
    assert alike(one, [*one[:at], user("else"), *one[at + 1 :]]) == at
