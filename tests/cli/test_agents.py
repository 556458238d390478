from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import policyctx

FILE = """\
apiVersion: policyctx/v1
agents:
  coder: coding-agent
  research-*: {extends: ./base.yaml, min_tokens: 9}
  "*": ./base.yaml
"""
BASE = "apiVersion: policyctx/v1\nname: base\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policyctx.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path


def cells(stdout: str) -> list[list[str]]:
    return [re.split(" {2,}", line.strip()) for line in stdout.splitlines()]


def test_each_agent_is_shown_with_its_policy_and_line(folder: Path) -> None:
    run = policyctx("agents", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert cells(run.stdout) == [
        ["agent", "policy", "written at", "loads"],
        ["coder", "coding-agent", "policyctx.yaml:3", "ok"],
        ["research-*", "written there", "policyctx.yaml:4", "ok"],
        ["*", "./base.yaml", "policyctx.yaml:5", "ok"],
    ]


def test_the_nearest_file_above_a_folder_is_read(folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    run = policyctx("agents", "--directory", folder / "a/b")
    assert f"{folder / 'policyctx.yaml'}:3" in run.stdout
    assert policyctx("agents", cwd=folder / "a").stdout == run.stdout


def test_the_json_option_prints_the_agents_as_json(folder: Path) -> None:
    report = json.loads(policyctx("agents", "--json", cwd=folder).stdout)
    assert report["file"] == "policyctx.yaml"
    assert [agent["policy"] for agent in report["agents"]] == ["coding-agent", None, "./base.yaml"]
    assert report["agents"][1] == {
        "agent": "research-*",
        "policy": None,
        "file": "policyctx.yaml",
        "line": 4,
        "errors": [],
    }


def test_wrong_entries_are_counted_and_each_error_is_reported_once(folder: Path) -> None:
    (folder / "base.yaml").write_text(f"{BASE}stor: {{}}\nmin_chars: x\n", encoding="utf-8")
    wrong = FILE.replace("coding-agent", "codng-agent")
    (folder / "policyctx.yaml").write_text(wrong, encoding="utf-8")
    run = policyctx("agents", cwd=folder)
    assert run.returncode == 1
    # The min_tokens of research-* replaces the min_chars of the file that it extends.
    assert [row[-1] for row in cells(run.stdout)] == ["loads", "1 error", "1 error", "2 errors"]
    said = [line for line in run.stderr.splitlines() if ": PC" in line]
    base = folder / "base.yaml"
    assert said == [
        f"{base}:3:1: PC101: unknown key 'stor'; did you mean 'store'?",
        f"{base}:4:12: PC103: expected a whole number, got 'x'",
        "policyctx.yaml:3:10: PC001: no policy 'codng-agent': it is neither a file nor a preset;"
        " did you mean 'coding-agent'? The presets are claude-code, coding-agent, context-compact,"
        " context-filesystem, context-offload, few-re-reads, small-context, tool-direct-offload",
    ]


def test_errors_are_in_the_json_too(folder: Path) -> None:
    (folder / "base.yaml").unlink()
    run = policyctx("agents", "--json", cwd=folder)
    assert run.returncode == 1
    errors = [agent["errors"] for agent in json.loads(run.stdout)["agents"]]
    assert [[error["code"] for error in found] for found in errors] == [[], ["PC201"], ["PC001"]]


def test_a_file_of_the_wrong_form_is_refused(folder: Path) -> None:
    (folder / "policyctx.yaml").write_text("agents: {}\nagnts: {}\n", encoding="utf-8")
    run = policyctx("agents", cwd=folder)
    assert (run.returncode, run.stdout) == (1, "")
    assert [line for line in run.stderr.splitlines() if ": PC" in line] == [
        "policyctx.yaml:1:1: PC102: the key 'apiVersion' is missing",
        "policyctx.yaml:2:1: PC101: unknown key 'agnts'; did you mean 'agents'?",
    ]


def test_a_file_without_entries_is_reported(folder: Path) -> None:
    (folder / "policyctx.yaml").write_text(
        "apiVersion: policyctx/v1\nagents: {}\n", encoding="utf-8"
    )
    run = policyctx("agents", cwd=folder)
    assert (run.returncode, run.stdout) == (0, "policyctx.yaml has no entries\n")


def test_a_missing_file_error_lists_the_searched_folders(tmp_path: Path) -> None:
    run = policyctx("agents", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"policyctx.yaml: PC205: no such file in {tmp_path}, ")


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    assert policyctx("agents", "--directory", tmp_path / "typo").returncode == 2


def test_errors_are_annotations_for_github(folder: Path) -> None:
    assert policyctx("agents", "--format", "github", cwd=folder).stdout == ""
    (folder / "base.yaml").write_text(f"{BASE}min_token: 9\n", encoding="utf-8")
    run = policyctx("agents", "--format", "github", cwd=folder)
    place = f"file={folder / 'base.yaml'},title=PC101,line=3,col=1"
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith(f"::error {place}::unknown key 'min_token'")
    (folder / "policyctx.yaml").write_text("agents: {}\n", encoding="utf-8")
    run = policyctx("agents", "--format", "github", cwd=folder)
    assert run.stdout.startswith("::error file=policyctx.yaml,title=PC")
