"""The drivers: they perform the effects of a turn and throw every failure into it."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, assert_type

import pytest

from policyctx import ContextFileSystem
from policyctx.errors import StoreError, SummaryError
from policyctx.messages.json_text import JSON
from policyctx.paths import File
from policyctx.store.content import Content, Origin
from policyctx.turns import driving
from policyctx.turns.effects import (
    Effect,
    FindRoot,
    Recall,
    Remember,
    Save,
    SessionStore,
    Turn,
)
from policyctx.turns.reporting import Writes
from policyctx.turns.summarising import Wait

T = TypeVar("T")
Driver: TypeAlias = "Callable[[Turn[Any], SessionStore], Any]"

ERRORS = [
    StoreError("the disk is full", path="/x"),
    SummaryError("there was no answer"),
    ValueError("a bug of a store"),
    MemoryError(),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    SystemExit(3),
    GeneratorExit(),
]


def driver(store: SessionStore) -> driving.Driver:
    return driving.Driver(store, Writes(), lambda: None, lambda error: error)


def run(turn: Turn[T], store: SessionStore) -> T:
    return driving.finished(driver(store).in_steps(turn))


async def run_async(turn: Turn[T], store: SessionStore) -> T:
    return await driver(store).run_async(turn)


def driven(turn: Turn[T], store: SessionStore) -> T:
    return asyncio.run(run_async(turn, store))


BOTH_DRIVERS = pytest.mark.parametrize("drive", [run, driven], ids=["run", "run_async"])
EACH_ERROR = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


@dataclass(frozen=True, slots=True)
class Fail(Effect[None]):
    """Raise an error, in the thread of the driver."""

    error: BaseException

    def perform(self, store: SessionStore) -> None:
        del store
        raise self.error

    async def perform_async(self, store: SessionStore) -> None:
        self.perform(store)


@dataclass(frozen=True, slots=True)
class FailInThread(Effect[None]):
    """Raise an error, under `run_async` in another thread."""

    error: BaseException

    def perform(self, store: SessionStore) -> None:
        del store
        raise self.error


@pytest.fixture
def store(tmp_path: Path) -> ContextFileSystem:
    return ContextFileSystem(tmp_path, sync="never", session="s")


@BOTH_DRIVERS
@EACH_ERROR
def test_an_error_is_raised_in_the_turn_at_its_yield(
    drive: Driver, error: BaseException, store: ContextFileSystem
) -> None:
    caught: list[BaseException] = []

    def turn() -> Turn[None]:
        try:
            yield from Fail(error).ask()
        except BaseException as raised:
            caught.append(raised)
            raise

    with pytest.raises(type(error)) as raised:
        drive(turn(), store)
    assert raised.value is error
    assert caught == [error]


@BOTH_DRIVERS
@pytest.mark.parametrize("error", ERRORS[:4], ids=lambda error: type(error).__name__)
def test_an_error_of_a_thread_is_raised_in_the_turn(
    drive: Driver, error: BaseException, store: ContextFileSystem
) -> None:
    def turn() -> Turn[str]:
        try:
            yield from FailInThread(error).ask()
        except type(error) as raised:
            return f"recovered from {type(raised).__name__}"
        return "nothing was raised"

    assert drive(turn(), store) == f"recovered from {type(error).__name__}"


@BOTH_DRIVERS
@pytest.mark.parametrize("error", ERRORS[:-1], ids=lambda error: type(error).__name__)
def test_a_turn_that_catches_an_error_performs_further_effects(
    drive: Driver, error: BaseException, store: ContextFileSystem
) -> None:
    def turn() -> Turn[list[dict[str, JSON]]]:
        try:
            yield from Fail(error).ask()
        except type(error):
            yield from Remember(({"record": "test"},)).ask()
        return (yield from Recall().ask())

    assert [record["record"] for record in drive(turn(), store)] == ["test"]


@BOTH_DRIVERS
@EACH_ERROR
def test_an_error_that_the_turn_does_not_catch_propagates_with_its_traceback(
    drive: Driver, error: BaseException, store: ContextFileSystem
) -> None:
    def inner() -> Turn[None]:
        yield from Fail(error).ask()

    def outer() -> Turn[None]:
        yield from inner()

    turn = outer()
    with pytest.raises(type(error)) as raised:
        drive(turn, store)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert "outer" in names
    assert names[-1].startswith("perform")
    # A generator that is closed does not enter its subgenerator again.
    assert ("inner" in names) is not isinstance(error, GeneratorExit)
    assert turn.gi_frame is None  # type: ignore[attr-defined]


@BOTH_DRIVERS
def test_a_later_error_does_not_refer_to_one_that_the_turn_recovered_from(
    drive: Driver, store: ContextFileSystem
) -> None:
    def turn() -> Turn[None]:
        with suppress(ValueError):
            yield from Fail(ValueError("first")).ask()
        raise KeyError("second")

    with pytest.raises(KeyError) as raised:
        drive(turn(), store)
    assert raised.value.__context__ is None


@BOTH_DRIVERS
def test_a_stop_iteration_of_an_effect_does_not_end_the_turn(
    drive: Driver, store: ContextFileSystem
) -> None:
    def turn() -> Turn[str]:
        try:
            yield from Fail(StopIteration("wrong")).ask()
        except RuntimeError:
            return "recovered"
        return "nothing was raised"

    assert drive(turn(), store) == "recovered"


@BOTH_DRIVERS
def test_a_turn_runs_its_finally_blocks_when_an_effect_fails(
    drive: Driver, store: ContextFileSystem
) -> None:
    ended: list[str] = []

    def turn() -> Turn[None]:
        try:
            yield from Fail(KeyboardInterrupt()).ask()
        finally:
            ended.append("finally")

    with pytest.raises(KeyboardInterrupt):
        drive(turn(), store)
    assert ended == ["finally"]


@BOTH_DRIVERS
def test_a_turn_without_effects_returns_its_value(drive: Driver, store: ContextFileSystem) -> None:
    def turn() -> Turn[int]:
        yield from ()
        return 3

    assert drive(turn(), store) == 3


@pytest.mark.slow
@BOTH_DRIVERS
def test_a_driver_keeps_no_reference_to_an_error_that_propagated(
    drive: Driver, store: ContextFileSystem
) -> None:
    class Held(Exception):  # noqa: N818 - only for this test
        pass

    def references() -> weakref.ref[Held]:
        error = Held()

        def turn() -> Turn[None]:
            yield from Fail(error).ask()

        try:
            drive(turn(), store)
        except Held as raised:
            raised.__traceback__ = None
        return weakref.ref(error)

    reference = references()
    gc.collect()
    assert reference() is None


def test_cancellation_is_raised_in_the_turn_and_closes_it(store: ContextFileSystem) -> None:
    caught: list[BaseException] = []

    def turn() -> Turn[None]:
        try:
            yield from Wait(60).ask()
        except BaseException as error:
            caught.append(error)
            raise

    async def cancelled() -> None:
        task = asyncio.ensure_future(run_async(turn(), store))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert [type(error) for error in caught] == [asyncio.CancelledError]


def test_a_coroutine_that_is_closed_closes_its_turn(store: ContextFileSystem) -> None:
    ended: list[str] = []

    @dataclass(frozen=True, slots=True)
    class Suspend(Effect[None]):
        def perform(self, store: SessionStore) -> None:
            raise NotImplementedError

        async def perform_async(self, store: SessionStore) -> None:
            del store
            await asyncio.sleep(0)

    def turn() -> Turn[None]:
        try:
            yield from Suspend().ask()
        finally:
            ended.append("finally")

    coroutine = run_async(turn(), store)
    coroutine.send(None)
    coroutine.close()
    assert ended == ["finally"]


@BOTH_DRIVERS
def test_effects_are_performed_beside_the_event_loop_unless_they_are_asynchronous(
    drive: Driver, store: ContextFileSystem
) -> None:
    @dataclass(frozen=True, slots=True)
    class Thread(Effect[int]):
        def perform(self, store: SessionStore) -> int:
            del store
            return threading.get_ident()

    def turn() -> Turn[int]:
        return (yield from Thread().ask())

    assert (drive(turn(), store) == threading.get_ident()) is (drive is run)


@BOTH_DRIVERS
def test_the_outcome_of_an_effect_has_the_type_that_mypy_infers(
    drive: Driver, store: ContextFileSystem
) -> None:
    content = Content("a.md", "text", "a.md", Origin("a", "tool_result"))

    def turn() -> Turn[list[str]]:
        files = yield from Save((content,), recorded=False).ask()
        assert_type(files, list[File])
        records = yield from Recall().ask()
        assert_type(records, list[dict[str, JSON]])
        root = yield from FindRoot().ask()
        assert_type(root, tuple[int, int] | None)
        assert root is not None
        assert isinstance(records, list)
        return [file.relative_path for file in files]

    assert drive(turn(), store) == ["a.md"]
