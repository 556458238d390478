"""Where the work stands, as calls and results say: the tasks, and the commands in order."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import edited, group, later, ran, said, summary_of
from tests.conversations import Message, call, chat_calls, chat_result, results, user

GO, DONE = user("Go on with it."), said("It is done.")


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
    dated = later(first, *edited("c2", "a.py"), *edited("c3", "b.py"))
    assert group(dated, Group.TASKS) == ["- (calls since then: 2)", *group(first, Group.TASKS)]
    assert "- (calls since then: 3)" in later(dated, *edited("c4", "a.py"))
    second = later(first, *listed("c3", "completed", "in_progress"))
    assert group(second, Group.TASKS) == ["- [in_progress] Drop the column"]
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
        "- [pending] #3 Fix the roof of hall B"
    ]


def test_calls_are_counted_from_the_last_change_of_any_task() -> None:
    made_first = made("c1", "TaskCreate", {"subject": "Fix the valve"}, "Task #8 created")
    earlier = made("c2", "TaskUpdate", {"taskId": "7", "status": "in_progress"}, "Updated task #7")
    summary = summary_of(GO, *made_first, *ran("ls", "a", "r1"), *earlier, *ran("ls", "a", "r2"))
    assert group(summary, Group.TASKS) == [
        "- (calls since then: 1)",
        "- [pending] #8 Fix the valve",
    ]


def test_a_list_that_the_tool_refused_changes_nothing() -> None:
    kept = made("c1", "TodoWrite", {"todos": [{"content": "A", "status": "pending"}]})
    refused = call("c2", "TodoWrite", {"todos": [{"content": "B", "status": "pending"}]})
    summary = summary_of(GO, *kept, refused, results(("c2", "denied"), error=True))
    assert group(summary, Group.TASKS) == ["- (calls since then: 1)", "- [pending] A"]


def test_other_lists_with_states_are_no_tasks() -> None:
    given = {"items": [{"name": "Flight", "status": "paid"}]}
    assert group(summary_of(GO, *made("c1", "book", given)), Group.TASKS) == []


def test_boxes_in_what_was_said_are_no_tasks() -> None:
    assert group(summary_of(user("- [ ] load test with 500 clients")), Group.TASKS) == []


def steps(summary: str) -> list[str]:
    return group(summary, Group.STEPS)


LINK = "https://git.example.org/acme/app/pull/41"
MADE = [
    *ran("git checkout -b fix/limits", "Switched to a new branch 'fix/limits'", "m1"),
    *ran("git commit -am x", "[fix/limits 1a2b3c4] Lower the limit\n 1 file changed", "m2"),
]
MADE_LINES = [
    "- git checkout -b fix/limits => Switched to a new branch 'fix/limits'",
    "- git commit -am x => [fix/limits 1a2b3c4] Lower the limit",
]


def test_commands_stand_in_order_with_words_of_their_results() -> None:
    push = "   0123456..1a2b3c4  fix/limits -> fix/limits\n"
    summary = summary_of(
        GO,
        *MADE,
        *ran("git push", f"remote: counting\n{push}", "c3"),
        *ran("gh pr create --fill", f"Creating pull request\n{LINK}", "c4"),
    )
    lines = [
        *MADE_LINES,
        "- git push => 0123456..1a2b3c4 fix/limits -> fix/limits",
        f"- gh pr create --fill => {LINK}",
    ]
    assert steps(summary) == lines
    assert steps(later(summary)) == lines
    moved = later(summary, *ran("git checkout main", "Switched to branch 'main'"))
    assert steps(moved) == [*lines[1:], "- git checkout main => Switched to branch 'main'"]


@pytest.mark.parametrize(
    ("command", "printed", "said"),
    [
        (
            "barn stall create --name east --checkout",
            "Created stall 6\nSwitched to branch 'east'",
            "Created stall 6 / Switched to branch 'east'",
        ),
        ("barn stall open east | tail -1", "", "no output"),
        ("npm publish", "a\nb\n+ pump@1.2.0", "… b / + pump@1.2.0"),
        ("cd web && ./deploy.sh", "Deployed to web-1", "Deployed to web-1"),
        ("make deploy", "Deployed to web-1", "Deployed to web-1"),
        ("docker push pump:2", "a\nb\npushed", "… b / pushed"),
        ("npm run db:migrate && ls src", "a\nb\nc", "output not quoted"),
        ("gh repo fork a/b", "Created fork c/b", "Created fork c/b"),
        ("stax switch-to east --create", "east", "east"),
    ],
)
def test_a_command_of_any_program_that_changes_more_than_files_is_a_step(
    command: str, printed: str, said: str
) -> None:
    done = ran(command, printed)
    later_on = [*ran("ls", "a", "c2"), *ran("git pull", "Already up to date.", "c3")]
    line = f"- {command.removeprefix('cd web && ')} => {said}"
    assert steps(summary_of(GO, *done, *later_on)) == [line, "- git pull => Already up to date."]


@pytest.mark.parametrize(
    "command",
    [
        "kubectl get deploy",
        "barn stall create --help",
        "barn stall create --dry-run",
        "rg push src",
        "open report.html",
        "node src/open.js",
        "git log push",
        'barn search "create a stall"',
    ],
)
def test_a_command_that_only_names_a_change_is_no_step(command: str) -> None:
    assert steps(summary_of(GO, *ran(command, "a"), DONE)) == []


def test_all_that_was_created_stands_also_behind_many_commits() -> None:
    done = [
        *ran('gh issue create --title "One"', "https://host.example/a/b/issues/1", "c1"),
        *ran('gh issue create --title "Two"', "https://host.example/a/b/issues/2", "c2"),
        *ran("barn stall create --name build/test", "Created stall 6", "c3"),
        *ran("make check", "9 passed", "c4"),
    ]
    for i in range(6):
        done += ran(f"git commit -qam 'Part {i}'", f"[main 27da66{i}] Part {i}", f"d{i}")
    found = steps(summary_of(GO, *done))
    assert [line.partition(" => ")[2] for line in found[:3]] == [
        "https://host.example/a/b/issues/1",
        "https://host.example/a/b/issues/2",
        "Created stall 6",
    ]


def test_what_was_not_created_leaves_when_something_was_done_after_it() -> None:
    failed = ran("barn stall create --name east", "error: no barn\nexit code 1")
    assert steps(summary_of(GO, *failed, *ran("git push", "a..b main -> main", "c2")))[
        0
    ].startswith("- git push")


@pytest.mark.parametrize(
    ("command", "printed", "line"),
    [
        ("gh pr merge 41 --delete-branch", "", "gh pr merge 41 --delete-branch => no output"),
        ("git rebase -q main", "", "git rebase -q main => no output"),
        ("git reset --soft HEAD~1", "", "git reset --soft HEAD~1 => no output"),
        ("git commit --amend -m y", "[fix/limits 2b3c4d5] Lower it",
         "git commit --amend -m y => [fix/limits 2b3c4d5] Lower it"),
        ("git commit -qm 'Raise it' && git log --oneline -1", "3c4d5e6 Raise it",
         "git commit -qm 'Raise it' && git log --oneline -1 => 3c4d5e6 Raise it"),
        ("git commit -qF - <<'EOF'\nRaise it\n\nIt was low.\nEOF", "",
         "git commit -qF - <<EOF … => no output"),
        ("git stash -q", "", "git stash -q => no output"),
        ("git checkout src/a.py", "Updated 1 path from the index",
         "git checkout src/a.py => Updated 1 path from the index"),
    ],
)  # fmt: skip
def test_what_takes_a_commit_back_or_adds_to_it_stands_behind_it(
    command: str, printed: str, line: str
) -> None:
    after = ran(command, printed, "c3")
    for summary in (summary_of(GO, *MADE, *after), later(summary_of(GO, *MADE), *after)):
        assert steps(summary)[-2:] == [MADE_LINES[1], f"- {line}"]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git log --oneline | head", "1a2b3c4 Fix 2 failed tests"),
        ("git status --short", " M src/a.py\n?? b.txt"),
        ("npm run dev -- --port 5173 &", "Local: http://localhost:9"),
        ("# Check what it imports\ngrep from a.py", "import b"),
        ("git branch -a", "* main\n  next"),
        ("git branch -vv", "* main 1a2b3c4 Fix it"),
        ("git -C ../hall tag; git stash list", "v1\nstash@{0}: On main: pump"),
        ("git diff --stat", " a.py | 2 +-"),
        ("gh pr view 41", "title: Mend it"),
        ("grep -rn make src", "src/a.py:3: make"),
        ("ls; cat test.log", "ok"),
    ],
)
def test_a_command_that_only_shows_something_is_no_step(command: str, printed: str) -> None:
    assert steps(summary_of(GO, *ran(command, printed), DONE)) == []


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (ran('gh pr edit 41 --body "$(cat /tmp/body.md)"', "ok"),
         '- gh pr edit 41 --body "$(cat /tmp/body.md)" => ok'),
        (ran("glab mr comment 4 -F note.md 2>&1", "ok"),
         "- glab mr comment 4 -F note.md 2>&1 => ok"),
    ],
    ids=["edit", "comment"],
)  # fmt: skip
def test_what_was_published_is_a_step(made: list[Message], line: str) -> None:
    assert steps(summary_of(GO, *made)) == [line]


@pytest.mark.parametrize("result", [[], [results(("c1", "ok"))]], ids=["open", "done"])
def test_a_call_that_hands_in_the_work_is_no_step(result: list[Message]) -> None:
    assert steps(summary_of(GO, call("c1", "finish", {"message": "All done."}), *result)) == []


def test_a_command_that_is_polled_has_the_words_of_its_last_result() -> None:
    began = ran("mise run test", "Process running with session ID 771")
    polled = made("c2", "write_stdin", {"session_id": 771, "chars": ""}, "12 passed\nexit code 0")
    assert steps(summary_of(GO, *began, *polled)) == ["- mise run test => exit code 0: 12 passed"]


TIMED_OUT = "Running hall tests\n[The command timed out after 300 seconds.]"
WAITED = ran("", "12 passed\n[exit code 0]", "c4", is_input="true")


@pytest.mark.parametrize("command", ["./run.sh test", "git commit -qm x; make test"])
def test_an_empty_command_has_the_next_result_of_the_command_before_it(command: str) -> None:
    began, still = ran(command, TIMED_OUT), ran("", "[No new output after 30 seconds.]", "c3")
    between = edited("c2", "a.py")
    end = " of the last command" * (";" in command)
    line = f"- {command} => exit code 0{end}: 12 passed; changed since: a.py"
    assert steps(summary_of(GO, *began, *between, *still, *WAITED)) == [line]
    stopped = ran("C-c", "^C\n[exit code 130]", "c4", is_input=True)
    assert steps(summary_of(GO, *began, *stopped)) == [f"- {command} => exit code 130: ^C"]
    assert steps(later(summary_of(GO, *began, *between), *WAITED)) == [line]
    refused = ran("make lint", 'Your command "make lint" is NOT executed.', "c5")
    assert line in steps(summary_of(GO, *began, *between, *refused, *WAITED))


@pytest.mark.parametrize("given", [{"command": ""}, {"command": "C-c", "is_input": "true"}])
def test_what_was_typed_behind_a_command_that_ended_says_nothing_of_it(given: Any) -> None:
    check = ran("make test", "14 passed\n[exit code 0]")
    error = "ERROR: No running command to interact with."
    typed = [call("c2", "Bash", given), results(("c2", error))]
    line = "- make test => exit code 0: 14 passed"
    assert steps(summary_of(GO, *check, *typed, DONE)) == [line]
    began = ran("make test", TIMED_OUT)
    assert steps(summary_of(GO, *began, *WAITED, *typed, DONE)) == [line.replace("14", "12")]


def test_an_empty_command_goes_on_with_what_was_only_shown() -> None:
    check = ran("make test", "9 passed")
    text = summary_of(GO, *check, *ran("tail -f pump.log", TIMED_OUT, "c2"), *WAITED)
    assert steps(text) == ["- make test => 9 passed"]
    assert group(text, Group.RESULTS) == ["- tail -f pump.log => 12 passed"]


def test_a_command_stands_as_it_was_given_from_its_first_step_on() -> None:
    command = "cd app && go test ./a -run 'One|Two' 2>&1 | grep -v null | tail -3; echo done"
    found = steps(summary_of(GO, *ran(command, "ok  app 0.3s\ndone")))
    assert found == [
        "- go test ./a -run 'One|Two' 2>&1 | grep -v null | tail -3; echo done => ok app 0.3s"
    ]


@pytest.mark.parametrize(
    "before",
    ["git show HEAD~1:a.go > a.go", "sed -i s/a/b/ a.go", "cd app && cp old.go a.go", "rm a.go"],
)
def test_what_stands_before_a_check_is_quoted(before: str) -> None:
    command = f"{before} && go test ./a"
    first = summary_of(GO, *ran(command, "--- FAIL: TestA\nexit code 1"))
    line = f"- {command.removeprefix('cd app && ')} => exit code 1: --- FAIL: TestA"
    assert steps(first) == [line]
    assert steps(later(first, {"role": "user", "content": "Go on."})) == [line]
    again = later(first, *ran("go test ./a", "ok  app 0.3s", "c2"))
    assert steps(again) == ["- go test ./a => ok app 0.3s"]


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
    [line] = group(summary_of(GO, *ran(command, output)), Group.STEPS)
    assert told in line.partition(" => ")[2]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -rn error src | head", "src/a.py:3: error: raised here"),
        ("git log --oneline | head", "1a2b3c4 Fix 2 failed tests"),
        ("pytest -q | tail -1", "0 failed, 12 passed"),
        ("cat build.log", "error: old"),
        ("make", "AppError.ts:3: export class AppError"),
    ],
)
def test_other_text_about_errors_is_no_failed_check(command: str, output: str) -> None:
    found = group(summary_of(GO, *ran(command, output), DONE), Group.STEPS)
    assert [line for line in found if "=> failed" in line] == []


def test_a_failure_leaves_when_the_next_run_passes() -> None:
    first = summary_of(GO, *ran("pytest -q tests/keg", PYTEST), *ran("make lint", "error: x", "c2"))
    assert len(steps(first)) == 2
    second = later(first, *ran("cd app && pytest -q", "8 passed in 0.2s"))
    assert steps(second) == [
        "- make lint => failed: error: x",
        "- pytest -q => 8 passed in 0.2s",
    ]


@pytest.mark.parametrize("command", ["", " ", ";", "&&", "()"])
@pytest.mark.parametrize("printed", ["one\ntwo\nthree", "", "x " * 400])
def test_a_shell_that_ran_no_command_has_a_summary(command: str, printed: str) -> None:
    made = summary_of(GO, *ran(command, printed, "c0"), *ran("pytest -q", "2 passed", "c1"))
    assert "- pytest -q => 2 passed" in steps(made)


def test_a_check_says_its_exit_code_and_names_the_files_that_were_edited_after_it() -> None:
    passed = ran("npm test 2>&1", "Tests: 12 passed\nexit code 0")
    first = summary_of(GO, *edited("e0", "src/a.py"), *passed, *edited("e1", "src/b.py"))
    line = "- npm test 2>&1 => exit code 0: Tests: 12 passed; changed since: b.py"
    assert steps(first) == [line]
    second = later(first, *edited("e2", "lib/c.py"), *edited("e3", "src/b.py"))
    assert steps(second) == [f"{line}, c.py"]
    scratch = later(second, *edited("e4", "/srv/scratchpad/probe.py"))
    assert steps(scratch) == steps(second)
    third = later(second, *ran("npm test", "Tests: 13 passed\nexit code 0", "c9"))
    assert steps(third) == ["- npm test => exit code 0: Tests: 13 passed"]


@pytest.mark.parametrize(
    ("command", "printed", "outcome"),
    [
        ("mise run check", "Finished in 119 s", "Finished in 119 s"),
        ("npm run lint", "", "no output"),
        ("npm run lint", "(Bash completed with no output)", "no output"),
        ("cd app && ruff check; git log", "one\ntwo\nthree", "output not quoted"),
        ("npx tsc --noEmit", "exit code 0", "exit code 0"),
        ("make check; ls", "exit code 0", "exit code 0 of the last command"),
        ("make check; pkill -f serve", "12 passed\nexit code 1", "12 passed"),
        ("make check || true", "12 passed\nexit code 0", "12 passed"),
        ('make check; echo "done"', "12 passed\ndone\nexit code 0", "12 passed"),
        ("make check && echo done", "12 passed\nexit code 2", "exit code 2: 12 passed"),
        ("make check && git push", "a\nb\nEverything up-to-date", "… b / Everything up-to-date"),
        ("make check && git log", "a\nb\nMend the lid", "output not quoted"),
    ],
)
def test_a_check_stands_also_when_its_output_says_nothing(
    command: str, printed: str, outcome: str
) -> None:
    narrow = ran("pytest -q tests/keg", "3 passed in 0.1s", "c0")
    found = steps(summary_of(GO, *narrow, *ran(command, printed)))
    assert found == [
        "- pytest -q tests/keg => 3 passed in 0.1s",
        f"- {command.removeprefix('cd app && ')} => {outcome}",
    ]


def test_what_a_check_found_is_quoted_beside_what_it_looked_at() -> None:
    lines = ["Analysis took 0.4 s (69 checks on 114 files)", "9 mods, found 5 design suggestions."]
    [line] = steps(summary_of(GO, *ran("mix credo --strict", "\n".join(lines))))
    assert line == f"- mix credo --strict => {' / '.join(lines)}"


def test_a_check_of_which_no_word_is_quoted_leaves_when_something_was_done_after_it() -> None:
    silent = ran("ruff check; git log", "one\ntwo\nthree")
    pulled = ran("git pull --ff-only", "1a2b3c4 Mend it", "c2")
    assert steps(summary_of(GO, *silent, *pulled)) == ["- git pull --ff-only => 1a2b3c4 Mend it"]


def test_a_long_command_that_ends_in_a_kill_has_no_exit_code() -> None:
    command = f"npm run build; node -e 'a(); {'b(); ' * 60}'; pkill -f serve 2>/dev/null"
    found = steps(summary_of(GO, *ran(command, "Build of 4 files\nexit code 1")))
    assert found[0].endswith("pkill -f serve 2>/dev/null => Build of 4 files")


def test_what_was_staged_stands_until_git_takes_it_in_or_out() -> None:
    staged = [*ran("git add a.py b.py", "", "s1"), *ran("git add c.py", "", "s2")]
    lines = ["- git add a.py b.py => no output", "- git add c.py => no output"]
    first = summary_of(GO, *staged, DONE)
    assert steps(first) == lines
    for more in (ran("git push", "a..b main -> main"), ran("pytest -q", "2 passed")):
        assert steps(later(first, *more))[:2] == lines
    refused = ran("git commit -m x", "error: hook failed\nexit code 1")
    assert steps(later(first, *refused))[:2] == lines
    for command in ("git commit -qm x", "git reset -q", "git restore --staged .", "git stash"):
        for summary in (summary_of(GO, *staged, *ran(command, "", "s3")),
                        later(first, *ran(command, "", "s3"))):  # fmt: skip
            assert not set(lines) & set(steps(summary))


@pytest.mark.parametrize(
    "command",
    ["git restore b.py", "git reset -q b.py", "git reset HEAD -- b.py", "git stash list"],
)
def test_what_was_staged_stands_when_other_files_are_put_back(command: str) -> None:
    staged = ran("git add a.py", "", "s1")
    assert "- git add a.py => no output" in steps(
        summary_of(GO, *staged, *ran(command, "", "s2"), DONE)
    )


@pytest.mark.parametrize("verb", ["merge", "rebase", "cherry-pick", "revert", "am"])
def test_what_was_staged_leaves_when_git_goes_on(verb: str) -> None:
    made = [*ran("git add a.py", "", "s1"), *ran(f"git {verb} --continue", "[main 1a2b] x", "s2")]
    assert not [one for one in steps(summary_of(GO, *made, DONE)) if "git add" in one]


def test_what_was_shown_stands_when_files_are_staged() -> None:
    looks = [
        *ran("cat halls.txt", "hall 4 has port 8081"),
        *ran("git diff --stat", "a.py | 2", "c2"),
    ]
    text = summary_of(GO, *looks, *ran("git add a.py", "", "c3"))
    assert group(text, Group.RESULTS) == ["- cat halls.txt => hall 4 has port 8081"]
    committed = summary_of(GO, *looks, *ran("git commit -m x", "[main 1a2b] x", "c3"))
    assert group(committed, Group.RESULTS) == []


@pytest.mark.parametrize("first", ["git add a.py && ", "git add -A; "])
def test_a_check_behind_what_stages_files_is_a_check(first: str) -> None:
    staged = ran(f"{first}pytest -q", "2 passed")
    line = f"- {first}pytest -q => 2 passed"
    assert steps(summary_of(GO, *staged, *edited("e1", "b.py"))) == [f"{line}; changed since: b.py"]
    again = ran("pytest -q", "3 passed", "c2")
    assert steps(summary_of(GO, *staged, *again, DONE)) == ["- pytest -q => 3 passed"]


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        ("/hall/pump/__init__.py", True),
        ("pump/__init__.py", True),
        ("./pump/__init__.py", True),
        ("/lib/valve/__init__.py", False),
        ("valve/__init__.py", False),
    ],
)
def test_what_a_file_shows_is_left_out_only_if_the_agent_wrote_that_file(
    path: str, is_own: bool
) -> None:
    own = made("w1", "Write", {"file_path": "/hall/pump/__init__.py", "content": "x = 1\ny = 2\n"})
    for look in (made("r1", "Read", {"file_path": path}, "from seal import ring"),
                 ran(f"cat {path}", "from seal import ring")):  # fmt: skip
        assert ("from seal import ring" not in summary_of(GO, *own, *look)) is is_own


def test_the_last_status_of_the_worktree_is_kept_before_what_other_calls_showed() -> None:
    printed = """On branch pump
