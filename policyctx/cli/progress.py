"""Long work on recordings: a bar on a terminal, and what is done when it is interrupted."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from policyctx.cli.output import console, counted, table
from policyctx.errors import Diagnostic, Location, PolicyError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import is_shipped
from policyctx.replay.executing.executor import Executor
from policyctx.replay.places import (
    RecordingFile,
    RecordingOrigin,
    WorkPart,
    files,
    place_of,
)
from policyctx.replay.reading import PIPE_REFUSED, unread_in_words
from policyctx.replay.running import (
    Done,
    FailedRecording,
    LoadedPolicy,
    PartlyRead,
    PassedOver,
    Work,
    worked,
)

T = TypeVar("T")
# What came of one recording, or of a file that has none.
Outcome: TypeAlias = "T | FailedRecording | PassedOver | PartlyRead"

INTERRUPTED = 130


@dataclass(slots=True)
class Progressed(Generic[T]):
    """What work on files came to so far."""

    results: list[T] = field(default_factory=list)
    origins: list[RecordingOrigin] = field(default_factory=list)
    """Where the recording of each result is."""
    failures: list[FailedRecording] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    """By file, what is not understood: how often, by what it is."""
    repeated: Counter[str] = field(default_factory=Counter)
    """By file, how many of its calls an earlier file has, too; they are counted once."""
    files: int = 0
    """Files that are done, those included that gave nothing."""
    of_files: int = 0
    is_interrupted: bool = False
    calls: int | None = None
    """Model calls in the results, where the command has counted them."""

    def add(self, part: WorkPart, outcomes: Iterable[Outcome[T]]) -> None:
        """Add what came of a part, in the order of its recordings."""
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, FailedRecording):
                self.failures.append(outcome)
            elif isinstance(outcome, PassedOver):
                self.passed_over.append(outcome.path)
            elif isinstance(outcome, PartlyRead):
                if outcome.counts:
                    self.unread.setdefault(outcome.path, Counter()).update(outcome.counts)
                self.repeated[outcome.path] += outcome.repeated
            else:
                self.results.append(outcome)
                self.origins.append(RecordingOrigin(part, index))

    @property
    def exit_code(self) -> int:
        """0; 1 when a file or recording failed, or when nothing was replayed; 130 after Ctrl-C."""
        if self.is_interrupted:
            return INTERRUPTED
        return int(bool(self.failures) or not self.results or self.calls == 0)


def replay_policy(name: str) -> LoadedPolicy:
    """Load the policy of a replay.

    Raises `PolicyError`, also for a pipe, which can be read only once.
    """
    if not is_shipped(name) and stat.S_ISFIFO(_mode(name)):
        raise PolicyError([Diagnostic(Location(name), "PC001", f"cannot be read: {PIPE_REFUSED}")])
    return LoadedPolicy(OffloadPolicy.load(name))


def _mode(name: str) -> int:
    """Return the mode of a file; 0 where there is none, which loading reports."""
    try:
        return os.stat(name).st_mode  # noqa: PTH116 - a name that no path can have has none
    except (OSError, ValueError):
        return 0


def gathered(
    paths: Sequence[str],
    work: Work[T],
    executor: Executor,
    *,
    of_part: Callable[[list[Outcome[T]]], list[Outcome[T]]] | None = None,
    partial: bool = False,
) -> Progressed[T]:
    """Do the work on every recording; Ctrl-C ends it, and what is done until then is returned.

    The order is that of the files, whoever does the work. `of_part` makes of the outcomes of each
    part of a file what is kept of them. Files of which much is not understood are read if `partial`
    is true. Raises `InputError` for a path that is a wrong URL.
    """
    kept = of_part or list
    found = files(map(place_of, paths), partial=partial)
    so_far: Progressed[T] = Progressed(of_files=len(found))
    outcomes: list[Outcome[T]] = []
    by_file: dict[RecordingFile, list[tuple[WorkPart, list[Outcome[T]]]]] = {}
    err = console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        # Large files take longer, so the bar goes by bytes.
        bar = bars.add_task("recordings", total=sum(file.bytes for file in found) or None)
        try:
            for outcome in worked(found, work, executor):
                if isinstance(outcome, Done):
                    by_file.setdefault(outcome.part.file, []).append((outcome.part, kept(outcomes)))
                    outcomes = []
                    so_far.files += outcome.is_last
                    bars.advance(bar, outcome.part.bytes)
                else:
                    outcomes.append(outcome)
        except KeyboardInterrupt:
            so_far.is_interrupted = True
    for file in found:
        for part, done in sorted(by_file.get(file, ()), key=lambda one: one[0].start):
            so_far.add(part, done)
        if outcomes and file not in by_file:  # it was being worked on when Ctrl-C came
            so_far.add(WorkPart(file), kept(outcomes))
            outcomes = []
    return so_far


def tell(so_far: Progressed[T]) -> None:
    """Print to stderr what failed, what was skipped, and what was left undone.

    Many failures are a table.
    """
    err = console(stderr=True)
    failures = so_far.failures
    if len(failures) > _FEW_FAILURES:
        err.print(f"error: {len(failures):,} files and recordings could not be read or replayed:")
        columns = ("file", "recording", "why")
        rows = [(one.path, one.recording, one.why) for one in failures]
        err.print(table(columns, rows, numeric=set(), whole={*columns}))
    else:
        for sentence in _failed(failures):
            err.print(sentence, soft_wrap=True)
    for sentence in _left(so_far):
        err.print(sentence, soft_wrap=True)


def missing(so_far: Progressed[T]) -> Iterator[str]:
    """Yield a sentence for each file or recording without a result."""
    yield from _failed(so_far.failures)
    yield from _left(so_far)


def _failed(failures: Iterable[FailedRecording]) -> Iterator[str]:
    for failure in failures:
        recording = f" ({failure.recording})" if failure.recording else ""
        yield f"error: {failure.path}{recording}: {failure.why}"


def _left(so_far: Progressed[T]) -> Iterator[str]:
    """Yield what was skipped and left undone, and why there is nothing at all."""
    unread = [*so_far.unread.items()]
    for path, counts in unread[:_LISTED]:
        yield f"note: {path}: not understood: {unread_in_words(counts)}"
    if len(unread) > _LISTED:
        whole = sum((counts for _, counts in unread[_LISTED:]), Counter[str]())
        more = counted(len(unread) - _LISTED, "more file")
        yield f"note: {more}: not understood: {unread_in_words(whole)}"
    if calls := so_far.repeated.total():
        in_files = counted(len(+so_far.repeated), "file")
        again = counted(calls, "call")
        yield f"note: {again} in {in_files} repeat calls of another file, and are counted once"
    skipped = so_far.passed_over
    yield from (f"skipped: {path}: not a recording of a known format" for path in skipped[:_LISTED])
    if len(skipped) > _LISTED:
        more = counted(len(skipped) - _LISTED, "more file")
        yield f"skipped: {more}; --json lists all"
    if so_far.is_interrupted:
        yield f"interrupted: {so_far.files} of {so_far.of_files} files are done"
    elif not so_far.results and not so_far.failures:
        yield "error: nothing to replay: no recording was found"
    elif so_far.calls == 0 and not so_far.failures:
        yield "error: nothing to replay: no recording has a call of a model"


_LISTED = 20
# More of them are a table.
_FEW_FAILURES = 3
