"""The pool of a host's sessions, and the turns that its calls are."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from policyctx import Session
from policyctx.errors import InputError, UnknownPolicyError
from policyctx.integrations.host_sessions import (
    AgentLoop,
    HostSessions,
    Recent,
    SentTurn,
    Turn,
    at_once,
)
from policyctx.messages.asked import Asked
from policyctx.replay.reading import recordings_in
from tests.conversations import session_of


def of_policy(root: Path, **options: Any) -> HostSessions:
    return HostSessions("context-offload", options={"root": root, **options}, most=2)


def test_the_oldest_sessions_go_unless_they_are_in_use(tmp_path: Path) -> None:
    sessions = of_policy(tmp_path)
    held = sessions.of_id("0")
    roots = {sessions.of_id(name).store.root for name in "123"}
    gc.collect()
    assert set(sessions._in_use) == {"0", "2", "3"}
    assert sessions.of_id("0") is held
    assert len(roots) == 3


@pytest.mark.parametrize("root", ["kept/{session_id}", "{session_id}/kept"])
def test_a_root_with_the_id_of_the_session_is_that_of_a_session(tmp_path: Path, root: str) -> None:
    hosted = of_policy(tmp_path / root).of_id("a/b")
    session = Session("context-offload", root=tmp_path / root, session_id="a/b")
    assert hosted.store.root == session.store.root


def test_a_policy_with_a_session_id_has_one_session(tmp_path: Path) -> None:
    sessions = of_policy(tmp_path, session_id="one")
    assert sessions.chosen() is sessions.of_id("a") is sessions.of_id("b")
    assert sessions.of_id("a").session_id == "one"


def test_a_call_without_an_id_raises_or_passes_unchanged(tmp_path: Path) -> None:
    sessions = of_policy(tmp_path)
    assert sessions.chosen() is None
    with pytest.raises(InputError, match="name the run"):
        sessions.chosen(session_id=lambda: None, lacking="name the run")


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_misspelt_policy_raises_at_construction(*, has_ids: bool) -> None:
    with pytest.raises(UnknownPolicyError, match="did you mean 'coding-agent'"):
        HostSessions("codingagent", has_ids=has_ids)


def test_a_policy_needs_a_session_id_where_the_host_has_no_ids(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'Session\("coding-agent", session_id="…"\)'):
        HostSessions("coding-agent", has_ids=False)
    options = {"session_id": "one", "root": tmp_path}
    assert (
        HostSessions("coding-agent", options=options, has_ids=False).of_id("").session_id == "one"
    )


def test_what_is_no_policy_raises_at_construction() -> None:
    given: Any = object()
    with pytest.raises(InputError, match=r"a policy is a preset's name, .* not object"):
        HostSessions(given)
    with pytest.raises(InputError, match="give a session, not the class Session"):
        HostSessions(Session)


def test_a_function_chooses_by_what_the_host_passes(tmp_path: Path) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    sessions = HostSessions(lambda one, other: session if one == other else None)
    assert sessions.chosen(1, 1) is session
    assert sessions.chosen(1, 2) is None
    with pytest.raises(InputError, match="chosen by a function"):
        sessions.of_id("s")
    with pytest.raises(InputError, match="need a policy"):
        HostSessions(session, options={"root": tmp_path})


def test_a_call_inside_of_a_turn_of_its_session_passes_unchanged(tmp_path: Path) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    sessions = HostSessions(session)

    async def inside() -> Session | None:
        async with AgentLoop.of(session).in_turn(blocks=True):
            return sessions.chosen()

    assert at_once(inside()) is None
    assert sessions.chosen() is session


def test_only_a_request_with_a_key_is_repeated_without_a_turn(tmp_path: Path) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    messages = session_of("x" * 90_000)
    turns = [
        Turn(session, Asked(key, messages), blocks=True)
        for key, messages in (
            ("a", messages),
            ("a", [*messages]),
            ("a", messages),
            (None, messages),
        )
    ]
    first = at_once(turns[0].apply())
    assert at_once(turns[1].apply()) is first
    turns[1].finish()
    assert at_once(turns[2].apply()) is not first
    assert at_once(turns[3].apply()).messages == first.messages
    assert len(AgentLoop.of(session).kept) == 1


def test_what_was_put_first_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    for name in "abac":
        recent.put(name, len(recent))
    assert [*recent] == ["a", "c"]


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    sessions = HostSessions(lambda: None)
    for text in ("one", "two", "one"):
        sessions.warn(text)
    assert caplog.messages == ["one", "two"]


def test_each_session_of_a_host_is_recorded_where_the_option_says(tmp_path: Path) -> None:
    sessions = of_policy(tmp_path / "root", record=tmp_path / "calls" / "{session_id}.jsonl")
    for name in "ab":
        turn = Turn(sessions.of_id(name), Asked(None, session_of("x"), model="gpt-x"), blocks=True)
        at_once(turn.apply())
        at_once(turn.observe({"prompt_tokens": 7, "completion_tokens": 1}))
    recordings = [
        recording
        for path in sorted((tmp_path / "calls").iterdir())
        for recording in recordings_in(path)
    ]
    assert [(one.name, one.calls[0].language_model) for one in recordings] == [
        ("a.jsonl", "gpt-x"), ("b.jsonl", "gpt-x"),
    ]  # fmt: skip
    assert [one.calls[0].usage and one.calls[0].usage.prompt for one in recordings] == [7, 7]


def test_a_stream_of_a_synchronous_host_outlives_the_event_loop_in_which_it_began(
    tmp_path: Path,
) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    turn = Turn(session, Asked(None, session_of("x")), blocks=True)
    closed = []

    def numbers() -> Generator[int]:
        try:
            yield from range(4)
        finally:
            closed.append(True)

    stream = turn.handed_out(turn.read(numbers()))

    async def first() -> int:
        found: int = next(stream)
        return found

    assert (asyncio.run(first()), closed) == (0, [])
    assert (next(stream), next(stream)) == (1, 2)
    stream.close()
    assert closed == [True]


def a_turn_ends(loop: AgentLoop) -> bool:
    """Return whether a turn in another thread comes to its end."""
    ended: list[bool] = []

    async def turn() -> None:
        async with loop.in_turn(blocks=True):
            ended.append(True)

    thread = Thread(target=lambda: at_once(turn()), daemon=True)
    thread.start()
    thread.join(10)
    return bool(ended)


@pytest.mark.parametrize("holds", ["in_turn", "learning"])
def test_an_interrupted_turn_holds_no_lock_while_its_traceback_lives(
    holds: str, tmp_path: Path
) -> None:
    """The interrupt comes once the lock is taken, and before the body that it protects."""
    loop = AgentLoop.of(Session("context-offload", root=tmp_path, session_id="s"))

    async def interrupted() -> None:
        turn, learning = loop.in_turn(blocks=True), loop.learning(SentTurn([], []))
        if holds == "in_turn":
            await turn.__aenter__()
        else:
            assert learning.__enter__()
        raise KeyboardInterrupt

    try:
        at_once(interrupted())
    except KeyboardInterrupt:
        assert a_turn_ends(loop)
