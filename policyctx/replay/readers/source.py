"""`Source`: one file as readers see it: JSON lines, a JSON document, or a zip archive of documents.

The first bytes of a file show which it is, never its name. A document that is too large for memory
is streamed; the unpacked size of an archive is bounded.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sqlite3
import weakref
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TypeAlias

from pydantic_core import from_json

from policyctx.definitions.items import PlainValue
from policyctx.errors import MissingExtraError
from policyctx.replay.readers.building import RecordingNames
from policyctx.replay.readers.values import Record, mapping, size_of
from policyctx.replay.recording import Unread
from policyctx.resources import open_file

# Opens the file once more, to be read from its beginning.
Opened: TypeAlias = "Callable[[], BinaryIO]"
# How a line ends that is not cut off.
_ENDS = (b"}\n", b"}", b"}\r\n")
BOM = b"\xef\xbb\xbf"
_DEPTH = 200
_CUT = "document that ends in the middle, or goes on after its end"
_DEPTHS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}
_Events: TypeAlias = "Iterator[tuple[str, str, Any]]"
SQLITE = b"SQLite format 3\0"
# Bytes of a document that is read as a whole; a larger one is streamed, which is slower.
READ_WHOLE = 16 * 2**20


class Source(ABC):
    """The records of one file. Each pass begins anew, and nothing is kept of what was yielded."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What the names of its recordings begin with."""
        self.bytes = 0
        """What it holds, unpacked."""
        self.not_understood: Counter[str] = Counter()
        """What was found that is not a record: how often, by what it is."""
        self.unread = Unread()
        """How much that is, except a last line that is cut off."""
        self.path: Path | None = None
        """Where it is, if it is a file here."""

    def begin(self) -> None:
        """Begin a pass: nothing is counted yet."""
        self.not_understood.clear()
        self.unread = Unread()

    def pass_over(self, what: str, record: object = None) -> None:
        """Count what is not a record of the reader's format."""
        self.not_understood[what] += 1
        self.unread += Unread(1, size_of(record))

    def beside(self, part: str, other: str) -> Source | None:
        """Return the file whose name has `other` in the place of `part`; None without one.

        It is not opened through a link. Raises `OSError`.
        """
        path = self.path and self.path.with_name(self.path.name.replace(part, other))
        if path is None or path == self.path or path.is_symlink() or not path.is_file():
            return None
        return source_of(path.name, partial(open_file, path))

    def names(self) -> RecordingNames:
        """Return the names of the recordings, which a reader takes one after the other."""
        return RecordingNames(self.name)

    def outlines(self) -> Iterator[object]:
        """Yield what a reader may know its format by: what `outline_of` leaves of each record."""
        return map(outline_of, self.records())

    @abstractmethod
    def records(self) -> Iterator[Any]:
        """Yield the records: of lines each, of an array each element, else the whole document."""

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the elements of the list that is at `keys` in a document; nothing by default.

        A list at the top of a large document is never in memory as a whole.
        """
        del keys
        return iter(())

    def field(self, *keys: str) -> PlainValue:
        """Return what is at `keys` in a document; None where nothing does."""
        del keys

    def glanced(self, *marks: bytes) -> Iterator[Any]:
        """Yield the records whose text has one of the marks, perhaps others too.

        Lines without a mark are not parsed; one that is cut off is counted.
        """
        del marks
        return self.records()

    def objects(self, *marks: bytes) -> Iterator[Record]:
        """Yield the records that are objects, or those of `glanced`; other values are counted."""
        for record in self.glanced(*marks) if marks else self.records():
            if isinstance(record, dict):
                yield record
            else:
                self.pass_over("record that is not an object", record)


def outline_of(document: object) -> object:
    """Return an object with no more than the first element of each list right in it."""
    if not isinstance(document, dict):
        return document
    return {key: value[:1] if isinstance(value, list) else value for key, value in document.items()}


def at(document: object, keys: tuple[str, ...]) -> PlainValue:
    """Return what is at `keys` in nested objects; None where nothing does."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def value_of(text: bytes | str) -> PlainValue:
    """Return what a JSON text says; raises `ValueError`, also for what is nested too deeply.

    Of repeated keys the last counts. What only Python's own parser takes is taken: lone surrogates
    and `NaN`.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError as error:
        if "recursion limit" in str(error):
            raise ValueError("nested too deeply") from error
    except TypeError:
        # The quick parser takes no `str` with a lone surrogate in it.
        pass
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _is_deep(value):
        raise ValueError("nested too deeply")
    return value


def parsed(value: PlainValue) -> PlainValue:
    """Return a value that may be JSON text; None for a text that is none."""
    if not isinstance(value, str):
        return value
    try:
        return value_of(value)
    except ValueError:
        return None


def _is_deep(value: object) -> bool:
    """Whether a value is nested more deeply than the quick parser takes it."""
    level = [value]
    for _ in range(_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class JsonLines(Source):
    """A record a line. A line that is not JSON, such as a torn last one, is counted."""

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        self._opened = opened

    def records(self) -> Iterator[Any]:
        """Yield the value of each line that is JSON."""
        return self.glanced(b"")

    def glanced(self, *marks: bytes) -> Iterator[Any]:
        """Yield the value of each line that has one of the marks and is JSON."""
        self.begin()
        with self._opened() as file:
            lines = chain((file.readline().removeprefix(BOM),), file)
            for text in lines:
                if not any(mark in text for mark in marks) and text.endswith(_ENDS):
                    continue
                if not text or text.isspace():
                    continue
                try:
                    value = value_of(text)
                except ValueError:
                    self.not_understood["line that is not JSON"] += 1
                    if text.endswith(b"\n"):  # not one that was being written
                        self.unread += Unread(1, len(text))
                else:
                    yield value


class Document(Source):
    """An array, whose elements are the records, or one object."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(name)
        self._value = value

    def records(self) -> Iterator[Any]:
        """Yield the elements of an array, or the object."""
        return iter(self._value if isinstance(self._value, list) else [self._value])

    def elements(self, *keys: str) -> Iterator[Any]:
        """Yield the elements of the list at `keys`."""
        found = self.field(*keys)
        return iter(found if isinstance(found, list) else ())

    def field(self, *keys: str) -> PlainValue:
        """Return what is at `keys`."""
        return at(self._value, keys)


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

    def field(self, *keys: str) -> PlainValue:
        """Return what is at `keys`; the file is read until there."""
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


