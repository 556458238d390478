"""`StreamedDocument`: a JSON document that is too large to be in memory as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from policyctx.errors import MissingExtraError
from policyctx.replay.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from policyctx.replay.readers.source import Opened

_CUT = "document that ends in the middle, or goes on after its end"
_DEPTHS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}
_Events: TypeAlias = "Iterator[tuple[str, str, Any]]"


class StreamedDocument(Source):
    """A document whose lists are read element by element; raises `MissingExtraError`."""

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        self._opened = opened
        self._ijson = _ijson()
        self._is_array: bool | None = None

    def outlines(self) -> Iterator[object]:
        """Yield each element of an array; of an object, its outline as it grows."""
        if self._begins_with_array():
            yield from self._found("item")
            return
        with self._opened() as file:
            try:
                yield from _outlines(self._ijson, self._ijson.parse(file, use_float=True))
            except self._ijson.JSONError:
                return

    def records(self) -> Iterator[Any]:
        """Yield the elements of an array, or the object."""
        yield from self._found("item" if self._begins_with_array() else "")

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the elements of the list at `keys`."""
        yield from self._found(".".join((*keys, "item")))

    def field(self, *keys: str) -> Any:  # noqa: ANN401 - JSON holds any value
        """Return what stands at `keys`; the file is read until there."""
        return next(self._found(".".join(keys)), None)

    def _found(self, prefix: str) -> Iterator[Any]:
        with self._opened() as file:
            try:
                yield from self._ijson.items(file, prefix, use_float=True)
            except self._ijson.JSONError:
                self.not_understood[_CUT] = 1

    def _begins_with_array(self) -> bool:
        if self._is_array is None:
            with self._opened() as file:
                try:
                    event, _ = next(self._ijson.basic_parse(file))
                except self._ijson.JSONError:
                    event = ""
            self._is_array = event == "start_array"
        return self._is_array


def _ijson() -> ModuleType:
    try:
        import ijson  # noqa: PLC0415 - heavy, and seldom needed
    except ImportError as error:
        wanted = "a JSON document that is too large to be read as a whole"
        raise MissingExtraError(wanted, extra="replay") from error
    module: ModuleType = ijson
    return module


def _outlines(ijson: ModuleType, events: _Events) -> Iterator[object]:
    """Yield what is known of an object whenever that grows; of a list, its first element."""
    outline: dict[str, Any] = {}
    for prefix, event, key in events:
        if event == "map_key" and not prefix:
            outline[key] = _beginning(ijson, events)
            yield outline


def _beginning(ijson: ModuleType, events: _Events) -> Any:  # noqa: ANN401 - JSON
    _, event, value = next(events)
    if event != "start_array":
        return _built(ijson, events, event, value)
    _, event, value = next(events)
    return [] if event == "end_array" else [_built(ijson, events, event, value)]


def _built(ijson: ModuleType, events: _Events, event: str, value: object) -> Any:  # noqa: ANN401
    builder, depth = ijson.ObjectBuilder(), 0
    while True:
        builder.event(event, value)
        depth += _DEPTHS.get(event, 0)
        if depth == 0:
            return builder.value
        _, event, value = next(events)
