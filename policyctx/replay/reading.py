"""From files and ranges of lines to recordings: which reader knows a file, by what is in it."""

import errno
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from policyctx.errors import MissingExtraError, ReaderError, UnreadableRecordingError
from policyctx.replay.objects import ObjectUrl, Opener
from policyctx.replay.readers.building import RecordingNames
from policyctx.replay.readers.registered import Reader, readers
from policyctx.replay.readers.source import BOM, JsonLines, Opened, Source, source_of
from policyctx.replay.recording import Recording
from policyctx.resources import open_file


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of a file, from `start` to before `end`, and the format of the file."""

    format: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found in a range."""

    names: tuple[str | None, ...]
    """For each recording what follows `#` in its name; None for its number in the file."""
    missed: Counter[str]
    """What was found that is not a record, as `Source.not_understood`."""
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
    for _ in reader.recordings(source):
        if not source.stand_alone:
            break
    return Survey(tuple(noted.noted), source.not_understood, source.stand_alone)


def named_ranges(
    name: str, ranges: Sequence[ByteRange], surveys: Sequence[Survey]
) -> list[NamedRange] | None:
    """Return the ranges that have recordings, named as in the whole file.

    None if the file cannot be read in ranges, or has no recordings.
    """
    if not all(survey.stand_alone for survey in surveys):
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


def recordings_in(path: Path | ObjectUrl, *, name: str | None = None) -> Iterator[Recording]:
    """Yield the recordings of a file or an object; their names begin with `name`.

    By default that is its own name.

    The format shows in the content. A recording is read more than once, so pipes, such as a
    shell's `<(…)`, are refused without waiting for a writer. Raises `UnreadableRecordingError`.
    """
    yield from _recordings(str(path), name or path.name, _opener(path))


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
        reader = _reader(str(path), source) if isinstance(source, JsonLines) else None
    except (OSError, UnreadableRecordingError):
        return None  # reading it as a whole says why
    return None if reader is None or not hasattr(reader, "stands_alone") else reader.FORMAT


def survey(path: Path | ObjectUrl, of: ByteRange) -> Survey:
    """Return what the recordings of later ranges depend on; raises `OSError`."""
    return surveyed(path.name, _opener(path), of, _reader_of(of.format))


def recordings_of(content: bytes, name: str) -> Iterator[Recording]:
    """Yield the recordings of what was read already, as `recordings_in` does of a file."""
    yield from _recordings(name, name, lambda: io.BytesIO(content))


def _opener(path: Path | ObjectUrl) -> Opened:
    return partial(_opened, path) if isinstance(path, Path) else Opener(path)


def _opened(path: Path) -> BinaryIO:
    if path.is_fifo():
        raise OSError(errno.EINVAL, PIPE_REFUSED, str(path))
    return open_file(path)


def _recordings(path: str, name: str, opened: Opened) -> Iterator[Recording]:
    last: Recording | None = None
    try:
        source = _source(path, name, opened)
        reader = _reader(path, source)
        for recording in reader.recordings(source):
            if last is not None:
                yield last
            last = recording
    except OSError as error:
        raise UnreadableRecordingError(path, error.strerror or str(error)) from error
    if last is None:
        raise UnreadableRecordingError(path, "no message is in it", format_=reader.FORMAT)
    yield _with_missed(last, source.not_understood)


def _source(path: str, name: str, opened: Opened) -> Source:
    try:
        return source_of(name, opened)
    except MissingExtraError as error:
        raise UnreadableRecordingError(path, str(error)) from error
    except ValueError as error:
        raise UnreadableRecordingError(path, str(error), is_other=True) from error


def _with_missed(recording: Recording, missed: Counter[str]) -> Recording:
    """Let a file's last recording tell what of the file is none; that is known at its end."""
    return replace(
        recording,
        records=recording.records + missed.total(),
        not_understood=dict(missed + Counter(recording.not_understood)),
    )


def _reader(path: str, source: Source) -> Reader:
    known = readers()
    is_empty = True
    for outline in source.outlines():
        is_empty = False
        for reader in known:
            if reader.recognises(outline):
                return reader
    if is_empty:
        raise UnreadableRecordingError(path, _no_json(source), is_other=True)
    formats = ", ".join(reader.FORMAT for reader in known)
    raise UnreadableRecordingError(path, f"none of the known formats: {formats}", is_other=True)


def _reader_of(format_: str) -> Reader:
    """Return the reader of a format that was recognised, perhaps in another process."""
    for reader in readers():
        if format_ == reader.FORMAT:
            return reader
    raise ReaderError(format_, "is not installed where its files are read")


def _no_json(source: Source) -> str:
    return "neither JSON nor JSON lines" if source.not_understood else "it is empty"


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among `paths` and in the folders among them, sorted within each folder.

    A folder that cannot be listed is yielded itself, so that reading it reports why, and so is what
    is no regular file, such as a device or a broken link. In a folder, pipes are left out and links
    to folders are not followed.
    """
    for path in paths:
        if not is_folder(path):
            yield path
            continue
        try:
            inside = sorted(path.iterdir())
        except OSError:
            yield path
            continue
        yield from files_in(filter(_is_walked, inside))


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
