from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.cli.progress import Progressed, gathered, tell
from policyctx.replay.executing.executor import Here
from policyctx.replay.running import FailedRecording
from tests.cli.running import policyctx
from tests.replay.test_running import calls_of, claude_code


def failed(count: int) -> Progressed[str]:
    failures = [
        FailedRecording(f"/{i}.jsonl", "torn", f"{i}.jsonl#1" if i else "") for i in range(count)
    ]
    return Progressed(results=["one"], failures=failures)


def test_few_failures_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    tell(failed(2))
    assert capsys.readouterr().err.splitlines() == [
        "error: /0.jsonl: torn",
        "error: /1.jsonl (1.jsonl#1): torn",
    ]


def test_many_failures_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    tell(failed(4))
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "error: 4 files and recordings could not be read or replayed:"
    assert [line.split() for line in lines] == [
        ["file", "recording", "why"],
        ["/0.jsonl", "torn"],
        *(["/" + name, name + "#1", "torn"] for name in ("1.jsonl", "2.jsonl", "3.jsonl")),
    ]


def test_each_result_has_the_place_of_its_recording(tmp_path: Path) -> None:
    for name in ("a", "b"):
        claude_code(tmp_path / f"{name}.jsonl", "x")
    so_far = gathered([str(tmp_path)], calls_of, Here())
    read = [[*origin.part.recordings()][origin.index].name for origin in so_far.origins]
    assert [name for name, _ in so_far.results] == read == ["a.jsonl", "b.jsonl"]


@pytest.mark.slow
def test_a_wrong_scheduler_is_a_wrong_use(tmp_path: Path) -> None:
    run = policyctx("replay", "small-context", tmp_path, "--scheduler", "10.0.0.1:8786")
    assert run.returncode == 2
    assert "an address such as tcp://" in " ".join(run.stderr.split())
