"""A call that several files hold, as those of a resumed session and its parent, counts once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.replay.cluster import executor
from policyctx.replay.executing import Here
from policyctx.replay.places import WorkPart, files, told_apart
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import ModelCall, Recording
from tests.cli.running import policyctx

Record = dict[str, Any]
SIZES = {1: 1_000, 2: 2_000, 3: 3_000, 4: 4_000, 5: 5_000}


def turn(number: int, parent: str | None, session: str) -> list[Record]:
    """A prompt and the reply that was billed for it, as Claude Code writes them."""
    links = {"sessionId": session, "timestamp": f"2026-01-01T00:00:{number:02}Z"}
    usage = {"input_tokens": SIZES[number], "output_tokens": 10}
    message = {
        "id": f"msg_{number}", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": f"answer {number}"}], "usage": usage,
    }  # fmt: skip
    asked = {"role": "user", "content": f"question {number}"}
    names = f"{session}-q{number}", f"{session}-a{number}"
    return [
        {"type": "user", "uuid": names[0], "parentUuid": parent, "message": asked, **links},
        {"type": "assistant", "uuid": names[1], "parentUuid": names[0], "message": message,
         "requestId": f"req_{number}", **links},
    ]  # fmt: skip


def session(path: Path, *numbers: int) -> Path:
    """Write a session with these turns."""
    records: list[Record] = []
    for number in numbers:
        records += turn(number, records[-1]["uuid"] if records else None, path.stem)
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def read_recording(path: Path) -> Recording:
    [recording] = recordings_in(path)
    return recording


def read(folder: Path, *, jobs: int = 1) -> dict[str, list[Recording]]:
    with executor(jobs, None) as workers:
        found = list(told_apart(files([folder]), workers))
    return {file.path.name: list(WorkPart(file).recordings()) for file in found}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_resumed_session_counts_only_its_own_calls(tmp_path: Path, jobs: int) -> None:
    session(tmp_path / "a.jsonl", 1, 2)
    session(tmp_path / "b.jsonl", 1, 2, 3)
    found = read(tmp_path, jobs=jobs)
    (parent,), (resumed,) = found["a.jsonl"], found["b.jsonl"]
    assert ([one.id for one in parent.calls], parent.repeated) == (
        ["msg_1 req_1", "msg_2 req_2"],
        0,
    )
    (call,) = resumed.calls
    assert (resumed.repeated, call.anew, call.usage and call.usage.prompt) == (2, True, 3_000)
    texts = ["question 1", "answer 1", "question 2", "answer 2", "question 3"]
    pairs = zip(call.new, texts, strict=True)
    assert all(text in str(message["content"]) for message, text in pairs)
    assert len(resumed.messages()) == 6


def test_a_fork_has_the_calls_that_its_parent_lacks(tmp_path: Path) -> None:
    session(tmp_path / "a.jsonl", 1, 2, 4)
    session(tmp_path / "b.jsonl", 1, 2, 3, 5)
    found = [one for listed in read(tmp_path).values() for one in listed]
    assert [call.id[:5] for one in found for call in one.calls] == [
        "msg_1", "msg_2", "msg_4", "msg_3", "msg_5",
    ]  # fmt: skip


def test_a_file_alone_is_not_read_twice(tmp_path: Path) -> None:
    path = session(tmp_path / "a.jsonl", 1, 2)
    (file,) = told_apart(files([path]), Here())
    assert not file.repeated


def test_a_session_that_is_left_out_takes_no_call_from_another(tmp_path: Path) -> None:
    session(tmp_path / "a.jsonl", 1, 2)
    session(tmp_path / "b.jsonl", 1, 2, 3)
    first = read_recording(tmp_path / "a.jsonl").last
    assert first is not None
    found = told_apart(files([tmp_path], since=first + 0.5), Here())
    left = [one for file in found for one in WorkPart(file).recordings()]
    assert [(len(one.calls), one.repeated) for one in left] == [(3, 0)]


def test_an_empty_id_is_never_a_repeated_one() -> None:
    calls = tuple(ModelCall((), id=one) for one in ("", "1", "", "1"))
    assert len(Recording("s", "chat", calls).counted_once({""}).calls) == 3


def test_a_compaction_among_the_repeated_calls_begins_the_next_one_anew() -> None:
    said = {"role": "user", "content": "go"}
    first = ModelCall((said,), anew=True, id="1")
    summed = ModelCall((said, said), anew=True, why_anew="compaction", id="2")
    third = ModelCall((said,), id="3")
    recording = Recording("s", "chat", (first, summed, third))
    kept = recording.counted_once({"2"})
    assert [(len(one.new), one.anew, one.why_anew) for one in kept.calls] == [
        (1, True, None),
        (3, True, "compaction"),
    ]
    assert recording.counted_once({"3"}).messages() == recording.messages()
    assert recording.counted_once({"2", "3"}).messages() == recording.messages()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_commands_count_a_call_once_and_say_how_many_were_repeated(
    tmp_path: Path, jobs: str
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    session(folder / "a.jsonl", 1, 2)
    session(folder / "b.jsonl", 1, 2, 3)
    session(folder / "c.jsonl", 1)
    note = (
        "note: 3 calls in 2 files repeat calls of the same or another file, and are counted once\n"
    )
    for command in (("replay", "coding-agent"), ("diff", "coding-agent", "small-context")):
        run = policyctx(*command, folder, "--json", "--jobs", jobs, cwd=tmp_path)
        report = json.loads(run.stdout)
        assert [report.get("total"), *report.get("totals", ())][-1]["calls"] == 3
        assert report["repeated_calls"] == {
            str(folder / "b.jsonl"): 2,
            str(folder / "c.jsonl"): 1,
        }
        assert note in run.stderr
    assert note in policyctx("replay", "coding-agent", folder, cwd=tmp_path).stderr
    assert note in policyctx("tune", folder, cwd=tmp_path).stderr
