"""`verb`: one body of a method in three forms: synchronous, asynchronous and in steps.

    class Session:
        @verb
        def apply(self, messages: Sequence[Message]) -> Turn[Result]: ...

        apply_async = in_async(apply)
        apply_in_steps = stepwise(apply)

The body returns a turn, and the `Driver` of its owner runs it. Each form has the parameters of the
body, for type checkers and for `inspect.signature`.
"""

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from inspect import signature, unwrap
from types import GenericAlias
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from policyctx.turns.driving import Driver, Steps
from policyctx.turns.effects import Turn

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")


class Driven(Protocol):
    """What has verbs, such as a session."""

    _driver: Driver


D = TypeVar("D", bound=Driven)
Method: TypeAlias = Callable[Concatenate[D, P], T]


def verb(body: Method[D, P, Turn[T]]) -> Method[D, P, T]:
    """Return the method that runs the turn of `body`, and returns what the turn returns."""

    def form(self: D, /, *args: P.args, **options: P.kwargs) -> T:
        return self._driver.run(body(self, *args, **options))

    return _described(form, body, _returned(body))


def in_async(method: Method[D, P, T]) -> Method[D, P, Coroutine[Any, Any, T]]:
    """Return the form of a verb that does not block the event loop."""
    body: Method[D, P, Turn[T]] = unwrap(method)

    async def form(self: D, /, *args: P.args, **options: P.kwargs) -> T:
        return await self._driver.run_async(body(self, *args, **options))

    return _described(form, body, _returned(body), "async", "without blocking the event loop")


def stepwise(method: Method[D, P, T]) -> Method[D, P, Steps[T]]:
    """Return the form of a verb that is a generator, and stops before each part that may block."""
    body: Method[D, P, Turn[T]] = unwrap(method)

    def form(self: D, /, *args: P.args, **options: P.kwargs) -> Steps[T]:
        return (yield from self._driver.in_steps(body(self, *args, **options)))

    steps = GenericAlias(Generator, (None, None, _returned(body)))
    return _described(form, body, steps, "in_steps", "in steps: it stops before what may block")


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
