"""The benchmark of revisions: what it counts, and how it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.revisions.__main__ import main, share

PAIRS: list[dict[str, object]] = [
    {"label": "supersedes", "first": "The cap is 80.", "second": "The cap is 81.", "stale": "80"},
    {"label": "supersedes", "first": "Be kind.", "second": "Sell the boat.", "stale": "kind"},
    {"label": "independent", "first": "Mail Kim.", "second": "Mail Bo.", "must_keep": ["Kim"]},
    {"label": "independent", "first": "The cap is 80.", "second": "The cap is 81."},
]


def write(tmp_path: Path, *pairs: dict[str, object]) -> str:
    path = tmp_path / "pairs.jsonl"
    lines = (json.dumps({"id": str(i), "language": "en", **pair}) for i, pair in enumerate(pairs))
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_figures_count_what_was_lost_what_is_stale_and_what_is_correct(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path, *PAIRS), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    counts = {name: (of["held"], of["of"]) for name, of in figures["all"].items()}
    assert counts == {"nothing lost": (3, 4), "nothing stale": (1, 2), "correct": (2, 4)}
    assert figures["independent"]["nothing lost"]["held"] == 1


def test_the_table_lists_the_pairs_that_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path, *PAIRS), "--wrong"]) == 0
    printed = capsys.readouterr().out
    assert "1 supersedes -> STALE kept" in printed
    assert "3 independent -> LOST replaced" in printed


def test_a_wrong_line_is_reported_with_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path, PAIRS[0], {"label": "other", "first": "", "second": ""})]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(("holds", "low"), [([True] * 200, 0.981), ([True] * 9 + [False], 0.596)])
def test_the_interval_is_that_of_wilson(holds: list[bool], low: float) -> None:
    assert share(holds).low == pytest.approx(low, abs=0.001)
