"""`Executor`: does jobs in any order; in this process, or in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context as contexts
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from policyctx import __version__
from policyctx.definitions.items import HostObject
from policyctx.errors import ClusterError, present

A = TypeVar("A")
R = TypeVar("R")
# So many pipes can be opened where the start of a process, the first one with the fork server,
# does not end in the middle.
_PIPES, _FIRST_PIPES = 4, 8
# A job that has ended so many processes is lost.
_TRIES = 2


@dataclass(frozen=True, slots=True)
class Job(Generic[A]):
    """What a function is called with."""

    argument: A
    home: Hashable = None
    """Jobs of one home share what a process keeps, so one process does them where possible."""


@dataclass(frozen=True, slots=True)
class LostJob:
    """A job without a result, and why."""

    why: str


Results: TypeAlias = Generator[tuple[Job[A], R | LostJob], None, None]


class Executor(Protocol):
    """Calls a function with the argument of each job; closing it ends what it has started."""

    @property
    def workers(self) -> int:
        """How many jobs are done at a time; it may grow in a cluster."""

    @property
    def is_here(self) -> bool:
        """Whether jobs are done in this process, one after the other."""

    def results(self, function: Callable[[A], R], jobs: Sequence[Job[A]]) -> Results[A, R]:
        """Yield each job with its result as soon as it is done; jobs are begun in their order.

        The job of a worker that was ended is done again by another one; a job that ends several
        workers is lost, and so is a result that cannot be pickled. What the function raises is
        raised here. Closing the generator cancels the jobs that are left.
        """

    def close(self) -> None:
        """End the processes that this executor has started."""


class Here:
    """Does the jobs in this process; implements `Executor`."""

    workers = 1
    is_here = True

    def results(self, function: Callable[[A], R], jobs: Sequence[Job[A]]) -> Results[A, R]:
        """Yield each job with its result."""
        for job in jobs:
            yield job, function(job.argument)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class _Raised:
    error: Exception


def packed(function: Callable[[A], R], job: Job[A]) -> bytes:
    """Return a call as bytes, for `result_of_call` in another process."""
    return pickle.dumps((function, job.argument))


def result_of_call(version: str, call: bytes) -> bytes:
    """Make a packed call, in a worker; return what `unpacked` takes.

    `version` is that of the process that packed it: another one may pack otherwise.
    """
    try:
        if version != __version__:
            _refuse(version)
        function, argument = pickle.loads(call)  # noqa: S301 - from the process that it works for
        result = function(argument)
    except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
        result = _Raised(error)
    try:
        return pickle.dumps(result)
    except Exception as error:  # noqa: BLE001 - whatever a result raises when it is pickled
        return pickle.dumps(LostJob(unexpected(error)))


def _refuse(version: str) -> None:
    raise ClusterError(f"a worker has policyctx {__version__}, and this is {version}")


def unpacked(raw: bytes) -> HostObject:
    """Return the result of a packed call, or `LostJob`; raises what the function raised."""
    try:
        result = pickle.loads(raw)  # noqa: S301 - from a worker
    except Exception as error:  # noqa: BLE001 - whatever a result raises when it is unpickled
        return LostJob(unexpected(error))
    if isinstance(result, _Raised):
        raise result.error
    return result


def unexpected(error: Exception) -> str:
    """Describe an exception that no code foresaw: its class, its text and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    text = f": {error}" if str(error) else ""
    return f"unexpected {type(error).__name__}{text}{where}"


class Processes:
    """Does the jobs in several processes, which are started when needed; implements `Executor`."""

    is_here = False

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._processes: list[_Process] = []
        self._owners: dict[Hashable, _Process] = {}
        """The process that last did a job of a home."""

    def results(self, function: Callable[[A], R], jobs: Sequence[Job[A]]) -> Results[A, R]:
        """Yield each job with its result, as `Executor` says."""
        queue = _Queue(jobs, self._owners)
        tries: dict[int, int] = {}
        working: dict[Connection, tuple[_Process, Job[A]]] = {}
        try:
            while queue or working:
                self._begin(function, queue, working)
                for connection in cast("list[Connection]", wait(working)):
                    process, job = working.pop(connection)
                    try:
                        raw = connection.recv_bytes()
                    except (EOFError, OSError):
                        self._forget(process, queue)
                        tries[id(job)] = tries.get(id(job), 0) + 1
                        if tries[id(job)] < _TRIES:
                            queue.put_back(job)
                        else:
                            yield job, LostJob("the process that worked on it was ended")
                    else:
                        yield job, unpacked(raw)
        finally:
            for process, _ in working.values():
                self._forget(process, queue)

    def close(self) -> None:
        """End the processes, also in the middle of a job."""
        for process in self._processes:
            process.end()
        self._processes, self._owners = [], {}

    def _begin(
        self,
        function: Callable[[A], R],
        queue: _Queue[A],
        working: dict[Connection, tuple[_Process, Job[A]]],
    ) -> None:
        """Give each process that is free a job, and start processes for further jobs."""
        for process in list(self._processes):
            if process.connection not in working and (job := queue.next_for(process)) is not None:
                self._give(process, function, job, queue, working)
        while queue.unowned and len(self._processes) < self.workers:
            _check_descriptors(_PIPES if self._processes else _FIRST_PIPES)
            process = _Process()
            self._processes.append(process)
            self._give(process, function, present(queue.next_for(process)), queue, working)

    def _give(
        self,
        process: _Process,
        function: Callable[[A], R],
        job: Job[A],
        queue: _Queue[A],
        working: dict[Connection, tuple[_Process, Job[A]]],
    ) -> None:
        try:
            process.connection.send_bytes(packed(function, job))
        except OSError:  # it was ended while it was free, so not by this job
            self._forget(process, queue)
            queue.put_back(job)
        else:
            working[process.connection] = process, job

    def _forget(self, process: _Process, queue: _Queue[Any]) -> None:
        """End a process; another one does the jobs of its homes."""
        process.end()
        self._processes.remove(process)
        for home in [home for home, owner in self._owners.items() if owner is process]:
            del self._owners[home]
        queue.disown(process)


