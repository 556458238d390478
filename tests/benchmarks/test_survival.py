"""The survival of planted facts: what counts as one, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.survival import Fact, fate_of, histories, main, wilson
from policyctx.compaction.extractive.writing import Group
from policyctx.compaction.rounds import SourcedLine
from policyctx.definitions.items import Message
from tests.conversations import user

PLANTED = Path(__file__).parents[2] / "benchmarks" / "planted"


def fact(*values: str, superseded: tuple[str, ...] = ()) -> Fact:
    return Fact("h-f1", "fact", "en", values, superseded, 0, "What?", "That.")


OLD, NEW = "- The cap is 500.", "- The cap is 900."


def said(text: str, message: int | None) -> SourcedLine:
    return SourcedLine(text, message, user=True, group=str(Group.USER))


@pytest.mark.parametrize(
    ("lines", "fate"),
    [
        ([said(NEW, 3)], (True, False, False)),
        ([said("- The  CAP is\u00a0900.", 3)], (True, False, False)),
        ([said(OLD, 1)], (False, True, False)),
        ([said(OLD, 1), said(NEW, 3)], (True, False, True)),
        ([said(NEW, 3), said(OLD, 5)], (True, True, False)),
        ([said("- The cap is 900.\n  replaces: 500", 3)], (True, False, False)),
        ([said("- The cap is 900 instead of 500.", 3)], (True, False, False)),
        ([said("- Port 1500 or 500.5 or 2,500.", 4)], (False, False, False)),
        ([SourcedLine("- a.py: read 500", None, group=str(Group.FILES))], (False, False, False)),
        ([], (False, False, False)),
    ],
)
def test_a_fact_survives_with_its_value_and_without_a_newer_old_one(
    lines: list[SourcedLine], fate: tuple[bool, bool, bool]
) -> None:
    assert fate_of(fact("900", superseded=("500",)), lines) == fate


def test_any_spelling_is_enough() -> None:
    assert fate_of(fact("19 March", "03-19"), [said("On 2026-03-19.", 1)]).present


@pytest.mark.parametrize(
    ("successes", "trials", "interval"),
    [(0, 0, (0.0, 1.0)), (10, 10, (0.7225, 1.0)), (50, 100, (0.4038, 0.5962))],
)
def test_the_interval_is_wilsons(
    successes: int, trials: int, interval: tuple[float, float]
) -> None:
    assert wilson(successes, trials) == pytest.approx(interval, abs=1e-4)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    messages: list[dict[str, Any]] = []
    for i in range(8):
        messages += [
            user(f"Never touch the folder part-{i}."),
            {"role": "assistant", "content": f"I look at something else. {'So it goes. ' * 30}"},
        ]
    facts: list[dict[str, Any]] = [
        {
            "id": f"h-f{i}",
            "kind": "safety_rule" if i % 2 else "hard_limit",
            "language": "en",
            "value": f"part-{i}",
            "superseded": [],
            "message": 2 * i,
            "question": f"May folder {i} be touched?",
            "answer": "no",
        }
        for i in range(8)
    ]
    folder = tmp_path / "set"
    folder.mkdir()
    history = {"id": "h", "language": "en", "messages": messages, "facts": facts}
    (folder / "01.json").write_text(json.dumps(history), encoding="utf-8")
    return folder


def test_the_report_has_kinds_rounds_and_budgets(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(planted), "--rounds", "2", "--budget", "20", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {(row["name"], row["budget"]) for row in found["kind"]} == {
        ("hard_limit", 20), ("hard_limit", 40), ("safety_rule", 20), ("safety_rule", 40),
    }  # fmt: skip
    by_round = {row["name"]: row["facts"] for row in found["round"] if row["budget"] == 40}
    assert by_round["2"] == 8
    assert 0 < by_round["1"] < 8
    (larger,) = [row for row in found["all"] if row["budget"] == 40]
    assert larger["survived"] == 8
    assert larger["low"] < 1.0 == larger["high"]


def test_the_baseline_is_measured_on_the_same_sets(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "read")
    given = [str(planted), "--baseline", "--rounds", "2", "--budget", "40", "--json"]
    assert main([*given, "--write", folder]) == 0
    (row,) = json.loads(capsys.readouterr().out)["all"]
    assert (row["facts"], row["budget"]) == (8, 40)
    assert 0 < row["survived"] <= 8
    lines = (Path(folder) / "h-40.txt").read_text(encoding="utf-8").split("<<<\n")[1].split("\n>>>")
    assert {line[:2] for line in lines[0].split("\n")} <= {"> ", "< ", "* "}


def test_summaries_are_written_with_questions_and_a_key(planted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "read"
    main([str(planted), "--budget", "40", "--write", str(folder)])
    text = (folder / "h-40.txt").read_text(encoding="utf-8")
    assert "h-f3: May folder 3 be touched?" in text
    assert "Never touch the folder part-3." in text
    assert '"answer"' not in text
    key = [json.loads(line) for line in (folder / "key.jsonl").read_text().splitlines()]
    assert [one["counted"] for one in key] == [True] * 8
    assert {one["file"] for one in key} == {"h-40.txt"}


def test_a_file_that_is_no_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"messages": []}', encoding="utf-8")
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "x.json: not a history with planted facts" in capsys.readouterr().err


def test_a_folder_is_read_in_the_order_of_its_names(planted: Path) -> None:
    other = json.loads((planted / "01.json").read_text()) | {"id": "first"}
    (planted / "00.json").write_text(json.dumps(other), encoding="utf-8")
    assert [one.id for one in histories([planted])] == ["first", "h"]


def test_a_file_of_lines_has_a_history_in_each(planted: Path, tmp_path: Path) -> None:
    history = json.loads((planted / "01.json").read_text())
    file = tmp_path / "set.jsonl"
    lines = [json.dumps(history | {"id": name}, ensure_ascii=False) for name in ("a", "b")]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    assert [one.id for one in histories([file])] == ["a", "b"]


def words_of(message: Message) -> str:
    """Return all text of a message and its results."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (b.get("text") or b.get("content") for b in content)))


@pytest.mark.parametrize("name", ["development", "frozen"])
def test_each_fact_of_a_set_stands_in_its_message_and_what_it_supersedes_before(name: str) -> None:
    facts = 0
    for history in histories([PLANTED / f"{name}.jsonl"]):
        said = [words_of(message) for message in history.messages]
        for one in history.facts:
            facts += 1
            assert one.values[0] in said[one.message], one.id
            before = said[: one.message + 1]
            assert all(any(old in text for text in before) for old in one.superseded), one.id
    assert facts > 500
