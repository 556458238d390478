"""`Source`: one file as readers see it: JSON lines, a JSON document, or an archive of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.replay.readers.fields import Record

# Opens the file once more, to be read from its beginning.
Opened: TypeAlias = "Callable[[], BinaryIO]"


class Source(ABC):
    """The records of one file. Each pass begins anew, and nothing is kept of what was yielded."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What the names of its recordings begin with."""
        self.not_understood: Counter[str] = Counter()
        """What was found that is no record: how often, by what it is."""

    @abstractmethod
    def outlines(self) -> Iterator[object]:
        """Yield what a reader may know its format by.

        That is each record of JSON lines, each element of an array, and of any other document what
        `outline_of` leaves of it.
        """

    @abstractmethod
    def records(self) -> Iterator[Any]:
        """Yield the records: of lines each, of an array each element, else the whole document."""

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the elements of the list that stands at `keys` in a document; nothing by default.

        A list at the top of a large document is never in memory as a whole.
        """
        del keys
        return iter(())

    def field(self, *keys: str) -> Any:  # noqa: ANN401 - JSON holds any value
        """Return what stands at `keys` in a document; None where nothing does."""
        del keys

    def objects(self) -> Iterator[Record]:
        """Yield the records that are objects; other values are counted."""
        for record in self.records():
            if isinstance(record, dict):
                yield record
            else:
                self.not_understood["record that is no object"] += 1


def outline_of(document: object) -> object:
    """Return an object with no more than the first element of each list right in it."""
    if not isinstance(document, dict):
        return document
    return {key: value[:1] if isinstance(value, list) else value for key, value in document.items()}


def at(document: object, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON holds any value
    """Return what stands at `keys` in nested objects; None where nothing does."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document
