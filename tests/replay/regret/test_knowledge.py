"""What an agent knows without a removed item, and what it says in other words."""

from __future__ import annotations

import pytest

from policyctx.replay.simulation import simulated
from tests.conversations import user
from tests.replay.regret.test_needs import CLEARS_ALL_BUT_ONE, WORDS, replayed, talk
from tests.replay.sessions import turn_by_turn


def is_regretted(*, held: str, visible: str, said: str) -> bool:
    """Whether a reply needs a removed result, with a text of the user that it has."""
    messages = talk(({"at": "a"}, f"{WORDS} {held}"), ({"at": "b"}, WORDS), end=said)
    messages[0] = user(visible)
    return simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets != ()


@pytest.mark.parametrize(
    ("said", "visible"),
    [
        ("src/core/tax_rates.py", "work in src/core, on tax_rates.py"),
        ("tests/core/test_tax_rates.py", "the tests of core/tax_rates.py"),
        ("reconcile_the_old_ledger", "what does reconcileTheOldLedger do"),
        ("ReconcileTheOldLedger", "please reconcile-the-old-ledger"),
        ("ledger.py:26413", "line 26413 of ledger.py"),
    ],
)
def test_what_can_be_derived_from_visible_text_is_no_need(said: str, visible: str) -> None:
    assert not is_regretted(held=said, visible=visible, said=f"I take {said}.")
    assert is_regretted(held=said, visible="the task", said=f"I take {said}.")


RULE = "summary: the harbour office reopens any sealed container"


@pytest.mark.parametrize(
    ("held", "said", "known"),
    [
        (RULE, f"so {RULE}", True),
        (RULE, "the harbour office reopens any sealed container, always", True),
        ("the harbour office reopens any container 48213 times", None, False),
        ("a new harbour office reopens any sealed container", None, False),
        ("office reopens any sealed crates", None, True),
        ("office reopens sealed crates always", None, False),
    ],
)
def test_a_phrase_is_known_where_all_of_it_but_a_word_at_an_end_was_sent(
    held: str, said: str | None, known: bool
) -> None:
    visible = "- The harbour office reopens any sealed container. A new summary of crates."
    assert is_regretted(held=held, visible=visible, said=said or held) is not known


HELD = """Refunds beyond the quarterly allowance are escalated: an auditor countersigns the voucher,
the treasurer releases the escrow, and the courier hands the receipt to the claimant."""


def test_a_paraphrase_of_the_only_source_is_used() -> None:
    said = "Escalated refunds need an auditor, and the treasurer frees the escrow by voucher."
    session = replayed(({"at": "a"}, f"{WORDS}\n{HELD}\n{WORDS}"), ({"at": "b"}, WORDS), end=said)
    [regret] = session.regrets
    [found] = regret.needs[0].ranges
    assert regret.needs[0].kind == "used"
    assert (found.first, found.last) == (2, 3)


def test_words_that_a_visible_item_has_as_well_are_no_paraphrase() -> None:
    said = "Escalated refunds need an auditor, and the treasurer frees the escrow by voucher."
    assert not is_regretted(held=HELD, visible=HELD.replace("are", "were"), said=said)


def test_common_words_are_no_paraphrase() -> None:
    held = "The first part works and the second part returns a list of all open files at the end."
    said = "At the end I list what works: the first part returns all files, the second is open."
    assert not is_regretted(held=held, visible="the task", said=said)


def test_a_few_rare_words_in_a_long_reply_are_a_coincidence() -> None:
    own = " ".join(
        f"{a}{b}ing" for a in ("quib", "zorn", "plim", "drax") for b in "abcdefghijklmnop"
    )
    held = "an auditor of the treasurer"
    said = f"{own} auditor {own} treasurer {own}"
    assert not is_regretted(held=held, visible="the task", said=said)


def test_the_fields_of_a_call_are_known_from_its_tool() -> None:
    session = replayed(
        ({"at": "a"}, f'{WORDS} {{"item_ids": [1], "payment_method_id": 2}}'),
        ({"at": "b"}, WORDS),
        ({"item_ids": "all", "payment_method_id": "the first"}, WORDS),
    )
    assert session.regrets == ()


def test_names_that_every_programmer_knows_are_no_sign() -> None:
    held = "document.getElementById(x).textContent, setTimeout and querySelector"
    said = "I call getElementById, textContent, setTimeout, querySelector"
    assert not is_regretted(held=held, visible="the task", said=said)


def test_an_own_name_near_uncommon_words_is_used() -> None:
    held = "the OAuthVoucher is countersigned by an auditor and released from escrow"
    words, name = "An auditor countersigns it.", "I know the OAuthVoucher."
    assert not is_regretted(held=held, visible="the task", said=words)
    assert not is_regretted(held=held, visible="the task", said=name)
    assert is_regretted(held=held, visible="the task", said=f"{name} {words}")


def test_words_in_many_removed_items_tell_nothing_apart() -> None:
    turns = [({"at": name}, f"{HELD} {name}") for name in "abcdefghijkl"]
    said = "Escalated refunds need an auditor, and the treasurer frees the escrow by voucher."
    assert replayed(*turns[:2], ({"at": "b"}, WORDS), end=said).regrets != ()
    assert replayed(*turns, ({"at": "b"}, WORDS), end=said).regrets == ()
