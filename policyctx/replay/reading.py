"""From files and ranges of lines to recordings: which reader knows a file, by what is in it."""

from __future__ import annotations

import errno
import io
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from policyctx.errors import (
    MissingExtraError,
    PolicyctxError,
    ReaderError,
    UnreadableRecordingError,
)
from policyctx.replay.executing.executor import unexpected
from policyctx.replay.objects import ObjectUrl, Opener
from policyctx.replay.readers.appearance import PAGE, appearance
from policyctx.replay.readers.building import RecordingNames
from policyctx.replay.readers.registered import LISTS, Reader, readers
from policyctx.replay.readers.source import BOM, JsonLines, Opened, Source, source_of
from policyctx.replay.recording import NOTHING_UNREAD, Recording, Unread
from policyctx.resources import open_file


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of a file, from `start` to before `end`, and the format of the file."""

    format: str
    start: int
    end: int


@dataclass(slots=True)
class Understanding:
    """How much of a file a reader understands: it is the one place that decides."""

    records: int = 0
    not_understood: Counter[str] = field(default_factory=Counter)
    unread: Unread = NOTHING_UNREAD

    def add(self, other: Recording | Source | Understanding) -> None:
        """Add what one of the recordings, the file itself, or another range of it says."""
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


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found in a range."""

    names: tuple[str | None, ...]
    """For each recording what follows `#` in its name; None for its number in the file."""
    missed: Counter[str]
    """What was found that is not a record, as `Source.not_understood`."""
    understanding: Understanding
    stand_alone: bool
    """Whether each record is a recording by itself, or part of none."""


@dataclass(frozen=True, slots=True)
class NamedRange:
    """A range whose recordings have their names."""

    range: ByteRange
    names: tuple[str, ...]
    missed: Mapping[str, int] | None = None
    """What the last recording of the file tells of all ranges; None for other ranges."""


class LineRange(JsonLines):
    """The lines that begin in a range."""

    def __init__(self, name: str, opened: Opened, of: ByteRange, names: RecordingNames) -> None:
        super().__init__(name, opened)
        self._of = of
        self._names = names

    def names(self) -> RecordingNames:
        """Return the names that were given."""
        return self._names

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        position = file.seek(max(0, self._of.start - 1))
        if self._of.start:
            # What remains of the line that began before; one that ends right there has no rest.
            position += len(file.readline())
        while position < self._of.end and (line := file.readline()):
            yield line.removeprefix(BOM) if position == 0 else line
            position += len(line)


def surveyed(name: str, opened: Opened, of: ByteRange, reader: Reader) -> Survey:
    """Read a range and keep no recording. Raises `OSError`."""
    noted = _NotedNames()
    source = _SurveyedLines(name, opened, of, noted)
    source.stands_alone = getattr(reader, "stands_alone", None)
    found = Understanding()
    for recording in reader.recordings(source):
        found.add(recording)
        if not source.stand_alone:
            break
    found.add(source)
    return Survey(tuple(noted.noted), source.not_understood, found, source.stand_alone)


def named_ranges(
    name: str, ranges: Sequence[ByteRange], surveys: Sequence[Survey], *, partial: bool = False
) -> list[NamedRange] | None:
    """Return the ranges that have recordings, named as in the whole file.

    None if the file cannot be read in ranges, or has no recordings, or is not understood enough.
    """
    found_in_all = Understanding()
    for survey in surveys:
        found_in_all.add(survey.understanding)
    size = max((of.end for of in ranges), default=0)
    if not all(survey.stand_alone for survey in surveys):
        return None
    if not partial and not found_in_all.is_enough(size):
        return None
    names, missed = RecordingNames(name), Counter[str]()
    found: list[NamedRange] = []
    for of, survey in zip(ranges, surveys, strict=True):
        missed += survey.missed
        given = tuple(
            names.numbered() if said is None else names.after(said) for said in survey.names
        )
        if given:
            found.append(NamedRange(of, given))
    if not found:
        return None
    last = found[-1]
    return [*found[:-1], NamedRange(last.range, last.names, dict(missed))]


