from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.replay.recording import read_recording


def line(**more: Any) -> str:
    message = {"role": "user", "content": "go"}
    record = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s"}
    return json.dumps({**record, "message": message, **more})


def test_a_recording_is_read_whatever_its_first_records_are() -> None:
    recording = read_recording([json.dumps({"type": "summary", "summary": "x"}), line()])
    assert recording is not None
    assert recording.messages == [{"role": "user", "content": "go"}]


def test_a_file_may_begin_in_the_middle_of_a_session() -> None:
    recording = read_recording([line(parentUuid="before the file")])
    assert recording is not None
    assert len(recording.messages) == 1


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["not JSON"],
        ["[]", "5", "null"],
        [json.dumps({"role": "user", "content": "go"})],
        [json.dumps({"messages": [{"role": "user", "content": "go"}]})],
        [json.dumps({"type": "user", "message": {"role": "user", "content": "go"}})],
        [json.dumps({"type": "summary", "parentUuid": None, "sessionId": "s"})],
    ],
)
def test_what_no_reader_knows_is_no_recording(lines: list[str]) -> None:
    assert read_recording(lines) is None


@pytest.mark.parametrize("torn", ['{"type": "us', "[1]", '"text"', "5", "\0", "[" * 100_000])
def test_an_unreadable_line_is_counted_and_passed_over(torn: str) -> None:
    recording = read_recording([torn, line(), torn])
    assert recording is not None
    assert (recording.records, recording.unreadable) == (3, 2)
    assert len(recording.messages) == 1


def test_an_empty_line_is_no_record() -> None:
    recording = read_recording(["\n", f"{line()}\n", " \n"])
    assert recording is not None
    assert (recording.records, recording.unreadable) == (1, 0)
