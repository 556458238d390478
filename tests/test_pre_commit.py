"""The hooks for pre-commit run the command, and for the right files."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import policyctx

ROOT = Path(__file__).parents[1]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
POLICY = """
apiVersion: policyctx/v1
name: retire
items: {tool_result: {offload: true, keep_recent: 1}}
steps: [{name: retire, do: offload}]
"""
FEATURE = """
Feature: What leaves
  Scenario: The older of two results leaves
    Given the policy "retire.policy.yaml"
    And 2 results of 600 tokens from Bash
    When the policy is applied
    Then only the 1st result is offloaded
"""


def hook(name: str, cwd: Path, *files: str) -> tuple[int, str]:
    """Run a hook as pre-commit does: with the files that it matches behind its entry."""
    settings = HOOKS[name]
    program, *words = shlex.split(settings["entry"])
    assert program == "policyctx"
    wanted = [file for file in files if re.search(settings["files"], file)]
    assert wanted
    passed = wanted if settings.get("pass_filenames", True) else []
    run = policyctx(*words, *passed, cwd=cwd)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "retire.policy.yaml").write_text(POLICY, encoding="utf-8")
    agents = "apiVersion: policyctx/v1\nagents: {'*': ./retire.policy.yaml}\n"
    (tmp_path / "policyctx.yaml").write_text(agents, encoding="utf-8")
    (tmp_path / "retire.feature").write_text(FEATURE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["policyctx-check", "policyctx-agents"])
def test_a_hook_finds_the_error_of_a_policy(name: str, folder: Path) -> None:
    changed = ("retire.policy.yaml", "policyctx.yaml", "other.yaml")
    assert hook(name, folder, *changed)[0] == 0
    wrong = POLICY.replace("keep_recent", "keep_recents")
    (folder / "retire.policy.yaml").write_text(wrong, encoding="utf-8")
    code, output = hook(name, folder, *changed)
    assert (code, "PC101" in output) == (1, True)


@pytest.mark.slow
def test_a_hook_runs_the_features(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # Without any feature the command fails.
    assert hook("policyctx-test", folder, "retire.policy.yaml")[0] == 0


def test_the_hook_for_features_installs_what_the_extra_names() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = extras["project"]["optional-dependencies"]["bdd"]
    assert HOOKS["policyctx-test"]["additional_dependencies"] == wanted
