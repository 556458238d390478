"""`ZipArchive`: a zip file of JSON files, seen as one document."""

from __future__ import annotations

import errno
import io
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
# Unpacked bytes: of one file, which is in memory as a whole, and of all that one pass reads.
MOST_BYTES = 128 * 2**20
MOST_BYTES_IN_ALL = 2**30
# Bytes unpacked at once; small, as some methods of packing give a thousand times of it.
_PIECE = 4096
# The file with the fields of the document, or that of one that was never finished.
_HEADS = ("header.json", "_journal/start.json")


class ZipArchive(Source):
    """The files of a folder are the elements of a list by the folder's name; one at a time is read.

    Raises `zipfile.BadZipFile`, and `OSError` for files that unpack to more than `MOST_BYTES` each
    or `MOST_BYTES_IN_ALL` together, before any of them is read. A file that cannot be read, or is
    not JSON, is counted.
    """

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        self._opened = opened
        with opened() as file, zipfile.ZipFile(file) as archive:
            self._names = archive.namelist()
            heads = [one for one in _HEADS if one in self._names][:1]
            _require_bounded(archive, heads)
            self._head = mapping(self._value(archive, heads[0])) if heads else {}

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
            _require_bounded(archive, names)
            for name in names:
                value = self._value(archive, name)
                if value is not None:
                    yield value

    def field(self, *keys: str) -> Any:  # noqa: ANN401 - JSON holds any value
        """Return what stands at `keys` in the fields."""
        return at(self._head, keys)

    def _value(self, archive: zipfile.ZipFile, name: str) -> Any:  # noqa: ANN401 - JSON
        try:
            return value_of(_unpacked(archive, name))
        except _UNREADABLE:
            self.not_understood["file that is no JSON, or packed in an unknown way"] += 1
            return None


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return no more bytes of a file than the archive declares.

    `ZipFile.read` would unpack all that is there before it looks at the declared size.
    """
    text = io.BytesIO()
    with archive.open(name) as file:
        while piece := file.read(_PIECE):
            text.write(piece)
    return text.getvalue()


def _require_bounded(archive: zipfile.ZipFile, names: list[str]) -> None:
    """Refuse files whose declared sizes are too large.

    A file that is larger than declared is unpacked as far as declared, and then found damaged.
    """
    total = 0
    for name in names:
        size = archive.getinfo(name).file_size
        total += size
        if size > MOST_BYTES:
            raise _too_large(f"{name} unpacks to {size:,} bytes", MOST_BYTES)
    if total > MOST_BYTES_IN_ALL:
        raise _too_large(f"its files unpack to {total:,} bytes", MOST_BYTES_IN_ALL)


def _too_large(sentence: str, most: int) -> OSError:
    return OSError(errno.EFBIG, f"{sentence}; the limit is {most // 2**20:,} MiB")
