"""Large files in parts: any number of parts gives each recording once, as the whole file does."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from policyctx.replay.executing import Here
from policyctx.replay.places import RecordingFile, WorkPart, files, parts, told_apart
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from tests.conversations import session_of

SESSIONS = [session_of(text * 50) for text in "abcdefg"]
LINES = "\n".join(map(json.dumps, SESSIONS))


class Elsewhere(Here):
    """Does the jobs here, and is asked for parts as if other processes did them."""

    is_here = False


def known(path: Path, content: str) -> RecordingFile:
    """A file of which it is known how many recordings it has."""
    path.write_text(content, encoding="utf-8")
    (file,) = told_apart(files([path]), Elsewhere(), part_bytes=1)
    return file


def recordings(made: list[WorkPart]) -> list[Recording]:
    return list(chain.from_iterable(part.recordings() for part in made))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> RecordingFile:
    # The last line is none; its count belongs to the last recording.
    return known(tmp_path_factory.mktemp("parts") / "a.jsonl", f'{LINES}\n{{"torn')


@pytest.mark.parametrize("of", range(1, 8))
def test_any_number_of_parts_gives_each_recording_once(file: RecordingFile, of: int) -> None:
    made = parts([file], part_bytes=-(-file.bytes // of))
    assert len(made) == of
    assert recordings(made) == list(recordings_in(Path(str(file.path))))
    assert sum(part.bytes for part in made) == file.bytes


def test_a_file_has_no_more_parts_than_recordings(file: RecordingFile) -> None:
    assert len(parts([file], part_bytes=1)) == len(SESSIONS)


def test_a_file_with_one_recording_is_one_part(tmp_path: Path) -> None:
    one = known(tmp_path / "a.jsonl", "\n".join(map(json.dumps, chain(*SESSIONS))))
    assert parts([one], part_bytes=10) == [WorkPart(one)]


def test_a_document_has_parts_too(tmp_path: Path) -> None:
    tasks = [{"task_id": i, "trial": 0, "traj": said} for i, said in enumerate(SESSIONS)]
    made = parts([known(tmp_path / "a.json", json.dumps(tasks, indent=1))], part_bytes=1000)
    assert len(made) > 1
    assert recordings(made) == list(recordings_in(tmp_path / "a.json"))


def test_the_sessions_before_a_time_are_in_no_part(tmp_path: Path) -> None:
    log = [
        {"model": "m", "conversation_id": str(at), "messages": SESSIONS[0], "timestamp": at}
        for at in range(6)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, log)), encoding="utf-8")
    made = parts(told_apart(files([path], since=3.0), Elsewhere(), part_bytes=1), part_bytes=1)
    assert [one.calls[0].at for one in recordings(made)] == [3.0, 4.0, 5.0]
    assert len(made) == 3


def test_a_call_that_an_earlier_part_has_is_counted_once(tmp_path: Path) -> None:
    response = {"id": "r1", "role": "assistant", "content": "so"}
    log = [
        {"model": "m", "conversation_id": name, "messages": SESSIONS[0], "response": response}
        for name in "ab"
    ]
    file = known(tmp_path / "a.jsonl", "\n".join(map(json.dumps, log)))
    first, second = parts([file], part_bytes=1)
    assert [len(one.calls) for part in (first, second) for one in part.recordings()] == [1, 0]


def test_a_file_that_cannot_be_read_is_one_part(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no recording", encoding="utf-8")
    large = replace(files([tmp_path])[0], bytes=10**9)
    assert len(parts(told_apart([large], Elsewhere()))) == 1
