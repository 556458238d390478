"""Short numbers of a reply, beside the words that are beside them in a removed item."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.replay.regret.vocabulary import IN_ITEM, IN_REPLY, fact_in, may_be_fact
from policyctx.replay.simulation import simulated
from tests.conversations import user
from tests.replay.regret.test_needs import CLEARS_ALL_BUT_ONE, WORDS, replayed, talk
from tests.replay.sessions import turn_by_turn

HELD = "ferry NRT418 harbour Lindgaard, cabin fare 263, lounge 1.47, berth 940px wide"
OTHER: tuple[dict[str, Any], str] = ({"at": "b"}, WORDS)


def found(said: str, *, held: str = HELD, task: str = "the task") -> list[tuple[str, ...]]:
    """What shows that a reply needs a removed result."""
    messages = talk(({"at": "a"}, f"{WORDS}\n{held}\n{WORDS}"), OTHER, end=said)
    messages[0] = user(task)
    session = simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE)
    return [need.found for regret in session.regrets for need in regret.needs]


TASK = "book the ferry NRT418 to Lindgaard"


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("NRT418 to Lindgaard costs $263.", "263"),
        ("The lounge of NRT418 at Lindgaard is $1.47.", "1.47"),
        ("On the ferry to Lindgaard the berth is 940px wide.", "940px"),
    ],
)
def test_a_number_beside_the_same_words_is_used(said: str, fact: str) -> None:
    assert found(said, task=TASK) == [(fact,)]


def test_a_fact_is_read_again_with_its_line() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS}\n{HELD}\n{WORDS}"), OTHER, end="Lindgaard by NRT418 is 263"
    )
    [regret] = session.regrets
    [need] = regret.needs
    assert [(one.first, one.last) for one in need.ranges] == [(2, 2)]


@pytest.mark.parametrize(
    "said",
    [
        "The second step takes 263 seconds.",
        "That is 263.",
        "The cabin is 264, by NRT418 to Lindgaard.",
    ],
)
def test_a_number_beside_other_words_is_a_coincidence(said: str) -> None:
    assert found(said, task=TASK) == []


@pytest.mark.parametrize("number", ["128", "404", "511", "200", "26", "2024"])
def test_familiar_and_small_numbers_are_no_facts(number: str) -> None:
    held = HELD.replace("263", number)
    assert found(f"NRT418 to Lindgaard costs {number}", held=held, task=TASK) == []


@pytest.mark.parametrize("known", ["263", "263.00", "$263,"])
def test_a_number_that_the_call_was_sent_is_no_fact(known: str) -> None:
    assert found("NRT418 to Lindgaard costs $263", task=f"{TASK}, not over {known}") == []


def test_numbers_do_not_confirm_numbers() -> None:
    assert found("first 263, then 418, then 347", held="0.31 418 263 347 9.4") == []


def test_the_number_of_a_line_is_no_fact() -> None:
    # What rests on it, the citation of the line, is known from a neighbour.
    held = "src/ledger.py:263: def settle(voucher, ledger)"
    messages = talk(
        ({"path": "src/ledger.py"}, f"{WORDS}\n{held}\n{WORDS}"),
        OTHER,
        end="see ledger.py line 263, where settle takes a voucher",
    )
    messages[0] = user("settle is at line 264 of ledger.py and takes a voucher")
    assert simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets == ()


@pytest.mark.parametrize(
    ("said", "held", "start"),
    [
        ("Lindgaard 263", "Lindgaard 263", 10),
        ("Lindgaard 263", f"263 {'x ' * IN_ITEM} Lindgaard 263", 4 + 2 * IN_ITEM + 11),
        ("Lindgaard 263", f"263 {'x ' * IN_ITEM} Lindgaard", None),
        (f"Lindgaard {'x ' * IN_REPLY} 263", "Lindgaard 263", None),
        ("263", "263", None),
        ("v1 2631 Lindgaard", "v1 263 Lindgaard", None),
    ],
)
def test_words_count_only_near_the_number(said: str, held: str, start: int | None) -> None:
    starts = [at for at in range(len(held)) if held.startswith("263", at)]
    assert fact_in("263", said, held, starts) == start


@pytest.mark.parametrize(
    ("text", "may"), [("263", True), ("1.47", True), ("tax_rates", False), ("tax_rate_2", False)]
)
def test_only_strings_with_a_number_are_facts(text: str, may: bool) -> None:
    assert may_be_fact(text) is may
