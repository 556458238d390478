"""Numbers of lines that a reply takes from a removed item."""

from __future__ import annotations

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
    ],
)
def test_a_view_of_lines_whose_number_only_a_removed_result_showed(view: dict[str, Any]) -> None:
    assert needed(SEARCH, OTHER, (view, "code")) == [("ledger.py:637",)]


@pytest.mark.parametrize("end", ["see ledger.py:637", "see `ledger.py` or ledger.py ~637"])
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
