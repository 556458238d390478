"""`Memo`: what functions of texts found, remembered while one recording is replayed again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class Memo:
    """Functions that find the same for the same arguments, each computed once.

    A policy decides which texts of a recording are compared, and not what is in them.
    """

    def __init__(self) -> None:
        self._known: dict[Callable[..., object], Callable[..., object]] = {}

    def of(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function that remembers what it found; its arguments are hashable."""
        if function not in self._known:
            self._known[function] = cache(function)
        return cast("Callable[P, T]", self._known[function])
