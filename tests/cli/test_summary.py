"""`policyctx summary`: what a compaction would leave of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.conversations import user

ORDERS = [f"Never push to branch b{i}, it belongs to team {i}." for i in range(12)]


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    messages = [
        one
        for text in ORDERS
        for one in (user(text), {"role": "assistant", "content": "I leave it alone."})
    ]
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(messages), encoding="utf-8")
    return file


def test_the_summary_is_printed_and_its_size_goes_to_stderr(conversation: Path) -> None:
    run = policyctx("summary", conversation)
    assert run.returncode == 0
    assert all(f"- {order}" in run.stdout for order in ORDERS)
    assert "round 1 of 1: " in run.stderr
    assert "of 24 messages" in run.stderr


def test_each_line_names_its_message_on_demand_after_several_rounds(conversation: Path) -> None:
    run = policyctx("summary", conversation, "--rounds", "3", "--sources")
    for i, order in enumerate(ORDERS):
        assert f"- {order}  [message {2 * i}]" in run.stdout
    assert "round 3 of 3: " in run.stderr
    assert "and the summary before" in run.stderr


@pytest.mark.parametrize(
    ("option", "limit", "size"),
    [
        ("--max-words", "40", lambda text: len(text.split())),
        ("--max-chars", "300", len),
        ("--max-tokens", "60", None),
        ("--max-share", "20%", None),
    ],
)
def test_a_limit_of_the_options_holds(
    conversation: Path, option: str, limit: str, size: object
) -> None:
    run = policyctx("summary", conversation, option, limit, "--json")
    (one,) = json.loads(run.stdout)["rounds"]
    assert 0 < one["tokens"] < 200
    if callable(size):
        assert size(one["summary"]) <= int(limit)
    if option == "--max-tokens":
        assert one["tokens"] <= 60
    if option == "--max-share":
        assert one["tokens"] <= 0.2 * one["replaced_tokens"]


def test_the_report_has_every_round_with_its_lines(conversation: Path) -> None:
    run = policyctx("summary", conversation, "--rounds", "2", "--json")
    report = json.loads(run.stdout)
    assert [one["round"] for one in report["rounds"]] == [1, 2]
    assert sum(one["messages"] for one in report["rounds"]) == report["messages"] == 24
    last = report["rounds"][-1]
    assert "\n".join(line["text"] for line in last["lines"]) == last["summary"]
    assert {line["message"] for line in last["lines"] if line["user"]} == set(range(0, 24, 2))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-share", "lots"), "--max-share"),
        (("--rounds", "0"), "--rounds"),
        (("--policy", "coding-agnet"), "did you mean"),
        (("--call", "99"), "there is no 99"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(
    conversation: Path, arguments: tuple[str, ...], said: str
) -> None:
    run = policyctx("summary", conversation, *arguments)
    assert run.returncode != 0
    assert run.stdout == ""
    assert said in run.stderr


def test_an_empty_list_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text("[]", encoding="utf-8")
    run = policyctx("summary", file)
    assert run.returncode != 0
    assert run.stdout == ""


def test_the_help_has_an_example() -> None:
    assert "Example: policyctx summary session.jsonl" in policyctx("summary", "--help").stdout
