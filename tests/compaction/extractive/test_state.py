"""Where the work stands, as calls and results say: tasks, repository, processes, checks."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import edited, group, later, ran, said, summary_of
from tests.conversations import Message, call, chat_calls, chat_result, results, user

GO = user("Go on with it.")


def made(call_id: str, tool: str, given: dict[str, Any], result: str = "ok") -> list[Message]:
    return [call(call_id, tool, given), results((call_id, result))]


LISTS: list[tuple[str, str, str, str]] = [
    ("TodoWrite", "todos", "content", "status"),
    ("update_plan", "plan", "step", "status"),
    ("write_todos", "items", "title", "state"),
]


@pytest.mark.parametrize(("tool", "field", "text", "state"), LISTS)
def test_a_list_of_tasks_stands_as_the_agents_tool_has_it(
    tool: str, field: str, text: str, state: str
) -> None:
    def listed(call_id: str, *states: str) -> list[Message]:
        names = ("Write the migration", "Drop the column")
        entries = [{text: n, state: s} for n, s in zip(names, states, strict=True)]
        return made(call_id, tool, {field: entries})

    first = summary_of(GO, *listed("c1", "in_progress", "pending"))
    assert group(first, Group.TASKS) == [
        "- [in_progress] Write the migration",
        "- [pending] Drop the column",
    ]
    assert group(later(first, *edited("c2", "a.py")), Group.TASKS) == group(first, Group.TASKS)
    second = later(first, *listed("c3", "completed", "in_progress"))
    assert group(second, Group.TASKS) == [
        "- [completed] Write the migration",
        "- [in_progress] Drop the column",
    ]
    assert group(later(second, *made("c4", tool, {field: []})), Group.TASKS) == []


def test_tasks_that_are_made_and_changed_one_by_one_are_followed_over_two_rounds() -> None:
    first = summary_of(
        GO,
        *made("c1", "TaskCreate", {"subject": "Fix the valve"}, "Task #1 created"),
        *made("c2", "TaskCreate", {"subject": "Fix the pump"}, "Task #2 created"),
        *made("c3", "TaskCreate", {"subject": "Fix the roof"}, "Task #3 created"),
        *made("c4", "TaskUpdate", {"taskId": "1", "status": "in_progress"}),
    )
    assert group(first, Group.TASKS) == [
        "- [in_progress] #1 Fix the valve",
        "- [pending] #2 Fix the pump",
        "- [pending] #3 Fix the roof",
    ]
    done = made("c5", "TaskUpdate", {"taskId": "1", "status": "completed"})
    gone = made("c6", "TaskUpdate", {"taskId": "2", "status": "deleted"})
    named = made("c7", "TaskUpdate", {"taskId": "3", "subject": "Fix the roof of hall B"})
    assert group(later(first, *done, *gone, *named), Group.TASKS) == [
        "- [completed] #1 Fix the valve",
        "- [pending] #3 Fix the roof of hall B",
    ]


def test_a_list_that_the_tool_refused_changes_nothing() -> None:
    kept = made("c1", "TodoWrite", {"todos": [{"content": "A", "status": "pending"}]})
    refused = call("c2", "TodoWrite", {"todos": [{"content": "B", "status": "pending"}]})
    summary = summary_of(GO, *kept, refused, results(("c2", "denied"), error=True))
    assert group(summary, Group.TASKS) == ["- [pending] A"]


def test_other_lists_with_states_are_no_tasks() -> None:
    given = {"items": [{"name": "Flight", "status": "paid"}]}
    assert group(summary_of(GO, *made("c1", "book", given)), Group.TASKS) == []


def test_boxes_in_what_was_said_are_no_tasks() -> None:
    assert group(summary_of(user("- [ ] load test with 500 clients")), Group.TASKS) == []


def test_branch_commit_push_and_request_stand_until_the_branch_changes() -> None:
    link = "https://git.example.org/acme/app/pull/41"
    summary = summary_of(
        GO,
        *ran("git checkout -b fix/limits", "Switched to a new branch 'fix/limits'", "c1"),
        *ran("git commit -am x", "[fix/limits 1a2b3c4] Lower the limit\n 1 file changed", "c2"),
        *ran("git push", "   0123456..1a2b3c4  fix/limits -> fix/limits\n", "c3"),
        *ran("gh pr create --fill", f"Creating pull request\n{link}", "c4"),
    )
    assert group(summary, Group.REPOSITORY) == [
        "- branch fix/limits",
        "- commit 1a2b3c4 on fix/limits: Lower the limit",
        "- pushed 0123456..1a2b3c4 fix/limits -> fix/limits",
        f"- {link}",
    ]
    moved = later(summary, *ran("git switch main", "Switched to branch 'main'"))
    assert group(moved, Group.REPOSITORY)[0] == "- branch main"
    assert group(moved, Group.REPOSITORY)[1:] == group(summary, Group.REPOSITORY)[1:]


def test_a_process_in_the_background_stands_until_a_call_names_it_and_stops_it() -> None:
    started = "Command running in background with ID: bash_7"
    first = summary_of(GO, *ran("npm run dev -- --port 5173", started, run_in_background=True))
    assert group(first, Group.RUNNING) == ["- npm run dev -- --port 5173 (id bash_7, port 5173)"]
    other = made("c2", "KillShell", {"shell_id": "bash_71"}, "killed")
    second = later(first, said("Now the tests."), *ran("pytest", "3 passed"), *other)
    assert group(second, Group.RUNNING) == group(first, Group.RUNNING)
    stop = made("c3", "KillShell", {"shell_id": "bash_7"}, "killed")
    assert group(later(second, *stop), Group.RUNNING) == []


def test_a_process_that_takes_the_port_replaces_the_one_before() -> None:
    first = ran("cd app && nohup npm run dev -- --port 4321 > a.log 2>&1 &", "[1] 811", "c1")
    second = ran("cd app && nohup npm start -- --port 4321 > b.log 2>&1 &", "[1] 934", "c2")
    [line] = group(summary_of(GO, *first, *second), Group.RUNNING)
    assert line.startswith("- nohup npm start")


def test_a_command_that_ends_with_two_ampersands_is_not_in_the_background() -> None:
    assert group(summary_of(GO, *ran("cd app &&\nmake all | tail -1", "ok")), Group.RUNNING) == []


PYTEST = """\
__________________________ test_a_keg_is_full __________________________
>       assert keg.litres == 50
E       assert 49 == 50
FAILED tests/test_keg.py::test_a_keg_is_full - assert 49 == 50
1 failed, 7 passed in 0.31s"""
FAILED = [
    ("pytest -q", PYTEST, "E assert 49 == 50"),
    ("make 2>&1 | tail -5", "cc -c a.c\na.c:3:5: error: unknown type name 'foo'\n", "foo"),
    ("cargo test | tail -3", "error[E0308]: mismatched types\n  --> src/a.rs:1", "E0308"),
    ("npm test | tail -3", "Tests:  2 failed, 7 passed, 9 total", "2 failed"),
    ("cd app && make | head", "make: *** [Makefile:3: all] Error 2", "Makefile:3"),
    ("go test ./...", "--- FAIL: TestKeg (0.00s)\n    keg_test.go:12: got 49\nFAIL", "got 49"),
    ("npm run lint", "KeyError: 'rate_limit'", "rate_limit"),
    ("make check", "Process exited with code 2\nrate_limit unset", "rate_limit"),
    ("make check", "错误：缺少 rate_limit", "rate_limit"),
]


@pytest.mark.parametrize(("command", "output", "told"), FAILED)
def test_a_check_that_failed_stands_with_the_lines_that_say_why(
    command: str, output: str, told: str
) -> None:
    [line] = group(summary_of(GO, *ran(command, output)), Group.CHECKS)
    assert told in line.partition(" => ")[2]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -rn error src | head", "src/a.py:3: error: raised here"),
        ("git log --oneline | head", "1a2b3c4 Fix 2 failed tests"),
        ("pytest -q | tail -1", "0 failed, 12 passed"),
        ("cat build.log", "error: old"),
        ("git commit -m 'Test the boiler; check the valve'", "error: nothing to commit"),
        ("make", "AppError.ts:3: export class AppError"),
    ],
)
def test_other_text_about_errors_is_no_failed_check(command: str, output: str) -> None:
    found = group(summary_of(GO, *ran(command, output)), Group.CHECKS)
    assert [line for line in found if "=> failed" in line] == []


def test_a_failure_leaves_when_the_next_run_passes() -> None:
    first = summary_of(GO, *ran("pytest -q tests/keg", PYTEST), *ran("make lint", "error: x", "c2"))
    assert len(group(first, Group.CHECKS)) == 2
    second = later(first, *ran("cd app && pytest -q", "8 passed in 0.2s"))
    assert group(second, Group.CHECKS) == [
        "- make lint => failed: error: x",
        "- pytest -q => no error flagged: 8 passed in 0.2s",
    ]


def test_a_check_says_its_exit_code_and_which_files_were_edited_after_it() -> None:
    passed = ran("npm test 2>&1", "Tests: 12 passed\nexit code 0")
    first = summary_of(GO, *edited("e0", "src/a.py"), *passed, *edited("e1", "src/b.py"))
    line = "- npm test => exit code 0: Tests: 12 passed; after it edited: b.py"
    assert group(first, Group.CHECKS) == [line]
    second = later(first, *edited("e2", "lib/c.py"), *edited("e3", "src/b.py"))
    assert group(second, Group.CHECKS) == [f"{line}, c.py"]
    third = later(second, *ran("npm test", "Tests: 13 passed\nexit code 0", "c9"))
    assert group(third, Group.CHECKS) == ["- npm test => exit code 0: Tests: 13 passed"]


@pytest.mark.parametrize(
    "again",
    ["env CI=1 go test ./a", "mise exec -- env GOCACHE=/tmp/c go test ./a", "CI=1 go test ./..."],
)
def test_a_check_is_the_same_behind_what_runs_it(again: str) -> None:
    failed = ran("go test ./...", "FAIL app\nexit code 1")
    found = group(summary_of(GO, *failed, *ran(again, "ok  app 0.3s", "c2")), Group.CHECKS)
    assert found == [f"- {again} => no error flagged: ok app 0.3s"]


def test_two_tasks_of_one_runner_are_two_checks() -> None:
    vet, test = ran("mise run vet", "exit code 0"), ran("mise run test", "exit code 0", "c2")
    assert len(group(summary_of(GO, *vet, *test), Group.CHECKS)) == 2


def test_of_several_commands_no_line_is_taken_for_what_a_check_said() -> None:
    found = group(summary_of(GO, *ran("make build && cat notes.txt", "7 pumps")), Group.CHECKS)
    assert found == ["- make build => no error flagged"]


def test_the_last_commit_names_what_was_edited_after_it() -> None:
    commit = ran("git commit -am 'Mend it'", "[main 1a2b3c4] Mend it\n 1 file changed")
    first = summary_of(GO, *commit, *edited("e1", "src/b.py"))
    line = "- commit 1a2b3c4 on main: Mend it"
    assert group(first, Group.REPOSITORY) == [f"{line}; after it edited: b.py"]
    again = later(first, *ran("git commit -am 'More'", "[main 2b3c4d5] More", "c2"))
    assert group(again, Group.REPOSITORY) == [line, "- commit 2b3c4d5 on main: More"]


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (ran("gh pr merge 41 --squash", "Merged"), "- ran gh pr merge 41 --squash"),
        (ran("submit", "diff --git a b"), "- called Bash submit"),
        (ran('gh pr edit 41 --body "$(cat /tmp/body.md)"', "ok"), "- ran gh pr edit 41 --body"),
        (ran("glab mr comment 4 -F note.md 2>&1", "ok"), "- ran glab mr comment 4 -F note.md"),
        ([call("c1", "finish", {"message": "All done."}), results(("c1", "ok"))],
         "- called finish All done."),
    ],
    ids=["merge", "submit in a shell", "edit", "comment", "finish"],
)  # fmt: skip
def test_what_was_merged_or_handed_in_is_in_the_repository(made: list[Message], line: str) -> None:
    assert group(summary_of(GO, *made), Group.REPOSITORY) == [line]


MADE = [
    *ran("git checkout -b fix/limits", "Switched to a new branch 'fix/limits'", "c1"),
    *ran("git commit -am x", "[fix/limits 1a2b3c4] Lower the limit\n 1 file changed", "c2"),
]


@pytest.mark.parametrize(
    ("command", "printed", "left"),
    [
        ("gh pr merge 41 --delete-branch", "", ["- ran gh pr merge 41 --delete-branch"]),
        ("git checkout -q main", "", ["- commit 1a2b3c4 on fix/limits: Lower the limit"]),
        ("git rebase main", "Successfully rebased", []),
        ("git reset --soft HEAD~1", "", ["- branch fix/limits"]),
        ("git commit --amend -m y", "[fix/limits 2b3c4d5] Lower it",
         ["- branch fix/limits", "- commit 2b3c4d5 on fix/limits: Lower it"]),
        ("git commit -qm 'Raise it'", "",
         ["- branch fix/limits", "- commit 1a2b3c4 on fix/limits: Lower the limit",
          "- commit, no id printed: git commit -qm 'Raise it'"]),
        ("git checkout src/a.py", "Updated 1 path from the index",
         ["- branch fix/limits", "- commit 1a2b3c4 on fix/limits: Lower the limit"]),
    ],
)  # fmt: skip
def test_what_a_later_command_may_have_undone_is_not_in_the_repository(
    command: str, printed: str, left: list[str]
) -> None:
    after = ran(command, printed, "c3")
    assert group(summary_of(GO, *MADE, *after), Group.REPOSITORY) == left
    assert group(later(summary_of(GO, *MADE), *after), Group.REPOSITORY) == left


def test_a_program_that_prints_neither_a_code_nor_a_count_is_no_check_that_passed() -> None:
    def program(call_id: str, said: str) -> list[Message]:
        code = 'text((await tools.exec_command({ cmd: "make check" })).output);'
        return [chat_calls((call_id, "exec", code)), chat_result(call_id, said)]

    found = summary_of(GO, *program("c1", "src/a.c:3:1: undefined: valve"))
    assert group(found, Group.CHECKS) == []
    found = summary_of(GO, *program("c1", "Wall time 1 s\nOutput:\n12 passed"))
    assert group(found, Group.CHECKS) == ["- make check => no error flagged: 12 passed"]


def test_what_only_surrounds_the_output_or_names_other_work_is_not_what_a_check_said() -> None:
    printed = "Wall time: 2 seconds\na.c:3:1: warning: unused\nexit code 0\nOutput:"
    found = group(summary_of(GO, *ran("make check", printed)), Group.CHECKS)
    assert found == ["- make check => exit code 0"]
    others = "ok app 1.2s\n[main 1a2b3c4] Report success\n 1 file changed, 3 insertions(+)"
    found = group(summary_of(GO, *ran("go test ./... && git commit -F m", others)), Group.CHECKS)
    assert found == ["- go test ./... => no error flagged: ok app 1.2s"]


def test_a_job_leaves_when_a_notice_says_that_it_ended() -> None:
    started = ran("npm run docs", "Running with ID: bx7k2q", run_in_background=True)
    assert group(summary_of(GO, *started), Group.RUNNING) != []
    notice = user("<task-notification>\nbx7k2q: completed\n</task-notification>")
    assert group(summary_of(GO, *started, notice), Group.RUNNING) == []


def test_open_tasks_are_kept_beside_much_that_was_said() -> None:
    todos = [{"content": f"Translate page {i}", "status": "pending"} for i in range(15)]
    told = [user(f"Never rename column c_{i}, it is used in report {i * 3}.") for i in range(150)]
    found = group(summary_of(*told, *made("c1", "TodoWrite", {"todos": todos})), Group.TASKS)
    assert len(found) == len(todos)


def test_a_check_that_passed_beside_a_command_that_failed_is_not_listed() -> None:
    passed = "ok   app 0.3s\nls: Makefile: no such file here\nexit code 1"
    summary = summary_of(user("Go."), *ran("go test ./... && ls Makefile; ls other", passed))
    assert group(summary, Group.CHECKS) == []
    failed = "--- FAIL: TestPort (0.0s)\nFAIL app\nexit code 1"
    summary = summary_of(user("Go."), *ran("go test ./... && ls Makefile", failed))
    assert group(summary, Group.CHECKS) != []


def test_a_check_leaves_when_it_passes_beside_another_one() -> None:
    failed = ran("make build && go vet ./... && go test ./...", "FAIL app\nexit code 1")
    passed = ran("go vet ./... && go test ./app", "ok   app 0.3s", "c2")
    assert group(summary_of(user("Go."), *failed), Group.CHECKS) != []
    assert group(summary_of(user("Go."), *failed, *passed), Group.CHECKS) == [
        "- go vet ./... && go test ./app => no error flagged: ok app 0.3s"
    ]


@pytest.mark.parametrize("command", ['pkill -f "astro dev"', "killall node; echo done"])
def test_a_process_that_may_have_been_killed_by_its_name_is_not_listed(command: str) -> None:
    started = ran("nohup npm run dev > dev.log 2>&1 & sleep 7", "Local: http://localhost:4321/")
    assert group(summary_of(user("Go."), *started), Group.RUNNING) != []
    assert group(summary_of(user("Go."), *started, *ran(command, "", "c2")), Group.RUNNING) == []
