"""The action's steps, run as a runner does: bash, files for outputs and the summary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.replay.synthetic import encoded_lines, line_records

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
POLICY = """\
apiVersion: policyctx/v1
name: retire
items: {tool_result: {offload: true, keep_recent: 1}}
steps: [{name: retire, do: offload}]
"""
pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    log: str
    outputs: dict[str, str]
    summary: str


def ran(step: str, folder: Path, **inputs: str) -> Ran:
    """Run the step of this name, or id, in `folder` with the action's inputs."""
    [found] = [s for s in ACTION["runs"]["steps"] if step in {s.get("id"), s["name"]}]
    values = {name: one["default"] for name, one in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    temporary = folder.parent / f"{folder.name}-runner"
    temporary.mkdir(exist_ok=True)
    if not (temporary / "policyctx").exists():
        (temporary / "policyctx").symlink_to(sys.prefix)
    output, summary = temporary / "output", temporary / "summary"
    output.write_text("", encoding="utf-8")
    summary.write_text("", encoding="utf-8")
    own = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], text)
        for name, text in found["env"].items()
    }
    script = temporary / "step.sh"
    script.write_text(found["run"], encoding="utf-8")
    runner = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(temporary),
    }
    done = subprocess.run(
        ["/usr/bin/env", "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
        cwd=folder,
        env={**os.environ, **runner, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = output.read_text(encoding="utf-8").splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return Ran(done.returncode, done.stdout, outputs, summary.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a policy, and a private recording beside it."""
    (tmp_path / "work" / "policies").mkdir(parents=True)
    (tmp_path / "work" / "policies" / "a b.policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.jsonl").write_bytes(
        encoded_lines(line_records()["claude-code"])
    )
    return tmp_path / "work"


def test_policies_without_a_finding_pass(folder: Path) -> None:
    run = ran("check", folder)
    assert (run.code, run.outputs) == (0, {"errors": "0", "warnings": "0"})


def test_findings_are_annotations_and_counts(folder: Path) -> None:
    wrong = POLICY.replace("keep_recent", '"a\\n::error::planted"')
    (folder / "policies" / "wrong.policy.yaml").write_text(wrong, encoding="utf-8")
    name = "a\n::error::planted\u2028::error::planted.policy.yaml"
    (folder / name).write_text(wrong, encoding="utf-8")
    (folder / "policyctx.yaml").write_text("agents: {}\n", encoding="utf-8")
    run = ran("check", folder, policies="**/*.policy.yaml $(touch%here)")
    assert (run.code, run.outputs) == (1, {"errors": "4", "warnings": "0"})
    commands = [line for line in re.split(r"[\r\n]+", run.log) if line.startswith("::error")]
    assert len(commands) == 4
    assert "::error title=policyctx::no file matches $(touch%25here)" in commands
    assert "::error file=policies/wrong.policy.yaml,title=PC101,line=3,col=38::" in run.log
    assert "::error file=policyctx.yaml,title=PC102" in run.log


def test_a_replay_publishes_sums_alone(folder: Path) -> None:
    (folder.parent / "private" / "broken-secret.jsonl").write_text('{"type": "user"', "utf-8")
    recordings = f"{folder.parent / 'private' / 'secret.jsonl'}\n{folder / 'missing-secret'}\n"
    run = ran("replay", folder, recordings=recordings, replay_policy="policies/a b.policy.yaml")
    assert set(run.outputs) == {
        name for name, one in ACTION["outputs"].items() if "steps.replay" in one["value"]
    }
    assert run.outputs["sessions"] == "1"
    assert int(run.outputs["tokens-with"]) < int(run.outputs["tokens-without"])
    assert int(run.outputs["removed-items"]) > 0
    assert (run.code, run.outputs["failed-files"]) == (1, "1")
    assert "::notice title=policyctx replay::1 sessions, " in run.log
    assert "| removed items | " in run.summary
    published = run.log + run.summary + json.dumps(run.outputs)
    assert not re.search(r"secret|srv/data|read_file|QX-", published)


def test_a_replay_publishes_sessions_if_it_is_asked_to(folder: Path) -> None:
    odd = folder.parent / "private" / "a|b<script>.jsonl"
    odd.write_bytes(encoded_lines(line_records()["claude-code"]))
    run = ran("replay", folder, recordings=str(odd), publish_sessions="true")
    assert run.code == 0
    assert "| a\\|b\\<script\\>.jsonl | " in run.summary


def test_features_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    feature = """
Feature: What leaves
  Scenario: The older of two results leaves
    Given the policy "policies/a b.policy.yaml"
    And 2 results of 600 tokens from Bash
    When the policy is applied
    Then only the 1st result is offloaded
"""
    (folder / "a b.feature").write_text(feature, encoding="utf-8")
    run = ran("Run features", folder, features="a b.feature\n")
    assert (run.code, "1 passed" in run.log) == (0, True)


def test_no_text_of_an_input_becomes_part_of_a_script() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert scripts
    assert not any("${{" in script for script in scripts)


def test_every_output_is_one_of_a_step() -> None:
    ids = {step.get("id") for step in ACTION["runs"]["steps"]}
    outputs: dict[str, Any] = ACTION["outputs"]
    for name, one in outputs.items():
        found = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", one["value"])
        assert found
        assert found[1] in ids
        assert found[2] == name
