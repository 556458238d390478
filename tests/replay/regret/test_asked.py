"""Asking again: when an earlier result would have served, and which part of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.replay.simulation import simulated
from tests.conversations import results
from tests.policies import policy
from tests.replay.regret.test_needs import WORDS, replayed, talk
from tests.replay.sessions import turn_by_turn

LINES = [f"{number:4}  value_{number} = compute({number})" for number in range(1, 101)]


def lines(first: int, last: int) -> str:
    return "\n".join(LINES[first - 1 : last])


def asked(*turns: tuple[dict[str, Any], str]) -> list[tuple[str, list[tuple[int, int]]]]:
    """The items that are asked for again, each with the first and last lines that are."""
    return [
        (regret.removal.item_id, [(one.first, one.last) for one in need.ranges])
        for regret in replayed(*turns).regrets
        for need in regret.needs
        if need.kind == "asked again"
    ]


OTHER: tuple[dict[str, Any], str] = ({"at": "other"}, WORDS)


def test_other_lines_of_the_same_file_are_another_part() -> None:
    first = {"path": "a.py", "offset": 1, "limit": 20}
    then = {"path": "a.py", "offset": 60, "limit": 20}
    assert asked((first, lines(1, 20)), OTHER, (then, lines(60, 79))) == []


def test_of_lines_that_overlap_only_those_of_both_are_asked_for_again() -> None:
    first = {"path": "a.py", "offset": 11, "limit": 30}
    then = {"path": "a.py", "offset": 31, "limit": 30}
    assert asked((first, lines(11, 40)), OTHER, (then, lines(31, 60))) == [("r0", [(21, 30)])]


def test_lines_that_a_newer_visible_result_has_are_not_asked_for_again() -> None:
    whole, part = {"path": "a.py"}, {"path": "a.py", "offset": 31, "limit": 30}
    turns = ((whole, lines(1, 100)), (part, lines(31, 60)), (part, lines(31, 60)))
    assert asked(*turns) == []


def test_the_numbers_in_a_command_choose_a_part() -> None:
    first, then = {"command": "sed -n 1,30p a.py"}, {"command": "sed -n 21,50p a.py"}
    assert asked((first, lines(1, 30)), OTHER, (then, lines(21, 50))) == [("r0", [(21, 30)])]
    assert asked((first, lines(1, 30)), OTHER, (then, lines(60, 90))) == []


RUN = {"command": "make test"}
EDIT = {"path": "b.py", "old_string": "x", "new_string": "y"}


@pytest.mark.parametrize(
    "between",
    [EDIT, {"command": "sed -i s/x/y/ b.py"}, {"command": "echo y > b.py"}],
    ids=["edit", "in place", "redirect"],
)
def test_a_command_that_runs_again_after_a_change_wants_its_new_result(
    between: dict[str, Any],
) -> None:
    assert asked((RUN, lines(1, 9)), (between, "done"), (RUN, lines(1, 9))) == []


def test_a_command_that_runs_again_without_a_change_asks_again() -> None:
    turns = ((RUN, lines(1, 9)), ({"command": "cat b.py"}, WORDS), (RUN, lines(1, 9)))
    assert asked(*turns) == [("r0", [(1, 9)])]


def test_a_command_whose_result_differs_does_not_ask_again() -> None:
    assert asked((RUN, lines(1, 9)), OTHER, (RUN, lines(5, 20))) == []


def test_a_file_that_was_changed_is_read_for_its_new_text() -> None:
    read, edit = {"path": "src/b.py"}, EDIT | {"path": "src/b.py"}
    assert asked((read, lines(1, 50)), (edit, "done"), (read, lines(1, 50))) == []
    other = EDIT | {"path": "src/c.py"}
    assert asked((read, lines(1, 50)), (other, "done"), (read, lines(1, 50))) != []


def test_a_structured_call_with_another_result_does_not_ask_again() -> None:
    order = {"order_id": "W41"}
    before, after = (f"an order of many things, paid: {paid}" for paid in ("no", "yes"))
    assert asked((order, before), OTHER, (order, after)) == []
    assert asked((order, before), OTHER, (order, before)) == [("r0", [(1, 1)])]


WHOLE: tuple[dict[str, Any], str] = ({"path": "src/a.py"}, lines(1, 100))


def test_each_removed_result_that_says_what_is_asked_for_is_regretted_and_read_again_once() -> None:
    session = replayed(WHOLE, WHOLE, OTHER, WHOLE)
    found = {regret.removal.item_id: regret.needs for regret in session.regrets}
    assert [(name, [need.call for need in found[name]]) for name in sorted(found)] == [
        ("r0", [4]),
        ("r1", [4]),
    ]
    assert found["r0"][0].ranges == found["r1"][0].ranges
    assert (found["r0"][0].tokens, found["r1"][0].tokens > 0) == (0, True)


def test_lines_that_an_older_visible_result_has_are_not_asked_for_again() -> None:
    part = {"path": "a.py", "offset": 31, "limit": 3}
    messages = talk((part, lines(31, 33)), ({"path": "a.py"}, lines(1, 100)), OTHER, (part, ""))
    messages[-2] = results(("r3", lines(31, 33)))
    large = policy("""
        items: {tool_result: {offload: true}}
        min_tokens: 200
        steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
    """)
    session = simulated(turn_by_turn(messages), large)
    assert [removal.item_id for removal in session.removals] == ["r1"]
    assert session.regrets == ()


@pytest.mark.parametrize(
    ("command", "shown", "expected"),
    [
        ("sed -n 21,50p src/a.py", lines(21, 50), [("r0", [(21, 50)])]),
        ("cat a.py", "\n".join(LINES[:50]), [("r0", [(1, 50)])]),
        ("cat lib/a.py", lines(21, 50), []),
        ("make a.py", lines(21, 50), []),
    ],
)
def test_a_file_may_be_read_again_in_another_way(
    command: str, shown: str, expected: list[tuple[str, list[tuple[int, int]]]]
) -> None:
    assert asked(WHOLE, OTHER, ({"command": command}, shown)) == expected


def test_line_numbers_that_only_one_of_two_results_has_make_no_difference() -> None:
    code = [f"value_{number} = compute({number})" for number in range(1, 61)]
    numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(code, 1))
    again = {"command": "head -n 20 src/a.py"}, "\n".join(code[:20])
    assert asked(({"path": "src/a.py"}, numbered), OTHER, again) == [("r0", [(1, 20)])]


def test_a_tool_that_says_only_that_a_file_is_unchanged_was_asked_for_it_again() -> None:
    unchanged = "File unchanged since it was read before."
    assert asked(WHOLE, OTHER, (WHOLE[0], unchanged)) == [("r0", [(1, 100)])]
    assert asked(WHOLE, OTHER, (WHOLE[0], "No such file.")) == []


def test_a_command_that_names_its_folder_is_a_command() -> None:
    first = {"cmd": "sed -n 1,30p a.py", "workdir": "/src/app"}
    then = {"cmd": "sed -n 21,50p a.py", "workdir": "/src/app"}
    assert asked((first, lines(1, 30)), OTHER, (then, lines(21, 50))) == [("r0", [(21, 30)])]


def wrapped(text: str, seconds: float) -> str:
    """A result as some hosts record it: JSON on one line."""
    return json.dumps({"output": text, "metadata": {"exit_code": 0, "seconds": seconds}})


def headed(text: str, chunk: str) -> str:
    """A result as some hosts record it: behind lines about the run."""
    return f"Chunk: {chunk}\nWall time: 0.1 seconds\nOutput:\n{text}"


CODE = [f"value_{number} = compute({number})" for number in range(1, 61)]
PLAIN = "\n".join(CODE)
NUMBERED = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(CODE, 1))


def test_a_file_read_again_with_line_numbers_is_asked_for_again() -> None:
    again = {"command": "nl -ba src/a.py"}, NUMBERED
    assert asked(({"command": "cat src/a.py"}, PLAIN), OTHER, again) == [("r0", [(1, 60)])]


@pytest.mark.parametrize("shown", [PLAIN, NUMBERED])
def test_a_result_in_json_says_the_text_that_is_in_it(shown: str) -> None:
    first = {"command": "cat src/a.py"}, wrapped(PLAIN.replace("\n", "\r\n"), 0.1)
    again = {"command": "nl -ba src/a.py"}, wrapped(shown, 0.2)
    assert asked(first, OTHER, again) == [("r0", [(1, 1)])]
    other = {"command": "nl -ba src/a.py"}, wrapped(lines(1, 60), 0.2)
    assert asked(first, OTHER, other) == []


def test_what_a_host_writes_before_a_result_makes_no_difference() -> None:
    run = {"command": "make list"}
    first, again = headed(lines(1, 5), "5af1de"), headed(lines(1, 5), "725ef0")
    assert asked((run, first), OTHER, (run, again)) == [("r0", [(1, 8)])]


DIFF = {"command": "git diff -- src/a.py src/b.py"}
STATUS = {"command": "git status"}


@pytest.mark.parametrize(
    ("state", "between"),
    [
        (DIFF, {"command": "make test"}),
        (DIFF, {"command": "run --all --format json > /tmp/log.txt"}),
        (DIFF, EDIT | {"path": "src/c.py"}),
        (STATUS, {"command": "make test"}),
    ],
)
def test_the_state_of_a_repository_that_no_call_changed_is_asked_for_again(
    state: dict[str, Any], between: dict[str, Any]
) -> None:
    for where in ({}, {"workdir": "/src/app"}):
        turns = [
            (state | where, lines(1, 9)),
            (between | where, WORDS),
            (state | where, lines(1, 9)),
        ]
        assert asked(*turns) == [("r0", [(1, 9)])]


@pytest.mark.parametrize(
    ("state", "between"),
    [
        (DIFF, EDIT | {"path": "src/b.py"}),
        (DIFF, {"command": "git checkout main"}),
        (DIFF, {"command": "gofmt -w ."}),
        (DIFF, {"command": "npm run format"}),
        (STATUS, EDIT),
        (STATUS, {"command": "echo y > c.py"}),
        (STATUS, {"command": "git add -A"}),
    ],
)
def test_the_state_of_a_repository_after_a_change_is_news(
    state: dict[str, Any], between: dict[str, Any]
) -> None:
    assert asked((state, lines(1, 9)), (between, WORDS), (state, lines(1, 9))) == []


@pytest.mark.parametrize("enter", ["cd /src/app && ", "cd /src/app; ", "(cd /src/app && ", ""])
@pytest.mark.parametrize("folder", [{}, {"workdir": "/src/app"}, {"cwd": "src/app"}])
@pytest.mark.parametrize(("file", "found"), [("b.py", []), ("a.py", [("r0", [(1, 30)])])])
def test_the_folder_that_a_command_enters_is_no_file_that_it_reads(
    enter: str, folder: dict[str, Any], file: str, found: list[tuple[str, list[tuple[int, int]]]]
) -> None:
    first = {"command": f"{enter}cat a.py"} | folder, lines(1, 30)
    then = {"command": f"{enter}head -n 30 {file}"} | folder, lines(1, 30)
    assert asked(first, OTHER, then) == found
