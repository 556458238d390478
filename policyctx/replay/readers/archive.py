"""`Archive`: a zip file of JSON files, seen as one document."""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.fields import mapping
from policyctx.replay.readers.json_text import value_of
from policyctx.replay.readers.source import Source, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Opened

# Not JSON; torn, or packed or locked in a way that is not known here.
_UNREADABLE = (
    ValueError, EOFError, NotImplementedError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error
)  # fmt: skip
MAGIC = b"PK\x03\x04"
# The file with the fields of the document, or that of one that was never finished.
_HEADS = ("header.json", "_journal/start.json")


class Archive(Source):
    """The files of a folder are the elements of a list by the folder's name; one at a time is read.

    Raises `zipfile.BadZipFile`. A file that cannot be read, or is no JSON, is counted.
    """

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        self._opened = opened
        with opened() as file, zipfile.ZipFile(file) as archive:
            self._names = archive.namelist()
            head = next((one for one in _HEADS if one in self._names), None)
            self._head = mapping(self._value(archive, head)) if head else {}

    def outlines(self) -> Iterator[object]:
        """Yield the fields, and an empty list for each folder."""
        folders = {name.split("/")[0] for name in self._names if "/" in name}
        yield {**{folder: [] for folder in folders}, **self._head}

    def records(self) -> Iterator[Any]:
        """Yield the fields."""
        yield self._head

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the value of each JSON file in the folder at `keys`."""
        folder = "/".join((*keys, ""))
        names = [name for name in self._names if name.startswith(folder) and name.endswith(".json")]
        with self._opened() as file, zipfile.ZipFile(file) as archive:
            for name in names:
                value = self._value(archive, name)
                if value is not None:
                    yield value

    def field(self, *keys: str) -> Any:  # noqa: ANN401 - JSON holds any value
        """Return what stands at `keys` in the fields."""
        return at(self._head, keys)

    def _value(self, archive: zipfile.ZipFile, name: str) -> Any:  # noqa: ANN401 - JSON
        try:
            return value_of(archive.read(name))
        except _UNREADABLE:
            self.not_understood["file that is no JSON, or packed in an unknown way"] += 1
            return None
