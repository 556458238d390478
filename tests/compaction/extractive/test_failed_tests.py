"""Failures: the test that failed with its values, and those that were wanted or only looked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compaction.extractive.test_authors import group
from tests.compaction.extractive.test_contents import said, summary_of
from tests.conversations import call, results, user

Message = dict[str, Any]


def ran(command: str, output: str, words: str = "", call_id: str = "c1") -> list[Message]:
    run = call(call_id, "Bash", {"command": command})
    run["content"] = [*([{"type": "text", "text": words}] if words else []), *run["content"]]
    answer = results((call_id, output))
    answer["content"][0]["is_error"] = True
    return [run, answer]


def failures(*messages: Message) -> list[str]:
    return [line[2:] for line in group(summary_of(user("Go."), *messages), "Failures:")]


PYTEST = """\
=================================== FAILURES ===================================
____________________________ test_a_keg_is_full ____________________________
    def test_a_keg_is_full() -> None:
>       assert keg.litres == 50
E       assert 49 == 50
E        +  where 49 = Keg().litres
tests/test_keg.py:9: AssertionError
=========================== short test summary info ============================
FAILED tests/test_keg.py::test_a_keg_is_full - assert 49 == 50
FAILED tests/test_keg.py::test_a_keg_is_cold - KeyError: 'cold'
2 failed, 7 passed in 0.31s"""
REPORTS = {
    "pytest": (PYTEST, "tests/test_keg.py::test_a_keg_is_full (and 1 more): assert 49 == 50"),
    "the end of pytest": (
        "FAILED tests/test_keg.py::test_cold - KeyError: 'cold'\n1 failed, 8 passed in 0.3s",
        "tests/test_keg.py::test_cold: KeyError: 'cold'",
    ),
    "unittest": (
        "FAIL: test_full (kegs.tests.KegTest)\n-----\nTraceback (most recent call last):\n"
        '  File "t.py", line 9, in test_full\nAssertionError: 49 != 50\n\nFAILED (failures=1)',
        "test_full (kegs.tests.KegTest): AssertionError: 49 != 50",
    ),
    "go": (
        "--- FAIL: TestKeg (0.00s)\n    keg_test.go:12: litres: got 49, want 50\nFAIL\nFAIL\tkegs",
        "TestKeg: keg_test.go:12: litres: got 49, want 50",
    ),
    "jest": (
        "FAIL src/keg.test.ts\n  ● keg \u203a is full\n\n    expect(received).toBe(expected)\n\n"
        "    Expected: 50\n    Received: 49\n\nTests: 1 failed, 3 total",
        "keg \u203a is full: expected: 50; received: 49",
    ),
    "rust": (
        "test keg::is_full ... FAILED\n\n---- keg::is_full stdout ----\n"
        "assertion `left == right` failed\n  left: 49\n right: 50\n\ntest result: FAILED.",
        "keg::is_full: left: 49; right: 50",
    ),
    "ExUnit": (
        "  1) test a keg is full (KegTest)\n     code:  assert keg.litres == 50\n"
        "     left:  49\n     right: 50\n\n3 tests, 1 failure",
        "test a keg is full (KegTest): left: 49; right: 50",
    ),
    "a linter": (
        "[fmt] $ gofmt -w .\n[lint] $ golangci-lint run\ncmd/keg.go:48:60: err is never used\n",
        "cmd/keg.go:48:60: err is never used",
    ),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_failed_test_stands_with_its_values(report: str) -> None:
    output, told = REPORTS[report]
    [line] = failures(*ran("make test", output))
    assert line.partition(" => ")[2] == told


@pytest.mark.parametrize(
    "words", ["Now the failing test first.", "I run it to see it fail.", "先写测试，它应该失败。"]
)
def test_a_failure_that_the_agent_wants_is_none(words: str) -> None:
    assert failures(*ran("pytest -q", PYTEST, words)) == []
    assert len(failures(*ran("pytest -q", PYTEST, "I run the tests again."))) == 1


def test_a_failure_that_came_as_expected_is_none() -> None:
    after = said("It fails as expected. Now the code.")
    assert failures(*ran("pytest -q", PYTEST), after) == []
    later = [said("Hm, the keg leaks."), user("And?"), said("It fails as expected.")]
    assert len(failures(*ran("pytest -q", PYTEST), *later)) == 1


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn TODO src",
        "cd src && grep -c keg a.py",
        "ls Makefile",
        "make 2>&1 | tail -3; ls Makefile 2>/dev/null && grep -n test Makefile | head",
        "which brewery",
        "git diff --quiet",
        "test -f keg.txt",
        "! rg -q 'a; b' .",
    ],
)
def test_a_probe_that_finds_nothing_is_no_failure(command: str) -> None:
    messages = ran(command, "Exit code 1\nnothing")
    assert failures(*messages) == []
    assert group(summary_of(user("Go."), *messages), "Tools:") == ["- Bash: 1 call"]


@pytest.mark.parametrize("command", ["make", "make && ls out", "ls | xargs ./brew", "./brew; make"])
def test_a_program_that_fails_is_a_failure(command: str) -> None:
    assert len(failures(*ran(command, "Exit code 1\nthe valve is open"))) == 1


def test_a_probe_behind_a_failed_build_hides_nothing() -> None:
    output = "Exit code 1\nkeg.c:3:5: error: unknown type name 'litre'\nmake: *** [all] Error 1"
    assert len(failures(*ran("make; ls out", output))) == 1