def _beginning(ijson: ModuleType, events: _Events) -> PlainValue:
    _, event, value = next(events)
    if event != "start_array":
        return _built(ijson, events, event, value)
    _, event, value = next(events)
    return [] if event == "end_array" else [_built(ijson, events, event, value)]


def _built(ijson: ModuleType, events: _Events, event: str, value: object) -> PlainValue:
    builder, depth = ijson.ObjectBuilder(), 0
    while True:
        builder.event(event, value)
        depth += _DEPTHS.get(event, 0)
        if depth == 0:
            return builder.value
        _, event, value = next(events)


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
            self.bytes = sum(one.file_size for one in archive.infolist())
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
                if (value := self._value(archive, name)) is not None:
                    yield value

    def field(self, *keys: str) -> PlainValue:
        """Return what is at `keys` in the fields."""
        return at(self._head, keys)

    def _value(self, archive: zipfile.ZipFile, name: str) -> PlainValue:
        try:
            return value_of(_unpacked(archive, name))
        except _UNREADABLE:
            self.pass_over("file that is not JSON, or packed in an unknown way")
            return None


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return no more bytes of a file than the archive declares.

    `ZipFile.read` would unpack all that is there before it looks at the declared size.
    """
    text = io.BytesIO()
    with archive.open(name) as file:
        shutil.copyfileobj(file, text, _PIECE)
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


class Database(Source):
    """The tables of a SQLite database; raises `sqlite3.Error`.

    A file is opened for reading alone, with the journal beside it; other content is in memory.
    """

    def __init__(self, name: str, opened: Opened) -> None:
        super().__init__(name)
        with opened() as file:
            path = Path(str(getattr(file, "name", "")))
            if path.is_file():
                is_alone = not path.with_name(f"{path.name}-wal").exists()
                how = "immutable=1" if is_alone else "mode=ro"  # an immutable one needs no files
                self._database = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)
            else:
                self._database = sqlite3.connect(":memory:")
                # Bytes 18 and 19 say that there is a journal, which is not here.
                content = file.read()
                self._database.deserialize(content[:18] + b"\1\1" + content[20:])
        weakref.finalize(self, self._database.close)
        self._database.row_factory = sqlite3.Row
        tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        self.tables = {str(row["name"]) for row in tables}

    def records(self) -> Iterator[Any]:
        """Yield an empty list for each table."""
        yield {table: [] for table in sorted(self.tables)}

    def rows(self, query: str, *values: object) -> Iterator[Record]:
        """Yield the rows that a query gives; raises `OSError`."""
        try:
            yield from map(dict, self._database.execute(query, values))
        except sqlite3.Error as error:
            raise OSError(errno.EIO, f"SQLite: {error}") from error


def source_of(name: str, opened: Opened, *, read_whole: int = READ_WHOLE) -> Source:
    """Return the file as a source; raises `ValueError` for an archive that cannot be read.

    A file that is not JSON is JSON lines of which none can be read.
    """
    with opened() as file:
        path = Path(str(getattr(file, "name", "")))
    source = _source_of(name, opened, read_whole)
    source.path = path if path.is_file() else None
    return source


def _source_of(name: str, opened: Opened, read_whole: int) -> Source:
    with opened() as file:
        head = file.read(len(SQLITE))
        if head.startswith(MAGIC):
            try:
                return ZipArchive(name, opened)
            except zipfile.BadZipFile as error:
                raise ValueError(f"an archive that cannot be read: {error}") from error
        if head == SQLITE:
            database = Database(name, opened)
            database.bytes = file.seek(0, os.SEEK_END)
            return database
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= read_whole:
            source = _small(name, opened, file)
            source.bytes = size
            return source
        # A pretty-printed document has no line that is a value by itself so early, but in a list.
        lines = (file.readline(read_whole) for _ in range(2))
        is_lines = any(_is_json(line) for line in lines)
        file.seek(0)
        is_list = file.read(len(BOM) + 1).removeprefix(BOM).startswith(b"[\n")
    large = (JsonLines if is_lines and not is_list else StreamedDocument)(name, opened)
    large.bytes = size
    return large


def _small(name: str, opened: Opened, file: BinaryIO) -> Source:
    if _is_json(file.readline()) and any(map(bytes.strip, file)):
        return JsonLines(name, opened)
    file.seek(0)
    try:
        return Document(name, value_of(file.read().removeprefix(BOM)))
    except ValueError:
        return JsonLines(name, opened)


def _is_json(line: bytes) -> bool:
    try:
        value_of(line.removeprefix(BOM))
    except ValueError:
        return False
    return True
