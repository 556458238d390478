"""The first line that a command prints answers the question that it is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.replay.test_running import claude_code

TEXTS = [f"line {i} of some output\n" * 300 for i in range(8)]
PRICE = "{input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}"


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    claude_code(folder / "long.jsonl", *TEXTS)
    claude_code(folder / "short.jsonl", "done")
    return folder


def policy(tmp_path: Path, name: str, keep_recent: int, *, price: str = PRICE) -> Path:
    path = tmp_path / f"{name}.yaml"
    path.write_text(
        f"apiVersion: policyctx/v1\nname: {name}\nmodel: {{price: {price}}}\n"
        f"items: {{tool_result: {{offload: true, keep_recent: {keep_recent}}}}}\n"
        "steps: [{name: retire, do: offload}]\n",
        encoding="utf-8",
    )
    return path


def first_line(*arguments: str | Path) -> str:
    return policyctx(*arguments).stdout.splitlines()[0]


def test_replay_says_what_the_policy_saves_and_where_it_acts(
    recordings: Path, tmp_path: Path
) -> None:
    two = policy(tmp_path, "two", 2)
    report = json.loads(policyctx("replay", two, recordings, "--json").stdout)["total"]["net"]
    paid = report["without"]["dollars"]
    dollars = f"${abs(report['dollars']):.2f} of the ${paid:.2f} of prompts"
    verb = "saved" if report["dollars"] <= 0 else "added"
    said = first_line("replay", two, recordings)
    assert said.startswith(f"{two} would have {verb} {dollars} (")
    assert " in the 2 sessions; it acted in 1" in said
    assert said.endswith(("; none is dearer", "; 1 is dearer"))


def test_replay_gives_tokens_where_no_session_has_prices(recordings: Path) -> None:
    said = first_line("replay", "coding-agent", recordings)
    assert said == "coding-agent would have changed nothing in the 2 sessions"
    said = first_line("replay", "context-offload", recordings)
    assert said.startswith("context-offload would have sent ")
    assert said.endswith(" in the 2 sessions; it acted in 1; no session has prices")


def test_replay_shows_the_accounts_of_the_cache_only_with_details(
    recordings: Path, tmp_path: Path
) -> None:
    two = policy(tmp_path, "two", 2)
    short = policyctx("replay", two, recordings).stdout
    full = policyctx("replay", two, recordings, "--details").stdout
    for account in ("ideal: ", "without a policy", "cache     ", "time      "):
        assert account not in short
        assert account in full
    assert len(short.splitlines()) <= 18
    assert short.splitlines()[-1].startswith("more      --details: ")


def test_diff_says_which_policy_costs_less(recordings: Path, tmp_path: Path) -> None:
    two, all_stay = policy(tmp_path, "two", 2), policy(tmp_path, "stay", 50)
    report = json.loads(policyctx("diff", all_stay, two, recordings, "--json").stdout)
    change = report["change"]["net_dollars"]
    word = "less" if change < 0 else "more"
    said = first_line("diff", all_stay, two, recordings)
    assert said.startswith(f"two.yaml would have cost ${abs(change):.2f} {word} than stay.yaml")
    assert " (dearer than no policy: stay.yaml 0, two.yaml 1)" in said
    assert said.endswith(" in the 2 sessions with 9 model calls")


def test_diff_gives_tokens_without_prices_and_names_no_difference(recordings: Path) -> None:
    said = first_line("diff", "coding-agent", "context-offload", recordings)
    assert said.startswith("context-offload would have sent ")
    assert said.endswith(" fewer tokens than coding-agent in the 2 sessions with 9 model calls")
    said = first_line("diff", "coding-agent", "coding-agent", recordings)
    assert said == "coding-agent and coding-agent do the same in the 2 sessions with 9 model calls"


def test_tune_says_whether_to_change_the_policy(recordings: Path, tmp_path: Path) -> None:
    two = policy(tmp_path, "two", 2).name
    said = first_line("tune", recordings, "--policy", tmp_path / two)
    assert said.startswith(
        f"try context-offload: of the presets it saves most, $0.07 (net of {two}: +$0.03);"
    )


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(session_of("word " * 500, "short", "new")), encoding="utf-8")
    return path


def test_plan_says_what_the_request_becomes(messages: Path, tmp_path: Path) -> None:
    run = policyctx("plan", "context-offload", messages, "--root", tmp_path / "root")
    said, empty, head, *_ = run.stdout.splitlines()
    assert said.startswith("context: 508 → ")
    assert said.endswith(f"; 1 of 3 items would be offloaded to {tmp_path / 'root'}")
    assert (empty, head.split()[:2]) == ("", ["message", "item"])


def test_explain_says_what_leaves_and_has_no_head_for_each_item(
    messages: Path, tmp_path: Path
) -> None:
    run = policyctx("explain", "context-offload", messages, "--root", tmp_path / "root")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("context: 508 → ")
    assert f"; 1 of 3 items would be offloaded to {tmp_path / 'root'}" in lines[0]
    assert not [line for line in lines if line.split() == ["step", "why", "says"]]
