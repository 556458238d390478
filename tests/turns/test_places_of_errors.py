"""An error or a warning about a message names its place in the list that the caller gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from policyctx import MessagesError, Session
from policyctx.definitions.items import Message
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.messages.fillers import FILLER
from tests.policies import policy

COMPACTING = """\
compaction: {keep_recent: {messages: 2}, min_new: 0, summary: {must_shrink_to: false}}
steps: [{name: c, do: compact, when: {messages: {over: 4}}}]
"""
OFFLOADING = """\
min_chars: 0
items: {user_message: {offload: true}}
steps: [{name: o, do: offload, must_shrink: false, select: {types: [user_message]}}]
"""
DROPPING = """\
min_chars: 0
items: {assistant_message: {offload: true}}
steps: [{name: d, do: drop, select: {types: [assistant_message], keep_recent: 1}}]
"""
HELLO: Message = {"role": "assistant", "content": "hello"}
TALK: list[Message] = [
    {"role": ("user", "assistant")[i % 2], "content": f"words of the message {i}, " * 20}
    for i in range(10)
]
UNREADABLE: Message = {"role": "wizard", "content": "abracadabra"}
UNCOPYABLE: Message = {
    "role": "user",
    "content": [{"type": "text", "text": "a " * 99, "x": Lock()}],
}
Call = Callable[[Session, Sequence[Message]], Any]
EACH_CALL = pytest.mark.parametrize("call", [Session.apply, Session.plan, Session.compact])


def opened(text: str, root: Path, *seen: Sequence[Message], **options: Any) -> Session:
    session = Session(policy(text), root=root, session_id="s", **options)
    for messages in seen:
        session.apply(messages)
    return session


def with_wrong(messages: Sequence[Message], at: int, wrong: Message) -> list[Message]:
    return [*messages[:at], wrong, *messages[at:]]


def refused(call: Call, session: Session, messages: Sequence[Message]) -> int | None:
    with pytest.raises(MessagesError) as caught:
        call(session, messages)
    assert str(caught.value).startswith(f"message {caught.value.index}: ")
    return caught.value.index


@EACH_CALL
@pytest.mark.parametrize("at", [5, 8, 10])
def test_behind_a_summary(call: Call, at: int, tmp_path: Path) -> None:
    session = opened(COMPACTING, tmp_path, TALK[:5])
    assert refused(call, session, with_wrong(TALK, at, UNREADABLE)) == at


@EACH_CALL
@pytest.mark.parametrize("at", [1, 3, 5, 8, 10])
def test_behind_messages_that_were_repaired_before(call: Call, at: int, tmp_path: Path) -> None:
    talk = [HELLO, *TALK]
    session = opened("on_broken: repair\n", tmp_path, talk[:4], talk[:6])
    assert refused(call, session, with_wrong(talk, at, UNREADABLE)) == at


@EACH_CALL
@pytest.mark.parametrize("at", [1, 3, 5, 7])
def test_behind_a_filler(call: Call, at: int, tmp_path: Path) -> None:
    talk = [{"role": m["role"], "content": [{"text": m["content"]}]} for m in TALK[:7]]
    session = opened(DROPPING, tmp_path, shapes=[BedrockShape()])
    sent = session.apply(talk).messages
    assert len(sent) == len(talk)
    assert refused(call, session, with_wrong(sent, at, UNREADABLE)) == at


@EACH_CALL
@pytest.mark.parametrize("at", [2, 6, 10])
@pytest.mark.parametrize("wrong", [None, 7, 2.5, "words"])
def test_what_is_no_message_in_a_list_that_was_seen(
    call: Call, at: int, wrong: Any, tmp_path: Path
) -> None:
    session = opened("steps: []\n", tmp_path, TALK)
    assert refused(call, session, with_wrong(TALK, at, wrong)) == at


def test_where_a_message_cannot_be_edited(tmp_path: Path) -> None:
    session = opened(OFFLOADING + COMPACTING.replace("steps: [", "#"), tmp_path)
    assert refused(Session.apply, session, with_wrong(TALK, 6, UNCOPYABLE)) == 6


def test_a_message_that_arrives_has_its_own_place(tmp_path: Path) -> None:
    session = opened("on_broken: repair\n", tmp_path, [HELLO, *TALK])
    assert refused(Session.on_tool_result, session, UNREADABLE) == 0


def test_a_warning_behind_a_summary_names_the_place_in_the_callers_list(tmp_path: Path) -> None:
    text = f"model: {{context_window: 8000}}\n{COMPACTING.replace('over: 4', 'over: 99')}"
    session = opened(text, tmp_path)
    assert session.compact(TALK[:5]).compacted
    large = {"role": "user", "content": "word " * 9_000}
    [warning] = session.apply([*TALK, large]).warnings
    assert "in message 10, with 9,0" in warning


def test_a_result_without_its_call_has_its_place_in_the_callers_list(tmp_path: Path) -> None:
    """The result has no id, and the provider's names of tools are the same each time."""
    text = DROPPING.replace("select: {", "select: {unit: message, ")
    roles = {"user": "user", "assistant": "model"}
    talk: list[Message] = [
        {"role": roles[one["role"]], "parts": [{"text": one["content"]}]} for one in [*TALK, *TALK]
    ]
    session = opened(text, tmp_path)
    sent = [*session.apply(talk).messages]
    assert sent[1] == {"role": "model", "parts": [{"text": FILLER}]}
    found = {"functionResponse": {"name": "ls", "response": {"output": "a"}}}
    late: list[Message] = [{"role": "user", "parts": [one]} for one in (found, {"text": "more"})]
    late.insert(1, {"role": "model", "parts": [{"text": "ok"}]})
    [warning] = session.apply([*sent, *late]).warnings
    assert warning.startswith(f"the result ls in message {len(sent)} has no call in the list")


def test_an_error_has_the_traceback_of_its_cause(tmp_path: Path) -> None:
    session = opened(COMPACTING, tmp_path)
    with pytest.raises(MessagesError) as caught:
        session.apply(with_wrong(TALK, 3, UNREADABLE))
    assert Path(caught.traceback[-1].path).name == "built_in.py"
