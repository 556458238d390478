"""`Cluster`: jobs on the workers of a dask scheduler, and which executor a replay takes."""

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

from policyctx import __version__
from policyctx.definitions.items import HostObject
from policyctx.errors import ClusterError, MissingExtraError, in_words
from policyctx.replay.executing import (
    Executor,
    Here,
    Job,
    LostJob,
    Processes,
    Results,
    packed,
    result_of_call,
    unpacked,
)

A = TypeVar("A")
R = TypeVar("R")

LOCAL = "local"
"""The name of a scheduler that is started on this machine, with its workers."""

_LONGEST_CONNECT_S = 20
# How often to look whether there are workers, and how long there may be none.
_LOOKS_S = 5
_LONGEST_ALONE_S = 60
# Jobs that the scheduler has for each worker: one is done, the others wait there.
_AHEAD = 3


class Cluster:
    """Does the jobs on the workers of a scheduler; implements `Executor`.

    The scheduler has only a few jobs for each worker at a time, so neither holds the whole work.
    Raises `ClusterError`, and `MissingExtraError` without dask.distributed.
    """

    is_here = False

    def __init__(self, scheduler: str, *, local_workers: int = 1) -> None:
        """Connect to the scheduler at an address; `local` starts one with `local_workers`."""
        self._api = _distributed()
        self._scheduler = scheduler
        self._local: Any = None
        self._client: Any = None
        self._homes: dict[Hashable, str] = {}
        """The address of the worker that does the jobs of a home."""
        # What goes wrong is raised; dask would print a traceback of its own above it.
        self._quiet = ExitStack()
        self._quiet.enter_context(self._api.utils.silence_logging_cmgr(logging.CRITICAL))
        try:
            if scheduler == LOCAL:
                self._local = self._api.LocalCluster(
                    n_workers=local_workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # any port that is free
                    silence_logs=logging.CRITICAL,
                )
            self._client = self._api.Client(self._local or scheduler, timeout=_LONGEST_CONNECT_S)
        except Exception as error:
            self.close()
            raise ClusterError(f"no scheduler at {scheduler}: {in_words(error)}") from error

    @property
    def workers(self) -> int:
        """How many jobs the cluster does at a time now, one in each thread of a worker."""
        return max(1, sum(self._threads().values()))

    def results(self, function: Callable[[A], R], jobs: Sequence[Job[A]]) -> Results[A, R]:
        """Yield each job with its result, as `Executor` says.

        A job that was begun on a worker of somebody else is done to its end even when it is
        cancelled; its result is dropped.
        """
        waiting = iter(jobs)
        running: dict[Any, Job[A]] = {}
        homes = {job.home: None for job in jobs if job.home is not None}
        self._spread(homes, list(self._threads()))
        try:
            free = _AHEAD * self.workers
            while True:
                running |= {self._begun(function, job): job for job in islice(waiting, free)}
                if not running:
                    return
                done = self._completed(list(running))
                for future in done:
                    yield running.pop(future), self._result(future)
                free = len(done)
        finally:
            if running and self._client.status == "running":
                self._client.cancel(list(running), force=True)

    def close(self) -> None:
        """Leave the scheduler; end it, and its workers, if it is `local`."""
        for one in (self._client, self._local):
            if one is not None:
                one.close(timeout=_LONGEST_CONNECT_S)
        self._client = self._local = None
        self._quiet.close()

    def _begun(self, function: Callable[[A], R], job: Job[A]) -> HostObject:
        address = self._homes.get(job.home)
        return self._client.submit(
            result_of_call,
            __version__,
            packed(function, job),
            pure=False,
            # A wish: if the worker has gone, another one does it.
            workers=None if address is None else [address],
            allow_other_workers=address is not None,
        )

    def _completed(self, futures: list[Any]) -> list[Any]:
        """Wait until one of the futures or more are done, and return these.

        Raises `ClusterError` if the scheduler goes, or if it has no worker for a long time.
        """
        alone_since = None
        while True:
            try:
                # `wait` takes the newest client of the process, which can be another one.
                with self._client.as_current():
                    found = self._api.wait(futures, timeout=_LOOKS_S, return_when="FIRST_COMPLETED")
            except TimeoutError:
                has_workers = bool(self._threads())
            except self._api.CancelledError as error:
                raise self._gone() from error
            else:
                return list(found.done)
            alone_since = None if has_workers else alone_since or time.monotonic()
            if alone_since is not None and time.monotonic() - alone_since > _LONGEST_ALONE_S:
                raise ClusterError(f"the scheduler at {self._scheduler} has no workers")

    def _spread(self, homes: dict[Hashable, None], addresses: Sequence[str]) -> None:
        """Choose a worker for each home that has none, or whose worker has gone."""
        known = set(addresses)
        load = dict.fromkeys(addresses, 0)
        for home in homes:
            if (address := self._homes.get(home)) in known:
                load[address] += 1
        for home in homes:
            if addresses and self._homes.get(home) not in known:
                self._homes[home] = least = min(load, key=load.__getitem__)
                load[least] += 1

    def _threads(self) -> dict[str, int]:
        """Return how many threads the worker at each address has."""
        if self._client.status != "running":
            raise self._gone()
        return dict(self._client.nthreads())

    def _result(self, future: HostObject) -> HostObject:
        try:
            raw = future.result()
        except self._api.KilledWorker:
            return LostJob("the workers that worked on it were ended")
        except Exception as error:
            if isinstance(error, ImportError):
                why = f"a worker cannot import policyctx: {in_words(error)}"
                raise ClusterError(why) from error
            raise self._gone() from error
        return unpacked(raw)

    def _gone(self) -> ClusterError:
        return ClusterError(f"the scheduler at {self._scheduler} has gone")


def _distributed() -> ModuleType:
    try:
        import distributed  # noqa: PLC0415 - heavy, and only for a cluster
    except ImportError as error:
        raise MissingExtraError("a cluster", extra="cluster") from error
    module: ModuleType = distributed
    return module


@contextmanager
def executor(jobs: int = 1, scheduler: str | None = None) -> Iterator[Executor]:
    """Open what does the work, and close it in the end.

    That is this process, `jobs` processes, or the workers of a scheduler: `tcp://HOST:PORT`, or
    `local` for one that is started here with `jobs` workers. Raises `ClusterError` and
    `MissingExtraError`.
    """
    found: Executor
    if scheduler is not None:
        found = Cluster(scheduler, local_workers=jobs)
    else:
        found = Here() if jobs == 1 else Processes(jobs)
    try:
        yield found
    finally:
        found.close()
