"""The strategies draw what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.reading import checked_messages
from policyctx.policy.models import Policy
from policyctx.testing import strategies
from policyctx.testing.strategies import (
    anthropic_lists,
    growing_lists,
    message_lists,
    openai_lists,
    policies,
)

T = TypeVar("T")
PAGE = Path(__file__).parents[2] / "docs/property-tests.md"


def drawn(strategy: st.SearchStrategy[T], condition: Callable[[T], bool]) -> T:
    """Something that the strategy draws, in up to 500 draws, for which the condition holds."""
    found: list[T] = []

    @settings(phases=[Phase.generate], max_examples=50, database=None)
    @given(value=strategy)
    def look(value: T) -> None:
        if condition(value):
            found.append(value)

    for number in range(10):
        seed(number)(look)()
        if found:
            return found[0]
    pytest.fail("the strategy never drew it")


@given(messages=message_lists())
def test_every_list_is_one_of_messages(messages: list[Message]) -> None:
    assert checked_messages(messages) is messages


@given(lists=growing_lists())
def test_each_list_begins_with_the_one_before(lists: list[list[Message]]) -> None:
    for before, after in pairwise(lists):
        assert len(before) < len(after)
        assert all(one is other for one, other in zip(before, after, strict=False))


@pytest.mark.slow
def test_sessions_of_many_turns_are_drawn() -> None:
    assert len(drawn(growing_lists(), lambda lists: len(lists) > 3)) > 3


def blocks_of(messages: list[Message]) -> list[dict[str, Any]]:
    lists = [m["content"] for m in messages if isinstance(m["content"], list)]
    return [block for blocks in lists for block in blocks]


@pytest.mark.slow
def test_parallel_calls_a_repeated_id_and_a_lost_answer_are_drawn() -> None:
    def suffers(messages: list[Message]) -> bool:
        blocks = blocks_of(messages)
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        return len(calls) > len(set(calls)) and bool({*answers} - {*calls})

    assert suffers(drawn(anthropic_lists(), suffers))


@pytest.mark.slow
def test_the_openai_shape_has_a_message_for_each_result() -> None:
    def is_parallel(messages: list[Message]) -> bool:
        roles = [message["role"] for message in messages]
        return roles.count("tool") > roles.count("assistant") > 0

    assert is_parallel(drawn(openai_lists(), is_parallel))


@pytest.mark.slow
def test_the_tests_on_the_page_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = PAGE.with_name("testing.md").read_text("utf-8"), PAGE.read_text("utf-8")
    [written, *_], [code] = [
        re.findall(r"^```(?:yaml|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        for page in pages
    ]
    (tmp_path / "retire.yaml").write_text(written, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the code that a reader of the page runs
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        names[name]()


def test_the_page_lists_every_strategy() -> None:
    listed = re.findall(r"^\| `(\w+)\(\)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == strategies.__all__


@given(policy=policies())
def test_every_policy_has_loaded(policy: Policy) -> None:
    assert isinstance(policy, Policy)


@pytest.mark.slow
def test_policies_that_do_something_are_drawn() -> None:
    policy = drawn(policies(), lambda p: bool(p.steps) and bool(p.items) and bool(p.tools))
    assert policy.steps
