from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.running import policyctx
from tests.replay.test_running import claude_code

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "long.jsonl"
    claude_code(path, *[f"line {i} of some output\n" * 300 for i in range(8)])
    return path


def test_a_report_is_written_beside_the_tables(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    run = policyctx("replay", "small-context", recorded, "--report", out, "--report-text", "30")
    page = out.read_text(encoding="utf-8")
    assert run.returncode == 0
    assert run.stdout.startswith("session ")
    assert run.stderr == f"report: {out}, {out.stat().st_size:,} bytes\n"
    assert "line 3 of some output" in page
    assert "line 3 of some output\\nline 3 of some output" not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.jsonl", "out.html"]


@pytest.mark.parametrize(
    ("name", "why"), [("missing/out.html", "there is no folder"), (".", "it is a folder")]
)
def test_nothing_is_replayed_if_the_report_cannot_be_written(
    recorded: Path, tmp_path: Path, name: str, why: str
) -> None:
    run = policyctx("replay", "small-context", recorded, "--report", tmp_path / name)
    assert run.returncode == 1
    assert run.stdout == ""
    assert why in run.stderr
    assert str(tmp_path) in run.stderr


def test_a_report_covers_readable_files_and_names_unreadable_files(
    recorded: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{", encoding="utf-8")
    run = policyctx("replay", "small-context", recorded, broken, "--report", tmp_path / "out.html")
    assert run.returncode == 1
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert f'"missing":["error: {broken}: ' in page
    assert '"name":"long.jsonl"' in page
