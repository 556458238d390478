from __future__ import annotations

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyctx.cli.progress import Bar, Progressed, gathered, interruptible, tell
from policyctx.replay.executing import Here
from policyctx.replay.places import files
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
    so_far = gathered(files([tmp_path]), calls_of, Here())
    read = [[*origin.part.recordings()][origin.index].name for origin in so_far.origins]
    assert [name for name, _ in so_far.results] == read == ["a.jsonl", "b.jsonl"]


@pytest.mark.slow
def test_a_wrong_scheduler_is_a_wrong_use(tmp_path: Path) -> None:
    run = policyctx("replay", "small-context", tmp_path, "--scheduler", "10.0.0.1:8786")
    assert run.returncode == 2
    assert "an address such as tcp://" in " ".join(run.stderr.split())


def test_off_a_terminal_each_while_a_line_says_how_far_the_work_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Bar("settings", seconds=0.05) as bar:
        bar.begin(200, "settings, batch 1")
        bar.advance(90)
        time.sleep(0.2)
    first, *_ = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"settings, batch 1: 45 % in 0:00:00(, about [\d:]+ left)?", first)


def _interruptible_work() -> None:
    with interruptible():
        pass


def test_work_in_another_thread_leaves_all_signals_as_they_are() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(_interruptible_work).result()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
