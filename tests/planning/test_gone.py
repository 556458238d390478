"""Lists that come back after a restart without what was dropped from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import Message, calls, results, user
from tests.policies import policy

FORGET = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [user_message], keep_recent: 2}}]
    """


def said(text: str = "done") -> Message:
    return {"role": "assistant", "content": text}


def session(root: Path) -> Session:
    return Session(policy(FORGET), root=root, session_id="s")


@pytest.fixture
def messages() -> list[Message]:
    return [user("go on"), user("go on"), said("one"), user("go on"), said("two"), user("and now")]


def test_an_equal_text_that_stayed_is_not_mistaken_for_a_dropped_one(
    messages: list[Message], tmp_path: Path
) -> None:
    left = session(tmp_path).apply(messages).messages
    assert len(left) < len(messages)
    assert session(tmp_path).apply(left).messages == left


def test_the_full_list_is_rendered_as_before(messages: list[Message], tmp_path: Path) -> None:
    left = session(tmp_path).apply(messages).messages
    assert len(left) < len(messages)
    assert session(tmp_path).apply(messages).messages == left


def test_an_equal_text_added_after_a_restart_is_kept(
    messages: list[Message], tmp_path: Path
) -> None:
    left = session(tmp_path).apply(messages).messages
    grown = [*left, said("three"), user("go on")]
    assert session(tmp_path).apply(grown).messages[-1] == user("go on")


def test_a_call_that_repeats_a_dropped_one_to_the_byte_is_another_call(tmp_path: Path) -> None:
    text = """\
        store: {sync: never}
        steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
        """
    live = Session(policy(text), root=tmp_path, session_id="s")
    pairs = [[calls((call, "read")), results((call, "x"))] for call in "ab"]
    left = live.apply([user("one"), *pairs[0], *pairs[1], user("two")]).messages
    assert left == [user("one"), *pairs[1], user("two")]
    for message in pairs[0]:
        left = live.apply([*left, message]).messages
    assert left == [user("one"), user("two"), *pairs[0]]
    assert live.apply([*left, user("three")]).messages == [*left, user("three")]
