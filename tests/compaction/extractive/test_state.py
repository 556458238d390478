"""The state of the work: what a summary says of files, failures, repository and processes."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_contents import edited, said, section, summary_of
from tests.compaction.extractive.test_survival import after
from tests.conversations import call, results, user

Message = dict[str, Any]


def shell(command: str, output: str, call_id: str = "c1", **fields: Any) -> list[Message]:
    run = call(call_id, "Bash", {"command": command, **fields})
    return [run, results((call_id, output))]


def test_a_relative_and_an_absolute_path_are_one_file() -> None:
    read = call("c1", "Read", {"file_path": "/home/u/app/src/loader.py"})
    files = section(
        summary_of(user("Go."), read, results(("c1", "x")), *edited("c2", "src/loader.py")),
        "File Operations",
    )
    assert files[1:3] == ["- src/loader.py: read 1, edited 1; last edited", "Last edits:"]


def test_a_file_named_without_its_folder_keeps_the_absolute_path() -> None:
    read = call("c1", "Read", {"file_path": "/home/u/app/src/loader.py"})
    run = shell("cd src && sed -i s/a/b/ loader.py", "", "c2")
    summary = summary_of(user("Go."), read, results(("c1", "x")), *run)
    files = section(summary, "File Operations")
    assert files[1:] == ["- /home/u/app/src/loader.py: read 1, edited 1; last edited"]
    later = extractive_summary(after(summary, edited("c3", "./loader.py")), Summary())
    assert "- /home/u/app/src/loader.py: read 1, edited 2; last edited" in later


def test_a_path_that_two_absolute_paths_end_with_stays_by_itself() -> None:
    files = section(
        summary_of(
            user("Go."),
            *edited("c1", "/a/src/x.py"),
            *edited("c2", "/b/src/x.py"),
            *edited("c3", "src/x.py"),
        ),
        "File Operations",
    )
    assert len(files[1 : files.index("Last edits:")]) == 3


def test_the_text_of_a_here_document_names_no_files() -> None:
    command = (
        "cat > run.sh <<'END'\nrm build/old.txt\ncat notes.md > out/all.md\nEND\ntouch ok.flag"
    )
    files = "\n".join(section(summary_of(user("Go."), *shell(command, "")), "File Operations"))
    assert "run.sh: written 1" in files
    assert "ok.flag: written 1" in files
    assert [name for name in ("old.txt", "notes.md", "all.md") if name in files] == []


def test_text_of_several_lines_in_quotes_names_no_files() -> None:
    command = 'git commit -m "Fix\n\ncat a/b.txt > c/d.txt no more"'
    assert "Files" not in summary_of(user("Go."), *shell(command, "ok"))


FAILED_RUNS = [
    ("make 2>&1 | tail -5", "cc -c a.c\na.c:3:5: error: unknown type name 'foo'\n", "foo"),
    ("cargo test 2>&1 | tail -3", "error[E0308]: mismatched types\n  --> src/a.rs:1", "E0308"),
    ("pytest -q | tail -2", "FAILED tests/test_a.py::test_b\n1 failed, 3 passed", "test_b"),
    ("npm test | tail -3", "Tests:  2 failed, 7 passed, 9 total", "2 failed"),
    ("cd app && make | head", "make: *** [Makefile:3: all] Error 2", "Makefile:3"),
]


@pytest.mark.parametrize(("command", "output", "told"), FAILED_RUNS)
def test_a_failure_that_a_pipe_hides_is_listed(command: str, output: str, told: str) -> None:
    errors = section(summary_of(user("Build."), *shell(command, output)), "Errors & Resolutions")
    assert told in errors[1]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -rn error src | head", "src/a.py:3: error: raised here"),
        ("git log --oneline | head", "1a2b3c4 Fix 2 failed tests"),
        ("pytest -q | tail -1", "0 failed, 12 passed"),
        ("cat build.log", "error: old"),
    ],
)
def test_text_about_errors_is_not_a_failure(command: str, output: str) -> None:
    assert "Failures:" not in summary_of(user("Look."), *shell(command, f"Output\n{output}"))


def test_the_error_line_of_a_compiler_is_listed() -> None:
    output = (
        "Compiling app v0.1\nerror[E0425]: cannot find value `limit` in this scope\n"
        "  --> src/main.rs:7:9\nerror: could not compile `app` due to 1 previous error\n"
    )
    failed = [call("c1", "Bash", {"command": "cargo b"}), results(("c1", output), error=True)]
    errors = section(summary_of(user("Build."), *failed), "Errors & Resolutions")
    assert "cannot find value `limit`" in errors[1]


def test_branch_commit_and_request_are_listed() -> None:
    link = "https://git.example.org/acme/app/pull/41"
    summary = summary_of(
        user("Ship it."),
        *shell("git checkout -b fix/limits", "Switched to a new branch 'fix/limits'", "c1"),
        *shell("git commit -am x", "[fix/limits 1a2b3c4] Lower the limit\n 1 file changed", "c2"),
        *shell("gh pr create --fill", f"Creating pull request\n{link}", "c3"),
    )
    status = section(summary, "Task Status")
    assert status[: status.index("Done last:")] == [
        "Repository:",
        "- branch fix/limits",
        "- commit 1a2b3c4 on fix/limits: Lower the limit",
        f"- {link}",
    ]
    moved = shell("git switch main", "Switched to branch 'main'", "c4")
    later = section(extractive_summary(after(summary, moved), Summary()), "Task Status")
    assert "- branch main" in later
    assert "- branch fix/limits" not in later
    assert f"- {link}" in later


def test_a_process_in_the_background_is_listed_until_it_is_stopped() -> None:
    started = shell(
        "npm run dev -- --port 5173",
        "Command running in background with ID: bash_7",
        run_in_background=True,
    )
    first = summary_of(user("Start it."), *started)
    assert "- npm run dev -- --port 5173 (id bash_7, port 5173)" in section(first, "Task Status")
    more = [said("Now the tests."), *shell("pytest", "3 passed", "c2")]
    second = extractive_summary(after(first, more), Summary())
    assert "bash_7" in second
    stop = [call("c3", "KillShell", {"shell_id": "bash_7"}), results(("c3", "killed"))]
    third = extractive_summary(after(second, stop), Summary())
    assert "Running:" not in third


def test_a_session_of_a_multiplexer_is_listed_until_it_is_ended() -> None:
    started = shell("tmux new-session -d -s soak './soak.sh'", "")
    first = summary_of(user("Start it."), *started)
    assert "(id soak)" in first
    ended = shell("tmux kill-session -t soak", "", "c2")
    assert "(id soak)" not in extractive_summary(after(first, ended), Summary())


def test_the_task_in_progress_is_marked_until_it_is_done() -> None:
    def listed(call_id: str, status: str) -> list[Message]:
        todos = [
            {"content": "Write the changelog", "status": "pending"},
            {"content": "Backfill table orders", "status": status},
        ]
        return [call(call_id, "TodoWrite", {"todos": todos}), results((call_id, "ok"))]

    first = summary_of(user("Do it."), *listed("c1", "in_progress"))
    status = section(first, "Task Status")
    at = status.index("Still open:")
    assert status[at + 1 :] == [
        "- Backfill table orders (in progress)",
        "- Write the changelog",
    ]
    second = extractive_summary(after(first, listed("c2", "completed")), Summary())
    assert "Backfill" not in "\n".join(section(second, "Task Status"))


@pytest.mark.parametrize(
    ("asked", "kept", "left"),
    [
        ("Do the first two.", ("cache the tiles", "drop the index"), "new parser"),
        ("do number 3 please", ("new parser",), "drop the index"),
        ("Do the last one", ("new parser",), "cache the tiles"),
        ("做前两个", ("cache the tiles", "drop the index"), "new parser"),
        ("just 1 and 3", ("cache the tiles", "new parser"), "drop the index"),
        ("let's do all of them", ("cache the tiles", "drop the index", "new parser"), ""),
    ],
)
def test_a_reference_to_the_agents_list_is_resolved(
    asked: str, kept: tuple[str, ...], left: str
) -> None:
    offer = "I see three ways:\n1. cache the tiles\n2. drop the index\n3. write a new parser"
    summary = summary_of(user("It is slow."), said(offer), user(asked), said("Working on it."))
    goals = section(summary, "Goals & Decisions")
    [note] = [line for line in goals if line.startswith("  answers: ")]
    assert [part for part in kept if part not in note] == []
    assert not left or left not in note


def test_an_agreement_is_resolved_to_the_proposal() -> None:
    offer = "The index is unused. I suggest to drop index ix_orders_7 and to keep the view."
    summary = summary_of(user("It is slow."), said(offer), user("Let's do that."), said("Done."))
    assert "  answers: I suggest to drop index ix_orders_7 and to keep the view." in summary


def test_a_process_that_takes_the_port_replaces_the_one_before() -> None:
    first = shell("cd app && nohup npm run dev -- --port 4321 > a.log 2>&1 &", "[1] 811", "c1")
    second = shell("cd app && nohup npm start -- --port 4321 > b.log 2>&1 &", "[1] 934", "c2")
    status = section(summary_of(user("Start it."), *first, *second), "Task Status")
    at = status.index("Running:")
    assert status[at + 1].startswith("- nohup npm start")
    assert status[at + 2] == "Done last:"


def test_a_command_with_an_and_at_the_end_of_its_line_is_not_in_the_background() -> None:
    run = shell("cd app &&\nmake all 2>&1 | tail -1", "ok")
    assert "Running:" not in summary_of(user("Build."), *run)


def test_the_lines_behind_a_path_are_not_part_of_it() -> None:
    read = call("c1", "view", {"path": "src/a.ts:10-80"})
    files = section(summary_of(user("Go."), read, results(("c1", "x"))), "File Operations")
    assert files[1:] == ["- src/a.ts: read 1"]
