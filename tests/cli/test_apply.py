from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx
from tests.conversations import session_of

LONG = "a long result " * 100


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    return written(tmp_path, session_of(LONG, "short"))


def written(folder: Path, value: Any) -> Path:
    path = folder / "messages.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_new_messages_go_to_stdout_and_a_summary_to_stderr(messages: Path, tmp_path: Path) -> None:
    run = policyctx("apply", "context-offload", messages, "--root", tmp_path / "root")
    assert run.returncode == 0
    new = json.loads(run.stdout)
    assert new[2]["content"][0]["content"] == "[Content offloaded to: ./tool-result-c0.md]"
    assert (tmp_path / "root/tool-result-c0.md").read_text(encoding="utf-8") == LONG
    assert run.stderr.startswith(f"1 of 2 items offloaded to {tmp_path / 'root'}\ncontext: ")


def test_new_messages_go_to_the_output_file(messages: Path, tmp_path: Path) -> None:
    output = tmp_path / "new.json"
    run = policyctx("apply", "context-offload", messages, "-o", output, "--root", tmp_path / "r")
    assert run.stdout == ""
    assert "[Content offloaded" in output.read_text(encoding="utf-8")


def test_an_existing_output_file_keeps_its_mode_and_its_symlink(
    messages: Path, tmp_path: Path
) -> None:
    output, link = tmp_path / "new.json", tmp_path / "link"
    output.write_text("old " * 10_000, encoding="utf-8")
    output.chmod(0o640)
    link.symlink_to(output)
    run = policyctx("apply", "context-offload", messages, "-o", link, "--root", tmp_path / "r")
    assert run.returncode == 0
    assert link.is_symlink()
    assert stat.S_IMODE(output.stat().st_mode) == 0o640
    assert len(json.loads(output.read_text(encoding="utf-8"))) > 1


def test_an_output_may_be_a_pipe(messages: Path, tmp_path: Path) -> None:
    arguments = ("-o", "/dev/stdout", "--root", tmp_path / "r")
    run = policyctx("apply", "context-offload", messages, *arguments)
    assert run.returncode == 0
    assert len(json.loads(run.stdout)) > 1


def test_the_json_option_prints_the_report_as_json(messages: Path, tmp_path: Path) -> None:
    run = policyctx("apply", "context-offload", messages, "--root", tmp_path / "r", "--json")
    report = json.loads(run.stderr)
    assert report["sources"] == list(range(len(json.loads(run.stdout))))
    assert report["offloaded_count"] == 1
    assert report["freed_chars"] == len(LONG)
    assert report["decisions"][0]["path"] == str(tmp_path / "r" / "tool-result-c0.md")
    json.loads(run.stdout)


def test_stdin_is_read_for_a_dash(tmp_path: Path) -> None:
    stdin = json.dumps(session_of(LONG)).encode()
    run = policyctx("apply", "context-offload", "-", "--root", tmp_path / "r", stdin=stdin)
    assert "[Content offloaded" in run.stdout


def test_a_request_body_is_written_back_complete(tmp_path: Path) -> None:
    body = {"model": "m", "system": "be brief", "messages": session_of(LONG), "tools": []}
    run = policyctx("apply", "context-offload", written(tmp_path, body), "--root", tmp_path / "r")
    new = json.loads(run.stdout)
    assert new | {"messages": []} == body | {"messages": []}
    assert "[Content offloaded" in new["messages"][2]["content"][0]["content"]


def test_a_recorded_session_is_read_by_its_content(tmp_path: Path) -> None:
    records = [
        {"type": m["role"], "message": m, "uuid": f"u{i}", "sessionId": "s",
         "parentUuid": f"u{i - 1}" if i else None}
        for i, m in enumerate(session_of(LONG))
    ]  # fmt: skip
    path = tmp_path / "any.name"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    run = policyctx("apply", "context-offload", path, "--root", tmp_path / "r")
    assert len(json.loads(run.stdout)) == 3


def test_the_session_id_is_part_of_the_path(messages: Path, tmp_path: Path) -> None:
    arguments = ("--session-id", "mine")
    run = policyctx("apply", "tool-direct-offload", messages, *arguments, cwd=tmp_path)
    assert run.returncode == 0
    assert (tmp_path / ".offload/mine/c0.md").is_file()


def test_lone_surrogates_are_written_back_unchanged(tmp_path: Path) -> None:
    messages = session_of(LONG, "lone \ud800 读")
    run = policyctx("apply", "context-offload", written(tmp_path, messages), "--root", tmp_path)
    assert json.loads(run.stdout)[4] == messages[4]


def test_an_empty_list_is_left_unchanged(tmp_path: Path) -> None:
    run = policyctx("apply", "context-offload", written(tmp_path, []), "--root", tmp_path / "r")
    assert (run.returncode, json.loads(run.stdout)) == (0, [])
    assert not (tmp_path / "r").exists()
