"""The features reach every rule of the shipped presets, and notice when one says something else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from policyctx.policy.sources import preset_names
from tests.cli.running import policyctx

REPOSITORY = Path(__file__).parents[2]
# The features of documents that a preset of another folder fulfils.
FOLDERS = {"context-offload": ("context-offload", "ratio-gate")}
# Every preset takes half a minute; one is a sample of what the command can do for the others.
MUTATED = preset_names() if os.environ.get("POLICYCTX_MUTATE") == "all" else preset_names()[:1]


@pytest.fixture(autouse=True)
def _only_the_plugins_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load only the plugin that this project's settings need, not every installed one."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p timeout")


def features_of(preset: str) -> list[str]:
    return [f"features/{folder}" for folder in FOLDERS.get(preset, (preset,))]


@pytest.mark.slow
def test_every_rule_of_every_preset_decides_in_some_scenario(tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    named = [option for name in preset_names() for option in ("--cov-of", name)]
    run = policyctx("test", "features", *named, "--cov-json", report, cwd=REPOSITORY)
    assert run.returncode == 0, run.stdout
    policies = json.loads(report.read_text(encoding="utf-8"))["policies"]
    assert {p["name"]: p["percent"] for p in policies} == dict.fromkeys(preset_names(), 100)


@pytest.mark.slow
@pytest.mark.parametrize("preset", MUTATED)
def test_a_preset_with_one_value_changed_is_noticed(preset: str) -> None:
    accept = REPOSITORY / "features" / preset / "mutants.yaml"
    listed = ["--accept", str(accept)] if accept.exists() else []
    run = policyctx(
        "test", *features_of(preset), "--mutate", preset, "--jobs", "1", *listed, cwd=REPOSITORY
    )
    assert run.returncode == 0, run.stdout + run.stderr
