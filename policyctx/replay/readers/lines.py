"""`JsonLines`: a file of JSON lines, read one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.json_text import BOM, value_of
from policyctx.replay.readers.source import Source, outline_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Opened


class JsonLines(Source):
    """A record a line. A line that is no JSON, such as a torn last one, is counted."""

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        self._opened = opened

    def outlines(self) -> Iterator[object]:
        """Yield each record."""
        return map(outline_of, self.records())

    def records(self) -> Iterator[Any]:
        """Yield the value of each line that is JSON."""
        self.not_understood.clear()
        with self._opened() as file:
            for number, line in enumerate(file):
                text = line.removeprefix(BOM) if number == 0 else line
                if not text or text.isspace():
                    continue
                try:
                    yield value_of(text)
                except ValueError:
                    self.not_understood["line that is no JSON"] += 1
