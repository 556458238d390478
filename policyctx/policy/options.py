"""Options of the public functions: an unknown one is rejected, with the nearest name."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import ParamSpec, TypeVar, cast

from policyctx.errors import UnknownOptionError

P = ParamSpec("P")
R = TypeVar("R")

_NONE_REMOVED: Mapping[str, str] = MappingProxyType({})


def checks_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function, or a method, so that it rejects unknown keyword arguments by name.

    The call raises `UnknownOptionError` instead of Python's own `TypeError`. A class is named in
    the error by its own name.
    """
    code = function.__code__
    known = [
        n for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if n != "self"
    ]
    called = function.__qualname__.removesuffix(".__init__")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def checked_async(*args: P.args, **kwargs: P.kwargs) -> object:
            check_options(called, kwargs, known)
            return await function(*args, **kwargs)

        return cast("Callable[P, R]", checked_async)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_options(called, kwargs, known)
        return function(*args, **kwargs)

    return checked


def check_options(
    function: str,
    given: Iterable[str],
    known: Iterable[str],
    *,
    removed: Mapping[str, str] = _NONE_REMOVED,
) -> None:
    """Raise `UnknownOptionError` for the first name in `given` that is not in `known`.

    `function` is the name of the function that was called. `removed` gives, by the name of an
    option that the function no longer has, the sentence that says what to do instead. A name in
    camelCase counts as its snake_case form in suggestions.
    """
    known = list(known)
    for name in given:
        if name not in known:
            from policyctx.policy.diagnosing import nearest  # noqa: PLC0415 - loads the models

            likely = _snake_case(name)
            why = removed.get(likely, "")
            near = () if why else nearest(likely, known)
            raise UnknownOptionError(function, name, known, next(iter(near), None), why)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
