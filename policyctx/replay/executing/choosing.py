"""Which executor does the work, as the options of a command say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from policyctx.replay.executing.executor import Executor, Here
from policyctx.replay.executing.processes import Processes


@contextmanager
def executor(jobs: int = 1, scheduler: str | None = None) -> Iterator[Executor]:
    """Open what does the work, and close it in the end.

    That is this process, `jobs` processes, or the workers of a scheduler: `tcp://HOST:PORT`, or
    `local` for one that is started here with `jobs` workers. Raises `ClusterError` and
    `MissingExtraError`.
    """
    found = _executor(jobs, scheduler)
    try:
        yield found
    finally:
        found.close()


def _executor(jobs: int, scheduler: str | None) -> Executor:
    if scheduler is not None:
        from policyctx.replay.executing.cluster import Cluster  # noqa: PLC0415 - seldom needed

        return Cluster(scheduler, local_workers=jobs)
    return Here() if jobs == 1 else Processes(jobs)
