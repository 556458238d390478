"""Where recordings are, and in which parts they are read.

A place is a file or a folder of this machine, an object or a prefix of a store. A part of the work
is a whole file, or a range of a large one.
"""

import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from policyctx.definitions.names import is_url, url_problem
from policyctx.errors import InputError
from policyctx.replay import reading
from policyctx.replay.executing.executor import Executor, Job, LostJob
from policyctx.replay.objects import ObjectUrl
from policyctx.replay.recording import Recording, is_used_since

Place: TypeAlias = Path | ObjectUrl


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

    def takes(self, recording: Recording) -> bool:
        """Return whether a session is not left out; one without times never is."""
        return is_used_since(recording.last, self.since)


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


PART_BYTES = 64 * 2**20
"""A larger file is read in ranges of about this size, where its lines allow it."""


@dataclass(frozen=True, slots=True)
class WorkPart:
    """A file, or a range of its lines."""

    file: RecordingFile
    of: reading.NamedRange | None = None

    @property
    def start(self) -> int:
        """The byte at which it begins."""
        return 0 if self.of is None else self.of.range.start

    @property
    def bytes(self) -> int:
        """How many bytes of the file it has."""
        return self.file.bytes if self.of is None else self.of.range.end - self.start

    def recordings(self) -> Iterator[Recording]:
        """Yield its recordings. Raises `UnreadableRecordingError`."""
        path = self.file.path
        found = (
            reading.recordings_in(path, partial=self.file.partial)
            if self.of is None
            else reading.recordings_in_range(path, self.of)
        )
        seen = set(self.file.repeated or ())
        taken = filter(self.file.takes, found)
        return (recording.counted_once(seen) for recording in taken)


@dataclass(frozen=True, slots=True)
class RecordingOrigin:
    """Where a recording is: its position among those of a part, from 0."""

    part: WorkPart
    index: int


def parts(
    found: Sequence[RecordingFile], executor: Executor, *, part_bytes: int = PART_BYTES
) -> list[WorkPart]:
    """Return the parts of files in their order.

    Files that hold one recording a line are surveyed by the executor, and have several parts if
    they are larger than `part_bytes`.
    """
    ranges = {
        i: _ranges(file, format_, part_bytes)
        for i, file in enumerate(found)
        if file.bytes > part_bytes and (format_ := reading.format_in_lines(file.path)) is not None
    }
    surveys: dict[tuple[int, int], reading.Survey] = {}
    jobs = [Job((i, j, found[i], of)) for i in ranges for j, of in enumerate(ranges[i])]
    for job, result in executor.results(_surveyed, jobs):
        if not isinstance(result, LostJob) and result is not None:
            surveys[job.argument[:2]] = result
    made: list[WorkPart] = []
    for i, file in enumerate(found):
        keys = [(i, j) for j in range(len(ranges.get(i, ())))]
        named = None
        if keys and all(key in surveys for key in keys):
            found_in = [surveys[key] for key in keys]
            named = reading.named_ranges(file.path.name, ranges[i], found_in, partial=file.partial)
        # A file that cannot be read in ranges is read as a whole, which says why if it fails.
        made += [WorkPart(file)] if named is None else map(partial(WorkPart, file), named)
    return made


def told_apart(found: Sequence[RecordingFile], executor: Executor) -> Iterator[RecordingFile]:
    """Yield the files, each with the ids of its calls that an earlier one has, too.

    This process reads each file for that when its turn comes, and another executor all before.
    """
    if len(found) == 1 or all(file.repeated is not None for file in found):
        yield from found
        return
    results = executor.results(_call_ids, [*map(Job, found)])
    if not executor.is_here:
        of_file = {job.argument: (job, result) for job, result in results}
        results = (of_file[file] for file in found)
    seen: set[str] = set()
    for job, result in results:
        ids = frozenset() if isinstance(result, LostJob) else result
        yield replace(job.argument, repeated=ids & seen)
        seen |= ids


def _call_ids(file: RecordingFile) -> frozenset[str]:
    """Return the ids of the calls taken of a file, in any process; none if it cannot be read."""
    try:
        recordings = reading.recordings_in(file.path, partial=file.partial)
        taken = filter(file.takes, recordings)
        calls = chain.from_iterable(recording.calls for recording in taken)
        return frozenset(call.id for call in calls if call.id)
    except Exception:  # noqa: BLE001 - what is wrong with a file is reported when it is replayed
        return frozenset()


def _ranges(file: RecordingFile, format_: str, part_bytes: int) -> list[reading.ByteRange]:
    count = -(-file.bytes // part_bytes)
    cuts = [file.bytes * i // count for i in range(count + 1)]
    return [reading.ByteRange(format_, start, end) for start, end in pairwise(cuts)]


def _surveyed(asked: tuple[int, int, RecordingFile, reading.ByteRange]) -> reading.Survey | None:
    """Survey a range, in any process; None if it cannot be read."""
    *_, file, of = asked
    try:
        return reading.survey(file.path, of)
    except OSError:
        return None
