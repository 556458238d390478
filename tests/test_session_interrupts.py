"""Turns that are interrupted while the store works: what the journal holds wins."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import linecache
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from policyctx import ContextFileSystem, Session, load_policy
from policyctx.compaction.restoration import WorkingFiles
from policyctx.paths import File
from policyctx.store.content import Content
from policyctx.store.local.folder import NEW_FILE, locked, open_folder, wait_for
from policyctx.store.state import State
from tests.conversations import session_of, user
from tests.drawing import in_profile
from tests.interrupting import open_below
from tests.policies import policy

GATED = """\
    items: {tool_result: {offload: true}}
    placeholder: "[{item_id}]"
    store: {sync: never}
    steps:
      - {name: s, do: offload, when: {messages: {over: 4}}, select: {types: [tool_result]}}
    """
COMPACTING = """\
    store: {sync: never}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: compact, do: compact, when: {messages: {over: 4}}}]
    """
LARGE = "x" * 400
# The long profile interrupts more turns.
INTERRUPTS = in_profile(10, 259)
FULL = session_of(LARGE, LARGE)


class Interrupted(ContextFileSystem):
    """A store on which something happens right before or after an effect, once."""

    def __init__(self, root: Path, effect: str, when: str, happens: Callable[[], None]) -> None:
        super().__init__(root, sync="never", session="s")
        self._effect, self._when, self._happens = effect, when, happens

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        self._reach("save", "before")
        found = super().save(contents, recorded=recorded)
        self._reach("save", "after")
        return found

    def remember(self, records: Sequence[Any], *, flush: bool = True) -> None:
        self._reach("remember", "before")
        super().remember(records, flush=flush)
        self._reach("remember", "after")

    def _reach(self, effect: str, when: str) -> None:
        if (effect, when) == (self._effect, self._when):
            self._effect = ""
            self._happens()


def interrupt(error: type[BaseException]) -> Callable[[], None]:
    def happens() -> None:
        raise error

    return happens


@pytest.mark.parametrize("text", [GATED, COMPACTING])
@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, MemoryError])
@pytest.mark.parametrize("effect", ["save", "remember"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_after_an_interrupt_a_session_decides_as_a_restarted_one(
    text: str, error: type[BaseException], effect: str, when: str, tmp_path: Path
) -> None:
    store = Interrupted(tmp_path, effect, when, interrupt(error))
    live = Session(policy(text), session_id="s", store=store)
    with pytest.raises(error):
        live.apply(FULL)
    for messages in (FULL[:3], [*FULL[:3], user("more")], FULL):
        restarted = Session(policy(text), session_id="s", root=tmp_path).plan(messages)
        planned = live.plan(messages)
        assert planned.decisions == restarted.decisions
        assert [o.is_open for o in planned.outcomes] == [o.is_open for o in restarted.outcomes]
    assert live.ledger.entries.keys() == restarted.conversation.ledger.entries.keys()


def test_decisions_of_an_interrupted_turn_apply_to_a_shorter_list(tmp_path: Path) -> None:
    store = Interrupted(tmp_path, "remember", "after", interrupt(KeyboardInterrupt))
    session = Session(policy(GATED), session_id="s", store=store)
    with pytest.raises(KeyboardInterrupt):
        session.apply(FULL)
    result = session.apply(FULL[:3])
    assert result.messages[2]["content"][0]["content"] == "[c0]"
    assert result.plan.new == ()


def test_a_cancelled_turn_is_waited_for_by_the_next_one(tmp_path: Path) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def happens() -> None:
        begun.set()
        assert may_go_on.wait(30)

    store = Interrupted(tmp_path, "remember", "before", happens)
    session = Session(policy(GATED), session_id="s", store=store)

    async def cancelled_then_again() -> list[Any]:
        turn = asyncio.ensure_future(session.apply_async(FULL))
        assert await asyncio.to_thread(begun.wait, 30)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        asyncio.get_running_loop().call_later(0.1, may_go_on.set)
        return list((await session.apply_async(FULL[:3])).messages)

    messages = asyncio.run(cancelled_then_again())
    assert messages[2]["content"][0]["content"] == "[c0]"
    restarted = Session(policy(GATED), session_id="s", root=tmp_path)
    assert restarted.apply(FULL[:3]).messages == messages


def test_an_error_keeps_the_conversation_of_the_session(tmp_path: Path) -> None:
    session = Session(policy(GATED), session_id="s", root=tmp_path)
    first = session.apply(FULL)
    with pytest.raises(Exception, match="message 5"):
        session.apply([*FULL, {"content": "x"}])
    assert session.apply(FULL).plan.conversation is first.plan.conversation


LOCKING = {(contextlib.__file__, name) for name in ("__exit__", "enter_context", "close")} | {
    (locked.__wrapped__.__code__.co_filename, name)  # type: ignore[attr-defined]
    for name in ("locked", "_opened_lock", "wait_for", "is_acquired")
}
LOCKING |= {(State.writing.__wrapped__.__code__.co_filename, "writing")}  # type: ignore[attr-defined]


class Interrupt:
    """Raises `KeyboardInterrupt` at one of the lines that take and release a lock."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if (code.co_filename, code.co_name) not in LOCKING and code != entered.__code__:
            return None
        line = linecache.getline(code.co_filename, frame.f_lineno).strip()
        self.left -= event == "line" and line != "try:"  # where Python handles no signal
        if not self.left:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self


