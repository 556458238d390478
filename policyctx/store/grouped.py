"""`Grouped`: a map whose keys seldom have several values, and then in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


class Grouped(Generic[K, V]):
    """The values of each key, oldest first. A single one costs no list of its own."""

    def __init__(self) -> None:
        self._newest: dict[K, V] = {}
        self._all: dict[K, list[V]] = {}

    def __iter__(self) -> Iterator[K]:
        return iter(self._newest)

    def newest(self, key: K) -> V | None:
        """Return the value added last; None for none."""
        return self._newest.get(key)

    def all(self, key: K) -> Sequence[V]:
        """Return every value of a key; later changes do not show in it."""
        several = self._all.get(key)
        if several is not None:
            return tuple(several)
        return (self._newest[key],) if key in self._newest else ()

    def add(self, key: K, value: V) -> None:
        """Add a value behind those that the key has."""
        if key in self._newest:
            self._all.setdefault(key, [self._newest[key]]).append(value)
        self._newest[key] = value

    def remove(self, key: K, value: V) -> None:
        """Take a value out that the key has."""
        left = self._all.get(key, [])
        if left:
            left.remove(value)
            self._newest[key] = left[-1]
            if len(left) == 1:
                del self._all[key]
        else:
            del self._newest[key]
