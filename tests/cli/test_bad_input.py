"""Bad input gets one clear error, exit code 1, and leaves nothing behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.policies import KEEP_FIVE

GOOD = json.dumps(session_of("x" * 2000)).encode()


@pytest.mark.parametrize("command", ["plan", "apply"])
@pytest.mark.parametrize(
    ("stdin", "error"),
    [
        (b"[1,\n 2,, 3]", "stdin: not JSON: line 2, column 4: Expecting value"),
        (b"", "stdin: it is empty"),
        (b" \n", "stdin: it is empty"),
        (b"[" * 100_000, "stdin: nested too deeply to be a message list"),
        (b"\xff[]", "stdin: not UTF-8: byte 0 cannot be read"),
        (b'"hello"', "stdin: expected a list of messages, got a string"),
        (b"{}", 'stdin: expected a list of messages or a request body, got an object without "mes'),
        (b'{"messages": 3}', "stdin: expected a list of messages, got a number"),
        (b'[{"role": "user", "content": "a"}, 3]',
         'stdin: message 1: expected an object with "role" and "content", got a number'),
        (b'[{"content": "a"}]',
         'stdin: message 0: expected "role" to be a string such as "user", got nothing'),
        (b'[{"role": "user", "content": 7}]',
         'stdin: message 0: expected "content" to be a string or a list of blocks, got a number'),
        (b'[{"role": "user", "content": [{"text": "x"}]}]',
         'stdin: message 0: content block 0: expected "type" to be a string such as "text", got'),
        (b'[{"role": "user", "content": ["x"]}]',
         "stdin: message 0: content block 0: expected an object, got a string"),
        (b'[{"role": "user", "text": "x"}]',
         'stdin: message 0: expected "content", a text or a list of blocks, in an object with "ro'),
        (b'[{"role": "robot", "content": "x"}]',
         'stdin: message 0: expected "role" to be one of "system", "developer", "user", "assista'),
    ],
)  # fmt: skip
def test_invalid_message_list_is_rejected_with_place_and_expectation(
    command: str, stdin: bytes, error: str, tmp_path: Path
) -> None:
    run = policyctx(command, "context-offload", "-", "--root", tmp_path / "r", stdin=stdin)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"error: {error}")
    assert run.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_policy_error_lists_the_presets_and_a_suggestion() -> None:
    run = policyctx("plan", "codng-agent", "-", stdin=GOOD)
    assert run.returncode == 1
    assert run.stderr == (
        "codng-agent: PC001: no such policy: it is neither a file nor a preset;"
        " did you mean 'coding-agent'? The presets are claude-code, coding-agent, context-compact,"
        " context-filesystem, context-offload, few-re-reads, small-context, tool-direct-offload\n"
    )


def test_a_wrong_policy_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("apiVersion: policyctx/v1\nname: mine\nstor: {}\n", encoding="utf-8")
    run = policyctx("plan", path, "-", stdin=GOOD)
    assert run.returncode == 1
    assert run.stderr == (
        f"{path}:3:1: PC101: unknown key 'stor'; did you mean 'store'?\n"
        "    3 | stor: {}\n"
        "      | ^^^^\n"
    )


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (("plan", "session.json", "coding-agent"), "plan POLICY MESSAGES"),
        (("replay", "."), "replay POLICY PATHS"),
        (("apply", "large.jsonl", "coding-agent"), "apply POLICY MESSAGES"),
        (("diff", "coding-agent", "."), "diff POLICY_A POLICY_B PATHS"),
    ],
)
def test_a_conversation_in_the_place_of_the_policy_shows_the_order(
    words: tuple[str, ...], order: str, tmp_path: Path
) -> None:
    (tmp_path / "session.json").write_bytes(GOOD)
    (tmp_path / "large.jsonl").write_bytes(GOOD * 40)
    run = policyctx(*words, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    *_, last = run.stderr.splitlines()
    assert last == (
        f"note: the order is `policyctx {order}`; a policy is a preset's name or a YAML file"
    )


def test_a_mistake_in_a_policy_says_nothing_of_the_order(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("steps: 3\n", encoding="utf-8")
    for policy in ("mine.yaml", "coding-agnt"):
        run = policyctx("plan", policy, "-", stdin=GOOD, cwd=tmp_path)
        assert run.returncode == 1
        assert "the order is" not in run.stderr


@pytest.mark.parametrize("words", [("proxy",), ("plan",)])
def test_a_missing_policy_lists_the_presets(words: tuple[str, ...]) -> None:
    run = policyctx(*words)
    assert run.returncode == 2
    assert "a policy is a preset's name or a YAML file; the presets are claude-c" in run.stderr


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    run = policyctx("check", ".", cwd=tmp_path)
    assert run.returncode == 1
    assert ".: PC001: is a folder; name the policy files in it" in run.stdout + run.stderr


@pytest.mark.parametrize("name", ["no-such.json", "."])
def test_a_missing_file_is_reported(name: str, tmp_path: Path) -> None:
    run = policyctx("apply", "context-offload", name, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: {name}: cannot be read: ")
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_rejected_as_messages() -> None:
    run = policyctx("plan", "context-offload", "/dev/zero")
    assert run.returncode == 1
    assert run.stderr == ("error: /dev/zero: cannot be read: not a regular file: it is a device\n")


def test_messages_and_a_policy_may_come_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(messages := tmp_path / "messages")
    os.mkfifo(policy := tmp_path / "policy")
    text = b"apiVersion: policyctx/v1\nname: piped\nextends: context-offload\n"
    writers = [
        Thread(target=messages.write_bytes, args=(GOOD,)),
        Thread(target=policy.write_bytes, args=(text,)),
    ]
    for writer in writers:
        writer.start()
    run = policyctx("plan", policy, messages)
    for writer in writers:
        writer.join()
    assert (run.returncode, run.stderr) == (0, "")
    assert "1 of " in run.stdout


def test_a_pipe_in_extends_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    path = tmp_path / "mine.yaml"
    path.write_text("apiVersion: policyctx/v1\nname: mine\nextends: ./pipe\n", encoding="utf-8")
    run = policyctx("plan", path, "-", stdin=GOOD)
    assert run.returncode == 1
    assert run.stderr == f"{pipe}: PC001: cannot be read: not a regular file: it is a pipe\n"


def test_a_pipe_is_rejected_as_agents_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policyctx.yaml")
    run = policyctx("agents", cwd=tmp_path)
    assert run.returncode == 1
    assert "policyctx.yaml: PC001: cannot be read: not a regular file: it is a pipe" in run.stderr


@pytest.mark.parametrize("policy", ["context-offload", "keep-five.yaml"])
def test_an_unwritable_root_is_an_error_under_every_on_failure_setting(
    policy: str, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "keep-five.yaml").write_text(KEEP_FIVE, encoding="utf-8")
    messages = json.dumps(session_of(*["word " * 2000] * 9)).encode()
    root = blocked / "root"
    run = policyctx("apply", policy, "-", "--root", root, stdin=messages, cwd=policies)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"error: {blocked}")
    assert {*tmp_path.iterdir()} == {blocked, policies}


def test_an_unwritable_output_is_reported_before_anything_is_saved(tmp_path: Path) -> None:
    output = tmp_path / "no" / "new.json"
    arguments = ("--root", tmp_path / "root", "-o", output)
    run = policyctx("apply", "context-offload", "-", *arguments, stdin=GOOD)
    assert run.returncode == 1
    assert run.stderr == f"error: {output} cannot be written: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 300, "folder", "file/new.json"])
def test_an_impossible_output_path_is_reported_before_anything_is_saved(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    arguments = ("--root", tmp_path / "root", "-o", tmp_path / name)
    run = policyctx("apply", "context-offload", "-", *arguments, stdin=GOOD)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"error: {tmp_path / name} cannot be written: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_an_output_file_is_unchanged_after_an_error(tmp_path: Path) -> None:
    output, blocked = tmp_path / "new.json", tmp_path / "file"
    for path in (output, blocked):
        path.write_text("mine", encoding="utf-8")
    arguments = ("--root", blocked / "root", "-o", output)
    run = policyctx("apply", "context-offload", "-", *arguments, stdin=GOOD)
    assert run.returncode == 1
    assert output.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "new.json"]


@pytest.mark.parametrize(
    "arguments", [("plan",), ("plan", "x"), ("fly",), ("apply", "a", "b", "--no-such-option")]
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    assert policyctx(*arguments).returncode == 2


@pytest.mark.slow
def test_a_closed_output_pipe_causes_no_traceback(tmp_path: Path) -> None:
    # `policyctx apply … | head -c 1`
    import subprocess  # noqa: PLC0415 - only here is the pipe itself the point
    import sys  # noqa: PLC0415

    path = tmp_path / "m.json"
    # The output is several times what a pipe holds, so the command is still writing.
    path.write_text(json.dumps(session_of(*["short"] * 3_000)), encoding="utf-8")
    command = [sys.executable, "-c", "from policyctx.cli import main; main()"]
    arguments = ["apply", "context-offload", str(path), "--root", str(tmp_path / "r")]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
