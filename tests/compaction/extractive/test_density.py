"""What a summary with little room holds first."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, extractive_summary, ranked_units
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_contents import edited, said, summary_of
from tests.compaction.extractive.test_survival import after
from tests.conversations import user

Message = dict[str, Any]


def ranks(*messages: Message) -> dict[str, int]:
    """The place of each unit in the order, by its first line without the bullet."""
    order = ranked_units(History(list(messages)), Summary())
    return {unit.text.partition("\n")[0].removeprefix("- "): i for i, unit in enumerate(order)}


@pytest.mark.parametrize(
    ("lasting", "errand"),
    [
        ("I prefer the tables without any borders.", "Please draw the tables of the last chapter."),
        ("我喜欢表格没有边框的那种样子。", "请把上一章的表格先画出来看看。"),
        ("Ich bevorzuge immer Tabellen ohne Rahmen.", "Bitte zeichne noch die letzten Tabellen."),
        ("Je préfère toujours les tableaux sans cadre.", "Peux-tu dessiner ces tableaux avant ?"),
    ],
    ids=["English", "Chinese", "German", "French"],
)
def test_a_lasting_wish_comes_before_an_errand(lasting: str, errand: str) -> None:
    talk = [user(f"Rows {i} of the table are in the other file.") for i in range(10, 20)]
    for told in ((lasting, errand), (errand, lasting)):
        found = ranks(*talk[:5], *(user(one) for one in told), *talk[5:])
        assert found[lasting] < found[errand]


@pytest.mark.parametrize(
    "order",
    ["Veröffentliche niemals die Preisliste.", "Ne publie jamais la liste des prix."],
    ids=["German", "French"],
)
def test_an_order_in_german_or_french_binds(order: str) -> None:
    units = ranked_units(History([user(order)]), Summary())
    assert [unit.hard for unit in units] == [True]


def test_where_the_work_stands_comes_before_other_findings() -> None:
    state = "Status: the export of the second region runs."
    found = [f"The rows of batch {i} are fine." for i in range(10, 16)]
    order = ranks(user("Go on."), said(" ".join([state, *found])), user("Thanks."), said("I wait."))
    assert order[state] < min(order[text] for text in found if text in order)


@pytest.mark.parametrize("words", ["Good.", "You're welcome!", "明白。", "Verstanden.", "Compris."])
def test_an_acknowledgement_of_the_agent_is_left_out(words: str) -> None:
    rule = "Never rename the table t_7."
    summary = summary_of(user(rule), said(words), user("Use port 8081."), said("Port 8081 is set."))
    assert words not in summary
    assert rule in summary


def test_a_note_on_what_may_be_replaced_is_short_and_read_back() -> None:
    earlier = (
        "The report for the second quarter goes to the whole board with all the appendices, "
        "the tables and the letter."
    )
    later = "Actually, the report goes to the auditors."
    summary = summary_of(user(earlier), user(later))
    notes = [line for line in summary.split("\n") if line.startswith("  may replace: ")]
    assert len(notes) == 1
    assert len(notes[0]) <= len("  may replace: ") + 40
    assert notes[0].endswith(" …")
    assert extractive_summary(after(summary, []), Summary()) == summary


def test_a_file_that_needs_a_section_of_its_own_comes_after_a_few_orders() -> None:
    orders = [user(f"Never move rack {i} from floor {i * 7}.") for i in range(2, 10)]
    order = ranked_units(History([*orders, *edited("c1", "a.py")]), Summary())
    groups = [unit.group for unit in order if unit.group in (Group.TOLD, Group.FILES)]
    assert groups == [Group.TOLD] * len(orders) + [Group.FILES]
