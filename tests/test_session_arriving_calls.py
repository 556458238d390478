"""A result reported without its call: the session finds the call in the caller's list."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from tests.conversations import (
    Message,
    call,
    calls,
    chat_calls,
    chat_result,
    results,
    session_of,
    user,
)
from tests.policies import policy

LARGE = "x" * 1000
RULES = """\
    items: {tool_result: {offload: true}}
    tools: {secret: {pin: true}}
    steps: [{name: s, on: arrival, do: offload}]
    """


def function_call(call_id: str, tool: str) -> Message:
    return {"type": "function_call", "call_id": call_id, "name": tool, "arguments": "{}"}


def function_output(call_id: str, text: str) -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(RULES), root=tmp_path, session_id="s")


def with_replies(session: Session, *replies: Message) -> list[Message]:
    """A list that was applied, and then got more messages, as a loop does it."""
    messages = [user("the task")]
    session.apply(messages)
    messages += replies
    return messages


SHAPES: list[tuple[Message, Message]] = [
    (calls(("a", "secret")), results(("a", LARGE))),
    (chat_calls(("a", "secret", "{}")), chat_result("a", LARGE)),
    (function_call("a", "secret"), function_output("a", LARGE)),
]


@pytest.mark.parametrize(("asked", "answer"), SHAPES, ids=["anthropic", "chat", "responses"])
def test_rules_for_tools_apply_if_the_reply_was_added_to_the_applied_list(
    session: Session, asked: Message, answer: Message
) -> None:
    with_replies(session, asked)
    result = session.on_tool_result(answer)
    assert (result.offloaded_count, result.messages, result.sources) == (0, [answer], (0,))


def test_the_file_of_a_result_is_named_after_its_tool(session: Session) -> None:
    messages = with_replies(session, calls(("a", "Bash")))
    answer = results(("a", LARGE))
    result = session.on_tool_result(answer)
    [file] = result.files
    assert file.endswith("/tool_result/Bash/a.md")
    [sent] = result.messages
    assert sent["content"][0]["tool_use_id"] == "a"
    assert session.apply([*messages, answer]).messages[2:] == [sent]


def test_the_session_sees_the_same_without_the_event_loop_blocked(session: Session) -> None:
    answer = results(("a", LARGE))
    with_replies(session, calls(("a", "secret")))
    assert asyncio.run(session.on_tool_result_async(answer)).offloaded_count == 0


def test_each_parallel_result_is_matched_with_its_own_call(session: Session) -> None:
    with_replies(session, function_call("a", "Bash"), function_call("b", "secret"))
    counts = [session.on_tool_result(function_output(i, LARGE)).offloaded_count for i in "ab"]
    assert counts == [1, 0]


def test_the_newest_call_with_the_id_counts(session: Session) -> None:
    earlier = [calls(("a", "secret")), results(("a", "small"))]
    with_replies(session, *earlier, calls(("a", "Bash")))
    assert session.on_tool_result(results(("a", LARGE))).offloaded_count == 1


def test_an_open_call_of_the_applied_list_itself_is_found(session: Session) -> None:
    session.apply([user("the task"), calls(("a", "secret"))])
    assert session.on_tool_result(results(("a", LARGE))).offloaded_count == 0


@pytest.mark.parametrize("was_applied", [True, False])
def test_the_call_of_a_local_shell_is_found_by_the_id_of_its_item(
    tmp_path: Path, *, was_applied: bool
) -> None:
    rules = policy(RULES.replace("secret", "local_shell"))
    session = Session(rules, root=tmp_path, session_id="s")
    action = {"type": "exec", "command": ["ls"], "env": {}}
    messages = [user("the task")]
    session.apply(messages)
    messages.append({"type": "local_shell_call", "id": "i", "call_id": "c", "action": action})
    if was_applied:
        session.apply(messages)
    answer = {"type": "local_shell_call_output", "id": "i", "output": LARGE}
    assert session.on_tool_result(answer).offloaded_count == 0


def test_the_call_that_is_given_counts(session: Session) -> None:
    with_replies(session, calls(("a", "secret")))
    given, answer = calls(("a", "Bash")), results(("a", LARGE))
    result = session.on_tool_result(answer, call=given)
    assert (result.offloaded_count, len(result.messages)) == (1, 2)


def test_what_was_read_back_is_not_taken(session: Session) -> None:
    messages = session_of(LARGE)
    assert session.apply(messages).offloaded_count == 1
    messages.append(call("r", "read_offloaded", {"path": "c0"}))
    assert session.on_tool_result(results(("r", LARGE))).offloaded_count == 0


@pytest.mark.parametrize(
    "more",
    [
        [],
        [calls(("other", "secret"))],
        [{"role": "assistant", "content": 7}],
        [results(("a", "another"))],
    ],
    ids=["no reply", "another call", "no message", "only results"],
)
def test_a_result_whose_call_is_not_found_is_judged_without_it(
    session: Session, more: list[Any]
) -> None:
    with_replies(session, *more)
    result = session.on_tool_result(results(("a", LARGE)))
    assert (result.offloaded_count, len(result.messages)) == (1, 1)


def test_a_reply_is_not_found_in_a_list_that_the_session_does_not_have(session: Session) -> None:
    messages = [user("the task")]
    session.apply([*messages])
    messages.append(calls(("a", "secret")))
    assert session.on_tool_result(results(("a", LARGE))).offloaded_count == 1


def test_rules_for_tools_apply_if_the_reply_was_added_to_the_returned_list(tmp_path: Path) -> None:
    text = RULES.replace("]", ", {name: old, do: offload, select: {keep_recent: {items: 1}}}]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    given = session_of("y" * 900, "small")
    returned = session.apply(given).messages
    assert returned is not given
    assert isinstance(returned, list)
    returned.append(calls(("a", "secret")))
    assert session.on_tool_result(results(("a", LARGE))).offloaded_count == 0


def test_a_call_is_found_after_a_compaction(tmp_path: Path) -> None:
    text = RULES.replace("]", ", {name: c, do: compact, when: {messages: {at_least: 6}}}]", 1)
    text += "compaction: {keep_recent: {messages: 1}}\n"

    def summary(*_: object, **__: object) -> str:
        return "Everything that happened so far. " * 9

    session = Session(policy(text), root=tmp_path, session_id="s", summarizer=summary)
    messages = [*session_of(LARGE, LARGE), user()]
    assert session.apply(messages).compacted
    messages.append(calls(("a", "secret")))
    assert session.on_tool_result(results(("a", LARGE))).offloaded_count == 0
