"""`Document`: one JSON document that is in memory as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.source import Source, at, outline_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class Document(Source):
    """An array, whose elements are the records, or one object."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(name)
        self._value = value

    def outlines(self) -> Iterator[object]:
        """Yield the outline of each record."""
        return map(outline_of, self.records())

    def records(self) -> Iterator[Any]:
        """Yield the elements of an array, or the object."""
        return iter(self._value if isinstance(self._value, list) else [self._value])

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the elements of the list at `keys`."""
        found = self.field(*keys)
        return iter(found if isinstance(found, list) else ())

    def field(self, *keys: str) -> Any:  # noqa: ANN401 - JSON holds any value
        """Return what stands at `keys`."""
        return at(self._value, keys)
