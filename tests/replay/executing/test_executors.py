"""Who does the work gives the same results, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import distributed
import pytest

from policyctx.errors import ClusterError, MissingExtraError, ReaderError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.cluster import Cluster, executor
from policyctx.replay.executing import (
    Executor,
    Here,
    Job,
    LostJob,
    Processes,
    result_of_call,
    unpacked,
)
from policyctx.replay.places import RecordingOrigin, files
from policyctx.replay.recording import Recording
from policyctx.replay.running import Done, LoadedPolicy, replayed, worked
from policyctx.tuning.evaluating import Evaluator
from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.drawing import IS_LONG
from tests.replay.test_running import claude_code
from tests.tuning.test_evaluating import CALLS, origins, outcomes, policy

__all__ = ["origins"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    """Take back Dask's hash seed, with which every later command would run in a new interpreter."""
    before = {**os.environ}
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with executor(2) as two:
        yield two


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    with executor(2, "local") as two:
        yield two


LIMITED = """
import resource
from policyctx.cli import main
resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0}))
main()
"""


@pytest.mark.parametrize(
    ("free", "command"),
    [
        (free, command)
        for i, free in enumerate((13, 14, 17, 20))
        for j, command in enumerate((("replay", "coding-agent"), ("tune",)))
        if IS_LONG or (i + j) % 2 == 0
    ],
)
def test_too_few_descriptors_for_processes_are_one_line_of_error(
    free: int, command: tuple[str, ...], tmp_path: Path
) -> None:
    folder, limited = tmp_path / "sessions", tmp_path / "limited.py"
    folder.mkdir()
    for name in "abcd":
        claude_code(folder / f"{name}.jsonl", name)
    limited.write_text(LIMITED.format(free), encoding="utf-8")
    run = policyctx(*command, folder, "--jobs", "4", program=limited)
    # A machine that is slow shows a line of progress before.
    *_, error = run.stderr.splitlines()
    assert (run.returncode, error) == (1, "error: Too many open files")
    assert "Traceback" not in run.stderr


