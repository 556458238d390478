"""Recordings in a range of a file's bytes, where each line is a recording by itself.

A line belongs to the range in which it begins, so ranges that follow each other have each line
once. What the names of recordings are depends on those before them in the file, so a range is
surveyed first: `Survey` has all that the recordings of later ranges depend on.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from policyctx.replay.readers.building import RecordingNames
from policyctx.replay.readers.registered import Reader
from policyctx.replay.readers.source import BOM, JsonLines, Opened


@dataclass(frozen=True, slots=True)
class Range:
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

    range: Range
    names: tuple[str, ...]
    missed: Mapping[str, int] | None = None
    """What the last recording of the file tells of all ranges; None for other ranges."""


class LineRange(JsonLines):
    """The lines that begin in a range."""

    def __init__(self, name: str, opened: Opened, of: Range, names: RecordingNames) -> None:
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


def surveyed(name: str, opened: Opened, of: Range, reader: Reader) -> Survey:
    """Read a range and keep no recording. Raises `OSError`."""
    noted = _NotedNames()
    source = _SurveyedLines(name, opened, of, noted)
    source.stands_alone = getattr(reader, "stands_alone", None)
    for _ in reader.recordings(source):
        if not source.stand_alone:
            break
    return Survey(tuple(noted.noted), source.not_understood, source.stand_alone)


def named_ranges(
    name: str, ranges: Sequence[Range], surveys: Sequence[Survey]
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
