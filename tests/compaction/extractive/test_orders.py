"""No order of the user is lost while there is room, in whatever form it was typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compaction.extractive.summaries import later, said, summary_of
from tests.conversations import Message, user

ROOM = 30_000
ORDERS = (
    "Never push to main{}.",
    "All prices of shop{} must be in EUR.",
    "Please rename table{} and never touch its keys.",
    "The page{} must load within 30 ms.",
    "Use Postgres{}.",
    "Option {}.",
    "Ship it{}.",
    "请不要改第{}号表。",
)
WISH = "I would like the importer to read sheet {} as well, as Anna sends both of them. "
FILLER, LONG = WISH.format("two"), "".join(map(WISH.format, "abcdefg"))
FORMS = (
    "{}",
    "**{}**",
    "- {}",
    "Hello there.\n\n**{}**\n\n" + FILLER,
    "[[Design note]] {} " + LONG,
    "{{{{template}}}} {} " + LONG,
    '["quoted", "twice"] {} ' + LONG,
    LONG + "{}\n\n" + FILLER,
)
ANSWERS = ("ok", "Fine {}.", "{}", "I looked at module{} and it is fine.\n\n{}", "")


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[str], list[Message]]:
    """Orders, and the conversation in which the user gives them and the agent may repeat them."""
    shapes = st.tuples(
        st.sampled_from(ORDERS), st.sampled_from(FORMS), st.sampled_from(ANSWERS), st.booleans()
    )
    some = draw(st.lists(shapes, min_size=1, max_size=12))
    times = draw(st.sampled_from((1, 1, 3)))
    orders: list[str] = []
    messages: list[Message] = []
    for i, (order, form, answer, is_first) in enumerate(some * times):
        orders.append(order.format(i))
        told = user(form.format(orders[-1]))
        replied = [said(answer.replace("{}", orders[-1]))] if answer else []
        messages += [*replied, told] if is_first and messages else [told, *replied]
    return orders, messages


def lines_of_user(summary: str) -> str:
    """The lines of a summary without those of the agent, as one text without marks."""
    found: list[str] = []
    is_users = True
    for line in summary.split("\n"):
        is_users = not line.startswith("- [agent") if line.startswith("- ") else is_users
        found += [line.strip(" -…")] * is_users
    return " ".join(found)


@given(conversations())
def test_with_room_enough_each_order_of_the_user_stays(
    conversation: tuple[list[str], list[Message]],
) -> None:
    orders, messages = conversation
    first = summary_of(*messages, max_words=ROOM)
    for summary in (first, later(first, max_words=ROOM)):
        kept = lines_of_user(summary)
        assert [order for order in orders if order not in kept] == []
        assert "Left out" not in summary


@given(st.integers(200, 700), st.sampled_from(ORDERS), st.booleans())
def test_a_larger_limit_holds_all_of_many_orders(count: int, order: str, is_told: bool) -> None:
    messages: list[Message] = []
    for i in range(count):
        messages += [user(order.format(i)), said("ok" if is_told else order.format(i))]
    kept = lines_of_user(summary_of(*messages, max_words=ROOM))
    assert [i for i in range(count) if order.format(i) not in kept] == []


@pytest.mark.parametrize("ends", ["", "\n\nFix the parser.", "\n\n**Never touch the DB.**"])
def test_a_rule_in_bold_is_a_line_of_its_own(ends: str) -> None:
    summary = summary_of(user(f"Hello there.\n\n**Never push to main.**\n\n{FILLER}{ends}"))
    lines = [line.strip(" -*") for line in summary.split("\n")]
    assert {"Never push to main.", *ends.strip("\n*").splitlines()} <= {*lines}