class GivenNames(RecordingNames):
    """Names that are known. Raises `OSError` when the file has more recordings than names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._left = list(reversed(names))

    def after(self, said: str) -> str:
        """Return the next name."""
        del said
        if not self._left:
            raise changed()
        return self._left.pop()

    def numbered(self) -> str:
        """Return the next name."""
        return self.after("")

    @property
    def is_complete(self) -> bool:
        """Whether each name is taken."""
        return not self._left


def changed() -> OSError:
    """Return the error for a file that is not what it was when it was surveyed."""
    return OSError(errno.EIO, "it has changed since it was surveyed")


class _NotedNames(RecordingNames):
    """Notes what the names are made of."""

    def __init__(self) -> None:
        self.noted: list[str | None] = []

    def after(self, said: str) -> str:
        self.noted.append(said)
        return ""

    def numbered(self) -> str:
        self.noted.append(None)
        return ""


class _SurveyedLines(LineRange):
    """Looks whether each record stands alone."""

    stands_alone: Callable[[object], bool] | None = None
    stand_alone = True

    def records(self) -> Iterator[Any]:
        for record in super().records():
            if self.stands_alone is None or not self.stands_alone(record):
                self.stand_alone = False
                return
            yield record


PIPE_REFUSED = "it is a pipe, which can be read only once; save it as a file"


MOST_UNREAD = 0.1
"""The share of a file's records, and of its bytes, that may be without meaning to its reader."""
# So many records are looked at before a file is taken for a list of messages.
_FIRST = 50
# So many records show whether a reader understands a file; until then no recording is handed out.
_ENOUGH = 2_000


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


def recordings_in_range(path: Path | ObjectUrl, of: NamedRange) -> Iterator[Recording]:
    """Yield the recordings of a surveyed range of a file, as `recordings_in` does of the whole.

    Raises `UnreadableRecordingError`, also for a file that has changed since the survey.
    """
    names = GivenNames(of.names)
    source = LineRange(path.name, _opener(path), of.range, names)
    last: Recording | None = None
    try:
        for recording in _reader_of(of.range.format).recordings(source):
            if last is not None:
                yield last
            last = recording
        if last is None or not names.is_complete:
            raise changed()
    except OSError as error:
        raise UnreadableRecordingError(str(path), error.strerror or str(error)) from error
    yield last if of.missed is None else _with_missed(last, Counter(of.missed))


def format_in_lines(path: Path | ObjectUrl) -> str | None:
    """Return the format of a file whose lines may each be a recording by itself; else None."""
    opened = _opener(path)
    try:
        source = _source(str(path), path.name, opened)
        reader = next(_recognising(source), None) if isinstance(source, JsonLines) else None
    except (OSError, UnreadableRecordingError):
        return None  # reading it as a whole says why
    return None if reader is None or not hasattr(reader, "stands_alone") else reader.FORMAT


def survey(path: Path | ObjectUrl, of: ByteRange) -> Survey:
    """Return what the recordings of later ranges depend on; raises `OSError`."""
    return surveyed(path.name, _opener(path), of, _reader_of(of.format))


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


def _reader_of(format_: str) -> Reader:
    """Return the reader of a format that was recognised, perhaps in another process."""
    for reader in readers():
        if format_ == reader.FORMAT:
            return reader
    raise ReaderError(format_, "is not installed where its files are read")


def _unknown(source: Source, looks: str) -> str:
    """Say what a file is that no reader knows a record of."""
    if any(True for _ in source.outlines()):
        formats = ", ".join(reader.FORMAT for reader in readers())
        return f"{looks}; none of the known formats: {formats}; {PAGE}"
    found_any = source.not_understood
    return f"{looks}; neither JSON nor JSON lines; {PAGE}" if found_any else "it is empty"


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
