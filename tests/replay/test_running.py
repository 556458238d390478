from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import MessagesError
from policyctx.replay.cluster import executor
from policyctx.replay.places import Place, WorkPart, files
from policyctx.replay.recording import Recording
from policyctx.replay.running import Done, FailedRecording, Outcome, PassedOver, worked
from tests.conversations import session_of


def claude_code(path: Path, *contents: str) -> Path:
    """Write a session as Claude Code records one."""
    lines = []
    for i, message in enumerate(session_of(*contents)):
        record: dict[str, Any] = {"type": message["role"], "uuid": f"u{i}", "sessionId": "s"}
        record |= {"parentUuid": f"u{i - 1}" if i else None, "message": message}
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def calls_of(recording: Recording, path: str) -> tuple[str, int]:
    """What the tests have done, at the top of a module so that it can be pickled."""
    assert path.endswith(recording.name.split("#")[0])
    return recording.name, len(recording.calls)


def calls_after_its_pipe(recording: Recording, path: str) -> tuple[str, int]:
    """Wait for a writer of the pipe beside the recording, if there is one."""
    if (pipe := Path(path).with_suffix(".pipe")).exists():
        pipe.read_bytes()
    return calls_of(recording, path)


def by_file(outcomes: Iterable[Outcome[Any]]) -> dict[Place, list[Any]]:
    found: dict[Place, list[Any]] = {}
    of_file: list[Any] = []
    for outcome in outcomes:
        if isinstance(outcome, Done):
            found.setdefault(outcome.part.file.path, []).extend(of_file)
            of_file = []
        else:
            of_file.append(outcome)
    return found


def refuse_the_second(recording: Recording, path: str) -> str:
    if "2" in recording.name:
        raise MessagesError("not this one")
    return path


def fail_unexpectedly_at_the_second(recording: Recording, path: str) -> str:
    if "2" in recording.name:
        raise KeyError("surprise")
    return path


class UnpicklableError(Exception):
    def __reduce__(self) -> str:
        raise TypeError("cannot be pickled")


def return_the_second_unpicklable(recording: Recording, path: str) -> object:
    return UnpicklableError() if "2" in recording.name else path


def end_the_process_at_the_second(recording: Recording, path: str) -> str:
    if "2" in recording.name:
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def test_recordings_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        claude_code(tmp_path / f"{name}.jsonl", "x")
    found = [o for o in worked(files([tmp_path]), calls_of) if isinstance(o, tuple)]
    assert [name for name, _ in found] == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_a_file_found_twice_is_listed_once(tmp_path: Path) -> None:
    path = claude_code(tmp_path / "a.jsonl", "x")
    other = claude_code(tmp_path / "b.jsonl", "x")
    found = files([tmp_path, tmp_path / "." / "b.jsonl", other])
    assert [(file.path, file.named) for file in found] == [(path, False), (other, True)]


def test_several_processes_return_the_same_as_one(tmp_path: Path) -> None:
    for i in range(4):
        claude_code(tmp_path / f"{i}.jsonl", *["x"] * (i + 1))
    (tmp_path / "notes.txt").write_text("no recording", encoding="utf-8")
    found = files([tmp_path])
    with executor(2) as two:
        assert by_file(worked(found, calls_of, two)) == by_file(worked(found, calls_of))


@pytest.mark.slow
def test_the_file_that_is_finished_first_comes_first(tmp_path: Path) -> None:
    endless = claude_code(tmp_path / "a.jsonl", "x")
    os.mkfifo(endless.with_suffix(".pipe"))
    claude_code(tmp_path / "b.jsonl", "x")
    found = files([endless, tmp_path / "b.jsonl"])
    with executor(2) as two, closing(worked(found, calls_after_its_pipe, two)) as outcomes:
        assert next(outcomes) == ("b.jsonl", 1)


@pytest.mark.slow
def test_a_killed_worker_process_does_not_stop_the_rest(tmp_path: Path) -> None:
    paths = [claude_code(tmp_path / f"{i}.jsonl", "x") for i in (1, 2, 3)]
    with executor(2) as two:
        found = by_file(worked(files(paths), end_the_process_at_the_second, two))
    failure = FailedRecording(str(paths[1]), "the process that worked on it was ended")
    assert found == {
        paths[0]: [str(paths[0])],
        paths[1]: [failure],
        paths[2]: [str(paths[2])],
    }


