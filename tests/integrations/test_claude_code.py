"""The hook of Claude Code, run as Claude Code runs it: an event on stdin, an answer on stdout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem
from tests.drawing import IS_LONG
from tests.integrations.claude_code import (
    HOOK,
    bash,
    event,
    hook,
    new_output,
    read,
    started,
)
from tests.test_session_failing_disk import loop

LARGE = "".join(f"line {number} of the output\n" for number in range(1, 2001))
SMALL = "ok\n"
FOLDER = ".claude/policyctx"
GIT = shutil.which("git") or "git"
# The long profile starts more hooks at once, and kills them at more moments.
AT_ONCE, STEP = (20, 1) if IS_LONG else (8, 2)


def test_a_large_output_of_a_command_is_replaced_in_its_own_shape(project: Path) -> None:
    output = new_output(hook(event("Bash", bash(LARGE, SMALL), cwd=project)))
    saved = project / FOLDER / "s1/Bash/toolu_1.md"
    assert output == bash(output["stdout"], SMALL)
    assert output["stdout"].startswith("line 1 of the output\nline 2 ")
    assert f"2000 lines, is in {saved}." in output["stdout"]
    assert len(output["stdout"]) < 2000
    assert saved.read_text(encoding="utf-8") == LARGE


def test_a_large_error_output_is_replaced_too(project: Path) -> None:
    output = new_output(hook(event("Bash", bash(LARGE, LARGE.upper()), cwd=project)))
    folder = project / FOLDER / "s1/Bash"
    assert (folder / "toolu_1.md").read_text(encoding="utf-8") == LARGE
    assert (folder / "toolu_1-stderr.md").read_text(encoding="utf-8") == LARGE.upper()
    assert f"is in {folder}/toolu_1-stderr.md." in output["stderr"]


def test_a_file_that_was_read_is_named_with_its_lines(project: Path) -> None:
    path = f"{project}/big.py"
    given = read(path, LARGE, first=500)
    output = new_output(hook(event("Read", given, cwd=project, tool_input={"file_path": path})))
    content = output["file"]["content"]
    assert output == {"type": "text", "file": {**output["file"], "content": content}}
    assert {**output["file"], "content": LARGE} == given["file"]
    # Claude Code numbers the lines from the first line that was read.
    assert content.startswith("line 1 of the output\n")
    assert f"Lines 500-2500 of {path} were read" in content
    assert f"call Read on {path} with offset and limit" in content
    saved = project / FOLDER / "s1/Read/toolu_1.md"
    assert str(saved) in content
    assert saved.read_text(encoding="utf-8") == LARGE


def test_the_text_of_an_mcp_tool_is_replaced(project: Path) -> None:
    output = new_output(hook(event("mcp__github__search", LARGE, cwd=project)))
    assert isinstance(output, str)
    assert f"{project}/{FOLDER}/s1/mcp__github__search/toolu_1.md" in output


def test_the_text_blocks_of_an_mcp_tool_are_replaced_one_by_one(project: Path) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    blocks = [{"type": "text", "text": text} for text in (LARGE, SMALL, LARGE.upper())]
    output = new_output(hook(event("mcp__x__y", [blocks[0], image, *blocks[1:]], cwd=project)))
    assert output[1:3] == [image, blocks[1]]
    folder = project / FOLDER / "s1/mcp__x__y"
    assert f"is in {folder}/toolu_1.md." in output[0]["text"]
    assert f"is in {folder}/toolu_1-4.md." in output[3]["text"]
    assert (folder / "toolu_1-4.md").read_text(encoding="utf-8") == LARGE.upper()


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", bash(SMALL)),
        ("Bash", bash("")),
        ("Bash", bash(LARGE, isImage=True)),
        ("Bash", bash(LARGE, persistedOutputPath="/x/y.txt")),
        ("Bash", {"stdout": 1}),
        ("Bash", LARGE),
        ("Read", read("/a.py", SMALL)),
        ("Read", {"type": "image", "file": {"base64": LARGE, "type": "image/png"}}),
        ("Read", {"type": "text", "file": LARGE}),
        ("Read", {"type": "text", "file": {"content": None}}),
        ("mcp__x__y", SMALL),
        ("mcp__x__y", [{"type": "text", "text": SMALL}, {"type": "image", "data": LARGE}, LARGE]),
        ("mcp__x__y", [{"type": "text", "text": None}, {"text": LARGE}]),
        ("mcp__x__y", {"content": LARGE}),
        ("Write", {"filePath": "/a", "content": LARGE, "originalFile": LARGE}),
        ("Edit", {"filePath": "/a", "oldString": LARGE, "newString": LARGE}),
        ("Agent", {"content": LARGE}),
        ("Grep", {"content": LARGE}),
        ("Unknown", LARGE),
    ],
)
def test_any_other_result_is_left_alone(project: Path, tool: str, response: object) -> None:
    run = hook(event(tool, response, cwd=project))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("name", ["PostToolUseFailure", "PreToolUse", None])
def test_any_other_event_is_left_alone(project: Path, name: str | None) -> None:
    run = hook(event("Bash", bash(LARGE), cwd=project, hook_event_name=name))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_what_is_read_from_the_store_is_never_taken(project: Path) -> None:
    new_output(hook(event("Bash", bash(LARGE), cwd=project)))
    path = str(project / FOLDER / "s1/Bash/toolu_1.md")
    link = project / "link.md"
    link.symlink_to(path)
    for number, (session, name) in enumerate([("s1", path), ("s2", path), ("s1", str(link))]):
        again = event(
            "Read",
            read(name, LARGE),
            cwd=project,
            session_id=session,
            tool_use_id=f"toolu_r{number}",
            tool_input={"file_path": name},
        )
        run = hook(again)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_command_that_prints_a_file_of_the_store_is_never_taken(project: Path) -> None:
    new_output(hook(event("Bash", bash(LARGE), cwd=project)))
    command = {"command": f"cat {project}/{FOLDER}/s1/Bash/toolu_1.md"}
    again = event("Bash", bash(LARGE), cwd=project, tool_use_id="toolu_2", tool_input=command)
    assert hook(again).stdout == ""


def test_the_same_event_again_gets_the_same_answer(project: Path) -> None:
    given = event("Bash", bash(LARGE), cwd=project)
    assert hook(given).stdout == hook(given).stdout
    assert len([*(project / FOLDER / "s1/Bash").iterdir()]) == 1


def test_a_sub_agent_has_a_session_of_its_own(project: Path) -> None:
    given = event("Bash", bash(LARGE), cwd=project, agent_id="a7", agent_type="Explore")
    assert f"{project}/{FOLDER}/s1.a7/Bash/toolu_1.md" in new_output(hook(given))["stdout"]


def test_the_files_are_below_the_project_and_git_ignores_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([GIT, "init", "-q", str(project)], check=True)
    (project / "src").mkdir()
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    new_output(hook(event("Bash", bash(LARGE), cwd=project / "src")))
    assert (project / FOLDER / "s1/Bash/toolu_1.md").is_file()
    status = [GIT, "-C", str(project), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""


def test_the_options_name_the_policy_and_the_folder(project: Path) -> None:
    text = "apiVersion: policyctx/v1\nname: mine\nextends: claude-code\nmin_chars: 400\n"
    (project / "mine.yaml").write_text(text, encoding="utf-8")
    given = event("Bash", bash("x" * 399), cwd=project)
    options = ("--policy", "mine.yaml", f"--root={project}/files")
    assert hook(given, *options).stdout == ""
    wide = event("Bash", bash("line\n" * 900), cwd=project)
    assert f"{project}/files/Bash/toolu_1.md" in new_output(hook(wide, *options))["stdout"]
    assert (project / "files/.gitignore").is_file()


def test_a_policy_that_changes_is_read_again(project: Path) -> None:
    policy, given = project / "mine.yaml", event("Bash", bash("line\n" * 900), cwd=project)
    text = "apiVersion: policyctx/v1\nname: mine\nextends: [./base.yaml]\n"
    policy.write_text(text, encoding="utf-8")
    base = "apiVersion: policyctx/v1\nname: base\nextends: claude-code\nmin_chars: ${LEAST:-9000}\n"
    (project / "base.yaml").write_text(base, encoding="utf-8")
    assert [hook(given, "--policy=mine.yaml").stdout for _ in range(2)] == ["", ""]
    (project / "base.yaml").write_text(base.replace("9000", "400"), encoding="utf-8")
    assert hook(given, "--policy=mine.yaml").stdout


def test_a_variable_that_changes_is_read_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "apiVersion: policyctx/v1\nname: v\nextends: claude-code\nmin_chars: ${LEAST:-9000}\n"
    (project / "v.yaml").write_text(text, encoding="utf-8")
    given = event("Bash", bash("line\n" * 900), cwd=project)
    assert [hook(given, "--policy=v.yaml").stdout for _ in range(2)] == ["", ""]
    monkeypatch.setenv("LEAST", "400")
    assert hook(given, "--policy=v.yaml").stdout


def test_lone_surrogates_survive(project: Path) -> None:
    text = "\ud800\n" + LARGE
    output = new_output(hook(event("Bash", bash(text), cwd=project)))
    assert output["stdout"].startswith("\ud800\nline 1 of")
    with ContextFileSystem(project / FOLDER / "s1") as store:
        assert store.read("toolu_1") == text


BROKEN: dict[str, Any] = {
    "no session": {"session_id": None},
    "an empty session": {"session_id": ""},
    "a session that is not text": {"session_id": ["a"]},
    "no working directory": {"cwd": None},
    "a relative working directory": {"cwd": "project"},
    "a working directory that is gone": {"cwd": "/no/such/folder"},
    "a working directory that no system has": {"cwd": "/a\0b"},
}


@pytest.mark.parametrize("more", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_event_leaves_the_result_as_it_is(project: Path, more: dict[str, Any]) -> None:
    run = hook(event("Bash", bash(LARGE), cwd=project) | more)
    assert_left_alone(run)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000],
    ids=["nothing", "half", "a list", "null", "not UTF-8", "nested too deeply"],
)
def test_what_is_no_event_leaves_the_result_as_it_is(raw: bytes) -> None:
    assert_left_alone(hook(raw))


@pytest.mark.parametrize(
    "options",
    [("--policy", "no-such"), ("--policy",), ("--polcy", "x"), ("--policy", "wrong.yaml"), ("x",)],
)
def test_wrong_options_leave_the_result_as_it_is(project: Path, options: tuple[str, ...]) -> None:
    (project / "wrong.yaml").write_text("steps: 3\n", encoding="utf-8")
    assert_left_alone(hook(event("Bash", bash(LARGE), cwd=project), *options))


def assert_left_alone(run: subprocess.CompletedProcess[str]) -> None:
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr.startswith("policyctx: the result is left as it is: ")
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr


def test_a_disk_that_takes_nothing_leaves_the_result_as_it_is(project: Path) -> None:
    (project / ".claude").write_text("a file is in the way", encoding="utf-8")
    run = hook(event("Bash", bash(LARGE), cwd=project))
    assert (run.returncode, run.stdout) == (0, "")
    assert "cannot be" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_full_disk_leaves_the_result_as_it_is(project: Path) -> None:
    # No file may become larger than 512 or 1,024 bytes, whichever the shell counts in.
    run = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *HOOK],
        input=json.dumps(event("Bash", bash(LARGE), cwd=project)).encode(),
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, b"")
    assert b"cannot be written: File too large" in run.stderr
    assert b"Traceback" not in run.stderr
    assert list(project.rglob("*.md")) == []
    assert list((project.parent / "cache").rglob("*.json.*")) == []


def test_a_failing_disk_is_reported_once_a_session_and_when_it_works_again(project: Path) -> None:
    def said(number: int, session: str = "s1") -> str:
        given = event(
            "Bash", bash(LARGE), cwd=project, tool_use_id=f"t{number}", session_id=session
        )
        run = hook(given)
        assert run.returncode == 0
        assert ("updatedToolOutput" in run.stdout) != is_full
        return run.stderr

    in_the_way = project / ".claude"
    in_the_way.write_text("a file is in the way", encoding="utf-8")
    is_full = True
    assert said(1).startswith("policyctx: offloading has stopped: ")
    assert [said(2), said(3)] == ["", ""]
    assert "offloading has stopped" in said(4, "s2")
    in_the_way.unlink()
    is_full = False
    assert said(5) == "policyctx: offloading works again: a write to the store has succeeded\n"
    assert said(6) == ""


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "file": Path.touch,
    "folder": Path.mkdir,
    "loop": loop,
}


@pytest.mark.parametrize("is_new", [False, True], ids=["used before", "new"])
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (FOLDER, "file"),
        (FOLDER, "loop"),
        (f"{FOLDER}/s1", "file"),
        (f"{FOLDER}/s1", "loop"),
        (f"{FOLDER}/s1/.policyctx", "file"),
        (f"{FOLDER}/s1/.policyctx", "loop"),
        (f"{FOLDER}/s1/.policyctx/journal.jsonl", "folder"),
        (f"{FOLDER}/s1/.policyctx/lock", "folder"),
        (f"{FOLDER}/s1/Bash", "file"),
        (f"{FOLDER}/s1/Bash", "loop"),
    ],
)
def test_each_failure_of_a_folder_is_reported_once(
    project: Path, place: str, kind: str, *, is_new: bool
) -> None:
    def run(number: int) -> subprocess.CompletedProcess[str]:
        return hook(event("Bash", bash(LARGE), cwd=project, tool_use_id=f"t{number}"))

    if not is_new:
        assert "updatedToolOutput" in run(0).stdout
    path, kept = project / place, project / "kept"
    if path.exists():
        path.rename(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    IN_THE_WAY[kind](path)
    first, *later = [run(number) for number in range(1, 4)]
    assert [one.stdout for one in (first, *later)] == ["", "", ""]
    assert "policyctx: offloading has stopped: " in first.stderr
    assert [one.stderr for one in later] == ["", ""]
    path.rmdir() if path.is_dir() else path.unlink()
    if kept.exists():
        kept.rename(path)
    again = run(4)
    assert "updatedToolOutput" in again.stdout
    assert "policyctx: offloading works again: " in again.stderr


@pytest.mark.parametrize("name", ["../../../etc", "a/b", "..", "x" * 400, "\n", "é", "a\0b"])
def test_hostile_names_stay_below_the_folder(project: Path, name: str) -> None:
    given = event(
        "mcp__" + name, LARGE, cwd=project, session_id=name, agent_id=name, tool_use_id=name
    )
    output = new_output(hook(given))
    found = list(project.rglob("*.md"))
    assert len(found) == 1
    assert found[0].is_relative_to(project / FOLDER)
    assert str(found[0]) in output
    assert [path.name for path in project.parent.iterdir() if path.name != "cache"] == ["project"]


def test_a_folder_that_leads_out_of_the_project_is_not_used(project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (project / ".claude").symlink_to(outside)
    assert_left_alone(hook(event("Bash", bash(LARGE), cwd=project)))
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "link", ["s1", "s1/.policyctx", "s1/Bash", ".gitignore", "s1/Bash/toolu_1.md"]
)
@pytest.mark.parametrize("options", [(), ("--root", FOLDER + "/{session_id}")])
def test_nothing_is_written_through_a_link_of_a_hostile_checkout(
    project: Path, link: str, options: tuple[str, ...]
) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    planted = project / FOLDER / link
    planted.parent.mkdir(parents=True, mode=0o700)
    is_file = "." in planted.name[1:] or planted.name == ".gitignore"
    planted.symlink_to(outside / "new" if is_file else outside)
    for number in range(2):  # the first run compiles the policy
        run = hook(event("Bash", bash(LARGE), cwd=project, tool_use_id="toolu_1"), *options)
        assert run.returncode == 0
        assert list(outside.iterdir()) == []
        assert planted.is_symlink()
        assert "written anew" not in run.stderr
        assert ("updatedToolOutput" in run.stdout) == is_file, number


@pytest.mark.parametrize("link", [".claude", FOLDER, f"{FOLDER}/s1"])
def test_a_link_in_the_place_of_the_folder_is_reported_once(project: Path, link: str) -> None:
    def run(number: int, session: str = "s1") -> subprocess.CompletedProcess[str]:
        given = event(
            "Bash", bash(LARGE), cwd=project, tool_use_id=f"t{number}", session_id=session
        )
        return hook(given)

    outside, planted = project.parent / "outside", project / link
    outside.mkdir()
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(outside)
    first, *later = [run(number) for number in range(3)]
    assert first.stderr.startswith("policyctx: the result is left as it is: ")
    assert "link" in first.stderr
    assert [(one.stdout, one.stderr) for one in later] == [("", ""), ("", "")]
    assert ("link" in run(3, "s2").stderr) == (planted.name != "s1")
    planted.unlink()
    again = run(4)
    assert "updatedToolOutput" in again.stdout
    assert "policyctx: offloading works again: " in again.stderr
    planted.rename(project.parent / "kept")
    planted.symlink_to(outside)
    assert "link" in run(5).stderr
    assert list(outside.iterdir()) == []


def test_a_root_at_a_url_is_reported_once(project: Path) -> None:
    given = event("Bash", bash(LARGE), cwd=project)
    runs = [hook(given, "--root", "s3://bucket/{session_id}") for _ in range(3)]
    assert "store.root is a URL" in runs[0].stderr
    assert [(one.stdout, one.stderr) for one in runs[1:]] == [("", ""), ("", "")]


def test_an_absolute_root_in_the_project_is_not_used_through_a_link(project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (project / "results").symlink_to(outside)
    given = event("Bash", bash(LARGE), cwd=project)
    assert_left_alone(hook(given, "--root", f"{project}/results"))
    assert list(outside.iterdir()) == []
    new_output(hook(given, "--root", str(outside)))  # the user's own folder
    assert list(outside.rglob("*.md"))


@pytest.mark.slow
def test_a_closed_stdout_or_stderr_gives_no_traceback(project: Path) -> None:
    raw = json.dumps(event("Bash", bash(LARGE), cwd=project)).encode()
    for closing in (">&-", "2>&-", ">&- 2>&-", "<&- 2>/dev/null"):
        run = subprocess.run(
            ["/bin/sh", "-c", f'"$@" {closing}', "sh", *HOOK],
            input=raw,
            capture_output=True,
            check=False,
        )
        assert run.returncode == 0, closing
        assert b"Traceback" not in run.stderr


@pytest.mark.slow
def test_many_hooks_at_once_lose_nothing(project: Path) -> None:
    texts = {f"toolu_{number:02}": f"{number}\n{LARGE}" for number in range(AT_ONCE)}
    processes = {
        name: started(event("Bash", bash(text), cwd=project, tool_use_id=name))
        for name, text in texts.items()
    }
    for name, process in processes.items():
        stdout, stderr = process.communicate(timeout=200)
        assert (process.returncode, stderr) == (0, b"")
        said = json.loads(stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
        assert f"/{name}.md" in said
    with ContextFileSystem(project / FOLDER / "s1") as store:
        assert {name: store.read(name) for name in texts} == texts
        assert {entry.item_id for entry in store.list()} == set(texts)
        assert store.verify().harmed == ()
        assert store.notices == ()


@pytest.mark.slow
def test_hooks_that_are_killed_leave_a_store_that_goes_on(project: Path) -> None:
    answered: dict[str, str] = {}
    for number in range(0, 16, STEP):
        name, text = f"toolu_{number:02}", f"{number}\n{LARGE}"
        process = started(event("Bash", bash(text), cwd=project, tool_use_id=name))
        if number // STEP % 2:
            # Over the whole time of a run, so that some are killed while they write.
            time.sleep(0.15 + 0.09 * number)
            process.kill()
        stdout, _ = process.communicate(timeout=100)
        if stdout:
            answered[name] = text
    assert len(answered) >= 8 // STEP
    with ContextFileSystem(project / FOLDER / "s1") as store:
        assert {name: store.read(name) for name in answered} == answered
        assert store.verify().harmed == ()


def test_a_small_result_needs_neither_the_library_nor_its_dependencies(project: Path) -> None:
    hook(event("Bash", bash(SMALL), cwd=project))  # which remembers the bound of the policy
    code = (
        "import sys; from policyctx.integrations.claude_code import run; run([]);"
        "print([n for n in ('pydantic', 'yaml', 'typer', 'rich', 'tiktoken', 'asyncio',"
        " 'policyctx.session', 'dataclasses', 'pathlib') if n in sys.modules])"
    )
    run = subprocess.run(
        [*HOOK[:2], code, "claude-code"],
        input=json.dumps(event("Bash", bash(SMALL), cwd=project)).encode(),
        capture_output=True,
        check=True,
        env=os.environ,
    )
    assert (run.stdout, run.stderr) == (b"[]\n", b"")
