"""Where recordings are, and in which parts they are worked on.

A place is a file or a folder of this machine, an object or a prefix of a store. A part of the work
is a whole file, or some recordings of a large one.
"""

import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from policyctx.definitions.names import is_url, url_problem
from policyctx.errors import InputError, UnreadableRecordingError
from policyctx.replay import reading
from policyctx.replay.executing import Executor, Job, LostJob
from policyctx.replay.reading import ObjectUrl
from policyctx.replay.recording import Recording, is_used_since

Place: TypeAlias = Path | ObjectUrl
PART_BYTES = 64 * 2**20
"""A larger file with several recordings is worked on in parts of about this size."""
# Each part reads the file up to its own end, so more of them would read for longer than they work.
_MOST_PARTS = 32


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A file to read, and whether it was named; what a folder holds may be something else."""

    path: Place
    named: bool
    bytes: int = 0
    partial: bool = False
    """Whether it is read if much of it is not understood."""
    repeated: frozenset[str] | None = field(default=None, compare=False)
    """The ids of calls that an earlier file has, too; None until the files are told apart."""
    since: float | None = None
    """Sessions whose last call was before that, in seconds since 1970, are left out."""
    recordings: int = field(default=1, compare=False)
    """How many it has that are not left out, as far as that is known."""

    def taken(self, older: list[float] | None = None) -> Iterator[Recording]:
        """Yield the sessions that are not left out; add to `older` when the others ended.

        Raises `UnreadableRecordingError`.
        """
        for recording in reading.recordings_in(self.path, partial=self.partial):
            if is_used_since(recording.last, self.since):
                yield recording
            elif older is not None and recording.last is not None:
                older.append(recording.last)


def place_of(text: str) -> Place:
    """Return the path or the URL that a text names; `file://` is a path.

    Raises `InputError` for a URL that cannot be one of recordings.
    """
    if not is_url(text):
        return Path(text)
    problem = url_problem(text.rstrip("/"))
    if problem:
        raise InputError(f"{text.rpartition('@')[2]}: {problem}")
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return ObjectUrl(f"{parts.scheme}://{parts.netloc}", parts.path.strip("/"))


def files(
    places: Iterable[Place], *, partial: bool = False, since: float | None = None
) -> list[RecordingFile]:
    """Return the files at the places and in the folders among them, sorted within each folder.

    A file that is found in two ways is there once. Raises `MissingExtraError` for a URL without the
    package that reads it.
    """
    found: dict[Place, RecordingFile] = {}
    for place in places:
        for each in _at(place):
            identity = each.path if isinstance(each.path, ObjectUrl) else _resolved(each.path)
            earlier = found.setdefault(identity, each)
            if each.named and not earlier.named:
                found[identity] = replace(earlier, named=True)
    return [replace(file, partial=partial, since=since) for file in found.values()]


def _at(place: Place) -> Iterator[RecordingFile]:
    if isinstance(place, ObjectUrl):
        yield from _at_url(place)
        return
    is_named = not reading.is_folder(place)
    for each in reading.files_in([place]):
        yield RecordingFile(each, is_named, _size(each))


def _at_url(url: ObjectUrl) -> Iterator[RecordingFile]:
    """Yield the objects below a URL; the URL itself if it is an object, or cannot be asked for.

    Reading it then reports why.
    """
    try:
        below = [RecordingFile(each, named=False, bytes=size) for each, size in url.below()]
        if not below:
            yield RecordingFile(url, named=True, bytes=url.size())
    except OSError:
        yield RecordingFile(url, named=True)
    else:
        yield from below


def _resolved(path: Path) -> Path:
    """Return the path without links, or as it is where that fails; reading it reports why."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _size(path: Path) -> int:
    """Return the bytes of a regular file; 0 for anything else."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


@dataclass(frozen=True, slots=True)
class WorkPart:
    """A file, or some of its recordings that follow one another."""

    file: RecordingFile
    number: int = 0
    """Which one of the parts of the file, from 0."""
    of: int = 1
    """How many parts the file has."""

    @property
    def bytes(self) -> int:
        """About how many bytes of the file it has."""
        start, end = (self.file.bytes * at // self.of for at in (self.number, self.number + 1))
        return end - start

    @property
    def range(self) -> range | None:
        """The positions of its recordings in the file; None for the whole file."""
        if self.of == 1:
            return None
        of_part = (self.file.recordings * at // self.of for at in (self.number, self.number + 1))
        return range(*of_part)

    def recordings(self, older: list[float] | None = None) -> Iterator[Recording]:
        """Yield its recordings; add to `older` when those ended that `since` leaves out.

        Raises `UnreadableRecordingError`, also for a file that lost some since they were counted.
        """
        seen = set(self.file.repeated or ())
        # Those before its own count as seen.
        once = (recording.counted_once(seen) for recording in self.file.taken(older))
        if (own := self.range) is None:
            yield from once
            return
        given = 0
        for recording in islice(once, own.start, own.stop):
            yield recording
            given += 1
        if given < len(own):
            raise UnreadableRecordingError(
                str(self.file.path), "it has changed since it was counted"
            )


@dataclass(frozen=True, slots=True)
class RecordingOrigin:
    """Where a recording is: its position among those of a part, from 0."""

    part: WorkPart
    index: int


def parts(found: Iterable[RecordingFile], *, part_bytes: int = PART_BYTES) -> list[WorkPart]:
    """Return the parts of files in their order; `told_apart` knows how many recordings each has."""
    made: list[WorkPart] = []
    for file in found:
        most = min(file.recordings, _MOST_PARTS)
        of = max(1, min(-(-file.bytes // part_bytes), most))
        made += (WorkPart(file, number, of) for number in range(of))
    return made


def told_apart(
    found: Sequence[RecordingFile], executor: Executor, *, part_bytes: int = PART_BYTES
) -> Iterator[RecordingFile]:
    """Yield the files, each with the ids of its calls that an earlier one has, too.

    This process reads each file for that when its turn comes, and another executor all before.
    """
    is_one_part = len(found) == 1 and (executor.is_here or found[0].bytes <= part_bytes)
    if is_one_part or all(file.repeated is not None for file in found):
        yield from found
        return
    results = executor.results(_contents, [*map(Job, found)])
    if not executor.is_here:
        of_file = {job.argument: (job, result) for job, result in results}
        results = (of_file[file] for file in found)
    seen: set[str] = set()
    for job, result in results:
        ids, count = (frozenset[str](), 0) if isinstance(result, LostJob) else result
        yield replace(job.argument, repeated=ids & seen, recordings=count)
        seen |= ids


def _contents(file: RecordingFile) -> tuple[frozenset[str], int]:
    """Return the ids of the calls taken of a file, and of how many recordings, in any process.

    Nothing, if it cannot be read.
    """
    ids, count = set[str](), 0
    try:
        for recording in file.taken():
            ids |= {call.id for call in recording.calls if call.id}
            count += 1
    except Exception:  # noqa: BLE001 - what is wrong with a file is reported when it is replayed
        return frozenset(), 0
    return frozenset(ids), count
