"""The drivers, which run a turn and perform its effects: synchronously, asynchronously or in steps.

A driver sends the outcome of each effect into the turn. If an effect raises an exception of any
kind, the driver throws it into the turn, where it is raised at the `yield`. Cancellation and
`KeyboardInterrupt` are no exception: whether such an effect happened is not known.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from functools import partial
from threading import Lock
from typing import TypeAlias, TypeVar

from policyctx.errors import PolicyctxError
from policyctx.messages.json_text import JSON
from policyctx.paths import File
from policyctx.store.content import Content
from policyctx.turns.effects import Effect, Holds, Record, Save, SessionStore, Turn
from policyctx.turns.reporting import Writes, is_traced

T = TypeVar("T")
# A generator that returns a `T`, and stops before each part that may block. Each part may be run in
# another thread.
Steps: TypeAlias = Generator[None, None, T]


def in_steps(turn: Turn[T], store: SessionStore) -> Steps[T]:
    """Run a turn to its end, and stop before each effect that may block."""
    resume: Callable[[], Effect[object]] = partial(next, turn)
    with closing(turn):
        try:
            while True:
                effect = resume()
                if effect.may_block:
                    yield
                try:
                    resume = partial(turn.send, effect.perform(store))
                except BaseException as error:  # noqa: BLE001 - raised in the turn
                    resume = partial(turn.throw, error)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            del resume  # It may hold an error, whose traceback holds this frame.


def finished(steps: Steps[T]) -> T:
    """Take all steps that are left in this thread, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result


def run(turn: Turn[T], store: SessionStore) -> T:
    """Run a turn to its end, and perform its effects in this thread."""
    return finished(in_steps(turn, store))


async def run_async(turn: Turn[T], store: SessionStore) -> T:
    """Run a turn to its end, and perform its effects without blocking the event loop."""
    resume: Callable[[], Effect[object]] = partial(next, turn)
    with closing(turn):
        try:
            while True:
                effect = resume()
                try:
                    resume = partial(turn.send, await effect.perform_async(store))
                except BaseException as error:  # noqa: BLE001 - raised in the turn
                    resume = partial(turn.throw, error)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            del resume  # It may hold an error, whose traceback holds this frame.


class LockedStore:
    """A store that performs one call at a time, from any thread, and notes how writes end.

    The thread of a cancelled effect may still write; the next call waits until it has ended.
    """

    def __init__(self, store: SessionStore, writes: Writes) -> None:
        self.root, self.keeps_blocks = store.root, True
        self._store, self._lock, self._writes = store, Lock(), writes

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return what the store reads at `path`."""
        with self._lock:
            return self._store.read(path)

    def holds(self, path: str) -> bool:
        """Return whether the store holds a content as it was saved."""
        with self._lock:
            return Holds(path).perform(self._store)

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Save all contents, and return the file of each."""
        with self._lock, self._writes.watched(completes=not recorded):
            return Save(tuple(contents), recorded=recorded).perform(self._store)

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session."""
        with self._lock, self._writes.watched() if flush else nullcontext():
            self._store.remember(records, flush=flush)

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""
        with self._lock:
            return self._store.records()


class Driver:
    """Drives the turns of one session over its store.

    `interrupted` is called when a turn ends in an error that is not policyctx's: whether its last
    effect happened is not known then.
    """

    def __init__(
        self, store: SessionStore, writes: Writes, interrupted: Callable[[], None]
    ) -> None:
        self._store, self._interrupted = LockedStore(store, writes), interrupted

    def run(self, turn: Turn[T]) -> T:
        """Run a turn to its end in this thread."""
        return finished(in_steps(self._watched(turn), self._store))

    async def run_async(self, turn: Turn[T]) -> T:
        """Run a turn to its end without blocking the event loop."""
        return await run_async(self._watched(turn), self._store)

    def in_steps(self, turn: Turn[T]) -> Steps[T]:
        """Run a turn to its end, and stop before each part that may block."""
        if is_traced():
            yield  # a span ends in the thread where it began
        return (yield from in_steps(self._watched(turn), self._store))

    def _watched(self, turn: Turn[T]) -> Turn[T]:
        try:
            return (yield from turn)
        except PolicyctxError:
            raise
        except BaseException:
            self._interrupted()
            raise
