"""From files and objects to recordings: which reader knows a file, by what is in it."""

from __future__ import annotations

import errno
import io
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from policyctx.errors import MissingExtraError, PolicyctxError, UnreadableRecordingError
from policyctx.replay.executing import unexpected
from policyctx.replay.readers.registered import LISTS, Reader, readers
from policyctx.replay.readers.source import (
    Database,
    JsonLines,
    Opened,
    Source,
    ZipArchive,
    source_of,
)
from policyctx.replay.readers.values import Record, mapping, objects, word
from policyctx.replay.recording import NOTHING_UNREAD, Recording, Unread
from policyctx.resources import open_file
from policyctx.store.backend import StoreUrl
from policyctx.store.remote.client import ObjectClient

# Seconds for one request, repetitions included.
_TIMEOUT_S = 60.0
# A smaller object is fetched at once, and kept while it is read.
_FETCHED_WHOLE = 16 * 2**20
_PIECE = 4 * 2**20
PAGE = "docs/recordings.md lists the formats, and shows how to add one"
PIPE_REFUSED = "it is a pipe, which can be read only once; save it as a file"
MOST_UNREAD = 0.1
"""The share of a file's records, and of its bytes, that may be without meaning to its reader."""
# So many records are looked at before a file is taken for a list of messages.
_FIRST = 50
# So many records show whether a reader understands a file; until then no recording is handed out.
_ENOUGH = 2_000
_HEAD_BYTES = 2**20
_RECORDS = 50
# How many names of tables, keys and types are shown.
_SHOWN = 8
_PACKED = {
    b"\x1f\x8b": "a gzip file, which has to be unpacked first",
    b"\x28\xb5\x2f\xfd": "a Zstandard file, which has to be unpacked first",
    b"PAR1": "a Parquet file, whose rows have to be written as JSON lines first",
}


class ObjectUrl(NamedTuple):
    """An object in an object store, or all objects below a prefix."""

    bucket: str
    """Such as `s3://bucket`."""
    key: str

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    def size(self) -> int:
        """Return the bytes of the object. Raises `OSError`."""
        return _bucket(self.bucket).info(self.key).size

    def below(self) -> Iterator[tuple[ObjectUrl, int]]:
        """Yield each object below the prefix with its size in bytes, sorted. Raises `OSError`."""
        for key, size in _bucket(self.bucket).sizes(self.key):
            yield ObjectUrl(self.bucket, key), size


class Opener:
    """Opens an object as a file, several times. Raises `OSError`."""

    def __init__(self, url: ObjectUrl) -> None:
        self._url = url
        self._size: int | None = None
        self._content: bytes | None = None

    def __call__(self) -> BinaryIO:
        """Return the object as a file at its beginning."""
        bucket = _bucket(self._url.bucket)
        if self._size is None:
            self._size = self._url.size()
        if self._size > _FETCHED_WHOLE:
            return io.BufferedReader(_ObjectFile(bucket, self._url.key, self._size), _PIECE)
        if self._content is None:
            self._content = bucket.get(self._url.key)
        return io.BytesIO(self._content)


