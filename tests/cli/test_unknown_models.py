"""What nobody knows of a model, its window or its price, is said by each command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.policies import HEAD
from tests.replay.readers.test_codex import beside, counted, said

AT_HALF = f"""{HEAD}steps:
  - {{name: cut, do: drop, when: {{tokens: {{at_least: 50%}}}}, select: {{types: [tool_result]}}}}
"""
TIER = {"type": "thread_settings_applied", "thread_settings": {"service_tier": "priority"}}
NOTE = "note: the window of unheard-of is not known: 200,000 tokens are assumed"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "half.yaml"
    path.write_text(AT_HALF, encoding="utf-8")
    return path


def rollout(folder: Path, model: str, **started: object) -> Path:
    path = folder / f"{model}.jsonl"
    records = [
        beside("turn_context", model=model),
        beside("event_msg", type="task_started", **started),
        beside("event_msg", **TIER),
        said("user", "go"),
        said("assistant", "done"),
        counted(2000, 2000),
    ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["plan", "explain", "apply"])
def test_a_window_that_is_assumed_is_said_of_messages(
    command: str, policy: Path, tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"model": "unheard-of", "messages": []}), encoding="utf-8")
    for given in (body, rollout(tmp_path, "unheard-of")):
        assert NOTE in policyctx(command, policy, given).stderr
    of_session = policyctx(
        command, policy, rollout(tmp_path, "unheard-of", model_context_window=258_400)
    )
    assert "gates see the window of unheard-of, 258,400 tokens" in of_session.stderr
    policy.write_text(f"{AT_HALF}model: {{context_window: 9000}}\n", encoding="utf-8")
    assert "window" not in policyctx(command, policy, body).stderr


@pytest.mark.parametrize("command", [("replay",), ("diff", "coding-agent")])
def test_a_replay_says_what_it_assumes_of_a_model(
    command: tuple[str, ...], policy: Path, tmp_path: Path
) -> None:
    unknown = policyctx(*command, policy, rollout(tmp_path, "unheard-of")).stdout
    assert "no price  for 1 session: 1 call to unheard-of" in unknown
    assert "window    200,000 tokens assumed for 1 call to unheard-of" in unknown
    early = policyctx(*command, policy, rollout(tmp_path, "gpt-5.5")).stdout
    assert "tier      1 call at the service tier priority have the standard prices here" in early
    today = policyctx(*command, policy, rollout(tmp_path, "gpt-5.5"), "--prices", "today").stdout
    assert "service tier" not in today
    told = rollout(tmp_path, "unheard-of", model_context_window=258_400)
    assert "assumed" not in policyctx(*command, policy, told).stdout


def test_tune_says_what_it_assumes_of_a_model(policy: Path, tmp_path: Path) -> None:
    run = policyctx("tune", rollout(tmp_path, "gpt-5.5"), "--policy", policy)
    assert "assumed: standard prices for the service tier priority" in run.stdout
    price = "{input: 3, cache_write: 3, cache_read: 1, output: 9}"
    policy.write_text(f"{AT_HALF}model: {{price: {price}}}\n", encoding="utf-8")
    run = policyctx("tune", rollout(tmp_path, "unheard-of"), "--policy", policy)
    assert "assumed: the window of unheard-of" in run.stdout


def test_a_replay_of_calls_at_a_service_tier_has_the_prices_of_the_tier(
    policy: Path, tmp_path: Path
) -> None:
    path = rollout(tmp_path, "gpt-5.5")
    command = ("replay", policy, path, "--prices", "today", "--json")
    at_priority = json.loads(policyctx(*command).stdout)["total"]
    path.write_text(path.read_text(encoding="utf-8").replace("priority", "default"))
    standard = json.loads(policyctx(*command).stdout)["total"]
    assert at_priority["calls_with_tier"] == {}
    costs = [one["cost_without"]["dollars"] for one in (at_priority, standard)]
    assert costs == pytest.approx([2.5 * 0.01021, 0.01021])
