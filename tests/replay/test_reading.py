from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.reading import files_in, recordings_in, recordings_of
from policyctx.replay.recording import Recording


def line(**more: Any) -> str:
    message = {"role": "user", "content": "go"}
    record = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s"}
    return json.dumps({**record, "message": message, **more})


def read(*lines: str) -> Recording:
    (recording,) = recordings_of("\n".join(lines).encode(), "session", partial=True)
    return recording


def test_a_recording_may_begin_with_any_record() -> None:
    recording = read(json.dumps({"type": "summary", "summary": "x"}), line())
    assert recording.messages() == [{"role": "user", "content": "go"}]


def test_a_file_may_begin_in_the_middle_of_a_session() -> None:
    assert len(read(line(parentUuid="before the file")).messages()) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["[]", "5", "null"],
        ["null"],
        [json.dumps({"type": "user", "message": {"role": "user", "content": "go"}})],
        [json.dumps({"type": "summary", "parentUuid": None, "sessionId": "s"})],
    ],
)
def test_an_unknown_format_is_rejected(lines: list[str]) -> None:
    with pytest.raises(UnreadableRecordingError, match="none of the known formats") as raised:
        read(*lines)
    assert raised.value.format is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        (b"[]", "it is empty"),
        (b"not JSON", "neither JSON nor JSON lines"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "neither JSON nor JSON lines"),
        (b'{"messages": [{"role": "us', "neither JSON nor JSON lines"),
        (b"[" * 100_000, "neither JSON nor JSON lines"),
        (b"PK\x03\x04 and no more", "an archive that cannot be read"),
    ],
)
def test_a_file_without_records_is_rejected_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(UnreadableRecordingError, match=why):
        list(recordings_of(content, "session"))


@pytest.mark.parametrize("torn", ['{"type": "us', "\0", "[" * 100_000, '"' + "1" * 5000])
def test_an_unreadable_line_is_counted_and_skipped(torn: str) -> None:
    recording = read(torn, line(), torn)
    assert (recording.records, len(recording.messages())) == (3, 1)
    assert recording.not_understood == {"line that is not JSON": 2}


@pytest.mark.parametrize("odd", ["[1]", '"text"', "5"])
def test_a_record_that_is_not_an_object_is_counted(odd: str) -> None:
    recording = read(line(), odd)
    assert (recording.records, recording.not_understood) == (2, {"record that is not an object": 1})


def test_an_empty_line_is_not_a_record() -> None:
    recording = read("", line(), " ", "\r")
    assert (recording.records, recording.not_understood) == (1, {})


def test_a_byte_order_mark_and_carriage_returns_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(f"\ufeff{line()}\r\n{line()}\r\n".encode())
    (recording,) = recordings_in(path)
    assert (recording.records, recording.not_understood) == (2, {})


def test_a_file_that_cannot_be_opened_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecordingError, match="No such file") as raised:
        list(recordings_in(tmp_path / "missing.jsonl"))
    assert raised.value.path == str(tmp_path / "missing.jsonl")


def test_files_are_found_in_folders_in_their_order(tmp_path: Path) -> None:
    for name in ("b/2.jsonl", "b/1.jsonl", "a.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = [str(path.relative_to(tmp_path)) for path in files_in([tmp_path])]
    assert found == ["a.jsonl", "b/1.jsonl", "b/2.jsonl"]
    assert list(files_in([tmp_path / "a.jsonl"])) == [tmp_path / "a.jsonl"]


def test_cyclic_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert list(files_in([tmp_path])) == [tmp_path / "a.jsonl"]


def test_a_missing_path_is_listed_and_reported_when_it_is_read(tmp_path: Path) -> None:
    assert list(files_in([tmp_path / "missing"])) == [tmp_path / "missing"]


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecordingError, match="Is a directory"):
        list(recordings_in(tmp_path))


def test_a_callers_name_prefixes_those_of_the_recordings(tmp_path: Path) -> None:
    path = tmp_path / "lists.jsonl"
    path.write_text('[{"role": "user", "content": "go"}]\n' * 2, encoding="utf-8")
    found = [recording.name for recording in recordings_in(path, name="a/lists")]
    assert found == ["a/lists#1", "a/lists#2"]