class _Bucket(ObjectClient):
    """Requests that only recordings need."""

    def sizes(self, prefix: str) -> list[tuple[str, int]]:
        """Return each object below a prefix with its size in bytes, sorted."""
        found = self._tried(prefix, lambda: [*self._api.list(self._store, prefix or None)])
        return sorted((one["path"], int(one["size"])) for chunk in found for one in chunk)

    def piece(self, key: str, start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` to before `end`."""
        get = self._api.get_range
        return bytes(self._tried(key, lambda: get(self._store, key, start=start, end=end)))


@lru_cache(maxsize=8)  # a client keeps its connections
def _bucket(url: str) -> _Bucket:
    return _Bucket(StoreUrl(url), timeout=_TIMEOUT_S)


class _ObjectFile(io.RawIOBase):
    """An object as a file, of which each read is a request."""

    def __init__(self, bucket: _Bucket, key: str, size: int) -> None:
        super().__init__()
        self._bucket, self._key, self._size = bucket, key, size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read as many bytes as the buffer takes, up to the end."""
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        piece = self._bucket.piece(self._key, self._position, end)
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


@dataclass(slots=True)
class Understanding:
    """How much of a file a reader understands: it is the one place that decides."""

    records: int = 0
    not_understood: Counter[str] = field(default_factory=Counter)
    unread: Unread = NOTHING_UNREAD

    def add(self, other: Recording | Source) -> None:
        """Add what one of the recordings, or the file itself, says."""
        missed = Counter(other.not_understood)
        self.records += missed.total() if isinstance(other, Source) else other.records
        self.not_understood += missed
        self.unread += other.unread

    def is_enough(self, size: int) -> bool:
        """Whether no more than a tenth of the records, and of `size` bytes, is not understood."""
        return self.unread.records <= MOST_UNREAD * self.records and (
            not size or self.unread.bytes <= MOST_UNREAD * size
        )

    def in_words(self, size: int) -> str:
        """Say how much is not understood, by kind."""
        unread, of = self.unread, []
        if self.records:
            of.append(f"{unread.records / self.records:.0%} of the records")
        if size:
            of.append(f"{min(1, unread.bytes / size):.0%} of the bytes")
        return f"{' and '.join(of)} are not understood: {unread_in_words(self.not_understood)}"


def unread_in_words(counts: Mapping[str, int]) -> str:
    """Return the counts of what is not understood, the most frequent first."""
    most = Counter(counts).most_common()
    return ", ".join(f"{number:,} × {what}" for what, number in most)


def recordings_in(
    path: Path | ObjectUrl, *, name: str | None = None, partial: bool = False
) -> Iterator[Recording]:
    """Yield the recordings of a file or an object; their names begin with `name`.

    By default that is its own name.

    The format shows in the content. A recording is read more than once, so pipes, such as a
    shell's `<(…)`, are refused without waiting for a writer. Raises `UnreadableRecordingError`,
    also for a file of which more than `MOST_UNREAD` is not understood, unless it is to be read in
    part. A file with many recordings may yield some of them before.
    """
    yield from _recordings(str(path), name or path.name, _opener(path), partial=partial)


def recordings_of(
    content: bytes, name: str, *, path: Path | None = None, partial: bool = False
) -> Iterator[Recording]:
    """Yield the recordings of what was read already, as `recordings_in` does of a file.

    `path` is where it was read, if other files beside it may belong to it.
    """
    yield from _recordings(name, name, lambda: _Content(content, path), partial=partial)


class _Content(io.BytesIO):
    """What was read of a file, with the name of that."""

    def __init__(self, content: bytes, path: Path | None) -> None:
        super().__init__(content)
        self.name = str(path or "")


def _opener(path: Path | ObjectUrl) -> Opened:
    return partial(_opened, path) if isinstance(path, Path) else Opener(path)


def _opened(path: Path) -> BinaryIO:
    if path.is_fifo():
        raise OSError(errno.EINVAL, PIPE_REFUSED, str(path))
    return open_file(path)


def _source(path: str, name: str, opened: Opened) -> Source:
    try:
        return source_of(name, opened)
    except MissingExtraError as error:
        raise UnreadableRecordingError(path, str(error)) from error
    except (ValueError, sqlite3.Error) as error:
        raise UnreadableRecordingError(path, str(error), is_other=True) from error


def _recordings(path: str, name: str, opened: Opened, *, partial: bool) -> Iterator[Recording]:
    refusal: UnreadableRecordingError | None = None
    given = 0
    try:
        source = _source(path, name, opened)
        for reader in _recognising(source):
            try:
                for recording in _claimed(path, source, reader, partial=partial):
                    yield recording
                    given += 1
            except _NotUnderstoodError as error:
                refusal = refusal or error
                if given:
                    break
            else:
                return
        looks = appearance(opened, source)
    except PolicyctxError:
        raise
    except OSError as error:
        raise UnreadableRecordingError(path, error.strerror or str(error)) from error
    except Exception as error:  # a defect of a reader
        raise UnreadableRecordingError(path, unexpected(error)) from error
    if refusal is not None:
        why = f"{looks.sentence}; read as {refusal.format}, {refusal.why}; --partial reads the rest"
        raise UnreadableRecordingError(
            path, f"{why}; {PAGE}", format_=refusal.format, is_seen=looks.is_seen
        )
    why = _unknown(source, looks.sentence)
    raise UnreadableRecordingError(path, why, is_other=True, is_seen=looks.is_seen)


class _NotUnderstoodError(UnreadableRecordingError):
    """A reader does not understand enough of a file."""


def _claimed(path: str, source: Source, reader: Reader, *, partial: bool) -> Iterator[Recording]:
    """Yield the recordings of a file that a reader understands; raises `_NotUnderstoodError`."""
    source.begin()
    held: deque[Recording] = deque()
    found = Understanding()
    for recording in reader.recordings(source):
        held.append(recording)
        found.add(recording)
        if partial or (found.records > _ENOUGH and found.is_enough(0)):
            while len(held) > 1:
                yield held.popleft()
    found.add(source)
    if not (partial or found.is_enough(source.bytes)):
        raise _NotUnderstoodError(path, found.in_words(source.bytes), format_=reader.FORMAT)
    if not held:
        raise UnreadableRecordingError(path, "no message is in it", format_=reader.FORMAT)
    last = held.pop()
    yield from held
    yield _with_missed(last, source.not_understood)


def _with_missed(recording: Recording, missed: Counter[str]) -> Recording:
    """Let a file's last recording tell what of the file is none; that is known at its end."""
    return replace(
        recording,
        records=recording.records + missed.total(),
        not_understood=dict(missed + Counter(recording.not_understood)),
    )


def _recognising(source: Source) -> Iterator[Reader]:
    """Yield the readers that know a record, in the order of the records.

    Lists of messages come behind what knows one of the first records: programs write other things
    around their messages.
    """
    known, lists = [*readers()], list[Reader]()
    for position, outline in enumerate(source.outlines()):
        if position == _FIRST:
            yield from lists
            lists = []
        for reader in [reader for reader in known if reader.recognises(outline)]:
            known.remove(reader)
            if reader.FORMAT in LISTS and position < _FIRST:
                lists.append(reader)
            else:
                yield reader
    yield from lists


def _unknown(source: Source, looks: str) -> str:
    """Say what a file is that no reader knows a record of."""
    if any(True for _ in source.outlines()):
        formats = ", ".join(reader.FORMAT for reader in readers())
        return f"{looks}; none of the known formats: {formats}; {PAGE}"
    found_any = source.not_understood
    return f"{looks}; neither JSON nor JSON lines; {PAGE}" if found_any else "it is empty"


class Appearance(NamedTuple):
    """What a file looks like."""

    sentence: str
    is_seen: bool = True
    """Whether this says more than that it is some text or some JSON document."""


def appearance(opened: Opened, source: Source) -> Appearance:
    """Return what a file looks like."""
    with opened() as file:
        head = file.read(_HEAD_BYTES)
    for magic, what in _PACKED.items():
        if head.startswith(magic):
            return Appearance(what)
    if isinstance(source, Database):
        agent = _named({f"table {name}" for name in source.tables})
        return Appearance(f"a SQLite database{_with('table', sorted(source.tables))}{agent}")
    found = list(islice(source.outlines(), _RECORDS))
    records = [record for record in found if isinstance(record, dict)]
    names = list(dict.fromkeys(key for record in records for key in record))
    types = sorted({kind for record in records for kind in _types(record)})
    marks = {f"key {name}" for name in names} | {f"type {kind}" for kind in types}
    marks |= {f"first {' '.join(names[:2])}", f"text {head.lstrip()[:12].decode(errors='replace')}"}
    agent, keys = _named(marks), _with("key", names)
    if isinstance(source, ZipArchive):
        return Appearance(f"an archive{keys}{agent}", is_seen=bool(agent))
    if not found:
        is_binary = b"\0" in head
        what = "a binary file" if is_binary else "a text"
        return Appearance(f"{what}{agent}", is_seen=bool(agent) or is_binary)
    if isinstance(source, JsonLines):
        of_types = _with("type", types).replace(" with ", ", of ")
        return Appearance(f"JSON lines{keys}{of_types}{agent}")
    return Appearance(f"a JSON document{keys}{agent}", is_seen=bool(agent))


def _types(record: Record) -> Iterator[str]:
    blocks = objects(mapping(record.get("message")).get("content")) or objects(
        record.get("content")
    )
    for one in (record, mapping(record.get("raw")), *blocks):
        if kind := word(one.get("type")):
            yield kind


def _with(what: str, names: list[str]) -> str:
    """Return ` with the tables a, b`; nothing without names."""
    if not names:
        return ""
    more = ", …" if len(names) > _SHOWN else ""
    many = "s" if len(names) > 1 else ""
    return f" with the {what}{many} {', '.join(names[:_SHOWN])}{more}"


def _named(marks: set[str]) -> str:
    """Return whose file it is, and what of that agent can be read; nothing for an unknown one."""
    return next((f": {said}" for wanted, said in _AGENTS if wanted <= marks), "")


_CLINE = (
    "the screen of Cline, Roo Code or Kilo Code; api_conversation_history.json beside it has the"
    " messages"
)
# By what its tables, keys and types are: whose a file is, and how the session can be read, if so.
_AGENTS: tuple[tuple[set[str], str], ...] = (
    ({"table ItemTable"}, "Cursor's or VS Code's state; it has no prompts as they were sent"),
    ({"table cursorDiskKV"}, "Cursor's chats; they have no prompts as they were sent"),
    ({"table checkpoints", "table writes"}, "LangGraph's checkpoints; write the state's messages"),
    ({"table sessions", "table messages", "table files"}, "Crush's sessions, which are not read"),
    ({"table sessions", "table messages"}, "sessions, perhaps of Goose, which are not read"),
    (
        {"key resourceLogs"},
        "logs of OpenTelemetry; the messages of model calls are read from spans",
    ),
    ({"key ts", "key type", "key say"}, _CLINE),
    ({"key ts", "key type", "key ask"}, _CLINE),
    ({"type agent.tool_use"}, "events of Claude Managed Agents, which are not read"),
    ({"type session_start", "type message"}, "a session of Droid, which is not read"),
    ({"type context.append_message"}, "a session of Kimi Code, which is not read"),
    ({"type toolRequest"}, "a session of Goose, which is not read"),
    (
        {"first role message"},
        "a transcript of Cursor; it lacks usage and most results, so it cannot be replayed",
    ),
    (
        {"text # aider chat"},
        "Aider's history; it has no prompts as they were sent, so it cannot be replayed",
    ),
)


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among `paths` and in the folders among them, sorted within each folder.

    A folder that cannot be listed is yielded itself, so that reading it reports why, and so is what
    is no regular file, such as a device or a broken link. In a folder, pipes are left out and links
    to folders are not followed.
    """
    waiting = [*paths][::-1]
    while waiting:
        path = waiting.pop()
        try:
            inside = sorted(path.iterdir(), reverse=True) if is_folder(path) else None
        except OSError:
            inside = None
        if inside is None:
            yield path
        else:
            waiting += filter(_is_walked, inside)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; one that cannot be looked up is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_walked(path: Path) -> bool:
    try:
        return not path.is_fifo() and not (path.is_dir() and path.is_symlink())
    except OSError:
        return True
