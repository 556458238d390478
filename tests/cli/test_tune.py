from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from policyctx import OffloadPolicy
from policyctx.tuning import settings
from tests.cli.running import policyctx
from tests.cli.test_replay import INTERRUPTS, interrupted
from tests.replay.test_running import claude_code

pytestmark = pytest.mark.slow

# It takes only results that are larger than any of the recordings has.
INCUMBENT = """
apiVersion: policyctx/v1
name: mine
min_tokens: 6000
model:
  cache: {min_tokens: 0}
  price: {input: 3.0, cache_write: 3.0, cache_read: 3.0, output: 15.0}
items: {tool_result: {offload: true}}
steps: [{name: retire, do: offload, select: {keep_recent: 1}}]
"""


def recorded(folder: Path, projects: int) -> Path:
    """Write a session for each of so many projects; all tokens cost the same."""
    sessions = folder / "sessions"
    for project in range(projects):
        (sessions / f"p{project}").mkdir(parents=True)
        texts = [f"row {project} {i} is fine\n" * 120 for i in range(4 + project % 3)]
        claude_code(sessions / f"p{project}" / "s.jsonl", *texts)
    (folder / "mine.yaml").write_text(INCUMBENT, encoding="utf-8")
    return sessions


def tuned(folder: Path, *more: str | Path) -> dict[str, Any]:
    run = policyctx("tune", folder / "sessions", "--policy", folder / "mine.yaml", "--json", *more)
    assert run.returncode == 0, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    return report


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with eight projects, what was written there, and the report in JSON."""
    folder = tmp_path_factory.mktemp("tune")
    recorded(folder, 8)
    return folder, tuned(folder, "-o", folder / "out.yaml", "--report", folder / "out.html")


def test_the_smaller_threshold_that_saves_is_found(whole: tuple[Path, dict[str, Any]]) -> None:
    _, report = whole
    assert report["tested"]["holds"]
    assert report["winner"]["setting"]["min_tokens"] < 1000
    assert report["winner"]["net"] < 0
    [against, *_] = report["comparisons"]
    low, high = against["interval"]
    assert low <= against["difference"] <= high < 0


def test_the_winner_is_written_as_a_policy_with_its_figures(
    whole: tuple[Path, dict[str, Any]],
) -> None:
    folder, report = whole
    written = (folder / "out.yaml").read_text(encoding="utf-8")
    assert written.startswith("# tuned ")
    assert "seed 0" in written
    assert "extends: ./mine.yaml" in written
    policy = OffloadPolicy.load(folder / "out.yaml").policy
    assert policy.name == "mine-tuned"
    assert policy.min_tokens == report["winner"]["setting"]["min_tokens"]
    assert f"+min_tokens: {policy.min_tokens}" in report["diff"]


def test_the_verdict_says_what_the_change_costs_elsewhere(
    whole: tuple[Path, dict[str, Any]],
) -> None:
    folder, report = whole
    [before] = [row for row in report["rows"] if row["kind"] == "incumbent"]
    after = report["winner"]
    [verdict] = re.findall("^# verdict   (.*)$", (folder / "out.yaml").read_text(), re.MULTILINE)
    assert f" saves ${before['net'] - after['net']:,.2f} more; " in verdict
    assert (
        f"tokens to read again: {before['regret_tokens']:,} → {after['regret_tokens']:,};"
        in verdict
    )
    assert verdict.endswith(f"{before['dearer']} → {after['dearer']} of 8")


def test_the_front_holds_each_row_that_no_other_one_beats(
    whole: tuple[Path, dict[str, Any]],
) -> None:
    rows = whole[1]["rows"]

    def is_beaten(row: dict[str, Any]) -> bool:
        points = [(one["net"], one["regret_tokens"]) for one in rows]
        net, regret = row["net"], row["regret_tokens"]
        return any(x <= net and y <= regret and (x, y) != (net, regret) for x, y in points)

    assert {row["setting"] for row in rows if not is_beaten(row)} == {
        row["setting"] for row in rows if row["on_front"]
    }
    assert {"incumbent", "front"} <= {row["kind"] for row in rows}


def test_the_words_of_the_settings_are_explained(whole: tuple[Path, dict[str, Any]]) -> None:
    _, report = whole
    words = {
        word for row in report["rows"] if row["kind"] == "front" for word in row["setting"].split()
    }
    said = " ".join(report["legend"])
    assert "min_tokens" in words
    assert all(word in said for word in words if word in settings.KNOBS)


def test_the_page_has_every_setting_that_was_judged(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, report = whole
    page = (folder / "out.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="study">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1])["judged"] == report["judged"]


def test_two_processes_find_the_same_as_one(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, report = whole
    assert tuned(folder, "--jobs", "2") == report


def test_below_eight_projects_the_presets_are_ranked(tmp_path: Path) -> None:
    sessions = recorded(tmp_path, 2)
    run = policyctx(
        "tune", sessions, "--policy", tmp_path / "mine.yaml", "-o", tmp_path / "out.yaml"
    )
    assert run.returncode == 0
    assert "presets only: below 8 projects" in run.stdout
    rows = [
        line.split()[0] for line in run.stdout.splitlines() if " of 2  " in line and "%" in line
    ]
    assert rows[:2] == ["nothing", "summarise-only"]
    assert {"coding-agent", "mine.yaml"} <= set(rows)
    assert "is not written: presets are ranked only" in run.stderr
    assert not (tmp_path / "out.yaml").exists()


def test_the_file_may_be_the_project(tmp_path: Path) -> None:
    recorded(tmp_path, 2)
    report = tuned(tmp_path, "--project-by", "file")
    assert {one["project"] for one in report["sessions"]} == {
        str(tmp_path / "sessions" / f"p{i}" / "s.jsonl") for i in (0, 1)
    }


def test_sessions_without_prices_are_an_error_that_names_the_model(tmp_path: Path) -> None:
    sessions = recorded(tmp_path, 1)
    run = policyctx("tune", sessions)
    assert run.returncode == 1
    assert "error: no session has prices: there are none for a model that the" in run.stderr


def test_a_broken_file_is_listed_and_the_rest_is_tuned(tmp_path: Path) -> None:
    sessions = recorded(tmp_path, 1)
    (sessions / "broken.jsonl").write_text('[{"role": "user", "content": 5}]', encoding="utf-8")
    run = policyctx("tune", sessions, "--policy", tmp_path / "mine.yaml")
    assert run.returncode == 1
    assert f"error: {sessions / 'broken.jsonl'}: no message is in it" in run.stderr
    assert "over 1 session of 1 project" in run.stdout


def test_a_folder_without_recordings_is_an_error(tmp_path: Path) -> None:
    run = policyctx("tune", tmp_path)
    assert run.returncode == 1
    assert "error: no recording" in run.stderr


def test_the_incumbent_is_never_overwritten(tmp_path: Path) -> None:
    sessions = recorded(tmp_path, 1)
    mine = tmp_path / "mine.yaml"
    run = policyctx("tune", sessions, "--policy", mine, "-o", mine)
    assert run.returncode == 1
    assert "it is the policy that is tuned" in run.stderr


@pytest.mark.parametrize("number", INTERRUPTS)
def test_an_interrupt_while_recordings_are_read_ends_with_130(
    number: signal.Signals, tmp_path: Path
) -> None:
    done = claude_code(tmp_path / "a.jsonl", "text")
    run, _, err = interrupted(done, tmp_path / "b.jsonl", command=("tune",), number=number)
    assert run == 130
    assert "interrupted: 1 of 2 files are done" in err


def test_the_end_of_the_terminal_keeps_the_best_so_far(tmp_path: Path) -> None:
    recorded(tmp_path, 32)
    master, slave = pty.openpty()
    # Who opens a terminal as the first of a session is ended with it.
    program = 'exec "$@" <"$0" >"$0" 2>&1'
    command = [sys.executable, "-c", "from policyctx.cli import main; main()", "tune", "sessions"]
    options = ["--policy", "mine.yaml", "--report", "out.html"]
    run = subprocess.Popen(
        ["/bin/sh", "-c", program, os.ttyname(slave), *command, *options],
        cwd=tmp_path,
        start_new_session=True,
        # The tests may run where the signal is ignored, as under `nohup`.
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - one thread
    )
    shown = b""
    while b"batch 2" not in shown:
        shown += os.read(master, 4096)
    os.close(slave)
    os.close(master)
    assert run.wait(60) != 0
    assert '"interrupted":true' in (tmp_path / "out.html").read_text(encoding="utf-8")
