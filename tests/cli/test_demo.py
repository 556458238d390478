from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def output(folder: Path) -> str:
    run = policyctx("demo", "--dir", folder / "run")
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_output_shows_each_call_the_saving_and_next_steps(output: str, folder: Path) -> None:
    lines = [line.rstrip() for line in output.splitlines()]
    calls = [line.split() for line in lines if line[:4].strip().isdigit()]
    assert [call[0] for call in calls] == [str(n) for n in range(1, len(calls) + 1)]
    assert any(
        "read_file planner.py: " in line and " newest of all, 5 kept" in line for line in lines
    )
    assert any(" offloaded to " in line for line in lines)
    assert any(line.startswith("tokens sent in ") and "(−" in line for line in lines)
    run = folder / "run"
    assert lines[-3] == f"  cd {run}"


def test_output_fits_eighty_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = policyctx("demo", "--dir", folder / "80")
    lines = run.stdout.replace(str(folder / "80"), "/usr/policyctx-demo-123456").splitlines()
    assert max(map(len, lines)) <= 80
    [head] = [line.split() for line in lines if line.split()[:1] == ["call"]]
    assert head[-3:] == ["offloaded,", "and", "why"]


def test_the_repair_is_real(output: str, folder: Path) -> None:
    assert output
    session = json.loads((folder / "run" / "session.json").read_text(encoding="utf-8"))
    results = [
        block["content"]
        for message in session
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    runs = [text for text in results if "Ran " in text]
    assert [text.strip().splitlines()[-1] for text in runs] == ["FAILED (failures=2)", "OK", "OK"]


def test_the_commands_that_it_shows_work(output: str, folder: Path) -> None:
    shown = [line.split()[1:] for line in output.splitlines() if line.startswith("  policyctx ")]
    assert len(shown) == 2
    codes = [policyctx(*arguments, cwd=folder / "run").returncode for arguments in shown]
    assert codes == [0, 0]


def test_two_runs_differ_only_in_their_folders(folder: Path) -> None:
    reports = []
    for name in ("one", "two"):
        run = policyctx("demo", "--json", "--dir", folder / name)
        report = run.stdout.replace(str(folder / name), "FOLDER")
        reports.append(json.loads(report))
    assert reports[0] == reports[1]
    assert reports[0]["tokens_after"] < reports[0]["tokens_before"]


def test_a_folder_that_is_in_use_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    run = policyctx("demo", "--dir", tmp_path)
    assert (run.returncode, run.stderr) == (
        1,
        f"error: {tmp_path} is not empty: name another folder, or leave out --dir\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
