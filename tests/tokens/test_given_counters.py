"""Counters by characters, counters that code registers, and a counter given to a session."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import OffloadPolicy, Session, UnknownTokenizerError, register_tokenizer
from policyctx.definitions.tokenizers import Rounding
from policyctx.policy.models import CharTokens
from policyctx.tokens.counter import Bounds, MemoCounter, counter_for
from tests.conversations import call, results, user
from tests.policies import policy

RULES = st.builds(
    CharTokens,
    chars_per_token=st.sampled_from([0.3, 1.0, 2.5, 3.0, 4.0, 100.0]),
    round=st.sampled_from(["up", "down", "nearest"]),
)


@pytest.mark.parametrize(
    ("how", "counts"),
    [("up", [0, 1, 1, 2, 2]), ("down", [0, 0, 0, 1, 1]), ("nearest", [0, 0, 1, 1, 2])],
)
def test_tokens_by_characters_are_rounded_as_the_policy_says(
    how: Rounding, counts: list[int]
) -> None:
    counter = counter_for(CharTokens(chars_per_token=4, round=how))
    assert counter.count_many(["", "a", "aa", "aaaaa", "aaaaaa"]) == counts


@given(RULES, st.integers(0, 300), st.integers(0, 40))
def test_what_is_cut_has_at_most_so_many_tokens_and_one_character_more_too_many(
    rule: CharTokens, size: int, tokens: int
) -> None:
    counter, text = counter_for(rule), "x" * size
    shown = counter.truncate(text, tokens)
    assert text.startswith(shown)
    assert counter.count(shown) <= tokens or not shown
    assert shown == text or counter.count(f"{shown}x") > tokens
    assert counter.bounds(text) == (counter.count(text), counter.count(text))


def test_equal_rules_have_one_counter_which_can_be_pickled() -> None:
    counter = counter_for(CharTokens(chars_per_token=3.5, per_message=3))
    assert counter_for(CharTokens(chars_per_token=3.5, per_message=3)) is counter
    assert pickle.loads(pickle.dumps(counter)) is counter  # noqa: S301 - its own pickle


GATED = """
model: {{tokenizer: {tokenizer}}}
items: {{tool_result: {{offload: true}}}}
steps:
  - {{name: forget, do: drop, when: {{tokens: {{at_least: 1}}}}, select: {{types: [tool_result]}}}}
  - {{name: s, do: offload, when: {{tokens: {{at_least: 1}}}}}}
"""
MESSAGES = [user("x" * 41), call("a", "Bash", {}), results(("a", "x" * 80)), user("go on, please")]


def test_each_message_adds_its_tokens_as_long_as_it_is_there(tmp_path: Path) -> None:
    found = {}
    for each in (0, 3):
        tokenizer = f"{{chars_per_token: 4, per_message: {each}}}"
        session = Session(policy(GATED.format(tokenizer=tokenizer)), root=tmp_path / str(each))
        plan = session.plan(MESSAGES)
        found[each] = [int(verdict.number or 0) for verdict in plan.gates]
    assert [with_ - without for with_, without in zip(found[3], found[0], strict=True)] == [12, 6]


def test_a_registered_tokenizer_counts(tmp_path: Path) -> None:
    register_tokenizer("words-of-a-test", lambda text: len(text.split()))
    read = policy(GATED.format(tokenizer="words-of-a-test"))
    plan = Session(read, root=tmp_path).plan([user("one two three"), user("four")])
    assert plan.gates[0].number == 4


def test_a_name_that_nobody_registered_is_refused_with_the_nearest(tmp_path: Path) -> None:
    read = policy(GATED.format(tokenizer="o200k"))
    with pytest.raises(UnknownTokenizerError, match="did you mean 'o200k_base'") as raised:
        Session(read, root=tmp_path)
    assert raised.value.nearest == "o200k_base"
    Session(read, root=tmp_path, counter=len).close()


def test_a_counter_given_to_a_session_replaces_that_of_the_policy(tmp_path: Path) -> None:
    class Counter(MemoCounter):
        """Counts characters, and five for each message."""

        def __init__(self) -> None:
            super().__init__(
                lambda texts: list(map(len, texts)),
                bounds=lambda text: Bounds(len(text), len(text)),
                per_message=5,
            )

    session = Session(policy(GATED.format(tokenizer="nobody")), root=tmp_path, counter=Counter())
    plan = session.plan([user("abc"), user("de")])
    assert plan.gates[0].number == 15


def test_the_rule_of_a_policy_read_from_its_record_is_the_same() -> None:
    read = policy(GATED.format(tokenizer="{chars_per_token: 3.5, round: nearest}"))
    assert isinstance(read, OffloadPolicy)
    assert counter_for(read.model.tokenizer).count("x" * 9) == 3
