"""Long work on recordings: a bar on a terminal, and what is done when it is interrupted."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Generic, NoReturn, Self, TypeAlias, TypeVar

from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from policyctx.cli.output import Grid, console, print_wrapped
from policyctx.errors import Diagnostic, Location, PolicyError, counted
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import is_shipped
from policyctx.replay import running
from policyctx.replay.executing import Executor
from policyctx.replay.inventory import AgentFiles, older_in_words
from policyctx.replay.places import RecordingFile, RecordingOrigin, WorkPart
from policyctx.replay.reading import PIPE_REFUSED, unread_in_words

T = TypeVar("T")
# What came of one recording, or of a file that has none.
Outcome: TypeAlias = T | running.FailedRecording | running.PassedOver | running.PartlyRead

INTERRUPTED = 130
_LISTED = 20
# More of them are a table.
_FEW_FAILURES = 3


@contextmanager
def interruptible() -> Iterator[None]:
    """Take SIGTERM and the end of the terminal for Ctrl-C; what is ignored, as by nohup, stays so.

    A second one of the same kind is ignored, so that what is done so far can be shown. In another
    thread than the main one, which may not do this, nothing changes.
    """
    is_main = current_thread() is main_thread()
    numbers = [getattr(signal, name, signal.SIGTERM) for name in ("SIGTERM", "SIGHUP") if is_main]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class Bar:
    """How far long work is: a bar on a terminal, elsewhere a line each `seconds`."""

    def __init__(self, what: str, seconds: float = 10) -> None:
        self._err = console(stderr=True)
        self._seconds = seconds
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
        times = TimeElapsedColumn(), TimeRemainingColumn()
        is_shown = self._err.is_terminal
        self._bars = Progress(
            *columns, *times, console=self._err, transient=True, disable=not is_shown
        )
        self._task = self._bars.add_task(what, total=None)
        self._is_over = Event()
        self._lines = None if is_shown else Thread(target=self._print, daemon=True)

    def __enter__(self) -> Self:
        self._bars.start()
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._lines is not None:
            self._lines.join()
        with suppress(OSError):  # the terminal may be closed
            self._bars.stop()

    def begin(self, total: float | None, what: str) -> None:
        """Begin work of this size, unless there is none."""
        if total:
            self._bars.reset(self._task, total=total, description=what)

    def advance(self, done: float) -> None:
        """Say that so much of it is done."""
        self._bars.advance(self._task, done)

    def _print(self) -> None:
        while not self._is_over.wait(self._seconds):
            [task] = self._bars.tasks
            line = f"{task.description}: {task.percentage:.0f} % in {_time(task.elapsed)}"
            left = task.time_remaining
            line += "" if left is None else f", about {_time(left)} left"
            with suppress(OSError):
                self._err.print(line)


def _time(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0)))


@dataclass(slots=True)
class Progressed(Generic[T]):
    """What work on files came to so far."""

    results: list[T] = field(default_factory=list)
    origins: list[RecordingOrigin] = field(default_factory=list)
    """Where the recording of each result is."""
    failures: list[running.FailedRecording] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    """By file, what is not understood: how often, by what it is."""
    repeated: Counter[str] = field(default_factory=Counter)
    """By file, how many of its calls it or an earlier file has, too; they are counted once."""
    older: list[float] = field(default_factory=list)
    """When the sessions ended that `--since` leaves out."""
    files: int = 0
    """Files that are done, those included that gave nothing."""
    of_files: int = 0
    is_interrupted: bool = False
    calls: int | None = None
    """Model calls in the results, where the command has counted them."""

    def add(self, part: WorkPart, outcomes: Iterable[Outcome[T]]) -> None:
        """Add what came of a part, in the order of its recordings."""
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, running.FailedRecording):
                self.failures.append(outcome)
            elif isinstance(outcome, running.PassedOver):
                self.passed_over.append(outcome.path)
            elif isinstance(outcome, running.PartlyRead):
                if outcome.counts:
                    self.unread.setdefault(outcome.path, Counter()).update(outcome.counts)
                self.repeated[outcome.path] += outcome.repeated
                self.older += outcome.older
            else:
                self.results.append(outcome)
                self.origins.append(RecordingOrigin(part, index))

    @property
    def exit_code(self) -> int:
        """0; 1 when a file or recording failed, or when nothing was replayed; 130 after Ctrl-C."""
        if self.is_interrupted:
            return INTERRUPTED
        return int(bool(self.failures) or not self.results or self.calls == 0)


def replay_policy(name: str) -> running.LoadedPolicy:
    """Load the policy of a replay. Raises `PolicyError`, also for a pipe: it is read only once."""
    is_pipe = False
    with suppress(OSError, ValueError):  # loading reports a name that no file can have
        is_pipe = not is_shipped(name) and Path(name).is_fifo()
    if is_pipe:
        raise PolicyError([Diagnostic(Location(name), "PC001", f"cannot be read: {PIPE_REFUSED}")])
    return running.LoadedPolicy(OffloadPolicy.load(name))


def gathered(
    found: Sequence[RecordingFile],
    work: running.Work[T],
    executor: Executor,
    *,
    of_part: Callable[[list[Outcome[T]]], list[Outcome[T]]] | None = None,
) -> Progressed[T]:
    """Do the work on every recording; Ctrl-C ends it, and what is done until then is returned.

    The order is that of the files, whoever does the work. `of_part` makes of the outcomes of each
    part of a file what is kept of them.
    """
    kept = of_part or list
    so_far: Progressed[T] = Progressed(of_files=len(found))
    outcomes: list[Outcome[T]] = []
    by_file: dict[RecordingFile, list[tuple[WorkPart, list[Outcome[T]]]]] = {}
    with Bar("recordings") as bar:
        # Large files take longer, so the bar goes by bytes.
        bar.begin(sum(file.bytes for file in found), "recordings")
        try:
            for outcome in running.worked(found, work, executor):
                if isinstance(outcome, running.Done):
                    part = outcome.part
                    done = by_file.setdefault(part.file, [])
                    done.append((part, kept(outcomes)))
                    outcomes = []
                    so_far.files += len(done) == part.of
                    bar.advance(part.bytes)
                else:
                    outcomes.append(outcome)
        except KeyboardInterrupt:
            so_far.is_interrupted = True
    for file in found:
        for part, made in sorted(by_file.get(file, ()), key=lambda one: one[0].number):
            so_far.add(part, made)
        if outcomes and file not in by_file:  # it was being worked on when Ctrl-C came
            so_far.add(WorkPart(file), kept(outcomes))
            outcomes = []
    return so_far


def tell(so_far: Progressed[T]) -> None:
    """Print to stderr what failed, many failures as a table, and what was skipped or is undone."""
    err = console(stderr=True)
    failures = so_far.failures
    if len(failures) > _FEW_FAILURES:
        err.print(f"error: {len(failures):,} files and recordings could not be read or replayed:")
        columns = ("file", "recording", "why")
        rows = [(one.path, one.recording, one.why) for one in failures]
        err.print(Grid(columns, rows, whole=columns))
    else:
        for sentence in _failed(failures):
            err.print(sentence)
    for sentence in _left(so_far):
        print_wrapped(err, sentence)


def tell_left_out(looked: Iterable[AgentFiles]) -> None:
    """Print to stderr what of the agents' folders is never opened."""
    err = console(stderr=True)
    for home, found in (each for of in looked for each in of.found.items()):
        for what, number in found.left_out.items():
            files = counted(number, what)
            print_wrapped(err, f"skipped: {files} in {home.path()}, never followed or read")