class _Queue(Generic[A]):
    """Jobs by their homes, and which process does them."""

    def __init__(self, jobs: Sequence[Job[A]], owners: dict[Hashable, _Process]) -> None:
        self._owners = owners
        self.unowned: dict[Hashable, deque[Job[A]]] = {}
        self._owned: dict[_Process, dict[Hashable, deque[Job[A]]]] = {}
        for job in jobs:
            of_owner = self._homes_of(owners.get(job.home))
            of_owner.setdefault(_home(job), deque()).append(job)

    def __bool__(self) -> bool:
        return bool(self.unowned) or any(self._owned.values())

    def next_for(self, process: _Process) -> Job[A] | None:
        """Take a job: of a home of this process, then of no process, then of one with several."""
        mine = self._homes_of(process)
        if not mine:
            others = max(self._owned.values(), key=len, default={})
            if self.unowned:
                home = next(iter(self.unowned))
                mine[home] = self.unowned.pop(home)
            elif len(others) > 1:
                home, jobs = others.popitem()
                mine[home] = jobs
            else:
                return None
        home, jobs = next(iter(mine.items()))
        job = jobs.popleft()
        if not jobs:
            del mine[home]
        if job.home is not None:
            self._owners[job.home] = process
        return job

    def put_back(self, job: Job[A]) -> None:
        """Take a job again, before all others that no process owns."""
        jobs = self.unowned.pop(_home(job), deque())
        jobs.appendleft(job)
        self.unowned = {_home(job): jobs, **self.unowned}

    def disown(self, process: _Process) -> None:
        """Give the homes of a process free."""
        self.unowned = {**self._owned.pop(process, {}), **self.unowned}

    def _homes_of(self, process: _Process | None) -> dict[Hashable, deque[Job[A]]]:
        return self.unowned if process is None else self._owned.setdefault(process, {})


def _home(job: Job[Any]) -> Hashable:
    """Return the key of a job's home; one without a home has its own."""
    return id(job) if job.home is None else (job.home,)


class _Process:
    """A process that makes one call at a time."""

    def __init__(self) -> None:
        # All are forks of one process that has imported what a replay needs, where the system has
        # forks; this process itself may have threads, so it is not the one that forks.
        context: contexts.ForkServerContext | contexts.SpawnContext
        if "forkserver" in multiprocessing.get_all_start_methods():
            context = multiprocessing.get_context("forkserver")
        else:
            context = multiprocessing.get_context("spawn")
        context.set_forkserver_preload(["policyctx.replay.running"])
        self.connection, other = context.Pipe()
        arguments = other, __version__, {**os.environ}
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        other.close()

    @property
    def pid(self) -> int | None:
        """Its number, None before it has one."""
        return self._process.pid

    def end(self) -> None:
        """End the process."""
        self.connection.close()
        self._process.terminate()
        self._process.join()


def _check_descriptors(pipes: int) -> None:
    """Raise `OSError` where so few are free that a fork server would print a traceback."""
    with ExitStack() as free:
        for _ in range(pipes):
            for end in multiprocessing.Pipe():
                free.enter_context(end)


def _serve(connection: Connection, version: str, environment: Mapping[str, str]) -> None:
    """Answer each call with its result, until the other end is closed."""
    os.environ.clear()  # a fork has that of the first one's time
    os.environ.update(environment)
    # Ctrl-C and a closed terminal are for the process that started this one.
    for name in ("SIGINT", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(result_of_call(version, connection.recv_bytes()))
