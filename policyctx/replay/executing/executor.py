"""`Executor`: does jobs in any order, and what all executors have in common."""

import pickle
import traceback
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from policyctx import __version__
from policyctx.definitions.items import HostObject
from policyctx.errors import ClusterError

A = TypeVar("A")
R = TypeVar("R")


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


class Executor(Protocol):
    """Calls a function with the argument of each job; closing it ends what it has started."""

    @property
    def workers(self) -> int:
        """How many jobs are done at a time; it may grow in a cluster."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether jobs are done in this process, one after the other."""
        ...

    def results(
        self, function: Callable[[A], R], jobs: Sequence[Job[A]]
    ) -> Generator[tuple[Job[A], R | LostJob], None, None]:
        """Yield each job with its result as soon as it is done; jobs are begun in their order.

        The job of a worker that was ended is done again by another one; a job that ends several
        workers is lost, and so is a result that cannot be pickled. What the function raises is
        raised here. Closing the generator cancels the jobs that are left.
        """
        ...

    def close(self) -> None:
        """End the processes that this executor has started."""
        ...


class Here:
    """Does the jobs in this process; implements `Executor`."""

    workers = 1
    is_here = True

    def results(
        self, function: Callable[[A], R], jobs: Sequence[Job[A]]
    ) -> Generator[tuple[Job[A], R | LostJob], None, None]:
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
