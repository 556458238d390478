"""`Evaluator`: the outcome of any setting in any session, each replayed once.

With several processes each has its own share of the recordings from the start, so no recording is
read, or sent to a process, twice.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeAlias

from policyctx.errors import PolicyctxError, PolicyError, ReplayError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import loaded
from policyctx.policy.sources import PolicySource
from policyctx.replay.common import Common
from policyctx.tuning.outcomes import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.replay.recording import Recording
    from policyctx.replay.terms import PricesOf
    from policyctx.tuning.outcomes import Outcome, Unpriced


@dataclass(frozen=True, slots=True)
class TunedSession:
    """A recording of the study."""

    number: int
    """Its place among the sessions of the study."""
    name: str
    path: str
    format: str
    project: str
    calls: int
    tools: frozenset[str]


class Progress(Protocol):
    """Who is told how far the work is; sizes are model calls to replay."""

    def begin(self, calls: int) -> None:
        """Hear how much work a batch is."""

    def advance(self, calls: int) -> None:
        """Hear how much of it was done."""


class Silent:
    """Takes no notice."""

    def begin(self, calls: int) -> None:
        """Do nothing."""

    def advance(self, calls: int) -> None:
        """Do nothing."""


class Task(NamedTuple):
    """A policy to try in a session."""

    digest: str
    session: int


class Failure(NamedTuple):
    """Why a policy has no outcome in a session."""

    why: str


# What comes of a policy in a session.
Found: TypeAlias = "Outcome | Unpriced | Failure"


class Tried(NamedTuple):
    """A policy as text, under the digest of all its values."""

    digest: str
    text: str


def compiled_text(text: str) -> OffloadPolicy:
    """Compile the text of a policy; raises `PolicyError`."""
    policy, root = loaded(PolicySource("setting", text))
    return OffloadPolicy(policy, root=root)


class _Replays:
    """Recordings in this process, and the policies compiled for them."""

    def __init__(self, recordings: dict[int, Recording], prices: PricesOf) -> None:
        self._recordings = recordings
        self._common = {number: Common(one) for number, one in recordings.items()}
        self._prices: PricesOf = prices
        self._policies: dict[str, OffloadPolicy] = {}

    def outcome(self, task: Task, text: str) -> Found:
        """Replay one session under a policy."""
        try:
            if task.digest not in self._policies:
                self._policies[task.digest] = compiled_text(text)
            policy = self._policies[task.digest]
            recording, common = self._recordings[task.session], self._common[task.session]
            return outcome_of(recording, policy, self._prices, common=common)
        except PolicyctxError as error:
            return Failure(str(error))
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
            # A recording may hold anything; one that a replay cannot take is left out.
            return Failure(f"unexpected {type(error).__name__}: {error}")


class Evaluator:
    """Outcomes of policies in sessions, remembered by the digest of the policy.

    With `jobs` above 1 it has processes, which leaving the context ends.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        *,
        jobs: int = 1,
        prices: PricesOf = "recorded",
        progress: Progress | None = None,
    ) -> None:
        """Take the recordings in the order of their numbers."""
        self._known: dict[Task, Found] = {}
        self._calls = [len(recording.calls) for recording in recordings]
        self._progress: Progress = progress or Silent()
        self.replays = 0
        """How many sessions were replayed so far, each under one policy."""
        shares = _shares(self._calls, min(jobs, len(recordings)) or 1)
        self._here = _Replays(dict(enumerate(recordings)), prices) if len(shares) == 1 else None
        self._workers = (
            []
            if self._here is not None
            else [
                _Worker({number: recordings[number] for number in share}, prices)
                for share in shares
            ]
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.end()

    def evaluate(self, policies: Iterable[Tried], sessions: Sequence[int]) -> None:
        """Replay each session under each policy, unless it is known; large sessions first.

        Raises `ReplayError` if a process was ended from outside.
        """
        texts = {one.digest: one.text for one in policies}
        missing = [
            task
            for number in sorted(sessions, key=lambda number: (-self._calls[number], number))
            for digest in texts
            if (task := Task(digest, number)) not in self._known
        ]
        self._progress.begin(sum(self._calls[task.session] for task in missing))
        for task, outcome in self._outcomes(missing, texts):
            self._known[task] = outcome
            self.replays += 1
            self._progress.advance(self._calls[task.session])

    def outcome(self, digest: str, session: int) -> Found:
        """Return a known outcome; raises `KeyError` for what was not evaluated."""
        return self._known[Task(digest, session)]

    def knows(self, digest: str, sessions: Iterable[int]) -> bool:
        """Return whether a policy was evaluated in each of the sessions."""
        return all(Task(digest, session) in self._known for session in sessions)

    def _outcomes(
        self, tasks: Sequence[Task], texts: dict[str, str]
    ) -> Iterator[tuple[Task, Found]]:
        if self._here is not None:
            yield from ((task, self._here.outcome(task, texts[task.digest])) for task in tasks)
            return
        left = {
            worker: iter([task for task in tasks if task.session in worker.sessions])
            for worker in self._workers
        }
        working: dict[Connection, tuple[_Worker, Task]] = {}
        free = [*self._workers]
        while free or working:
            for worker in free:
                if (task := next(left[worker], None)) is not None:
                    worker.begin(task, texts[task.digest])
                    working[worker.connection] = worker, task
            free = []
            for connection in map(_connection, wait(working) if working else ()):
                worker, task = working.pop(connection)
                free.append(worker)
                yield task, worker.outcome()


def _connection(ready: object) -> Connection:
    assert isinstance(ready, Connection)  # noqa: S101 - nothing else is waited for
    return ready


def _shares(calls: Sequence[int], jobs: int) -> list[list[int]]:
    """Share the numbers of sessions between processes, so that each has about as many calls."""
    shares: list[list[int]] = [[] for _ in range(jobs)]
    loads = [0] * jobs
    for number in sorted(range(len(calls)), key=lambda number: (-calls[number], number)):
        least = loads.index(min(loads))
        shares[least].append(number)
        loads[least] += max(1, calls[number])
    return shares


class _Worker:
    """A process with a share of the recordings, which replays one session at a time."""

    def __init__(self, recordings: dict[int, Recording], prices: PricesOf) -> None:
        context = multiprocessing.get_context("spawn")
        self.sessions = frozenset(recordings)
        self.connection, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, recordings, prices), daemon=True
        )
        self._process.start()
        other.close()

    def begin(self, task: Task, text: str) -> None:
        """Send a task; raises `ReplayError` if the process was ended."""
        try:
            self.connection.send((task, text))
        except OSError as error:
            raise _ended() from error

    def outcome(self) -> Found:
        """Receive what came of the task; raises `ReplayError` if the process was ended."""
        try:
            found: Found = self.connection.recv()
        except (EOFError, OSError) as error:
            raise _ended() from error
        return found

    def end(self) -> None:
        """End the process, also in the middle of a replay."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _ended() -> ReplayError:
    return ReplayError("a process that replays sessions was ended; try fewer --jobs")


def _serve(connection: Connection, recordings: dict[int, Recording], prices: PricesOf) -> None:
    """Answer each task with its outcome, until the other end is closed."""
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replays = _Replays(recordings, prices)
    with suppress(EOFError, OSError):
        while True:
            task, text = connection.recv()
            connection.send(replays.outcome(task, text))


def tried(text: str) -> Tried | None:
    """Return a policy to try, under its digest; None for one that is not valid."""
    try:
        return Tried(compiled_text(text).digest, text)
    except PolicyError:
        return None