def entered(context: Any) -> Any:
    """Enter a context of a generator, with a line between that and the body."""
    value = next(context.gen)
    return value  # noqa: RET504 - for that line


def in_another_thread(call: Callable[[], object]) -> BaseException | None:
    """Call a function in a thread, wait for its end, and return what it raised."""
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - an interrupt
            ended.append(error)
        else:
            ended.append(None)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    return ended[0]


def test_an_interrupt_leaves_no_lock_held_while_its_traceback_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At each line of the code that takes and releases a lock.

    Python takes an exception for handled for ever when a tracer raises in its handler, so each
    interrupt has a thread of its own.
    """
    monkeypatch.setattr(wait_for, "__defaults__", (0.2,))
    monkeypatch.setattr(contextlib._GeneratorContextManager, "__enter__", entered)
    for at in itertools.count(1):
        interrupt = Interrupt(at)
        store = ContextFileSystem(tmp_path / f"{at}", sync="never", session="s")

        def save(store: ContextFileSystem = store, interrupt: Interrupt = interrupt) -> None:
            sys.settrace(interrupt)
            store.save([Content("a.md", LARGE)], recorded=True)

        raised = in_another_thread(save)
        assert isinstance(raised, KeyboardInterrupt | None)
        if raised:
            store.remember([{"kept": at}])
            store.close()
        if interrupt.left > 0:
            break
    assert at > 50
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_descriptor_stays_open_after_interrupts_at_random_moments(seed: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.interrupting", str(INTERRUPTS), seed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc")
def test_a_file_is_closed_when_nothing_refers_to_it(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    folder = open_folder(tmp_path)
    opened = folder.open("a", NEW_FILE)
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 2
    opened.close()
    opened.close()
    del folder, opened
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("what", ["a policy", "an export", "a restored file"])
def test_a_file_that_was_just_opened_is_closed_after_an_interrupt(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("{apiVersion: policyctx/v1, name: p}")
    target = tmp_path / "session.tar.zst"
    with ContextFileSystem(tmp_path / "store") as store:
        work: Callable[[], object] = {
            "a policy": lambda: load_policy(path),
            "an export": lambda: store.export(target),
            "a restored file": lambda: WorkingFiles().read(os.path.realpath(path), 1000),
        }[what]
        work()
        target.unlink(missing_ok=True)

        def interrupt(_: FrameType, event: str, called: object) -> None:
            if event == "c_return" and called is os.open:
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        with contextlib.suppress(KeyboardInterrupt):
            work()
        sys.setprofile(None)
    assert open_below(str(tmp_path)) == []
