"""What the agent did without a word: the edits and commands after its last messages, in order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import edited, group, later, ran, said, summary_of
from tests.conversations import Message, call, chat_calls, chat_result, results, user

GO = user("Mend the pump.")
ANNOUNCED = said("Now I add the import of the pump.")


def steps(summary: str) -> list[str]:
    return group(summary, Group.STEPS)


def files(summary: str) -> list[str]:
    return group(summary, Group.FILES)


def made(call_id: str, tool: str, given: dict[str, Any], result: str) -> list[Message]:
    return [call(call_id, tool, given), results((call_id, result))]


def changed(call_id: str, path: str, old: str, new: str) -> list[Message]:
    given = {"file_path": path, "old_string": old, "new_string": new}
    return [call(call_id, "Edit", given), results((call_id, "ok"))]


def test_a_step_that_was_announced_and_done_is_seen_to_be_done() -> None:
    done = changed("e1", "src/pump.py", "import os", "import os\nimport valve")
    failed = ran("pytest -q", "1 failed\nexit code 1", "c1")
    again = changed("e2", "src/pump.py", "a = 1", "a = 2")
    summary = summary_of(
        GO, ANNOUNCED, *done, *failed, *again, *ran("bd close p-7", "Closed", "c2")
    )
    said_last = ["- [while working, 4 calls ago] Now I add the import of the pump."]
    assert group(summary, Group.AGENT) == said_last
    assert files(summary) == ["- src/pump.py: edited"]
    assert steps(summary) == [
        "- pytest -q => exit code 1: 1 failed; changed since: pump.py",
        "- bd close p-7 => Closed",
    ]


def test_a_command_of_no_known_kind_leaves_when_somebody_speaks_after_it() -> None:
    before = [*ran("make check", "9 passed"), *ran("./bench", "9 runs", "c2")]
    first = summary_of(
        GO, *before, said("Both hold."), user("Push."), *ran("git push", "a..b", "c3")
    )
    lines = ["- make check => 9 passed", "- git push => a..b"]
    assert steps(first) == lines
    assert steps(later(first, *ran("./bench", "8 runs"))) == [*lines, "- ./bench => 8 runs"]
    assert steps(later(first, said("It is pushed."))) == lines


def test_what_only_shows_something_is_not_listed() -> None:
    looks = [*ran("ls src && git log --oneline", "a", "c1"), *ran("mise exec -- go version", "1")]
    summary = summary_of(GO, ANNOUNCED, *looks, *ran("bd close p-7", "Closed", "c3"))
    assert steps(summary) == ["- bd close p-7 => Closed"]


FOUND = "12 findings\n" + "\n".join(f"pump {i}: leaks" for i in range(12))


def test_what_the_last_script_printed_is_quoted_whole() -> None:
    first = summary_of(GO, ANNOUNCED, *ran("python3 - <<'E'\nprint(leaks)\nE", FOUND))
    assert steps(first) == [f"- python3 - <<E … => {FOUND}".replace("\n", " / ")]
    assert later(first) == first
    assert steps(later(first, said("All of them leak."))) == []


def shown(summary: str) -> list[str]:
    return group(summary, Group.RESULTS)


def test_what_other_calls_showed_is_quoted_where_there_is_room() -> None:
    read = {"file_path": "hall/pump.py", "offset": 680, "limit": 2}
    looks = [
        *ran("rg -n leaks hall", FOUND),
        call("c2", "Read", read),
        results(("c2", "680 import valve")),
        call("c3", "Glob", {"pattern": "**/lid.py"}),
        results(("c3", "<tool_use_error>File does not exist.</tool_use_error>"), error=True),
    ]
    first = summary_of(GO, *looks, ANNOUNCED)
    lines = [
        f"- rg -n leaks hall => {FOUND}".replace("\n", " / "),
        "- Read hall/pump.py offset=680 limit=2 => 680 import valve",
        "- Glob **/lid.py => failed: File does not exist.",
    ]
    assert shown(first) == lines
    assert later(first) == first
    again = later(first, *ran("rg -n leaks hall", "none"))
    assert shown(again) == [*lines[1:], "- rg -n leaks hall => none"]
    talk = [user(f"Never open lid {i} of hall {i * 7}.") for i in range(200)]
    assert shown(summary_of(GO, *talk, *looks, ANNOUNCED)) == lines[1:]


@pytest.mark.parametrize(
    "change", [edited("e1", "hall/pump.py"), ran("git checkout next", "Switched", "e1")]
)
def test_what_was_shown_before_a_change_is_not_quoted(change: list[Message]) -> None:
    looked = ran("rg -n leaks hall", FOUND)
    assert shown(summary_of(GO, *looked, *change, ANNOUNCED)) == []
    assert shown(later(summary_of(GO, *looked, ANNOUNCED), *change)) == []


def test_what_was_looked_up_in_a_file_of_the_agents_own_is_not_quoted() -> None:
    own = made(
        "w1", "Write", {"file_path": "/hall/notes.md", "content": "# Pumps\n## Seals\n"}, "ok"
    )
    looks = [
        *ran("rg -n Seals notes.md", "2:## Seals", "l1"),
        *made("l2", "Read", {"file_path": "/hall/notes.md", "offset": 2, "limit": 1}, "## Seals"),
        *ran("rg -n Seals other.md", "7:## Seals", "l3"),
        *ran("git diff notes.md", "+## Seals", "l4"),
    ]
    lines = ["- rg -n Seals other.md => 7:## Seals", "- git diff notes.md => +## Seals"]
    assert shown(summary_of(GO, *own, *looks)) == lines
    assert shown(later(summary_of(GO, *own), *looks)) == lines


LONG_FILE = "\n".join(f"{i} pump_{i} = valve({i})" for i in range(40, 90))


@pytest.mark.parametrize(
    "look",
    [
        made("c1", "Read", {"file_path": "hall/pump.py", "offset": 40, "limit": 50}, LONG_FILE),
        ran("nl -ba hall/pump.py | sed -n '40,89p'", LONG_FILE),
        ran("git diff", f"diff --git a/hall/pump.py b/hall/pump.py\n{LONG_FILE}"),
        made("c1", "get_product", {"number": "W57"}, json.dumps({"hall": LONG_FILE})),
        made("c1", "web_search", {"query": "pumps that leak"}, LONG_FILE),
    ],
    ids=["read", "pipe", "diff", "fields", "pages"],
)
def test_a_long_result_of_what_changed_nothing_is_not_quoted(look: list[Message]) -> None:
    first = summary_of(GO, *look, ANNOUNCED)
    assert shown(first) == []
    assert later(first) == first


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("find hall -name a.py", "exit code 0"),
        ("rg -n a hall | head; ls roof", "exit code 0"),
        ("cat hall/*.py", f"{LONG_FILE}\ncat: hall/b.py: No such file\nexit code 1"),
        ("cat hall/a.py && printf ' -- ' && cat hall/b.py", LONG_FILE),
    ],
)
def test_a_look_that_found_nothing_or_failed_in_part_is_not_listed(
    command: str, printed: str
) -> None:
    summary = summary_of(GO, *ran(command, printed), ANNOUNCED)
    assert shown(summary) + steps(summary) == []


PASSES = "\n".join(f"hall/test_pump.py::test_{i} PASSED" for i in range(40))


@pytest.mark.parametrize(
    ("tool", "given", "printed"),
    [
        ("run_tests", {"path": "hall/test_pump.py"}, f"{PASSES}\n1 failed, 40 passed"),
        ("measure", {"path": "hall/pump.py"}, f"Error: no valve\n{PASSES}\n1 failed"),
        ("get_product", {"number": "W57"}, json.dumps({"error": PASSES, "code": "1 failed"})),
    ],
)
def test_a_long_result_of_a_check_or_a_failure_is_quoted(
    tool: str, given: dict[str, Any], printed: str
) -> None:
    messages = made("c1", tool, given, printed)
    if tool == "get_product":
        messages[-1:] = [results(("c1", printed), error=True)]
    [line] = shown(summary_of(GO, *messages, ANNOUNCED))
    assert line.startswith(f"- {tool} ")
    assert "1 failed" in line


def test_the_state_of_the_repository_is_kept_before_other_results() -> None:
    looks = [
        *ran("git log --oneline", "ab120 Mend lid 4"),
        *(
            one
            for i in range(9)
            for one in made(f"d{i}", "fetch", {"url": f"h_{i}"}, "leaks " * 60)
        ),
    ]
    assert shown(summary_of(GO, *looks, max_words=500))[0].startswith(
        "- git log --oneline => ab120"
    )


def test_a_poll_of_a_command_that_is_listed_is_no_other_result() -> None:
    running = "Process running with session ID 87942"
    poll = made("c2", "write_stdin", {"session_id": 87942, "chars": ""}, "9 passed\nexit code 0")
    summary = summary_of(GO, *ran("make check", running), *poll)
    assert steps(summary) == ["- make check => exit code 0: 9 passed"]
    assert shown(summary) == []


@pytest.mark.parametrize("command", ["cat hall/pump.py", "git diff --check", "ls nothing"])
def test_a_command_that_showed_a_file_or_nothing_is_no_step(command: str) -> None:
    printed = "import valve" if command.startswith("cat") else ""
    assert steps(summary_of(GO, ANNOUNCED, *ran(command, f"{printed}\nexit code 0"))) == []


def test_a_run_without_a_result_leaves_the_result_of_the_run_before() -> None:
    messages = [*ran("./bench", "9 pumps run"), call("c2", "Bash", {"command": "./bench"})]
    assert steps(summary_of(GO, ANNOUNCED, *messages)) == [
        "- ./bench => 9 pumps run",
        "- ./bench; called, no result yet",
    ]


def test_two_here_documents_are_two_commands() -> None:
    command = "python3 - <<'E'\nprint({})\nE"
    messages = [*ran(command.format(1), "1"), *ran(command.format(2), "2", "c2")]
    assert steps(summary_of(GO, ANNOUNCED, *messages)) == [
        "- python3 - <<E … => 1",
        "- python3 - <<E … => 2",
    ]


def test_the_lines_stay_until_the_agent_says_something_again() -> None:
    first = summary_of(GO, ANNOUNCED, *ran("./pump --dry", "runs"))
    assert steps(first) == ["- ./pump --dry => runs"]
    assert later(first) == first
    more = later(first, *ran("make check", "9 passed", "c2"))
    assert steps(more) == [*steps(first), "- make check => 9 passed"]
    told = later(more, said("The pump is mended."))
    assert steps(told) == ["- make check => 9 passed"]


PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n+x = 2\n*** Add File: b.py\n+y = 3\n"
)
PROGRAM = f"await tools.apply_patch({PATCH!r})".replace("'", '"')
LISTED = [{"old_string": "x = 1", "new_string": "x = 2"}]


@pytest.mark.parametrize(
    ("tool", "given", "lines"),
    [
        ("apply_patch", {"input": PATCH}, ["b.py: written", "src/a.py: edited"]),
        (
            "Write",
            {"file_path": "b.py", "content": '\n# a\n\ty = "3"\n'},
            ["b.py: written"],
        ),
        ("MultiEdit", {"file_path": "src/a.py", "edits": LISTED}, ["src/a.py: edited"]),
        ("Write", {"file_path": "/srv/scratchpad/a.py", "content": "x = 2"}, []),
    ],
)
def test_the_files_of_an_edit_are_listed(
    tool: str, given: dict[str, Any], lines: list[str]
) -> None:
    made = [call("c1", tool, given), results(("c1", "ok"))]
    summary = summary_of(GO, ANNOUNCED, *made)
    assert files(summary) == [f"- {line}" for line in lines]
    assert later(summary) == summary


def test_the_files_of_a_patch_in_a_program_are_listed() -> None:
    made = [chat_calls(("c1", "exec", PROGRAM)), chat_result("c1", "Script completed")]
    assert files(summary_of(GO, ANNOUNCED, *made)) == [
        "- b.py: written",
        "- src/a.py: edited",
    ]


def test_an_edit_that_failed_is_not_listed() -> None:
    given = {"file_path": "a.py", "old_string": "a\nb", "new_string": "b\nc"}
    failed = [call("e1", "Edit", given), results(("e1", "no match"), error=True)]
    assert files(summary_of(GO, ANNOUNCED, *failed)) == []


@pytest.mark.parametrize("tool", ["Write", "Edit", "Grep"])
def test_a_call_without_a_result_changed_nothing_yet(tool: str) -> None:
    given = {"file_path": "src/pump.py", "content": "a = 2\nb = 3"}
    summary = summary_of(GO, ANNOUNCED, *edited("e1", "a.py"), call("c1", tool, given))
    assert files(summary) == ["- a.py: edited"]
    assert shown(summary) == [f"- {tool} src/pump.py a = 2 b = 3; called, no result yet"]
    done = later(summary, *edited("e2", "b.py"))
    assert files(done) == ["- b.py: edited", "- a.py: edited"]
    assert shown(done) == []


BEGUN = (
    "Command running in background with ID: b2okyo. Output is being written to: /tmp/b2okyo.txt."
)


def notice(summary: str, status: str = "completed", task: str = "b2okyo") -> Message:
    return user(
        f"<task-notification>\n<task-id>{task}</task-id>\n<status>{status}</status>\n"
        f"<summary>{summary}</summary>\n</task-notification>"
    )


def test_a_command_in_the_background_is_listed_until_it_ends() -> None:
    began = ran("./bench -jobs 8", BEGUN)
    line = "- ./bench -jobs 8; started in the background: Command running in background with ID:"
    first = summary_of(GO, *began, said("The benchmark is running now."))
    assert group(first, Group.STEPS) == [f"{line} b2okyo"]
    other = [*ran("make check", "9 passed", "c2"), said("It passes.")]
    assert group(later(first, *other), Group.STEPS) == [
        f"{line} b2okyo",
        "- make check => 9 passed",
    ]
    ended = notice('Background command "./bench" completed (exit code 0)')
    assert group(later(first, ended), Group.STEPS) == ["- ./bench -jobs 8 => exit code 0"]
    assert group(later(first, ended, said("It ended.")), Group.STEPS) == []


@pytest.mark.parametrize(
    ("words", "status", "outcome"),
    [
        ('Background command "make" completed (exit code 0)', "completed", "exit code 0"),
        ('Background command "make" failed with exit code 2', "failed", "exit code 2"),
    ],
)
def test_a_check_in_the_background_has_the_exit_code_of_its_notice(
    words: str, status: str, outcome: str
) -> None:
    summary = summary_of(GO, *ran("make check", BEGUN), notice(words, status))
    assert steps(summary) == [f"- make check => {outcome}"]


def test_the_exit_code_of_a_command_that_reads_the_output_is_not_that_of_the_check() -> None:
    look = ran(
        "tail -8 /tmp/b2okyo.txt; echo ===", "Finished in 2 s\n== not found\nexit code 1", "c2"
    )
    summary = summary_of(GO, *ran("make check", BEGUN), *look)
    assert "exit code 1" not in summary
    ended = notice('Background command "make" completed (exit code 0)')
    summary = summary_of(GO, *ran("make check", BEGUN), *look, ended)
    assert steps(summary) == ["- make check => exit code 0"]


STARTED = [
    call("w1", "Workflow", {"name": "review"}),
    results(("w1", "Workflow launched in background. Task ID: b2okyo")),
]


def test_work_in_the_background_that_failed_in_several_lines_is_not_shown_as_running() -> None:
    trace = 'Workflow "review" failed: Error: no branches\n  at main (w.js:13)\n  at run (native)'
    summary = summary_of(GO, ANNOUNCED, *STARTED, notice(trace, "failed"))
    assert steps(summary) == [f"- Workflow review => failed: {' '.join(trace.split())}"]


def test_what_work_in_the_background_found_is_quoted() -> None:
    found = "3 warnings: the pump leaks; the valve sticks; the lid is open." + " More." * 500
    ended = notice('Workflow "review" completed')
    ended["content"] = ended["content"].replace(
        "</summary>", f"</summary>\n<result>{found}</result>"
    )
    line, _ = steps(summary_of(GO, ANNOUNCED, *STARTED, ended, *ran("./bench", "9 runs")))
    assert line.startswith('- Workflow review => completed: Workflow "review" completed / 3 warn')
    assert "the lid is open." in line
    assert len(line) < 1_000


def test_a_poll_of_a_command_that_is_not_listed_is_not_listed() -> None:
    poll = [
        call("c1", "write_stdin", {"session_id": 87942, "chars": ""}),
        results(("c1", "Chunk ID: 7e1\nProcess running with session ID 87942")),
    ]
    assert steps(summary_of(GO, ANNOUNCED, *poll)) == []


def test_a_command_in_the_background_is_listed_after_a_poll_that_says_that_it_goes_on() -> None:
    running = "Process running with session ID 87942"
    poll = [call("c2", "write_stdin", {"session_id": 87942}), results(("c2", running))]
    closed = "write_stdin failed: stdin is closed for this session"
    typed = [call("c3", "write_stdin", {"session_id": 87942}), results(("c3", closed), error=True)]
    messages = [*ran("./review", running), *typed, *poll, said("I wait for it.")]
    assert group(summary_of(GO, *messages), Group.STEPS) == [
        f"- ./review; started in the background: {running}"
    ]


def test_a_poll_after_the_last_messages_leaves_a_command_where_it_was_started() -> None:
    running = "Process running with session ID 87942"
    poll = [call("c2", "write_stdin", {"session_id": 87942}), results(("c2", running))]
    messages = [*ran("./review", running), *ran("./drain", "dry", "c3"), said("I wait for it.")]
    line = f"- ./review; started in the background: {running}"
    summary = summary_of(GO, *messages, *poll, *edited("e1", "pump.py"))
    assert steps(summary) == [line, "- ./drain => dry"]
    told = later(summary_of(GO, *messages), *poll)
    assert steps(told) == [line]


@pytest.mark.parametrize("command", ["barn stale --help", "which barn", "pwd && barn --version"])
def test_a_look_at_the_help_of_a_program_is_not_listed(command: str) -> None:
    look = ran(command, "a\nb\nc")
    summary = summary_of(GO, ANNOUNCED, *look, *ran("bd close p-7", "Closed", "c2"))
    assert steps(summary) == ["- bd close p-7 => Closed"]


def test_another_agent_that_works_in_the_background_is_listed_until_its_notice() -> None:
    launched = "Async agent launched.\nagentId: a50484f\nThe agent is working in the background."
    given = {"description": "Map the valves", "prompt": "Read all of it."}
    began = [call("c1", "Agent", given), results(("c1", launched))]
    first = summary_of(GO, *began, said("I wait for it."))
    assert group(first, Group.STEPS) == [
        "- Agent Map the valves; started in the background: agentId: a50484f"
    ]
    again = later(first, notice("Agent came to rest", task="a50484f"))
    assert steps(again) == ["- Agent Map the valves => completed: Agent came to rest"]


def test_lines_of_a_result_that_occur_earlier_in_it_are_quoted() -> None:
    lines = [
        "type Entity struct {",
        "    Kind string",
        "}",
        "",
        "---",
        "type Change struct {",
        "    Kind string",
        "    Old string",
        "}",
    ]
    quoted = " / ".join(line.strip() for line in lines)
    found = summary_of(GO, *ran("sed -n 1,9p model.go", "\n".join(lines)))
    assert group(found, Group.RESULTS) == [f"- sed -n 1,9p model.go => {' '.join(quoted.split())}"]


def test_elements_and_warnings_in_a_file_are_quoted() -> None:
    page = "one\n<li>a</li>\nwarning: hot\n<b>\ntwo"
    found = summary_of(GO, *ran("cat a.html", page))
    assert "one / <li>a</li> / warning: hot / <b> / two" in found


def test_where_lines_of_a_failed_check_are_missing_is_marked() -> None:
    output = "FAILED test_a\nsetup\nFAILED test_b\nmore\nlast\nexit code 1"
    (line,) = group(summary_of(GO, *ran("pytest -q", output)), Group.STEPS)
    assert line == "- pytest -q => exit code 1: FAILED test_a … FAILED test_b / more / last"


def test_the_newest_calls_are_quoted_whatever_their_input_is() -> None:
    looks = [
        *ran("ls hall", "served", "c1"),
        *made("c2", "execute", {"command": ""}, "THE PUMP RUNS"),
        *made("c3", "click", {"element_id": 903}, "Research on pumps"),
        *made("c4", "hand_in", {}, "Call it again to confirm."),
    ]
    _, *found = shown(summary_of(GO, *looks))
    assert [line.partition(" =>")[0] for line in found] == [
        "- execute",
        "- click element_id=903",
        "- hand_in",
    ]
    assert found[0].endswith("THE PUMP RUNS")
    talk = [user(f"Never open lid {i} of hall {i * 7}.") for i in range(60)]
    assert shown(summary_of(GO, *talk, *looks))[-3:] == found


def test_calls_that_wait_for_a_result_are_listed() -> None:
    asked = [call("c1", "Bash", {"command": "sed -n 4,9p a.py"}), call("c2", "click", {"id": 3})]
    waits = "called, no result yet"
    found = shown(summary_of(GO, ANNOUNCED, *asked))
    assert found == [f"- sed -n 4,9p a.py; {waits}", f"- click id=3; {waits}"]


def replied(command: str, code: int, printed: str) -> list[Message]:
    """A reply with its command in the text, and the message that the host writes behind it."""
    returned = f"<returncode>{code}</returncode>\n<output>\n{printed}\n</output>"
    return [said(f"THOUGHT: I run {command}.\n\n```bash\n{command}\n```"), user(returned)]


def test_what_a_host_returns_for_a_command_in_a_reply_is_not_the_users() -> None:
    work = [*replied("cat pump.py", 0, "import valve"), *replied("pytest -q", 1, "1 failed")]
    first = summary_of(GO, *work)
    assert group(first, Group.USER) == ["- Mend the pump."]
    assert group(first, Group.AGENT) == ["- [while working] THOUGHT: I run pytest -q. pytest -q"]


def test_the_last_run_of_a_check_stays_beside_what_the_agent_said_of_it() -> None:
    claim = said("All tests pass.")
    failed = ran("pytest -q", "1 failed\nexit code 1")
    more = [one for i in range(14) for one in ran(f"./bench {i}", f"{i} runs", f"c{i}")]
    line = "- pytest -q => exit code 1: 1 failed"
    assert line in steps(summary_of(GO, claim, *failed, *more))
    pushes = [one for i in range(6) for one in ran(f"git push r{i}", "a..b", f"p{i}")]
    assert line in steps(summary_of(GO, *failed, *pushes, claim))
    passed = ran("pytest -q", "2 passed\nexit code 0", "d1")
    noted = said("pytest -q fails.")
    settled = steps(summary_of(GO, noted, *passed, *more))
    assert "- pytest -q => exit code 0: 2 passed" in settled


def test_of_commands_after_each_other_the_last_lines_are_of_the_last() -> None:
    both = "javac Pump.java && java Pump"
    assert steps(summary_of(GO, *ran(both, "pump runs\nlid: open\ndry"))) == [
        f"- {both} => … lid: open / dry"
    ]
    listed = "javac Pump.java && ls hall"
    assert steps(summary_of(GO, *ran(listed, "a\nb\nc"))) == [f"- {listed} => output not quoted"]


def test_a_field_of_an_answer_that_is_called_output_is_not_all_of_it() -> None:
    answer = '{"name": "Charger", "options": {"output": "USB-C"}, "price": 99.5}'
    found = made("c1", "get_product", {"number": "W57"}, answer)
    assert shown(summary_of(GO, *found)) == [f"- get_product W57 => {answer}"]


def test_a_file_that_was_only_read_before_a_commit_was_not_edited() -> None:
    read = ran("cat src/lid.py", "lid = open")
    commit = ran("git commit -m Mend", "[main 1ab23cd] Mend", "c2")
    summary = summary_of(GO, *edited("e1", "src/pump.py"), *read, *commit)
    assert files(summary) == ["- Edited before the last commit: src/pump.py"]


def test_a_check_before_a_rebase_says_that_files_were_changed_since() -> None:
    check = ran("pytest -q", "2 passed")
    moved = ran("git rebase main", "Successfully rebased", "c2")
    line = "- pytest -q => 2 passed; changed since: git rebase"
    assert steps(summary_of(GO, *check, *moved))[0] == line
    assert steps(later(summary_of(GO, *check), *moved))[0] == line
    refused = ran("git pull", "fatal: could not read from remote\nexit code 1", "c2")
    assert steps(summary_of(GO, *check, *refused))[0] == "- pytest -q => 2 passed"
    elsewhere = ran("git -C '/srv/a b' pull", "Fast-forward", "c2")
    assert steps(summary_of(GO, *check, *elsewhere))[0].endswith("; changed since: git pull")
    same = ran("git pull", "Already up to date.", "c2")
    assert steps(summary_of(GO, *check, *same))[0] == "- pytest -q => 2 passed"


@pytest.mark.parametrize(
    "command",
    ["git commit -m 'Mend after git merge'", "echo 'git pull'", "cat <<E\ngit rebase main\nE"],
)
def test_a_command_of_git_that_is_only_quoted_changed_no_file(command: str) -> None:
    summary = summary_of(GO, *ran("pytest -q", "2 passed"), *ran(command, "ok", "c2"))
    assert steps(summary)[0] == "- pytest -q => 2 passed"


def test_a_rebase_that_could_not_go_on_stays_until_git_goes_on() -> None:
    stopped = ran("git rebase main", "error: could not apply ab12\nexit code 1")
    work = [*ran("git add a.py", "", "c2"), *ran("gh pr comment 4", "Commented", "c3")]
    line = "- git rebase main => exit code 1: error: could not apply ab12"
    assert line in steps(summary_of(GO, *stopped, *work))
    goes_on = ran("git rebase --continue", "Successfully rebased", "c4")
    assert line not in steps(summary_of(GO, *stopped, *work, *goes_on))


def test_the_verdict_in_the_middle_of_what_a_command_printed_is_quoted() -> None:
    noise = "\n".join(f"hall {i}: looked at" for i in range(60))
    printed = f"{noise}\nRESULT: FAIL (0 of 1 pumps)\n{noise}"
    (line,) = steps(summary_of(GO, ANNOUNCED, *ran("./bench", printed)))
    assert "RESULT: FAIL (0 of 1 pumps)" in line


def test_a_commit_that_was_refused_stays_until_one_is_made() -> None:
    refused = ran("git commit -m Mend", "lint: 1 problem\nexit code 1")
    work = [*edited("e1", "a.py"), *ran("gh pr comment 4", "Commented", "c3")]
    line = "- git commit -m Mend => exit code 1: lint: 1 problem; changed since: a.py"
    assert line in steps(summary_of(GO, *refused, *work))
    made_one = ran("git commit -m Mend", "[main 1ab23cd] Mend", "c4")
    assert line not in steps(summary_of(GO, *refused, *work, *made_one))
