"""The hook before a compaction: what it is given, what it may answer, how it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyctx import CompactionAhead, Session
from policyctx.turns.result import Result
from tests.compaction.compacting import REPLY, SUMMARY, SYSTEM, compacting, conversation, said
from tests.conversations import calls, results, user
from tests.policies import policy

MESSAGES = conversation()


def session(root: Path, hook: Any, summary: Any = lambda _: "the summary") -> Session:
    return Session(
        compacting(), root=root, session_id="s", summarizer=summary, before_compaction=hook
    )


def in_sync(session: Session) -> Result:
    return session.apply(MESSAGES)


def in_async(session: Session) -> Result:
    return asyncio.run(session.apply_async(MESSAGES))


def in_sync_inside_a_loop(session: Session) -> Result:
    async def turn() -> Result:
        return session.apply(MESSAGES)

    return asyncio.run(turn())


@pytest.fixture(params=[in_sync, in_async, in_sync_inside_a_loop])
def run(request: pytest.FixtureRequest) -> Callable[[Session], Result]:
    found: Callable[[Session], Result] = request.param
    return found


def asynchronous(answer: object) -> Callable[[CompactionAhead], object]:
    async def hook(_: CompactionAhead) -> object:
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return hook


def synchronous(answer: object) -> Callable[[CompactionAhead], object]:
    def hook(_: CompactionAhead) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return hook


@pytest.fixture(params=[synchronous, asynchronous])
def hook(request: pytest.FixtureRequest) -> Callable[[object], Any]:
    found: Callable[[object], Any] = request.param
    return found


def test_the_hook_sees_what_would_be_replaced(tmp_path: Path) -> None:
    seen: list[CompactionAhead] = []
    result = session(tmp_path, seen.append).apply(MESSAGES)
    assert result.compacted
    [ahead] = seen
    assert ahead == CompactionAhead("s", "summarise", tuple(MESSAGES[1:]), 12, 1, 6)
    assert all(one is given for one, given in zip(ahead.messages, MESSAGES[1:], strict=True))


def test_the_hook_sees_what_earlier_steps_left(tmp_path: Path) -> None:
    text = """\
        model: {tokenizer: approximate}
        steps:
        - {name: retire, do: clear, select: {types: [tool_result]}, placeholder: gone}
        - {name: summarise, do: compact, when: {messages: {over: 2}}}
        items: {tool_result: {offload: true}}
        """
    messages = [user("ask"), calls(("a", "Bash")), results(("a", "x" * 400)), said()]
    seen: list[CompactionAhead] = []
    made = Session(
        policy(text),
        root=tmp_path,
        session_id="s",
        summarizer=lambda _: "the summary",
        before_compaction=seen.append,
    )
    made.apply(messages)
    assert seen[0].messages[2] == results(("a", "gone"))


@pytest.mark.parametrize("answer", [None, True])
def test_a_hook_that_agrees_lets_the_compaction_be_made(
    tmp_path: Path,
    answer: object,
    hook: Callable[[object], Any],
    run: Callable[[Session], Result],
) -> None:
    result = run(session(tmp_path, hook(answer)))
    assert list(result.messages) == [SYSTEM, user(f"{SUMMARY}the summary"), said(REPLY)]
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (False, "it gave no reason"),
        ("", "it gave no reason"),
        ("not while\na review is open", "not while a review is open"),
        (0, "it returned int, not None, a bool or a text"),
        (ValueError("no such case"), "it raised ValueError: no such case"),
        (StopIteration("x"), "it raised StopIteration: x"),
    ],
)
def test_a_hook_that_declines_is_named_with_its_reason(
    tmp_path: Path,
    answer: object,
    why: str,
    hook: Callable[[object], Any],
    run: Callable[[Session], Result],
) -> None:
    asked: list[object] = []
    if isinstance(answer, StopIteration) and hook is asynchronous:
        why = "it raised RuntimeError: coroutine raised StopIteration"
    result = run(session(tmp_path, hook(answer), asked.append))
    sentence = f"the hook before a compaction declined it: {why}"
    assert result.warnings == (f"not compacted: {sentence}",)
    reasons = {str(result.plan.decision(i).reason) for i in range(1, len(MESSAGES))}
    assert reasons == {f"declined: {sentence}"}
    assert result.messages is MESSAGES
    assert (result.compacted, asked, list(tmp_path.iterdir())) == (False, [], [])


def test_the_hook_is_asked_again_in_the_next_turn(tmp_path: Path) -> None:
    answers = iter([False, None])
    made = session(tmp_path, lambda _: next(answers))
    assert [made.apply(MESSAGES).compacted for _ in range(2)] == [False, True]


def test_the_hook_is_not_asked_where_no_compaction_is_due(tmp_path: Path) -> None:
    seen: list[CompactionAhead] = []
    made = session(tmp_path, seen.append)
    made.apply(conversation(2))
    made.plan(MESSAGES)
    made.preview(MESSAGES)
    made.breakpoints(MESSAGES)
    assert seen == []


def test_the_other_steps_of_a_declined_turn_are_carried_out(tmp_path: Path) -> None:
    text = """\
        model: {tokenizer: approximate}
        steps:
        - {name: retire, do: offload, select: {types: [tool_result]}}
        - {name: summarise, do: compact, when: {messages: {over: 2}}}
        items: {tool_result: {offload: true}}
        """
    messages = [user("ask"), calls(("a", "Bash")), results(("a", "x" * 4000)), said()]
    made = Session(
        policy(text), root=tmp_path, session_id="s", before_compaction=lambda _: "not now"
    )
    result = made.apply(messages)
    assert (result.offloaded_count, result.compacted) == (1, False)
    assert made.read("a") == "x" * 4000


def test_the_exception_of_a_hook_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("no such case")
    with caplog.at_level(logging.ERROR, "policyctx"):
        session(tmp_path, synchronous(error)).apply(MESSAGES)
    [record] = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert "session s" in record.getMessage()


def test_an_interrupt_in_the_hook_reaches_the_caller(tmp_path: Path) -> None:
    def interrupted(_: CompactionAhead) -> None:
        raise KeyboardInterrupt

    made = session(tmp_path, interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.apply(MESSAGES)


def test_a_cancelled_turn_cancels_an_asynchronous_hook(tmp_path: Path) -> None:
    seen: list[str] = []

    async def turn() -> None:
        started = asyncio.Event()

        async def waiting(_: CompactionAhead) -> None:
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        task = asyncio.create_task(session(tmp_path, waiting).apply_async(MESSAGES))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(turn())
    assert seen == ["cancelled"]
