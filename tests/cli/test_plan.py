from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.policies import KEEP_FIVE


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(session_of("word " * 500, "short")), encoding="utf-8")
    return path


def test_the_table_shows_each_decision_and_its_reason(messages: Path, tmp_path: Path) -> None:
    run = policyctx("plan", "context-offload", messages, "--root", tmp_path / "root")
    lines = [line.rstrip() for line in run.stdout.splitlines()]
    assert run.returncode == 0
    assert run.stderr == ""
    assert "      2  c0    Bash     501     13  offload   large: 2,500 >= 100 chars" in lines
    assert "      4  c1    Bash       1      1  keep      below_threshold: 5 < 100 chars" in lines
    assert lines[0].startswith("context: 506 → ")
    assert lines[0].endswith(f"; 1 of 2 items would be offloaded to {tmp_path / 'root'}")


def test_items_that_closed_gates_leave_alone_are_one_line(messages: Path, tmp_path: Path) -> None:
    policy = tmp_path / "gated.yaml"
    step = "{name: retire, do: offload, when: {tokens: {at_least: 90000}}}"
    head = "apiVersion: policyctx/v1\nname: gated\nmin_tokens: 0\n"
    text = f"{head}items: {{tool_result: {{offload: true}}}}\nsteps: [{step}]\n"
    policy.write_text(text, encoding="utf-8")
    shown = policyctx("plan", policy, messages, "--root", tmp_path).stdout
    assert "closed gates leave 1 item alone; --details shows why\n" in shown
    assert "gate_closed" not in shown
    shown = policyctx("plan", policy, messages, "--root", tmp_path, "--details").stdout
    assert shown.count("gate_closed") == 1
    assert "closed gates" not in shown


def test_nothing_is_written(messages: Path, tmp_path: Path) -> None:
    policyctx("plan", "context-offload", messages, "--root", tmp_path / "root")
    assert list(tmp_path.iterdir()) == [messages]


def test_the_json_option_prints_json(messages: Path) -> None:
    report = json.loads(policyctx("plan", "context-offload", messages, "--json").stdout)
    assert [d["decision"] for d in report["decisions"]] == ["offload", "keep"]
    assert report["decisions"][1]["reason"] == {
        "code": "below_threshold",
        "size": 5,
        "threshold": 100,
        "unit": "chars",
        "sentence": "5 < 100 chars",
    }
    assert report["tokens_before"] > report["tokens_after"]


def test_plan_and_apply_agree(messages: Path, tmp_path: Path) -> None:
    options = ("--root", tmp_path / "r", "--session-id", "s", "--json")
    arguments = ("context-offload", messages, *options)
    planned = json.loads(policyctx("plan", *arguments).stdout)
    applied = json.loads(policyctx("apply", *arguments).stderr)
    assert planned == {key: applied[key] for key in planned}


def test_an_empty_list_is_left_unchanged(tmp_path: Path) -> None:
    run = policyctx("plan", "small-context", "-", "--root", tmp_path, stdin=b"[]")
    assert run.returncode == 0
    said = "context: 0 tokens, unchanged; 0 of 0 items would be offloaded\n"
    assert run.stdout == f"{said}no cache markers: the list is empty\n"


def test_a_narrow_terminal_breaks_no_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = session_of("word " * 5_000, "short", tool="mcp__github__search_issues")
    text = json.dumps(messages).replace('"c0"', '"toolu_01AbCdEfGhIjKlMnOpQrStUv"')
    monkeypatch.setenv("COLUMNS", "80")
    policy = tmp_path / "keep-five.yaml"
    policy.write_text(f"{KEEP_FIVE}model: {{cache: {{breakpoints: keep}}}}\n", encoding="utf-8")
    run = policyctx("plan", policy, "-", "--root", tmp_path, stdin=text.encode())
    rows = run.stdout.split("\n\n")[1].splitlines()
    assert max(map(len, rows)) <= 80
    assert rows[0].split() == ["item", "tool", "tokens", "decision", "why"]
    (row,) = [row for row in rows if "5,001" in row]
    assert row.split()[:3] == ["toolu_…rStUv", "mcp__git…h_issues", "5,001"]
    # The reason is a sentence, wrapped between its words.
    assert row.split()[3:] == ["keep", "recent:", "2nd", "newest", "of", "all,", "5"]
