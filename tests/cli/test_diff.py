from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.policies import KEEP_FIVE
from tests.replay.test_running import claude_code

TEXTS = [f"line {i} of some output\n" * (300 + 10 * i) for i in range(8)]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return claude_code(tmp_path / "long.jsonl", *TEXTS)


@pytest.fixture
def five(tmp_path: Path) -> Path:
    path = tmp_path / "keep-five.yaml"
    path.write_text(KEEP_FIVE, encoding="utf-8")
    return path


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    step = "{name: retire-old-results, do: drop, select: {types: [tool_result], keep_recent: 6}}"
    path.write_text(
        f"apiVersion: policyctx/v1\nname: mine\nextends: small-context\nsteps: [{step}]\n",
        encoding="utf-8",
    )
    return path


def test_totals_stand_side_by_side(session: Path, five: Path, mine: Path) -> None:
    run = policyctx("diff", five, mine, session)
    lines = [line.split() for line in run.stdout.splitlines()]
    assert run.returncode == 0
    assert lines[2] == ["without", "keep-five.yaml", "mine.yaml", "change"]
    assert ["items", "removed", "2", "2", "0", "%"] in lines


def test_items_decided_differently_are_listed_largest_first_with_both_reasons(
    session: Path, five: Path, mine: Path
) -> None:
    report = json.loads(policyctx("diff", five, mine, session, "--json").stdout)
    found = [
        (d["item_id"], d["item_type"], d["first"]["action"], d["second"]["action"])
        for d in report["differences"]
    ]
    assert found[:2] == [
        ("c1", "tool_result", "offload", "keep"),
        ("c0", "tool_result", "offload", "drop"),
    ]
    assert report["differences"][0]["first"]["reason"].endswith("6th newest of all, 5 kept")
    assert report["differences"][0]["second"]["reason"] == "6th newest of Bash, 6 kept"
    tokens = [d["tokens"] for d in report["differences"]]
    assert tokens == sorted(tokens, reverse=True)


def test_a_policy_does_not_differ_from_itself(session: Path) -> None:
    run = policyctx("diff", "small-context", "small-context", session)
    assert run.stdout.splitlines()[-1] == "every item has the same fate under both"


def test_only_the_largest_are_shown(session: Path, mine: Path) -> None:
    run = policyctx("diff", "small-context", mine, session, "--largest", "1")
    lines = run.stdout.splitlines()
    assert sum(line.startswith("  mine.yaml: ") for line in lines) == 1
    assert lines[-1].endswith("smaller items are not shown; --largest 0 shows all")


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    path = tmp_path / "priced.yaml"
    price = "{input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}"
    path.write_text(
        "apiVersion: policyctx/v1\nname: priced\nextends: ./mine.yaml\n"
        f"model: {{price: {price}}}\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def idle(tmp_path: Path, priced: Path) -> Path:
    path = tmp_path / "idle.yaml"
    path.write_text(
        f"apiVersion: policyctx/v1\nname: idle\nextends: ./{priced.name}\nmin_tokens: 100000\n"
        "steps: [{name: retire-old-results, remove: true}]\n",
        encoding="utf-8",
    )
    return path


def test_the_net_and_the_dearer_sessions_stand_side_by_side(
    session: Path, mine: Path, priced: Path, idle: Path
) -> None:
    assert mine.exists()
    run = policyctx("diff", idle, priced, session)
    rows = {line[:22].strip(): line[22:].split() for line in run.stdout.splitlines()}
    report = json.loads(policyctx("diff", idle, priced, session, "--json").stdout)
    nets = [one["net"]["dollars"] for one in report["totals"]]
    assert nets[0] == 0
    assert nets[1] != 0
    assert rows["net cost"][0] == "$0.00"
    assert f"${abs(nets[1]):.2f}" in rows["net cost"][3]
    assert rows["sessions dearer"] == ["0", "of", "1", f"{report['change']['dearer_sessions']}",
                                       "of", "1"]  # fmt: skip
    assert rows["policy never acted in"] == ["1", "0"]
    assert report["change"]["net_dollars"] == pytest.approx(nets[1])


def test_without_the_same_prices_there_is_no_net(session: Path, mine: Path, priced: Path) -> None:
    run = policyctx("diff", mine, priced, session)
    assert "no $: other sessions have prices under each policy" in run.stdout
    assert "0 under mine.yaml and 1 under priced.yaml" in run.stdout
    assert "net cost" not in run.stdout
    report = json.loads(policyctx("diff", mine, priced, session, "--json").stdout)
    assert report["change"]["net_dollars"] is None