@contextmanager
def dask(*words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `dask` with these words in a process of its own, and end it."""
    command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.terminate()


def connected(**to: str) -> Any:
    client: Any = distributed.Client  # it has no types
    return client(**to, timeout=60)


@contextmanager
def machines(folder: Path, workers: int = 2) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a scheduler and workers, as on several machines.

    Yields the address and the process of the scheduler.
    """
    file = folder / "scheduler.json"
    with ExitStack() as running:
        scheduler = running.enter_context(
            dask("scheduler", "--port", "0", "--scheduler-file", file)
        )
        place = ("--nworkers", str(workers), "--nthreads", "1", "--local-directory", folder)
        running.enter_context(dask("worker", "--scheduler-file", file, *place))
        with connected(scheduler_file=str(file)) as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address, scheduler


@pytest.fixture(scope="module")
def scheduler(cluster: Executor) -> Iterator[Executor]:
    """Another client of the scheduler of `cluster`, by its address."""
    assert isinstance(cluster, Cluster)
    with executor(1, cluster._client.scheduler.address) as one:
        yield one


@pytest.fixture(params=["processes", "cluster", "scheduler"])
def several(request: pytest.FixtureRequest) -> Executor:
    found: Executor = request.getfixturevalue(request.param)
    return found


def squared(number: int) -> int:
    if number == 7:
        raise ReaderError("seven", "is refused")
    return number * number


def pid_of(_: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def killed_once(marker: Path) -> str:
    """End the process that calls this first."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return marker.name


def killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_each_job_has_its_result(several: Executor) -> None:
    found = several.results(squared, [*map(Job, range(6))])
    assert sorted((job.argument, result) for job, result in found) == [
        (number, number * number) for number in range(6)
    ]


def test_what_a_job_raises_is_raised(several: Executor) -> None:
    with pytest.raises(ReaderError, match="seven"):
        list(several.results(squared, [Job(1), Job(7)]))
    assert [result for _, result in several.results(squared, [Job(3)])] == [9]


def test_jobs_of_one_home_are_done_by_one_process(several: Executor) -> None:
    jobs = [Job(number, home=f"home {number % 2}") for number in range(40)]
    by_home: dict[object, Counter[object]] = {}
    for _ in range(2):
        for job, pid in several.results(pid_of, jobs):
            by_home.setdefault(job.home, Counter())[pid] += 1
    # A scheduler may give a few jobs to another worker while theirs is slow.
    fewest = 40 if isinstance(several, Processes) else 32
    assert [pids.most_common(1)[0][1] >= fewest for pids in by_home.values()] == [True, True]


def test_a_job_that_ends_its_process_is_lost_and_no_other_one(processes: Executor) -> None:
    jobs = [Job(number) for number in range(4)]
    found = {job.argument: result for job, result in processes.results(killed_at_2, jobs)}
    assert found == {0: 0, 1: 1, 2: LostJob("the process that worked on it was ended"), 3: 9}


def killed_at_2(number: int) -> int:
    if number == 2:
        killed(number)
    return squared(number)


def test_results_that_are_not_asked_for_are_cancelled(several: Executor, tmp_path: Path) -> None:
    outcomes = several.results(touched, [Job(tmp_path / str(number)) for number in range(60)])
    next(outcomes)
    outcomes.close()
    begun = len(list(tmp_path.iterdir()))
    assert begun < 30
    assert [result for _, result in several.results(squared, [Job(3)])] == [9]


def touched(path: Path) -> None:
    path.touch()
    time.sleep(0.02)


def figured(marker: Path, policy: LoadedPolicy, recording: Recording, path: str) -> Any:
    """Replay a recording, and end the process in the middle of the third one of a file."""
    if recording.name.endswith("#3"):
        killed_once(marker)
    session = replayed(policy, recording, path)
    # How long it took is not a figure of the recording.
    calls = [str(call).partition("seconds=")[0] for call in session.calls]
    return session.name, session.steps, session.removals, calls, session.regrets


def by_part(found: Any) -> dict[Any, list[Any]]:
    of_file: dict[Any, list[Any]] = {}
    of_part: list[Any] = []
    for outcome in found:
        if isinstance(outcome, Done):
            of_file.setdefault(outcome.part.file.path, []).append((outcome.part.number, of_part))
            of_part = []
        else:
            of_part.append(outcome)
    return {
        path: [one for _, outcomes in sorted(found, key=lambda one: one[0]) for one in outcomes]
        for path, found in of_file.items()
    }


def test_a_killed_worker_changes_no_figure(several: Executor, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    texts = [f"line {i} of some output\n" * 300 for i in range(8)]
    for number in range(3):
        claude_code(folder / f"{number}.jsonl", *texts[: 3 + number])
    lines = (json.dumps(session_of(*texts[:count])) for count in (2, 5, 8, 3))
    (folder / "many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "notes.md").write_text("no recording", encoding="utf-8")
    given = LoadedPolicy(OffloadPolicy.load("small-context"))
    marker = tmp_path / "killed"
    work = partial(figured, marker, given)
    found = by_part(worked(files([folder]), work, several, part_bytes=30_000))
    assert marker.exists()
    assert len(found[folder / "many.jsonl"]) == 4
    assert found == by_part(worked(files([folder]), work))


def pid_marked(marker: Path) -> int:
    time.sleep(0.2)
    marker.touch()
    return os.getpid()


def test_a_client_that_is_newer_changes_nothing(tmp_path: Path) -> None:
    markers = [tmp_path / str(number) for number in range(3)]
    with executor(1, "local") as older, executor(1, "local"):
        found = older.results(pid_marked, [*map(Job, markers)])
        _, pid = next(found)
        while not markers[-1].exists():
            time.sleep(0.01)
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        again = [result for _, result in found]
    assert len(again) == 2
    assert pid not in again


def test_a_cluster_tunes_as_one_process_does(
    cluster: Executor, origins: list[RecordingOrigin]
) -> None:
    evaluator = Evaluator(origins, CALLS, executor=cluster)
    assert outcomes(evaluator, [policy()]) == outcomes(Evaluator(origins, CALLS), [policy()])


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"a worker has policyctx .*, and this is 9\.9"):
        unpacked(result_of_call("9.9", b""))


def test_no_scheduler_at_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyctx.replay.cluster._LONGEST_CONNECT_S", 0.2)
    with (
        pytest.raises(ClusterError, match="no scheduler at tcp://"),
        executor(1, "tcp://127.0.0.1:1"),
    ):
        pass


def test_a_scheduler_that_is_killed_is_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(60):
        claude_code(
            folder / f"{number}.jsonl", *(f"line {i} of {number}\n" * 300 for i in range(8))
        )
    with machines(tmp_path, workers=1) as (address, scheduler):
        words = ["replay", "small-context", str(folder), "--scheduler", address]
        command = [sys.executable, "-m", "policyctx", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            with connected(address=address) as client:
                while run.poll() is None and not any(client.processing().values()):
                    time.sleep(0.01)
            scheduler.kill()
            _, printed = run.communicate(timeout=60)
    assert printed.decode() == f"error: the scheduler at {address} has gone\n"
    assert run.returncode == 1


def test_a_cluster_without_workers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyctx.replay.cluster._LOOKS_S", 0.05)
    monkeypatch.setattr("policyctx.replay.cluster._LONGEST_ALONE_S", 0.1)
    with executor(0, "local") as none, pytest.raises(ClusterError, match="has no workers"):
        list(none.results(squared, [Job(1)]))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="cluster"), executor(1, "local"):
        pass


def test_one_job_needs_no_other_process() -> None:
    with executor(1) as one:
        assert isinstance(one, Here)
    with executor(3) as three:
        assert isinstance(three, Processes)
        assert not three._processes
