"""Message shapes beside the usual ones, from the list to the files and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import Message, calls, results, session_of, user
from tests.policies import policy

OFFLOADING = """\
    min_chars: 100
    items: {tool_result: {offload: true}}
    placeholder: "see {path}"
    store: {sync: never}
    tools: {Read: {offload: false}}
    steps: [{name: s, WHEN do: offload, must_shrink: false, select: {types: [tool_result]}}]
    """
DROPPING = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """
ROLES = pytest.mark.parametrize("role", ["tool", "function"])


def of_role(role: str, messages: list[Message]) -> list[Message]:
    """Return the messages with this role in those that hold results."""
    return [
        {**message, "role": role}
        if isinstance(message["content"], list) and message["content"][0]["type"] == "tool_result"
        else message
        for message in messages
    ]


@ROLES
def test_result_blocks_of_a_tool_message_keep_their_type_and_id(tmp_path: Path, role: str) -> None:
    messages = of_role(role, session_of("x" * 200, "y" * 50))
    under = policy(OFFLOADING.replace("WHEN ", ""))
    session = Session(under, root=tmp_path, session_id="s")
    assert [d.item.tool for d in session.plan(messages).new] == ["Bash"]
    result = session.apply(messages)
    path = tmp_path / "tool_result/Bash/c0.md"
    left = {**results(("c0", f"see {path}")), "role": role}
    assert result.messages == [*messages[:2], left, *messages[3:]]
    assert path.read_text(encoding="utf-8") == "x" * 200
    again = Session(under, root=tmp_path, session_id="s")
    assert again.apply(messages).messages == result.messages
    assert again.apply(result.messages).messages is result.messages


@ROLES
def test_result_blocks_of_a_tool_message_are_offloaded_on_arrival(
    tmp_path: Path, role: str
) -> None:
    session = Session(policy(OFFLOADING.replace("WHEN", "on: arrival,")), root=tmp_path)
    call = calls(("a", "Bash"), ("b", "Read"))
    answers = {**results(("a", "x" * 200), ("b", "y" * 200)), "role": role}
    result = session.on_tool_result(answers, call=call)
    path = tmp_path / "tool_result/Bash/a.md"
    left = {**results(("a", f"see {path}"), ("b", "y" * 200)), "role": role}
    assert result.messages == [call, left]


@ROLES
def test_a_dropped_call_takes_its_result_block_out_of_a_tool_message(
    tmp_path: Path, role: str
) -> None:
    messages = of_role(role, [*session_of("one", "two", "three"), user()])
    session = Session(policy(DROPPING), root=tmp_path, session_id="s")
    assert session.apply(messages).messages == [messages[0], *messages[5:]]
    again = Session(policy(DROPPING), root=tmp_path, session_id="s")
    assert again.apply(messages).messages == [messages[0], *messages[5:]]
