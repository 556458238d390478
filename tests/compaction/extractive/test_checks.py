"""What was edited, checked and committed last, and what a failure became."""

from __future__ import annotations

from typing import Any

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import group, said, summary_of, user

Message = dict[str, Any]
CHECKS, EDITS, FAILED = "Checks, last run:", "Last edits:", "Failures:"


def done(number: int, tool: str, given: dict[str, Any], result: str, **more: Any) -> list[Message]:
    call = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result, **more}
    return [{"role": "assistant", "content": [call]}, user([answer])]


def ran(number: int, command: str, result: str, **more: Any) -> list[Message]:
    return done(number, "Bash", {"command": command}, result, **more)


def edited(number: int, path: str, old: str, new: str) -> list[Message]:
    return done(number, "Edit", {"file_path": path, "old_string": old, "new_string": new}, "ok")


def summarised(*messages: Message) -> str:
    return summary_of(user("Fix the boiler code."), *messages, said("All is in place."))


def test_the_lines_that_an_edit_put_in_are_shown() -> None:
    old, new = "def heat():\n    return 80", "def heat():\n    limit = 95\n    return limit"
    summary = summarised(*edited(1, "src/boiler.py", old, new))
    assert group(summary, EDITS) == ["- src/boiler.py: limit = 95 / return limit"]


def test_only_the_last_edit_of_a_file_is_shown() -> None:
    first, second = edited(1, "a.py", "x = 1", "x = 2"), edited(2, "a.py", "x = 2", "x = 3")
    assert group(summarised(*first, *second), EDITS) == ["- a.py: x = 3"]


def test_an_edit_is_not_repeated_beside_the_restored_file() -> None:
    messages = [user("Fix it."), *edited(1, "a.py", "x = 1", "x = 2"), said("x is 2.")]
    summary = extractive_summary(History(messages, restored={"a.py": "x = 2"}), Summary())
    assert group(summary, EDITS) == []


def test_the_last_run_of_each_check_has_its_result() -> None:
    first = ran(1, "cd app && pytest -q tests/boiler", "2 failed, 3 passed", is_error=True)
    second = ran(2, "cd app && pytest -q", "....\n5 passed in 0.20s")
    lint = ran(3, "npm run lint 2>&1 | tail -3", "0 problems")
    assert group(summarised(*first, *second, *lint), CHECKS) == [
        "- pytest -q => 5 passed in 0.20s",
        "- npm run lint => 0 problems",
    ]


def test_a_check_before_the_last_edit_says_so() -> None:
    checked = ran(1, "pytest -q", "5 passed")
    summary = summarised(*checked, *edited(2, "a.py", "x = 1", "x = 2"))
    assert group(summary, CHECKS) == ["- pytest -q => 5 passed (before the last edit)"]
    again = summary_of(user("Go on."), *ran(3, "pytest -q tests", "6 passed"))
    assert group(again, CHECKS) == ["- pytest -q tests => 6 passed"]


def test_a_check_takes_the_place_of_that_of_an_earlier_summary() -> None:
    first = summarised(*ran(1, "go test ./tank", "FAIL tank", is_error=True))
    later = [user(first), *ran(2, "go test ./...", "ok  tank 0.1s"), said("It passes.")]
    second = extractive_summary(History(later, earlier={0: first}), Summary())
    assert group(second, CHECKS) == ["- go test ./... => ok tank 0.1s"]


def test_what_only_shows_text_is_no_check() -> None:
    looked = ran(1, "cat build/test.log | grep check", "5 passed")
    prepared = ran(2, "rm -rf build && mkdir -p build", "")
    message = ran(3, "git commit -m 'Test the boiler; check the valve'", "[main abcdef1] Test")
    assert group(summarised(*looked, *prepared, *message), CHECKS) == []


