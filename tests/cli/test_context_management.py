"""`policyctx export anthropic` and `policyctx import anthropic`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx

ROOT = Path(__file__).parents[2]
FEATURE = ROOT / "features" / "server-edits"
EDITS = FEATURE / "context_management.json"
POLICY = FEATURE / "imported.yaml"
PAGE = (ROOT / "docs" / "context-management.md").read_text(encoding="utf-8")


def test_the_policy_of_the_features_is_the_import_of_the_edits_beside_it() -> None:
    run = policyctx("import", "anthropic", EDITS, "--name", "server-edits", "--strict")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == POLICY.read_text(encoding="utf-8")
    assert policyctx("check", POLICY).returncode == 0


def test_the_export_of_an_imported_policy_is_what_was_imported() -> None:
    run = policyctx("export", "anthropic", POLICY, "--strict")
    assert (run.returncode, json.loads(run.stdout)) == (0, json.loads(EDITS.read_text("utf-8")))
    assert run.stderr == "send it with betas: compact-2026-01-12, context-management-2025-06-27\n"


def test_what_stays_behind_is_listed_with_its_place_and_reason() -> None:
    run = policyctx("export", "anthropic", "small-context")
    assert run.returncode == 0
    assert [edit["type"] for edit in json.loads(run.stdout)["edits"]] == [
        "clear_tool_uses_20250919",
        "compact_20260112",
    ]
    lines = run.stderr.splitlines()
    assert lines[1] == "14 steps or keys stay behind:"
    assert lines[2] == (
        "  small-context.yaml:16:5: steps.retire-old-results: an edit has one trigger, and no"
        " alternatives"
    )
    assert lines[-2].startswith("  by default: compaction.summary.by: ")


def test_the_page_shows_the_first_lines_that_the_command_prints() -> None:
    run = policyctx("export", "anthropic", "small-context")
    assert "".join(run.stderr.splitlines(keepends=True)[:3]) in PAGE


def test_strict_exits_with_1_and_prints_the_edits_all_the_same() -> None:
    run = policyctx("export", "anthropic", "claude-code", "--strict")
    assert (run.returncode, json.loads(run.stdout)) == (1, {"edits": []})


def test_the_page_says_that_coding_agent_clears_all_results_over_the_assumed_window() -> None:
    run = policyctx("export", "anthropic", "coding-agent")
    assert json.loads(run.stdout)["edits"][0] == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 200_000},
        "keep": {"type": "tool_uses", "value": 0},
    }
    assert "until: the server clears all but what `keep` says" in run.stderr
    assert "context_window" not in run.stderr
    assert "`coding-agent` clears every tool result once the prompt has more than 200,000" in PAGE


def test_a_tool_that_a_glob_pins_is_cleared_like_the_others(tmp_path: Path) -> None:
    file = tmp_path / "pins.yaml"
    file.write_text(
        "apiVersion: policyctx/v1\nname: pins\nitems: {tool_result: {offload: true}}\n"
        'tools: {"mcp__*": {pin: true}, Bash: {pin: true}}\n'
        "steps:\n  - {name: late, do: clear, select: {types: [tool_result]}}\n"
    )
    run = policyctx("export", "anthropic", file)
    [edit] = json.loads(run.stdout)["edits"]
    assert edit["exclude_tools"] == ["Bash"]
    assert "tools.mcp__*.pin: the server takes names, and no globs: mcp__*" in run.stderr


def test_a_step_on_overflow_stays_behind(tmp_path: Path) -> None:
    file = tmp_path / "overflow.yaml"
    file.write_text(
        "apiVersion: policyctx/v1\nname: overflow\nitems: {tool_result: {offload: true}}\n"
        "steps:\n  - {name: late, on: overflow, do: clear, select: {types: [tool_result]}}\n"
    )
    run = policyctx("export", "anthropic", file)
    assert json.loads(run.stdout) == {"edits": []}
    assert "steps.late: the server edits before a call, not after a refusal\n" in run.stderr


def test_the_report_is_json() -> None:
    preset = (ROOT / "policies" / "claude-code.yaml").read_text(encoding="utf-8").splitlines()
    line = 1 + preset.index("  - name: offload-on-arrival")
    report = json.loads(policyctx("export", "anthropic", "claude-code", "--json").stdout)
    assert report["context_management"] == {"edits": []}
    assert report["betas"] == []
    assert report["left_behind"][0] == {
        "key": "steps.offload-on-arrival",
        "place": f"claude-code.yaml:{line}:5",
        "reason": "the server edits before a call, not as a result arrives",
    }


def test_an_import_reads_stdin_and_reports_as_json() -> None:
    body = {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}
    run = policyctx("import", "anthropic", "-", "--json", stdin=json.dumps(body).encode())
    report = json.loads(run.stdout)
    assert report["policy"]["steps"][0]["name"] == "clear-thinking"
    [left] = report["left_behind"]
    assert (left["key"], left["place"]) == ("clear_thinking_20251015.keep", "stdin:1:35")
    strict = policyctx("import", "anthropic", "-", "--strict", stdin=json.dumps(body).encode())
    assert strict.returncode == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "stdin:1:1: PC103: expected a map with `edits`, got nothing"),
        (b"\xff", "stdin: PC001: not UTF-8: byte 0 cannot be read"),
        (b" " * 70_000, "stdin: PC001: larger than 64 KiB"),
        (b'{"edits": [{"type": "compact"}]}', "stdin:1:21: PC104: 'compact' is none of"),
        (b'{"edits": [1]}', "stdin:1:12: PC106"),
        (b'{"edits": [' + b'{"a":' * 5_000, "PC006: nested deeper than 32 levels"),
        (b"[[[[", "PC002: not YAML"),
        (b'{"edits": [], "edits": []}', "PC004: the key 'edits' stands twice"),
        (b"edits: &a [*a]", "PC003: anchors and aliases are not allowed"),
    ],
)
def test_bad_input_is_reported_with_its_place(content: bytes, said: str) -> None:
    run = policyctx("import", "anthropic", "-", stdin=content)
    assert (run.returncode, run.stdout) == (1, "")
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = policyctx("import", "anthropic", tmp_path / "none.json")
    assert run.returncode == 1
    assert f"{tmp_path / 'none.json'}: PC001: cannot be read" in run.stderr


def test_a_name_that_no_policy_can_have_is_refused() -> None:
    run = policyctx("import", "anthropic", EDITS, "--name", "")
    assert run.returncode == 1
    assert "PC105" in run.stderr
