"""Parts of the work on recordings: whole files, and ranges of large ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from policyctx.replay import reading
from policyctx.replay.executing.executor import Executor, Job, LostJob
from policyctx.replay.places import RecordingFile
from policyctx.replay.recording import Recording

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
        return (
            reading.recordings_in(path)
            if self.of is None
            else reading.recordings_in_range(path, self.of)
        )


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
            named = reading.named_ranges(file.path.name, ranges[i], [surveys[key] for key in keys])
        # A file that cannot be read in ranges is read as a whole, which says why if it fails.
        made += [WorkPart(file)] if named is None else map(partial(WorkPart, file), named)
    return made


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