def test_a_recording_that_fails_does_not_stop_the_rest(tmp_path: Path) -> None:
    paths = [claude_code(tmp_path / f"{i}.jsonl", "x") for i in (1, 2, 3)]
    outcomes = list(worked(files(paths), refuse_the_second))
    assert [o for o in outcomes if isinstance(o, str)] == [str(paths[0]), str(paths[2])]
    assert [o for o in outcomes if isinstance(o, FailedRecording)] == [
        FailedRecording(str(paths[1]), "not this one", "2.jsonl")
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_unexpected_exception_fails_only_its_recording(tmp_path: Path, jobs: int) -> None:
    paths = [claude_code(tmp_path / f"{i}.jsonl", "x") for i in (1, 2, 3)]
    with executor(jobs) as workers:
        found = by_file(worked(files(paths), fail_unexpectedly_at_the_second, workers))
    (failure,) = found[paths[1]]
    assert failure.recording == "2.jsonl"
    assert failure.why.startswith("unexpected KeyError: 'surprise' in test_running.py, line ")
    assert [found[paths[0]], found[paths[2]]] == [[str(paths[0])], [str(paths[2])]]


@pytest.mark.slow
def test_a_result_that_cannot_be_pickled_fails_only_its_file(tmp_path: Path) -> None:
    paths = [claude_code(tmp_path / f"{i}.jsonl", "x") for i in (1, 2, 3)]
    with executor(2) as two:
        found = by_file(worked(files(paths), return_the_second_unpicklable, two))
    (failure,) = found[paths[1]]
    assert "cannot be pickled" in failure.why
    assert [found[paths[0]], found[paths[2]]] == [[str(paths[0])], [str(paths[2])]]


@pytest.mark.slow
def test_a_path_that_cannot_be_looked_up_fails_alone(tmp_path: Path) -> None:
    good = claude_code(tmp_path / "good.jsonl", "x")
    loop, long = tmp_path / "loop", tmp_path / ("x" * 300)
    loop.symlink_to(loop)
    found = by_file(worked(files([loop, long, good]), calls_of))
    assert [type(found[path][0]) for path in (loop, long)] == [FailedRecording, FailedRecording]
    assert found[good] == [("good.jsonl", 1)]


def test_a_device_is_rejected() -> None:
    zero = Path("/dev/zero")
    (failure, _) = worked(files([zero]), calls_of)
    assert failure == FailedRecording(str(zero), "not a regular file: it is a device")


def test_a_pipe_without_a_writer_is_rejected_with_a_suggestion(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (failure, _) = worked(files([pipe]), calls_of)
    assert isinstance(failure, FailedRecording)
    assert failure.why == "it is a pipe, which can be read only once; save it as a file"


def test_other_files_in_a_folder_are_skipped(tmp_path: Path) -> None:
    other = tmp_path / "README.md"
    other.write_text("read me", encoding="utf-8")
    found = files([tmp_path])
    assert list(worked(found, calls_of)) == [PassedOver(str(other)), Done(WorkPart(found[0]))]


@pytest.mark.slow
def test_a_named_file_that_is_not_a_recording_fails(tmp_path: Path) -> None:
    other = tmp_path / "README.md"
    other.write_text("read me", encoding="utf-8")
    outcomes = list(worked(files([other]), calls_of))
    assert isinstance(outcomes[0], FailedRecording)


def test_a_file_deleted_after_listing_fails(tmp_path: Path) -> None:
    path = claude_code(tmp_path / "gone.jsonl", "x")
    found = files([tmp_path])
    path.unlink()
    assert list(worked(found, calls_of)) == [
        FailedRecording(str(path), "No such file or directory"),
        Done(WorkPart(found[0])),
    ]


def test_a_missing_file_fails(tmp_path: Path) -> None:
    outcomes = list(worked(files([tmp_path / "none.jsonl"]), calls_of))
    assert isinstance(outcomes[0], FailedRecording)