def missing(so_far: Progressed[T]) -> Iterator[str]:
    """Yield a sentence for each file or recording without a result."""
    yield from _failed(so_far.failures)
    yield from _left(so_far)


def _failed(failures: Iterable[running.FailedRecording]) -> Iterator[str]:
    for failure in failures:
        recording = f" ({failure.recording})" if failure.recording else ""
        place = f"{failure.path}{recording}: " if failure.path else ""
        yield f"error: {place}{failure.why}"


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
        again = f"{counted(calls, 'call')} in {counted(len(+so_far.repeated), 'file')}"
        one = "repeats a call" if calls == 1 else "repeat calls"
        are = "is" if calls == 1 else "are"
        yield f"note: {again} {one} of the same or another file, and {are} counted once"
    skipped = so_far.passed_over
    yield from (f"skipped: {path}: not a recording of a known format" for path in skipped[:_LISTED])
    if len(skipped) > _LISTED:
        more = counted(len(skipped) - _LISTED, "more file")
        yield f"skipped: {more}; --json lists all"
    if so_far.is_interrupted:
        yield f"interrupted: {so_far.files} of {so_far.of_files} files are done"
    elif not so_far.results and not so_far.failures:
        older = f"; {older_in_words(so_far.older, 'session')}" if so_far.older else ""
        yield f"error: no recording was found{older}"
    elif so_far.calls == 0 and not so_far.failures:
        yield "error: no recording has a call of a model"
