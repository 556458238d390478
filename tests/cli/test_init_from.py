"""`policyctx init --from` writes a policy for the tools of recorded sessions, and its features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.policy.loading import load_policy
from policyctx.policy.sources import preset_names
from tests.cli.running import policyctx

pytestmark = pytest.mark.slow

WRITTEN = ["policy.feature", "policy.schema.json", "policy.yaml", "policyctx.yaml"]


def recorded(path: Path, *uses: tuple[str, dict[str, Any], str], day: str = "2026-11-20") -> Path:
    """Write a session of Claude Code in which these tools are called, ten minutes apart."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for i, (tool, given, result) in enumerate(uses):
        call = {"type": "tool_use", "id": f"t{i}", "name": tool, "input": given}
        done = {"type": "tool_result", "tool_use_id": f"t{i}", "content": result}
        said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [done]}]
    said.append({"role": "assistant", "content": [{"type": "text", "text": "done"}]})
    lines, parent = [], None
    for i, message in enumerate(said):
        at = f"{day}T{10 + i // 6:02}:{i % 6}0:00Z"
        record = {"type": message["role"], "uuid": f"{path.stem}{i}", "parentUuid": parent}
        links = {"sessionId": path.stem, "timestamp": at, "message": message}
        if message["role"] == "assistant":
            usage = {"input_tokens": 1000 + 300 * i, "output_tokens": 10}
            message |= {"id": f"{path.stem}{i}", "model": "claude-sonnet-4-5", "usage": usage}
            links["requestId"] = f"{path.stem}{i}"
        lines.append(json.dumps(record | links))
        parent = record["uuid"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def texts(number: int, lines: int = 400) -> list[str]:
    return ["\n".join(f"{i} {line} of a file" for line in range(lines)) for i in range(number)]


def viewing(path: Path, tool: str = "mcp__fs__view_source", **options: str) -> Path:
    """Write a session whose tool reads a file with each of nine calls."""
    uses = [(tool, {"path": f"src/{i}.py"}, text) for i, text in enumerate(texts(9))]
    return recorded(path, *uses, **options)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_a_policy_says_which_unknown_tool_reads_files_and_why(tmp_path: Path) -> None:
    session = viewing(tmp_path / "sessions" / "one.jsonl")
    run = policyctx("init", "--from", session, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("coding-agent would have ")
    assert run.stdout.endswith("  policyctx test policy.feature\n")
    assert names_in(tmp_path) == WRITTEN
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    assert "It reads files: all of its 9 calls have a path in path." in text
    assert load_policy(tmp_path / "policy.yaml").tools["mcp__fs__view_source"].reads_file == (
        "path",
    )


def test_the_figures_of_each_tool_are_those_of_a_replay(tmp_path: Path) -> None:
    session = viewing(tmp_path / "sessions" / "one.jsonl")
    replay = json.loads(policyctx("replay", "coding-agent", session, "--json").stdout)["total"]
    run = policyctx("init", "--from", session, "--json", cwd=tmp_path)
    report = json.loads(run.stdout)
    use = report["tools"]["mcp__fs__view_source"]
    assert use["left"] == replay["removed_items"] > 0
    assert (use["calls"], use["results"], use["reads_file"]) == (9, 9, "path")
    assert sorted(Path(path).name for path in report["wrote"]) == WRITTEN
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    figures = f"{use['left']:,} left, freed {use['freed']:,}; {use['needed']:,} needed again"
    assert f"9 results with {use['tokens']:,} tokens; {figures}" in text


@pytest.mark.parametrize("preset", preset_names())
def test_what_is_written_passes_check_and_test(preset: str, tmp_path: Path) -> None:
    viewing(tmp_path / "sessions" / "one.jsonl")
    run = policyctx("init", preset, "--from", tmp_path / "sessions", cwd=tmp_path)
    assert run.returncode == 0
    checked = policyctx("check", "policy.yaml", "--strict", cwd=tmp_path)
    assert checked.returncode == 0
    # The document that the preset follows has no gate, as a notice says.
    assert (": PC" in checked.stdout) == (preset == "context-filesystem")
    tested = policyctx("test", "policy.feature", cwd=tmp_path)
    assert tested.returncode == 0, tested.stdout


def test_the_feature_fails_without_the_rule(tmp_path: Path) -> None:
    session = viewing(tmp_path / "sessions" / "one.jsonl")
    policyctx("init", "--from", session, cwd=tmp_path)
    path = tmp_path / "policy.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("\ntools:")], encoding="utf-8")
    assert policyctx("test", "policy.feature", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "a.py"}),  # the preset knows it
        ("deploy", {"path": "a.py"}),  # nothing says that it reads
        ("view_page", {"path": "home"}),  # no path of a file
        ("view*", {"path": "a.py"}),  # the key would be a glob
    ],
)
def test_a_tool_without_evidence_gets_no_rule(
    tool: str, given: dict[str, Any], tmp_path: Path
) -> None:
    uses = [(tool, given, text) for text in texts(5)]
    policyctx("init", "--from", recorded(tmp_path / "s" / "one.jsonl", *uses), cwd=tmp_path)
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    assert "\ntools:" not in text
    assert "No tool that reads files is new to coding-agent." in text
    assert f"{tool}: 5 results" in text
    assert policyctx("test", "policy.feature", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("again", [True, False])
def test_needs_again_are_called_a_trade_as_in_a_report(again: bool, tmp_path: Path) -> None:
    uses = [("Read", {"file_path": f"{i}.py"}, text) for i, text in enumerate(texts(9))]
    uses += [uses[0]] if again else []
    policyctx("init", "--from", recorded(tmp_path / "s" / "one.jsonl", *uses), cwd=tmp_path)
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    assert ("1 needed again" in text) == again
    assert ("is a trade" in text) == again


def test_a_rule_needs_three_calls_that_all_have_a_path(tmp_path: Path) -> None:
    uses: list[tuple[str, dict[str, Any], str]] = [
        ("view_file", {"path": "a.py"}, "x"),
        ("view_file", {"path": "b.py"}, "x"),
        ("view_file", {"page": 2}, "x"),
    ]
    for number in (2, 3):
        session = recorded(tmp_path / "s" / f"{number}.jsonl", *uses[:number])
        report = policyctx("init", "--from", session, "--json", "--force", cwd=tmp_path).stdout
        assert json.loads(report)["tools"]["view_file"]["reads_file"] is None


def test_sessions_without_a_result_of_a_tool_are_an_error(tmp_path: Path) -> None:
    session = recorded(tmp_path / "s" / "one.jsonl")
    run = policyctx("init", "--from", session, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == "error: no session has a tool result, so no policy can be written\n"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", ["policy.yaml", "policy.feature"])
def test_a_file_that_exists_is_kept_before_anything_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    run = policyctx("init", "--from", tmp_path / "nothing.jsonl", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == f"error: {name} exists already; --force replaces what exists\n"
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_agent_and_since_choose_the_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project = tmp_path / "claude" / "projects" / "app"
    viewing(project / "new.jsonl", "view_new")
    viewing(project / "old.jsonl", "view_old", day="2026-01-01")
    options = "--agent", "claude-code", "--since", "2026-06-01", "--json"
    run = policyctx("init", *options, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [*json.loads(run.stdout)["tools"]] == ["view_new"]


def test_since_alone_and_paths_beside_an_agent_are_usage_errors(tmp_path: Path) -> None:
    assert policyctx("init", "--since", "30d", cwd=tmp_path).returncode == 2
    both = "--from", "x.jsonl", "--agent", "claude-code"
    assert policyctx("init", *both, cwd=tmp_path).returncode == 2
    assert names_in(tmp_path) == []


def test_a_file_that_cannot_be_read_is_reported_beside_what_is_written(tmp_path: Path) -> None:
    good, bad = viewing(tmp_path / "s" / "one.jsonl"), tmp_path / "s" / "bad.jsonl"
    bad.write_text("no recording", encoding="utf-8")
    run = policyctx("init", "--from", good, "--from", bad, cwd=tmp_path)
    assert run.returncode == 1
    assert "bad.jsonl" in run.stderr
    assert names_in(tmp_path) == WRITTEN
