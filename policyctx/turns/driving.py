"""The drivers, which run a turn and perform its effects: synchronously, asynchronously or in steps.

A driver sends the outcome of each effect into the turn. If an effect raises an exception of any
kind, the driver throws it into the turn, where it is raised at the `yield`. Cancellation and
`KeyboardInterrupt` are no exception: whether such an effect happened is not known.

`verb` gives one body of a method these three forms:

    class Session:
        @verb
        def apply(self, messages: Sequence[Message]) -> Turn[Result]: ...

        apply_async = in_async(apply)
        apply_in_steps = stepwise(apply)

The body returns a turn, and the `Driver` of its owner runs it. Each form has the parameters of the
body, for type checkers and for `inspect.signature`.
"""

import os
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial, wraps
from inspect import signature, unwrap
from threading import Lock
from types import GenericAlias
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from policyctx.errors import MessagesError, PolicyctxError
from policyctx.messages.json_text import JSON
from policyctx.paths import File
from policyctx.store.content import Content
from policyctx.turns.effects import Effect, Holds, Record, Save, SessionStore, Turn
from policyctx.turns.reporting import Writes, is_traced

T = TypeVar("T")
# A generator that returns a `T`, and stops before each part that may block. Each part may be run in
# another thread.
Steps: TypeAlias = Generator[None, None, T]
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")


def finished(steps: Steps[T]) -> T:
    """Take all steps that are left in this thread, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result


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
        with self._lock, self._writes.watched(reads=True):
            return self._store.records()


class Driver:
    """Drives the turns of one session over its store.

    `interrupted` is called when a turn ends in an error that is not policyctx's: whether its last
    effect happened is not known then. `as_given` returns what is raised for a `MessagesError`.
    """

    def __init__(
        self,
        store: SessionStore,
        writes: Writes,
        interrupted: Callable[[], None],
        as_given: Callable[[MessagesError], MessagesError],
    ) -> None:
        self._store, self._interrupted = LockedStore(store, writes), interrupted
        self._as_given = as_given

    def in_steps(self, turn: Turn[T]) -> Steps[T]:
        """Run a turn to its end, and stop before each part that may block."""
        if is_traced():
            yield  # a span ends in the thread where it began
        resume: Callable[[], Effect[object]] = partial(next, turn)
        with self._watched(turn):
            try:
                while True:
                    effect = resume()
                    if effect.may_block:
                        yield
                    try:
                        resume = partial(turn.send, effect.perform(self._store))
                    except BaseException as error:  # noqa: BLE001 - raised in the turn
                        resume = partial(turn.throw, error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                del resume  # It may hold an error, whose traceback holds this frame.

    async def run_async(self, turn: Turn[T]) -> T:
        """Run a turn to its end without blocking the event loop."""
        resume: Callable[[], Effect[object]] = partial(next, turn)
        with self._watched(turn):
            try:
                while True:
                    effect = resume()
                    try:
                        resume = partial(turn.send, await effect.perform_async(self._store))
                    except BaseException as error:  # noqa: BLE001 - raised in the turn
                        resume = partial(turn.throw, error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                del resume  # It may hold an error, whose traceback holds this frame.

    @contextmanager
    def _watched(self, turn: Turn[T]) -> Iterator[None]:
        try:
            with closing(turn):
                yield
        except MessagesError as error:
            given = self._as_given(error).with_traceback(error.__traceback__)
            raise given from error.__cause__
        except PolicyctxError:
            raise
        except BaseException:
            self._interrupted()
            raise


class Driven(Protocol):
    """What has verbs, such as a session."""

    _driver: Driver


D = TypeVar("D", bound=Driven)
Method: TypeAlias = Callable[Concatenate[D, P], T]


def verb(body: Method[D, P, Turn[T]]) -> Method[D, P, T]:
    """Return the method that runs the turn of `body`, and returns what the turn returns."""

    def form(self: D, /, *args: P.args, **options: P.kwargs) -> T:
        return finished(self._driver.in_steps(body(self, *args, **options)))

    return _described(form, body, _returned(body))


def in_async(method: Method[D, P, T]) -> Method[D, P, Coroutine[Any, Any, T]]:
    """Return the form of a verb that does not block the event loop."""
    body: Method[D, P, Turn[T]] = unwrap(method)

    async def form(self: D, /, *args: P.args, **options: P.kwargs) -> T:
        return await self._driver.run_async(body(self, *args, **options))

    return _described(form, body, _returned(body), "async", "without blocking the event loop")


_IN_STEPS = """\
by a generator that returns what it returns.

It stops before each part that may block, such as a write to the disk. A server takes the first
step in its event loop, and those that are left, if there are any, in a thread"""


def stepwise(method: Method[D, P, T]) -> Method[D, P, Steps[T]]:
    """Return the form of a verb that is a generator, and stops before each part that may block."""
    body: Method[D, P, Turn[T]] = unwrap(method)

    def form(self: D, /, *args: P.args, **options: P.kwargs) -> Steps[T]:
        return (yield from self._driver.in_steps(body(self, *args, **options)))

    steps = GenericAlias(Generator, (None, None, _returned(body)))
    return _described(form, body, steps, "in_steps", _IN_STEPS)


def _returned(body: Callable[..., Turn[Any]]) -> str:
    """Return the name of what the turn of a function returns."""
    return str(body.__annotations__["return"]).removeprefix("Turn[").removesuffix("]")


def _described(
    form: F, body: Callable[..., Any], returned: object, suffix: str = "", how: str = ""
) -> F:
    """Give a form the parameters of its body, and say what is its own."""
    made: Any = wraps(body)(form)
    if suffix:
        made.__doc__ = f"Do what `{made.__name__}` does, {how}."
        made.__name__, made.__qualname__ = (
            f"{name}_{suffix}" for name in (made.__name__, made.__qualname__)
        )
    made.__annotations__ = {**made.__annotations__, "return": returned}
    made.__signature__ = signature(made).replace(return_annotation=returned)
    return made  # type: ignore[no-any-return]
