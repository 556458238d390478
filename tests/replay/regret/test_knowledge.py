"""What an agent knows without a removed item."""

from __future__ import annotations

import pytest

from policyctx.replay.simulation import simulated
from tests.conversations import user
from tests.replay.regret.test_needs import CLEARS_ALL_BUT_ONE, WORDS, replayed, talk
from tests.replay.sessions import turn_by_turn


def is_regretted(*, held: str, visible: str, said: str) -> bool:
    """Whether a reply needs a removed result, with a text of the user that it has."""
    messages = talk(({"at": "a"}, f"{WORDS}\n{held}\n"), ({"at": "b"}, WORDS), end=said)
    messages[0] = user(visible)
    return simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets != ()


@pytest.mark.parametrize(
    ("said", "visible"),
    [
        ("src/core/tax_rates.py", "work in src/core, on tax_rates.py"),
        ("reconcile_the_old_ledger", "what does reconcileTheOldLedger do"),
        ("ReconcileTheOldLedger", "please reconcile_the_old_ledger"),
        ("ledger.py:26413", "line 26413 of ledger.py"),
        ("4ea79d2", "commit 4ea79d21f20b9a7c55d8e0362b1c7f90aa31de74"),
        ("the harbour office opens at nine", "  12\tthe harbour office opens at nine"),
    ],
)
def test_what_can_be_derived_from_visible_text_is_no_need(said: str, visible: str) -> None:
    assert not is_regretted(held=said, visible=visible, said=said)
    assert is_regretted(held=said, visible="the task", said=said)


@pytest.mark.parametrize(
    ("said", "visible"),
    [
        ("123456", "812345679"),
        ("1234567", "812345679"),
        ("1234567", "1234567890"),
        ("1471100", "the 14711 0023 rows"),
        ("4ea79d2", "64ea79d21f20b9a7c55d8e0362b1c7f90aa31de74"),
        ("4ea79d2", "the file x4ea79d2f"),
    ],
)
def test_what_only_stands_within_a_longer_word_in_view_is_a_need(said: str, visible: str) -> None:
    assert is_regretted(held=said, visible=visible, said=said)


def test_a_string_is_known_while_anything_that_holds_it_is_in_view() -> None:
    turns = [({"at": name}, f"{WORDS} QX-48213-B") for name in "ab"]
    assert replayed(*turns, end="see QX-48213-B").regrets == ()
    assert replayed(*turns, ({"at": "c"}, WORDS), end="see QX-48213-B").regrets != ()


def test_the_fields_of_a_call_are_known_from_its_tool() -> None:
    session = replayed(
        ({"at": "a"}, f'{WORDS} {{"item_ids": [1], "payment_method_id": 2}}'),
        ({"at": "b"}, WORDS),
        ({"item_ids": "all", "payment_method_id": "the first"}, WORDS),
    )
    assert session.regrets == ()


def test_common_words_are_no_need() -> None:
    held = "The first part works and the second part returns a list of all open files at the end."
    said = "At the end I list what works: the first part returns all files, the second is open."
    assert not is_regretted(held=held, visible="the task", said=said)