Your branch is up to date with 'origin/pump'.

Changes not staged for commit:
  (use "git add <file>..." to update what will be committed)
  (use "git restore <file>..." to discard changes in working directory)
\tmodified:   a.py

no changes added to commit (use "git add" and/or "git commit -a")"""
    line = (
        "- git status => On branch pump / Your branch is up to date with 'origin/pump'. / "
        "/ Changes not staged for commit: / modified: a.py"
    )
    status = ran("git status", printed)
    looks = [one for i in range(8) for one in ran(f"cat p{i}.txt", "leaks " * 90, f"d{i}")]
    first = summary_of(GO, *status, *looks, max_words=300)
    assert line in first
    assert line in later(first, *ran("ls", "a.py", "c2"), max_words=300)
    for change in (edited("c3", "b.py"), ran("git add a.py", "", "c3")):
        assert line not in later(first, *change)


def test_of_a_long_status_of_the_worktree_the_number_of_lines_is_said() -> None:
    printed = "\n".join(f" M pumps/p{i}.py" for i in range(229))
    assert "=> … 227 lines … M pumps/p227.py" in summary_of(GO, *ran("git status -s", printed))


def test_of_many_checks_the_last_six_stand() -> None:
    names = ("vet", "lint", "build", "check", "test", "tsc", "mypy", "ruff", "tox", "nox", "jest")
    made = [ran(f"mise run {name}", "exit code 0", f"c{i}") for i, name in enumerate(names)]
    found = steps(summary_of(GO, *(message for one in made for message in one)))
    assert found == [f"- mise run {name} => exit code 0" for name in names[-6:]]


def test_what_a_call_for_a_task_returned_is_not_listed_beside_the_tasks() -> None:
    made = [
        call("t1", "TaskCreate", {"subject": "Seal the lid"}),
        results(("t1", "Task #1 created")),
        call("t2", "TaskUpdate", {"taskId": "1", "status": "in_progress"}),
        results(("t2", "Updated task #1 status")),
    ]
    summary = summary_of(GO, *made, *ran("ls hall", "served"))
    assert group(summary, Group.TASKS)[-1] == "- [in_progress] #1 Seal the lid"
    assert group(summary, Group.RESULTS) == ["- ls hall => served"]


def test_a_long_result_is_cut_before_its_last_line() -> None:
    lines = "\n".join(f"ok  app/part{i} {i}.5s" for i in range(40))
    [line] = steps(summary_of(GO, *ran("go test ./...", f"{lines}\n12 passed")))
    assert line.startswith("- go test ./... => ok app/part0 0.5s / ok app/part1")
    assert " … " in line
    assert line.endswith("/ 12 passed")


@pytest.mark.parametrize(
    "again",
    ["env CI=1 go test ./a", "mise exec -- env GOCACHE=/tmp/c go test ./a", "CI=1 go test ./..."],
)
def test_a_check_is_the_same_behind_what_runs_it(again: str) -> None:
    failed = ran("go test ./...", "FAIL app\nexit code 1")
    found = steps(summary_of(GO, *failed, *ran(again, "ok  app 0.3s", "c2")))
    assert found == [f"- {again} => ok app 0.3s"]


def test_two_tasks_of_one_runner_are_two_checks() -> None:
    vet, test = ran("mise run vet", "exit code 0"), ran("mise run test", "exit code 0", "c2")
    assert len(steps(summary_of(GO, *vet, *test))) == 2


def test_the_last_commit_names_the_files_that_were_edited_after_it() -> None:
    commit = ran("git commit -am 'Mend it'", "[main 1a2b3c4] Mend it\n 1 file changed")
    first = summary_of(GO, *commit, *edited("e1", "src/b.py"))
    line = "- git commit -am 'Mend it' => [main 1a2b3c4] Mend it"
    assert steps(first) == [f"{line}; changed since: b.py"]
    again = summary_of(GO, *commit, *edited("e1", "b.py"), *ran("git commit -qam y", "", "c2"))
    assert steps(again) == [line, "- git commit -qam y => no output"]


def test_the_commands_of_a_program_are_read() -> None:
    def program(said: str) -> list[Message]:
        code = 'text((await tools.exec_command({ cmd: "make check" })).output);'
        return [chat_calls(("c1", "exec", code)), chat_result("c1", said)]

    found = summary_of(GO, *program("Script completed\nWall time 1 s\nOutput:\n\n12 passed"))
    assert steps(found) == ["- make check => 12 passed"]
    running = '{"output": "[check] $ ruff", "session_id": 771}'
    polled = 'text(JSON.stringify(await tools.write_stdin({session_id: 771, chars: ""})));'
    over = '{"output": "12 passed", "exit_code": 0}'
    asked = [chat_calls(("c2", "exec", polled)), chat_result("c2", over)]
    found = summary_of(GO, *program(running), *asked)
    assert steps(found) == ["- make check => exit code 0: 12 passed"]


def test_what_only_surrounds_the_output_is_not_quoted() -> None:
    printed = "Wall time: 2 seconds\na.c:3:1: warning: unused\nexit code 0\nOutput:"
    line = "- make check => exit code 0: a.c:3:1: warning: unused"
    assert steps(summary_of(GO, *ran("make check", printed))) == [line]


def test_a_command_is_quoted_as_it_was_run_and_marked_where_it_is_cut() -> None:
    code = 'tools.exec_command({cmd:"stall update 6 --body "+JSON.stringify(body)})'
    told = [chat_calls(("c1", "exec", code)), chat_result("c1", "Updated stall 6")]
    assert steps(summary_of(GO, *told)) == ["- stall update 6 --body … => Updated stall 6"]
    setup = f"python3 plan.py {'a ' * 150}"
    first = summary_of(GO, *ran(f"cd app; {setup}; git push", "a..b main -> main"))
    assert steps(first) == ["- … git push => a..b main -> main"]
    again = later(first, *ran("git push", "b..c main -> main", "c2"))
    assert steps(again) == ["- git push => b..c main -> main"]


@pytest.mark.parametrize(
    "middle",
    [
        "ERROR: worker 3 exited with code 137, restarting it",
        "warning: job 7 is running in the background with ID: x123",
    ],
)
def test_a_warning_in_the_middle_of_a_result_is_no_exit_code_of_it(middle: str) -> None:
    lines = [f"step {i} of the build is done" for i in range(200)]
    printed = "\n".join([*lines, middle, *lines, "12 passed"])
    [line] = steps(summary_of(GO, *ran("make test", printed)))
    assert line.startswith("- make test => ")
    assert "12 passed" in line
    assert "exit code" not in line


def test_of_several_long_commands_no_end_stands_behind_the_beginning_of_another() -> None:
    """Joined, they would look like one command that was run."""
    body = "the valve of the upper hall leaks when the pump starts " * 5
    adds = [f"stall finding add --line {i} -m '{i} {body}' --by line{i}" for i in range(4)]
    [line] = steps(summary_of(GO, *ran("; ".join(adds), "4 findings")))
    assert line.startswith("- stall finding add --line 0 -m '0 the valve")
    assert " … ; stall finding add --line 3 -m '3 the" in line
    assert "by line3" not in line
    [line] = steps(summary_of(GO, *ran(f"{adds[0]} && git push", "a..b main -> main")))
    assert line.endswith(" … && git push => a..b main -> main")


def test_of_a_call_with_a_program_the_program_is_quoted_not_only_the_name_of_its_tool() -> None:
    code = "const found = await tools.halls({near: 'mill'}); text(found)"
    told = [chat_calls(("c1", "exec", code)), chat_result("c1", "hall 4")]
    assert f"- exec {code} => hall 4" in summary_of(GO, *told)
    started = [chat_calls(("c1", "exec", code)), chat_result("c1", "Running with cell ID 124")]
    [line] = steps(summary_of(GO, *started))
    assert line.startswith(f"- exec {code}; started in the background")


def test_a_check_that_passed_beside_a_command_that_failed_is_not_said_to_have_failed() -> None:
    passed = "ok   app 0.3s\nls: Makefile: no such file here\nexit code 1"
    command = "go test ./... && ls Makefile; ls other"
    assert steps(summary_of(GO, *ran(command, passed))) == [
        f"- {command} => exit code 1: ok app 0.3s / ls: Makefile: no such file here"
    ]
    failed = "--- FAIL: TestPort (0.0s)\nFAIL app\nexit code 1"
    [line] = steps(summary_of(GO, *ran("go test ./... && ls Makefile", failed)))
    assert "=> exit code 1: --- FAIL: TestPort" in line


def test_a_check_leaves_when_it_passes_beside_another_one() -> None:
    failed = ran("make build && go vet ./... && go test ./...", "FAIL app\nexit code 1")
    passed = ran("go vet ./... && go test ./app", "ok   app 0.3s", "c2")
    assert steps(summary_of(GO, *failed, *passed)) == [
        "- go vet ./... && go test ./app => ok app 0.3s"
    ]


def test_open_tasks_are_kept_beside_much_that_was_said() -> None:
    todos = [{"content": f"Translate page {i}", "status": "pending"} for i in range(15)]
    told = [user(f"Never rename column c_{i}, it is used in report {i * 3}.") for i in range(150)]
    found = group(summary_of(*told, *made("c1", "TodoWrite", {"todos": todos})), Group.TASKS)
    assert len(found) == len(todos)


def test_a_commit_beside_a_file_that_is_put_back_stays() -> None:
    command = "make test; git checkout lock.json; git commit -qam x"
    assert len(steps(summary_of(GO, *ran(command, "[main 1a2b3c4] x")))) == 1


def test_an_older_failure_names_the_files_that_were_edited_before_another_check_passed() -> None:
    failed = ran("npm test -- pump", "1 failed, 3 passed\nexit code 1")
    passed = ran("mise run check", "12 passed", "c2")
    found = steps(summary_of(GO, *failed, *edited("e1", "pump.ts"), *passed))
    assert found == [
        "- npm test -- pump => exit code 1: 1 failed, 3 passed; changed since: pump.ts",
        "- mise run check => 12 passed",
    ]


def test_a_long_command_is_cut_inside_and_of_a_chain_only_known_lines_are_quoted() -> None:
    asked = " ".join(f'"which pump runs in hall {i} at night"' for i in range(9))
    loop = f'for q in {asked}; do ./a "$q"; done'
    [line] = steps(summary_of(GO, *ran(f"make build; {loop}", "4 14.1 pump.go\n5 13.6 a\n6 1 b")))
    assert line.startswith("- make build; for q in")
    assert line.endswith('do ./a "$q"; done => output not quoted')
    assert " … " in line


@pytest.mark.parametrize(
    "command", ["git branch --list", "test -d src && echo yes", "git merge-base a b"]
)
def test_a_command_that_only_asks_is_no_step(command: str) -> None:
    assert steps(summary_of(GO, *ran(command, "yes"), DONE)) == []


@pytest.mark.parametrize("command", ["git tag -a v2 -m x", "git branch -D pump", "git stash pop"])
def test_a_command_that_changes_branches_and_tags_is_a_step(command: str) -> None:
    assert steps(summary_of(GO, *ran(command, "")))[0].startswith(f"- {command}")


def test_the_heading_above_the_warnings_of_a_build_is_not_its_outcome() -> None:
    printed = "# example.com/hall/lua\nparser.c:254:18: warning: null character"
    assert steps(summary_of(GO, *ran("go build ./...", printed))) == [
        "- go build ./... => parser.c:254:18: warning: null character"
    ]


@pytest.mark.parametrize("noise", [0, 400])
@pytest.mark.parametrize(
    "alarm",
    [
        "ERROR: pump 4 has no valve",
        "[ERROR] pump 4 has no valve",
        "pump.py:3: warning: the valve is open",
        "npm WARN deprecated valve@1.0.0",
        "error[E0308]: mismatched types",
        "error TS2322: Type 'a' is not assignable",
        "ValueError: the valve is open",
    ],
)
@pytest.mark.parametrize("last", ["12 passed", "Migration completed successfully", ""])
@pytest.mark.parametrize("command", ["make check", "./deploy.sh push", "make check; git log"])
def test_an_error_or_a_warning_in_a_result_is_quoted_whatever_stands_around_it(
    command: str, alarm: str, noise: int, last: str
) -> None:
    around = "\n".join(f"hall {i} of the mill was looked at" for i in range(noise))
    printed = f"{around}\n{alarm}\n{around}\n{last}"
    first = summary_of(GO, *ran(command, printed))
    for summary in (first, later(first)):
        [line] = steps(summary)
        assert alarm in line


def test_commands_behind_quoted_text_are_read() -> None:
    command = (
        'go test ./... | grep -v "a\\|b" | grep "ok "\ngit commit -qam "one\n\ntwo" && git push'
    )
    [line] = steps(summary_of(GO, *ran(command, "ok  app 0.3s")))
    assert '| grep "ok "; git commit -qam "one two" && git push => ' in line


@pytest.mark.parametrize(
    "printed",
    [
        "SESSION_ID=54507\nexit=undefined",
        "<cell>Session ID: 812</cell>\nexit_code: null",
        "Command running in background with ID: b0jo",
        "Script running with cell ID 124\nWall time 10.0 seconds\nOutput:\n",
    ],
    ids=["session", "no code", "background", "cell"],
)
def test_a_command_that_goes_on_has_no_result(printed: str) -> None:
    first = summary_of(GO, *ran("make all", printed))
    [line] = steps(first)
    assert line.startswith("- make all; started in the background")
    assert "=>" not in line
    assert later(first) == first
    again = later(first, *ran("make all", "9 passed\nexit code 0", "c2"))
    assert steps(again) == ["- make all => exit code 0: 9 passed"]


def test_a_command_whose_result_is_not_recorded_has_none() -> None:
    first = summary_of(GO, call("c1", "Bash", {"command": "make check"}))
    assert steps(first) == ["- make check; called, no result yet"]
    assert later(first) == first


def test_a_command_is_followed_over_the_ids_that_its_polls_name() -> None:
    def polled(number: int, id_in_call: str, said: str) -> list[Message]:
        code = f"await tools.write_stdin({{session_id: {id_in_call}}})"
        return [chat_calls((f"p{number}", "exec", code)), chat_result(f"p{number}", said)]

    warnings = "\n".join(f"warning: symbol {i} is not used by the linker" for i in range(9))
    output = json.dumps({"session_id": 61293, "output": warnings})
    ended = json.dumps({"exit_code": 0, "output": "12 passed"})
    messages = [
        *ran("make all", "Script running with cell ID 124\nOutput:\n"),
        *polled(1, "124", output),
        *polled(2, "61293", "Script running with cell ID 125"),
    ]
    assert steps(summary_of(GO, *messages))[0].startswith("- make all; started in the background")
    messages += polled(3, "125", json.dumps({"session_id": 61293, "output": ""}))
    messages += polled(4, "61293", ended)
    assert steps(summary_of(GO, *messages)) == ["- make all => exit code 0: 12 passed"]


def test_what_says_nothing_of_a_command_in_the_background_leaves_its_line() -> None:
    began = ran("make all", "SESSION_ID=54507\nexit=undefined")
    polls = "await tools.write_stdin({session_id: 54507})"
    empty = [chat_calls(("c2", "exec", polls)), chat_result("c2", "")]
    ended = [chat_calls(("c3", "exec", polls)), chat_result("c3", "9 passed\nexit code 0")]
    line = "- make all; started in the background: SESSION_ID=54507"
    assert steps(summary_of(GO, *began, *empty)) == [line]
    assert steps(summary_of(GO, *began, *empty, *ended)) == ["- make all => exit code 0: 9 passed"]


def test_a_list_of_which_everything_is_done_has_no_line() -> None:
    todos = [{"content": "Fix the valve", "status": "completed"}]
    assert group(summary_of(GO, *made("c1", "TodoWrite", {"todos": todos})), Group.TASKS) == []


def test_what_failed_leaves_when_something_was_done_after_it() -> None:
    refused = ran("git stash", "The user rejected it\nexit code 1", "c1")
    assert len(steps(summary_of(GO, *refused))) == 1
    checked = ran("make check", "12 passed", "c2")
    assert steps(summary_of(GO, *refused, *checked)) == ["- make check => 12 passed"]
    silent = ran("git worktree add a && ls; cat b; cat c", "x 1\ny 2\nz 3", "c1")
    assert steps(summary_of(GO, *silent, *checked)) == ["- make check => 12 passed"]


def test_of_a_commit_beside_a_check_the_commit_is_quoted() -> None:
    printed = "Checked 238 files in 124ms\n[main 1a2b3c4] Mend it\n 1 file changed"
    command = "make check && git commit -am 'Mend it'"
    assert steps(summary_of(GO, *ran(command, printed))) == [
        f"- {command} => [main 1a2b3c4] Mend it"
    ]


def test_only_the_last_commit_names_files_that_were_edited_after_it() -> None:
    commit = ran("git commit -am 'Mend it'", "[main 1a2b3c4] Mend it", "c1")
    first = summary_of(GO, *commit, *edited("e1", "src/b.py"))
    again = ran("git commit -am 'Mend b'", "[main 2b3c4d5] Mend b", "c2")
    assert steps(later(first, *again)) == [
        "- git commit -am 'Mend it' => [main 1a2b3c4] Mend it",
        "- git commit -am 'Mend b' => [main 2b3c4d5] Mend b",
    ]


def test_a_script_of_another_language_is_no_command() -> None:
    script = "phase('Check');\nawait agent('make it'); // git commit is for later"
    assert steps(summary_of(GO, *made("c1", "Workflow", {"script": script}))) == []


@pytest.mark.parametrize("shell", ["bash", "/bin/zsh"])
def test_the_shell_that_runs_a_command_is_not_quoted(shell: str) -> None:
    given = json.dumps({"command": [shell, "-lc", "cd app && make check"]})
    messages = [chat_calls(("c1", "shell", given)), chat_result("c1", "12 passed")]
    assert steps(summary_of(GO, *messages)) == ["- make check => 12 passed"]


def test_an_output_in_an_object_of_several_lines_is_read() -> None:
    said = json.dumps(
        {"wall_time": 2.9, "output": "[main 1a2b3c4] Mend it\n", "exit_code": 0}, indent=2
    )
    code = 'text(await tools.exec_command({ cmd: "git commit -am x" }));'
    messages = [chat_calls(("c1", "exec", code)), chat_result("c1", f"Script completed\n{said}")]
    assert steps(summary_of(GO, *messages)) == [
        "- git commit -am x => exit code 0: [main 1a2b3c4] Mend it"
    ]


def test_a_file_that_was_deleted_after_a_check_is_not_said_to_be_edited() -> None:
    made = edited("c1", "src/chart.py")
    gone = ran("rm -f src/chart.py", "", "c3")
    summary = summary_of(user("Mend it."), *made, *ran("make check", "3 passed", "c2"), *gone)
    assert "make check => 3 passed; changed since: chart.py (deleted)" in summary
    assert "chart.py (deleted)" in later(summary)
    assert "changed since: chart.py\n" in f"{later(summary, *made)}\n"


def test_of_many_files_that_were_changed_after_a_check_a_mark_stands_for_the_rest() -> None:
    changes = [one for i in range(6) for one in edited(f"e{i}", f"src/{i}.py")]
    first = summary_of(GO, *ran("make check", "3 passed"), *changes)
    assert steps(first) == ["- make check => 3 passed; changed since: 5.py, 4.py, 3.py, 2.py, …"]
    assert steps(later(first)) == steps(first)


def test_a_file_that_was_changed_while_a_check_ran_is_named() -> None:
    began = ran("mise run test", "Process running with session ID 771")
    ended = made("c2", "write_stdin", {"session_id": 771}, "12 passed\nexit code 0")
    line = "- mise run test => exit code 0: 12 passed; changed since: a.py"
    assert steps(summary_of(GO, *began, *edited("e1", "a.py"), *ended)) == [line]
    assert steps(later(summary_of(GO, *began, *edited("e1", "a.py")), *ended)) == [line]


def test_a_failure_in_the_output_of_a_command_that_goes_on_is_quoted() -> None:
    warnings = "".join(f"[vet] p.c:{i}:18: warning: null character\n" for i in range(9))
    output = f"{warnings}[test] a/b.go:7:6: undefined: has\n[test] FAIL\ta/b [build failed]\n"
    printed = json.dumps({"session_id": 65132, "output": output})
    code = 'text(await tools.exec_command({ cmd: "mise run check" }));'
    messages = [chat_calls(("c1", "exec", code)), chat_result("c1", f"Output:\n{printed}")]
    first = summary_of(GO, *messages)
    assert steps(first) == [
        "- mise run check; started in the background: session id 65132"
        " … [test] a/b.go:7:6: undefined: has … [test] FAIL a/b [build failed]"
    ]
    polled = made("c2", "write_stdin", {"session_id": 65132}, "12 passed\nexit code 0")
    assert steps(later(first, *polled)) == ["- mise run check => exit code 0: 12 passed"]


NOISE = "\n".join(
    f"p.c:{i}:18: warning: comparison of integers of different signs [-Wsign-compare]"
    for i in (254, 260, 311)
)


@pytest.mark.parametrize(
    ("command", "printed", "quoted"),
    [
        ('go build -o p && ./p leaks; echo "EXIT: $?"', "12 leaks\nEXIT: 0", "EXIT: 0"),
        ('go build -o p && ./p leaks; echo "EXIT: $CODE"', "12 leaks\nEXIT:", "EXIT:"),
        ("cc -o p p.c 2>&1; ./p --count", "4712", "4712"),
        ("go test ./...", "ok  \thall/cli\t0.31s", "ok hall/cli 0.31s"),
        (
            "go test ./...",
            "--- FAIL: TestLid (0.00s)\nFAIL\thall/cli\t0.31s\nexit code 1",
            "exit code 1: --- FAIL: TestLid (0.00s) / FAIL hall/cli 0.31s",
        ),
        ("python3 probe.py", "leaks=3", "leaks=3"),
        ("psql -c 'select * from pump'", " id | leaks\n  1 | 3", "id | leaks / 1 | 3"),
    ],
)
def test_what_was_printed_is_quoted_before_warnings(
    command: str, printed: str, quoted: str
) -> None:
    for output in (f"{NOISE}\n{printed}", f"{NOISE}\n{printed}\n{NOISE}"):
        summary = summary_of(GO, *ran(command, output), *edited("c2", "hall/a.py"))
        line = next(line for line in summary.split("\n") if line.startswith(f"- {command} => "))
        outcome = line.partition(" => ")[2].removesuffix("; changed since: a.py")
        assert re.sub(r" … p\.c:254:18: warning: .*", "", outcome) == quoted


def test_an_error_is_quoted_before_warnings() -> None:
    warnings = "".join(f"p.c:{i}:18: warning: null character\n" for i in range(9))
    [line] = steps(
        summary_of(GO, *ran("make", f"{warnings}a.c:3:5: error: unknown type\n{warnings}"))
    )
    assert "a.c:3:5: error: unknown type" in line


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("cd /var/folders/tree && make check", {}),
        ("make check", {"workdir": "/var/folders/tree"}),
    ],
)
def test_a_check_in_a_folder_for_scratch_says_where_it_ran(
    command: str, fields: dict[str, str]
) -> None:
    summary = summary_of(user("Mend it."), *ran(command, "2 failed", **fields))
    assert "- cd /var/folders/tree && make check => failed: 2 failed" in summary
