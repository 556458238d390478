"""The simplest detector of regret, beside which the rules of the package are judged."""

from __future__ import annotations

import pytest

from benchmarks.regret.sample import WHOLE
from benchmarks.regret.simple import simple_needs
from policyctx.replay.simulation import simulated
from tests.conversations import user
from tests.replay.regret.test_needs import CLEARS_ALL_BUT_ONE, WORDS, talk
from tests.replay.sessions import turn_by_turn

NAME = "recompute_old_ledger"


@pytest.mark.parametrize(
    ("held", "said", "visible", "needed"),
    [
        (NAME, NAME, "the task", True),
        (NAME, NAME, "what is RecomputeOldLedger", False),
        ("the ticket 48213", "it is 48213", "the task", True),
        ("the year 2031", "it is 2031", "the task", False),
        ("src/core/tax_rates.py", "src/core/tax_rates.py", "tax_rates in src/core", False),
        ("some words", "some words", "the task", False),
        ("12\tthe harbour office opens at nine", "the harbour office opens at nine", "a", True),
    ],
)
def test_a_reply_needs_what_alone_held_its_string(
    held: str, said: str, visible: str, needed: bool
) -> None:
    messages = talk(({"at": "a"}, f"{WORDS}\n{held}\n"), ({"at": "b"}, WORDS), end=said)
    messages[0] = user(visible)
    session = simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE, excerpt=WHOLE)
    found = {call for _, _, call in simple_needs(session)}
    assert found == ({3} if needed else set())


def test_of_two_removed_items_the_newer_one_is_needed() -> None:
    turns = [({"at": at}, f"{WORDS} {NAME} {at}") for at in "ab"]
    messages = talk(*turns, ({"at": "c"}, WORDS), end=NAME)
    session = simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE, excerpt=WHOLE)
    newest = {item.position for item in session.items if item.item_id == "r1"}
    assert {position for _, position, _ in simple_needs(session)} <= newest
    assert simple_needs(session)