def test_the_state_of_the_repository_is_the_last_that_was_seen() -> None:
    dirty = "On branch main\nChanges not staged for commit:\n\tmodified:   a.py\n"
    clean = "On branch main\nYour branch is ahead of 'origin/main' by 2 commits.\n"
    clean += "nothing to commit, working tree clean\n"
    summary = summarised(
        *ran(1, "git status", dirty),
        *ran(2, "git status", clean),
        *ran(3, "git log --oneline -3", "abc1234 Fix the valve\n0123456 Add a pump"),
    )
    assert group(summary, "Repository:") == [
        "- branch main",
        "- working tree: clean",
        "- remote: ahead of 'origin/main' by 2 commits",
        "- newest commit: abc1234 Fix the valve",
    ]


def test_a_push_and_a_commit_change_the_state() -> None:
    summary = summarised(
        *ran(1, "git status -sb", "## main\n M a.py\n?? b.py\n"),
        *ran(2, "git commit -am 'Fix the valve'", "[main abcdef1] Fix the valve\n 1 file changed"),
        *ran(3, "git push", "   0123456..abcdef1  main -> main\n"),
    )
    assert group(summary, "Repository:") == [
        "- commit abcdef1 on main: Fix the valve",
        "- remote: pushed 0123456..abcdef1 main -> main",
    ]
    dirty = summarised(*ran(1, "git status --short", " M a.py\n?? b.py\n"))
    assert group(dirty, "Repository:") == ["- working tree: not committed a.py, b.py"]


def test_a_failure_is_resolved_by_another_run_of_the_same_program() -> None:
    failed = ran(1, "git add a.py && git commit -m 'One'", "hook: the lint failed", is_error=True)
    worked = ran(2, "git commit -m 'Two'", "[main abcdef1] Two")
    lines = group(summarised(*failed, *edited(3, "a.py", "x", "y"), *worked), FAILED)
    assert lines[1].startswith("  resolved: succeeded later, after a change of a.py")
    other = group(summarised(*failed, *ran(2, "git push", "done")), FAILED)
    assert len(other) == 1


def test_the_line_of_a_failure_is_not_its_exit_code_alone() -> None:
    failed = ran(1, "./deploy hall-b", "Exit code 1\nthe valve of hall B is open", is_error=True)
    [line] = group(summarised(*failed), FAILED)
    assert line == "- Bash ./deploy hall-b => the valve of hall B is open"


def test_what_a_tool_says_before_the_output_is_not_its_error() -> None:
    printed = "Chunk ID: 12ab34\nOutput:\nthe valve of hall B is open"
    [line] = group(summarised(*ran(1, "./deploy", printed, is_error=True)), FAILED)
    assert line.endswith("=> the valve of hall B is open")


def after(first: str, *messages: Message) -> str:
    history = [user(first), *messages]
    return extractive_summary(History(history, earlier={0: first}), Summary())


ANNOUNCED = [user("Fix the boiler."), said("The valve leaks. Now I'll replace the gasket.")]


def test_what_the_agent_announced_and_went_on_with_is_not_open() -> None:
    first = summary_of(*ANNOUNCED)
    went_on = after(first, *ran(1, "ls", "a.py"), said("The boiler holds its pressure now."))
    assert group(went_on, "Still open:") == []
    interrupted = after(first, user("Look at the pump first."), said("The pump is fine."))
    assert "- Now I'll replace the gasket." in group(interrupted, "Still open:")


def test_an_announcement_that_its_message_carries_out_is_not_next() -> None:
    report = "Now I'll write the report. " + " ".join(f"Hall {i} has a pump." for i in range(9))
    assert group(summary_of(user("Report."), said(report)), "Next:") == []


def test_the_agents_statements_have_no_note_that_they_may_replace_another() -> None:
    summary = summary_of(
        user("Check the pumps."),
        said("The result of pump A is 12 bar because of the valve."),
        user("And again?"),
        said("The result of pump B changed to 14 bar because of the gasket."),
    )
    assert "may replace" not in summary
