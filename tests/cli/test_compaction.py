"""What the commands say of a compaction."""

from __future__ import annotations

import json
import os
import tty
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem
from policyctx.store.content import Content
from tests.cli.running import policyctx
from tests.conversations import user

POLICY = """\
apiVersion: policyctx/v1
name: mine
compaction: {keep_recent: {messages: 1}}
steps:
  - {name: summarise, do: compact, when: {messages: {at_least: 4}}}
"""
MESSAGES = [
    {"role": "system", "content": "rules"},
    user("Never touch legacy/."),
    {"role": "assistant", "content": "done"},
    user("go on"),
]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(MESSAGES), encoding="utf-8")
    return path


def applied(policy: Path, messages: Path, root: Path, *options: str) -> Any:
    run = policyctx("apply", policy, messages, "--root", root, *options)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.slow
def test_a_plan_reports_the_messages_that_a_summary_would_replace(
    policy: Path, messages: Path
) -> None:
    run = policyctx("plan", policy, messages)
    assert "messages 1 to 2, 5 tokens, would be replaced by a summary" in run.stdout
    assert "replaced by a summary, which is not deducted\n" in run.stdout
    report = json.loads(policyctx("plan", policy, messages, "--json").stdout)
    assert report["compaction"] == {
        "step": "summarise", "messages": 2, "tokens": 5, "first": 1, "last": 2, "carried": None,
    }  # fmt: skip
    assert [d["decision"] for d in report["decisions"]] == [
        "keep",
        "summarise",
        "summarise",
        "keep",
    ]


@pytest.mark.slow
def test_why_nothing_is_replaced_is_explained(policy: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.json"
    short.write_text(json.dumps(MESSAGES[:2]), encoding="utf-8")
    run = policyctx("explain", policy, short)
    assert "closed, messages: 2 < 4; takes 0" in run.stdout
    assert json.loads(policyctx("explain", policy, short, "--json").stdout)["compaction"] is None


def test_applying_writes_the_new_list_and_reports_the_archive(
    policy: Path, messages: Path, tmp_path: Path
) -> None:
    run = applied(policy, messages, tmp_path / "root")
    new = json.loads(run.stdout)
    assert [m["role"] for m in new] == ["system", "user", "assistant", "user"]
    assert "Never touch legacy/." in new[1]["content"]
    assert "messages 1 to 2, 5 tokens, were replaced by a summary" in run.stderr
    assert f"archived in {tmp_path / 'root' / 'archive' / 'compaction-001.json'}" in run.stderr


def test_the_json_report_has_the_numbers(policy: Path, messages: Path, tmp_path: Path) -> None:
    report = json.loads(applied(policy, messages, tmp_path / "root", "--json").stderr)
    assert report["compacted"]["compacted_message_count"] == 2
    assert report["warnings"] == []


@pytest.mark.slow
def test_the_archive_gives_the_messages_back_as_they_were(
    policy: Path, messages: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    applied(policy, messages, root)
    run = policyctx("store", "restore-archive", root)
    assert json.loads(run.stdout) == MESSAGES[1:3]
    target = tmp_path / "before.json"
    named = policyctx("store", "restore-archive", root, "compaction-001", "-o", target)
    assert named.returncode == 0, named.stderr
    assert target.read_text(encoding="utf-8") == run.stdout
    target.write_text("mine")
    again = policyctx("store", "restore-archive", root, "-o", target)
    assert (again.returncode, again.stderr) == (1, f"error: File exists: {target}\n")
    assert target.read_text() == "mine"
    assert "compaction-001" in policyctx("store", "ls", root, "--type", "archive").stdout
    assert "compaction-001" in policyctx("store", "history", root).stdout


def test_restored_messages_are_those_of_the_archive_with_halves_of_characters_escaped(
    policy: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd.json"
    texts = ["移植 done, café", "half \ud83d", "a \\ and a \u0001"]
    odd.write_text(json.dumps([*MESSAGES[:1], *map(user, texts), user("go on")]), encoding="utf-8")
    root, target = tmp_path / "root", tmp_path / "before.json"
    applied(policy, odd, root)
    run = policyctx("store", "restore-archive", root, "-o", target)
    assert run.returncode == 0, run.stderr
    document = (
        ContextFileSystem(root).read("archive/compaction-001.json").encode("utf-8", "surrogatepass")
    )
    as_text = document.replace("\ud83d".encode("utf-8", "surrogatepass"), rb"\ud83d")
    assert as_text.endswith(b'"messages":' + target.read_bytes() + b"}")
    assert json.loads(target.read_text("utf-8")) == [*map(user, texts)]


def test_a_missing_archive_error_lists_the_existing_archives(
    policy: Path, messages: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    applied(policy, messages, root)
    run = policyctx("store", "restore-archive", root, "compaction-9")
    assert run.returncode == 1
    said = " ".join(run.stderr.split())
    meant = "did you mean 'compaction-001'? there are compaction-001"
    assert f"no archive 'compaction-9' in {root}; {meant}" in said


def test_a_folder_without_archives_is_reported(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path).save([Content("a.txt", "x", "a.txt")])
    run = policyctx("store", "restore-archive", tmp_path, "compaction-001")
    assert run.returncode == 1
    assert "there is none" in " ".join(run.stderr.split())


@pytest.mark.parametrize("command", ["restore", "restore-archive"])
def test_messages_do_not_control_the_terminal_on_which_they_are_shown(
    policy: Path, tmp_path: Path, command: str
) -> None:
    odd = "six\u202eten\x9b2J\x7f"
    file, root = tmp_path / "in.json", tmp_path / "root"
    messages = [{**message, "content": odd} for message in MESSAGES]
    file.write_text(json.dumps(messages, ensure_ascii=False), encoding="utf-8")
    applied(policy, file, root)
    further = (file,) if command == "restore" else ()
    arguments = ("store", command, root, *further)
    terminal, end = os.openpty()
    tty.setraw(end)
    assert policyctx(*arguments, stdout=Path(os.ttyname(end))).returncode == 0
    shown = os.read(terminal, 4096).decode()
    piped = policyctx(*arguments).stdout
    assert shown.isascii()
    assert odd in piped
    assert json.loads(shown) == json.loads(piped)
    os.close(end)
    os.close(terminal)
