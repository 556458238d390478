"""Work on many recordings, file by file, in this process or in several."""

from __future__ import annotations

import multiprocessing
import signal
import stat
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from policyctx.errors import PolicyctxError, ReaderError, UnreadableRecordingError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.baselines import SUMMARISE_ONLY, summarise_only
from policyctx.replay.common import Common
from policyctx.replay.reading import files_in, is_folder, recordings_in
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from policyctx.replay.recording import Recording
    from policyctx.replay.simulated import SimulatedSession
    from policyctx.replay.terms import PricesOf


def replayed(
    policy: str,
    recording: Recording,
    path: str,
    *,
    excerpt: int | None = None,
    prices: PricesOf = "recorded",
) -> SimulatedSession:
    """Replay one recording of the file at `path` under a policy given by name or path.

    The session has its figures and those of the baseline. Raises as `simulated` does, and
    `PolicyError`.
    """
    given, common = compiled(policy), Common(recording)
    session = simulated(recording, given, path=path, excerpt=excerpt, prices=prices, common=common)
    figures = figures_of(session, unedited=common.unedited)
    other, baseline = summarise_only(given), figures
    if other is not given:
        # Its layouts are shown nowhere, so none is priced but the one that is sent.
        alone = simulated(recording, other, path=path, prices=prices, layouts=(), common=common)
        baseline = figures_of(alone, unedited=common.unedited)
    baselines = {SUMMARISE_ONLY: baseline}
    return replace(session, baselines=baselines, figures=replace(figures, baselines=baselines))


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def compiled(policy: str) -> OffloadPolicy:
    """Return a policy given by name or path, read once in this process."""
    return OffloadPolicy.load(policy)


T = TypeVar("T")
# Done in another process as well, so it and what it returns are pickled.
Work: TypeAlias = "Callable[[Recording, str], T]"


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A file to read, and whether it was named; what a folder holds may be something else."""

    path: Path
    named: bool
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class FailedRecording:
    """A file, or one recording of it, of which nothing came."""

    path: str
    why: str
    recording: str = ""
    """Its name; empty when the file itself could not be read."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file of a folder that is not a recording of a known format."""

    path: str


@dataclass(frozen=True, slots=True)
class Done:
    """A file that was worked on to its end."""

    file: RecordingFile


Outcome: TypeAlias = "T | FailedRecording | PassedOver | Done"


def files(paths: Iterable[Path]) -> list[RecordingFile]:
    """Return the files among `paths` and in the folders among them, sorted within each folder.

    A file that is found in two ways is there once.
    """
    found: dict[Path, RecordingFile] = {}
    for path in paths:
        is_named = not is_folder(path)
        for each in files_in([path]):
            identity = _resolved(each)
            earlier = found.setdefault(identity, RecordingFile(each, is_named, _size(each)))
            if is_named and not earlier.named:
                found[identity] = replace(earlier, named=True)
    return list(found.values())


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


def worked(
    found: Sequence[RecordingFile], work: Work[T], *, jobs: int = 1
) -> Generator[Outcome[T], None, None]:
    """Yield what `work` makes of each recording, what failed, and each file when it is done.

    The outcomes of a file are consecutive and end with its `Done`. One process takes the files in
    their order; of several, the file that is done first comes first. No file stops the others: a
    file that cannot be read, an exception of any class that it causes, and the end of its process,
    as when the memory is full, are each a `Failure` of that file. Raises `ReaderError` for a
    registered reader that cannot be loaded, which concerns every file. Closing the generator ends
    the processes.
    """
    if jobs == 1 or len(found) < 2:  # noqa: PLR2004 - one file is for one process
        for file in found:
            yield from _of_file(work, file)
        return
    left = dict.fromkeys(found)
    while left:
        try:
            yield from _shared(left, work, jobs)
        except BrokenProcessPool:
            # Files are begun in their order, so one of the first was too much.
            for file in list(left)[: jobs + 1]:
                del left[file]
                yield from _alone(work, file)


def _shared(
    left: dict[RecordingFile, None], work: Work[T], jobs: int
) -> Generator[Outcome[T], None, None]:
    """Work on files in several processes; each that is done is taken out of `left`.

    Raises `BrokenProcessPool` when a process was ended.
    """
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(left)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts,
    )
    try:
        futures = {pool.submit(_listed, work, file): file for file in left}
        for future in as_completed(futures):
            file = futures[future]
            try:
                outcomes = future.result()
            except (BrokenProcessPool, ReaderError):
                raise
            except Exception as error:  # noqa: BLE001 - such as a result that cannot be pickled
                outcomes = [FailedRecording(str(file.path), _unexpected(error)), Done(file)]
            del left[file]
            yield from outcomes
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


def _alone(work: Work[T], file: RecordingFile) -> Iterator[Outcome[T]]:
    try:
        yield from _shared({file: None}, work, 1)
    except BrokenProcessPool:
        yield FailedRecording(str(file.path), "the process that worked on it was ended")
        yield Done(file)


def _listed(work: Work[T], file: RecordingFile) -> list[Outcome[T]]:
    return list(_of_file(work, file))


def _of_file(work: Work[T], file: RecordingFile) -> Iterator[Outcome[T]]:
    path = str(file.path)
    try:
        for recording in recordings_in(file.path):
            yield _outcome(work, recording, path)
    except UnreadableRecordingError as error:
        if error.is_other and not file.named:
            yield PassedOver(path)
        else:
            yield FailedRecording(path, error.why)
    except ReaderError:
        raise
    except Exception as error:  # noqa: BLE001 - no file stops the others
        yield FailedRecording(path, _unexpected(error))
    yield Done(file)


def _outcome(work: Work[T], recording: Recording, path: str) -> T | FailedRecording:
    try:
        return work(recording, path)
    except PolicyctxError as error:
        return FailedRecording(path, str(error), recording.name)
    except Exception as error:  # noqa: BLE001 - no file stops the others
        return FailedRecording(path, _unexpected(error), recording.name)


def _unexpected(error: Exception) -> str:
    """Describe an exception that no code foresaw: its class, its text and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    text = f": {error}" if str(error) else ""
    return f"unexpected {type(error).__name__}{text}{where}"


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
