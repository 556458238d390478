"""`Source`: the records of one file, one at a time, whether it is JSON lines or one document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

from policyctx.replay.readers.lines import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.replay.readers.fields import Record

_BOM = b"\xef\xbb\xbf"


class Source:
    """A file of JSON lines; each pass over its records opens it anew."""

    def __init__(self, name: str, opened: Callable[[], BinaryIO]) -> None:
        self.name = name
        self.not_understood: Counter[str] = Counter()
        """Of the last pass: what is no record, by what it is."""
        self._opened = opened

    def records(self) -> Iterator[Any]:
        """Yield the value of each line that is JSON; what is none is counted."""
        self.not_understood.clear()
        with self._opened() as file:
            for number, line in enumerate(file):
                text = line.removeprefix(_BOM) if number == 0 else line
                if not text.strip():
                    continue
                try:
                    yield value_of(text)
                except ValueError:
                    self.not_understood["line that is no JSON"] += 1

    def objects(self) -> Iterator[Record]:
        """Yield the records that are objects; other values are counted."""
        for record in self.records():
            if isinstance(record, dict):
                yield record
            else:
                self.not_understood["record that is no object"] += 1
