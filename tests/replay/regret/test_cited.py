"""Numbers of lines that a reply takes from a removed item."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from policyctx.replay.simulation import simulated
from tests.conversations import user
from tests.replay.regret.test_needs import CLEARS_ALL_BUT_ONE, WORDS, replayed, talk
from tests.replay.sessions import turn_by_turn

SEARCH: tuple[dict[str, Any], str] = (
    {"pattern": "def settle", "path": "src/ledger.py"},
    f"{WORDS}\n637: def settle(voucher):\n{WORDS}",
)
OTHER: tuple[dict[str, Any], str] = ({"at": "b"}, WORDS)


def needed(*turns: tuple[dict[str, Any], str], end: str = "done") -> list[tuple[str, ...]]:
    return [need.found for one in replayed(*turns, end=end).regrets for need in one.needs]


@pytest.mark.parametrize(
    "view",
    [
        {"path": "src/ledger.py", "view_range": [637, 660]},
        {"path": "src/ledger.py", "offset": 637, "limit": 20},
        {"command": "sed -n '637,660p' src/ledger.py"},
        {"command": "sed -n 637p src/ledger.py"},
        {"command": "sed -i '637s/voucher/coupon/' src/ledger.py"},
        {"command": "sed -i '637,638d' src/ledger.py"},
    ],
)
def test_a_view_of_lines_whose_number_only_a_removed_result_showed(view: dict[str, Any]) -> None:
    assert needed(SEARCH, OTHER, (view, "code")) == [("ledger.py:637",)]


@pytest.mark.parametrize(
    "end",
    [
        "see ledger.py:637",
        "see `ledger.py` or ledger.py ~637",
        "src/ledger.py (lines 637-639)",
        "lines 637–639 of `src/ledger.py`",
        "line 637 in src/ledger.py",
        "src/ledger.py L637",
    ],
)
def test_a_text_that_cites_a_line_of_a_removed_result(end: str) -> None:
    assert needed(SEARCH, OTHER, end=end) == [("ledger.py:637",)]


@pytest.mark.parametrize(
    "view",
    [
        {"path": "src/ledger.py", "view_range": [600, 660]},
        {"path": "src/voucher.py", "view_range": [637, 660]},
        {"path": "src/ledger.py", "timeout": 637},
    ],
)
def test_round_numbers_other_files_and_other_fields_are_no_need(view: dict[str, Any]) -> None:
    assert needed(SEARCH, OTHER, (view, "code")) == []


@pytest.mark.parametrize(
    ("visible", "known"),
    [
        ("settle is at line 638 of ledger.py", True),
        ("settle is at line 638 of voucher.py", False),
    ],
)
def test_a_number_that_visible_text_about_the_file_has_is_known(visible: str, known: bool) -> None:
    view = {"path": "src/ledger.py", "view_range": [637, 660]}
    messages = talk(SEARCH, OTHER, (view, "code"))
    messages[0] = user(visible)
    assert (simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets == ()) is known


def test_reading_on_behind_what_was_read_before_is_no_need() -> None:
    first = {"path": "src/ledger.py", "offset": 303, "limit": 334}
    then = {"path": "src/ledger.py", "offset": 637, "limit": 334}
    shown = "\n".join(f"{number}\tvoucher" for number in range(303, 638))
    assert needed((first, shown), OTHER, (then, "code")) == []


CODE = [
    *(f"    prepare_{number}(ledger)" for number in range(30)),
    "    total = 0",
    "    rows = []",
]
PRINTED: tuple[dict[str, Any], str] = (
    {"command": "sed -n '608,640p' src/ledger.py"},
    "\n".join(CODE),
)


@pytest.mark.parametrize("end", ["see ledger.py:638", "line 638 of src/ledger.py"])
def test_a_line_counted_in_a_removed_result_that_has_no_numbers(end: str) -> None:
    session = replayed(PRINTED, OTHER, end=end)
    [need] = [need for one in session.regrets for need in one.needs]
    assert need.found == ("ledger.py:638",)
    assert [(one.first, one.last) for one in need.ranges] == [(31, 31)]


@pytest.mark.parametrize("end", ["see ledger.py:640", "see ledger.py:648", "see voucher.py:638"])
def test_a_number_that_the_call_itself_has_or_that_is_outside_is_not_counted_in_it(
    end: str,
) -> None:
    assert needed(PRINTED, OTHER, end=end) == []


OLD, NEW = "    total = 0", "    total = 1"
PATCH = f"*** Begin Patch\n*** Update File: src/ledger.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch"
EDITS: list[dict[str, Any]] = [
    {"file_path": "src/ledger.py", "old_string": OLD, "new_string": NEW},
    {"path": "/repo/src/ledger.py", "edits": [{"oldText": OLD, "newText": NEW}]},
    {"command": "str_replace", "path": "src/ledger.py", "old_str": OLD, "new_str": NEW},
    {"input": PATCH},
    {"command": ["apply_patch", PATCH]},
]
READ: tuple[dict[str, Any], str] = (
    {"file_path": "src/ledger.py"},
    "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(CODE, 1)),
)


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("shown", [READ, PRINTED])
def test_an_edit_of_a_line_that_only_a_removed_result_of_its_file_showed(
    edit: dict[str, Any], shown: tuple[dict[str, Any], str]
) -> None:
    assert needed(shown, OTHER, (edit, "done")) == [("total = 0",)]


def test_an_edit_whose_old_line_the_call_was_sent_is_no_need() -> None:
    again = {"pattern": "total", "path": "src"}, f"src/ledger.py:31:{OLD}\n{WORDS}"
    assert needed(READ, again, (EDITS[0], "done")) == []


@pytest.mark.parametrize(
    "edit",
    [
        {"file_path": "src/voucher.py", "old_string": OLD, "new_string": NEW},
        {"file_path": "src/ledger.py", "old_string": "  x", "new_string": "  total = 0"},
    ],
)
def test_an_edit_of_another_file_or_with_only_the_new_line_in_it_is_no_need(
    edit: dict[str, Any],
) -> None:
    assert needed(READ, OTHER, (edit, "done")) == []


@pytest.mark.parametrize("kind", ["Add", "Update"])
@pytest.mark.parametrize(
    "line", ["return compute(first, second, third)", "    assert amount or rest and third"]
)
def test_a_line_that_a_patch_copies_from_a_removed_result(kind: str, line: str) -> None:
    patch = f"*** Begin Patch\n*** {kind} File: src/new.py\n@@\n+{line}\n+z = 4\n*** End Patch"
    shown = {"path": "src/ledger.py"}, f"x = 1\n    {line.strip()}\n" + "y = 2\n" * 90
    assert needed(shown, OTHER, ({"input": patch}, "done"))[0][0] == line.strip()


NUMBERED_BELOW: tuple[dict[str, Any], str] = (
    {"command": "nl -ba src/ledger.py"},
    "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(CODE, 1)),
)


@pytest.mark.parametrize(
    "end",
    [
        "see ledger.py:27",
        "`src/ledger.py` (lines 27-29)",
        'report --file src/ledger.py --line 27 -m "wrong"',
        '{"file": "src/ledger.py", "line": 27}',
        'wrong: {"file": "src/ledger.py", "line": 27}',
    ],
)
@pytest.mark.parametrize("wrap", [str, lambda text: json.dumps({"output": text})])
def test_a_small_number_is_a_line_where_a_removed_result_numbers_that_line(
    end: str, wrap: Callable[[str], str]
) -> None:
    shown = NUMBERED_BELOW[0], wrap(NUMBERED_BELOW[1])
    found = needed(shown, OTHER, end=end)
    assert "ledger.py:27" in [text for of_one in found for text in of_one]


@pytest.mark.parametrize("end", ["ledger.py (27 of them)", "ledger.py:9", "voucher.py:27"])
def test_a_small_number_that_is_no_line_of_a_removed_result_is_no_need(end: str) -> None:
    assert needed(NUMBERED_BELOW, OTHER, end=end) == []


def test_a_small_number_that_a_removed_result_has_but_not_before_a_line_is_no_need() -> None:
    shown = {"command": "cat src/ledger.py"}, f"{WORDS}\nof 27 vouchers\n{WORDS}"
    assert needed(shown, OTHER, end="see ledger.py:27") == []


def test_the_number_of_a_line_in_one_of_several_parts_that_a_command_prints() -> None:
    both = "sed -n '1,10p' src/voucher.py; echo ---; sed -n '608,640p' src/ledger.py"
    shown = {"command": both}, "\n".join([*(f"voucher {n}" for n in range(10)), "---", *CODE])
    session = replayed(shown, OTHER, end="see ledger.py:638")
    [need] = [need for one in session.regrets for need in one.needs]
    assert need.found == ("ledger.py:638",)
    assert [(one.first, one.last) for one in need.ranges] == [(42, 42)]
    assert needed(shown, OTHER, end="see voucher.py:638") == []


DIFF = "\n".join(
    [
        "diff --git a/src/voucher.py b/src/voucher.py",
        "--- a/src/voucher.py",
        "+++ b/src/voucher.py",
        "@@ -33,2 +33,2 @@ def a():",
        "-    one = 1",
        "+    one = 2",
        "     two = 2",
        "diff --git a/src/ledger.py b/src/ledger.py",
        "--- a/src/ledger.py",
        "+++ b/src/ledger.py",
        "@@ -630,30 +636,32 @@ def settle(voucher):",
        *(f"     prepare_{number}(ledger)" for number in range(20)),
        "-    total = 0",
        "+    total = 1",
    ]
)


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("see ledger.py:642", ["ledger.py:642"]),
        ("`ledger.py` (lines 656-657)", ["ledger.py:656"]),
        ("see voucher.py:34", ["voucher.py:34"]),
        ("see ledger.py:658", []),
        ("see voucher.py:642", []),
    ],
)
def test_a_line_counted_from_the_head_of_a_hunk_of_a_removed_diff(
    end: str, found: list[str]
) -> None:
    shown = {"command": "git diff main"}, DIFF
    assert [text for of_one in needed(shown, OTHER, end=end) for text in of_one] == found


@pytest.mark.parametrize("joint", [":", "-"])
def test_a_small_number_that_a_removed_search_wrote_behind_the_file(joint: str) -> None:
    shown = {"pattern": "settle", "path": "src"}, f"src/ledger.py{joint}27{joint}  settle()\n"
    assert needed((shown[0], shown[1] + WORDS), OTHER, end="see ledger.py:27") == [
        ("ledger.py:27",)
    ]


def test_a_small_number_that_is_no_line_in_a_visible_text_about_the_file_is_not_known() -> None:
    messages = talk(NUMBERED_BELOW, OTHER, end="see ledger.py:27")
    messages[0] = user("settle the 27 vouchers of 2026-11-27 in ledger.py")
    assert len(simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets) == 1


@pytest.mark.parametrize(
    "known", ["ledger.py:27: wrong", "    27\tprepare_26(ledger) of ledger.py"]
)
def test_a_small_number_that_a_visible_text_has_as_a_line_is_known(known: str) -> None:
    messages = talk(NUMBERED_BELOW, OTHER, end="see ledger.py:27")
    messages[0] = user(known)
    assert simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets == ()


def test_an_edit_of_a_line_that_a_removed_search_or_diff_showed_of_the_file() -> None:
    search = {"pattern": "total", "path": "src"}, f"src/ledger.py:31:{OLD}\n{WORDS}"
    for shown in (search, ({"command": "git diff"}, DIFF)):
        [found] = needed(shown, OTHER, (EDITS[0], "done"))
        assert "total = 0" in found
    elsewhere = {"pattern": "total", "path": "src"}, f"src/voucher.py:31:{OLD}\n{WORDS}"
    assert needed(elsewhere, OTHER, (EDITS[0], "done")) == []


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/total = 0/total = 1/' src/ledger.py",
        "sed -i -e 's|total = 0|total = 1|g' src/ledger.py",
        "perl -pi -e 's/total = 0/total = 1/' src/ledger.py",
    ],
)
def test_a_command_that_replaces_what_only_a_removed_result_of_its_file_showed(
    command: str,
) -> None:
    assert needed(READ, OTHER, ({"command": command}, "done")) == [("total = 0",)]


HELP: tuple[dict[str, Any], str] = (
    {"command": "ledgerctl settle --help"},
    f"Usage: ledgerctl settle\n  --freshness string   how new it is\n  --json\n{WORDS}",
)


def test_an_option_that_only_the_removed_help_of_its_program_showed() -> None:
    use = {"command": "ledgerctl settle --freshness any"}, "done"
    assert needed(HELP, OTHER, use) == [("--freshness",)]


def test_options_are_shown_in_the_order_of_the_command() -> None:
    options = "--stale", "--json", "--freshness"
    shown = {"command": "ledgerctl settle --help"}, "\n  ".join(["Usage:", *options, WORDS])
    use = {"command": f"ledgerctl settle {' '.join(options)}"}, "done"
    assert needed(shown, OTHER, use) == [options]


@pytest.mark.parametrize(
    "command", ["othertool --freshness any", "ledgerctl settle --stale", "echo freshness"]
)
def test_options_of_other_programs_and_unknown_ones_are_no_need(command: str) -> None:
    assert needed(HELP, OTHER, ({"command": command}, "done")) == []


def test_an_option_that_the_call_was_sent_is_no_need() -> None:
    again = {"at": "b"}, f"ledgerctl has --freshness {WORDS}"
    use = {"command": "ledgerctl settle --freshness any"}, "done"
    assert needed(HELP, again, use) == []
