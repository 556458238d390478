from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyctx.policy.sources import preset_names
from tests.cli.running import policyctx


@pytest.mark.parametrize("preset", preset_names())
def test_a_shown_policy_is_shown_unchanged(preset: str, tmp_path: Path) -> None:
    shown = policyctx("show", preset).stdout
    path = tmp_path / "shown.yaml"
    path.write_text(shown, encoding="utf-8")
    assert policyctx("show", path).stdout == shown


def test_origins_name_the_file_and_line_of_each_value(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    text = "apiVersion: policyctx/v1\nname: own\nextends: coding-agent\nmin_tokens: 5\n"
    path.write_text(text, encoding="utf-8")
    lines = [line.split() for line in policyctx("show", path, "--origins").stdout.splitlines()]
    assert ["min_tokens", "5", f"{path}:4:13"] in lines
    assert any(
        line[0] == "placeholder" and line[-1].startswith("coding-agent.yaml:") for line in lines
    )
    rows = json.loads(policyctx("show", path, "--origins", "--json").stdout)
    assert {"key": "min_tokens", "value": 5, "place": f"{path}:4:13"} in rows


def test_the_json_option_prints_the_resolved_policy_as_json() -> None:
    assert json.loads(policyctx("show", "context-offload", "--json").stdout)["min_chars"] == 100


def test_a_wrong_policy_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("apiVersion: policyctx/v1\nname: own\nmin_chars: x\n", encoding="utf-8")
    run = policyctx("show", path)
    assert (run.returncode, run.stdout) == (1, "")
    assert "PC103" in run.stderr
