"""The figures over compactions that another author has planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.carrying import judged

ORDERS = {
    "out": "Never push to main.",
    "turned": "Never delete a tag.",
    "same": "Always write the tests first.",
    "other": "The staging port is 8081.",
}
SUMMARY = "Tags may be deleted. Always write the tests first. Staging listens on 8081."


def test_what_is_carried_is_counted_by_what_became_of_it_in_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "recording.json"
    recorded.write_text(json.dumps([{"role": "user", "content": "Go."}] * 4), encoding="utf-8")
    planted = [{"said": said, "fate": fate} for fate, said in ORDERS.items()]
    planted.append({"said": "It rains today.", "fate": "out"})
    one = {"recording": str(recorded), "share": 0.5, "summary": SUMMARY, "planted": planted}
    file = tmp_path / "planted.jsonl"
    file.write_text(json.dumps(one) + "\n", encoding="utf-8")
    judged(str(file))
    assert capsys.readouterr().out.splitlines() == [
        "missing (out): 1 of 2 carried (50.0%)",
        "missing (turned): 1 of 1 carried (100.0%)",
        "missing (out, turned): 2 of 3 carried (66.7%)",
        "present (same): 1 of 1 left out (100.0%)",
        "present (other): 1 of 1 left out (100.0%)",
        "present (same, other): 2 of 2 left out (100.0%)",
        "no point: 1 of 5 sentences (20.0%)",
    ]
