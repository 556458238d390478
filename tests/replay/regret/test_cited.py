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
    ("end", "items"), [("ledger.py:637", ["r1"]), ("ledger.py:637-659", ["r0", "r1"])]
)
def test_an_older_result_is_needed_too_only_if_a_reply_cites_two_of_its_lines(
    end: str, items: list[str]
) -> None:
    search = SEARCH[0], f"{SEARCH[1]}\n659: return voucher"
    session = replayed(search, search, OTHER, end=end)
    assert sorted(one.removal.item_id for one in session.regrets) == items


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
