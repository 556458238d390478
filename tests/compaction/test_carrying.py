"""What a host's own compaction must not lose."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.points import (
    HistoryPoint,
    after_compaction,
    before_compaction,
    carried,
    delivery,
    points_of,
)
from policyctx.policy.models.compaction import Carry
from tests.compaction.extractive.summaries import edited
from tests.conversations import Message, user

ORDER, OTHER = "Never push to main.", "The port is 8081."


def points(*messages: Message) -> list[HistoryPoint]:
    return points_of(History(messages))


def texts(found: list[HistoryPoint], seen: str = "", **settings: int) -> list[str]:
    return [one.text for one in carried(found, seen, Carry(**settings), len)]


def test_orders_and_values_are_quoted_for_the_summary() -> None:
    text = before_compaction(points(user(ORDER), user(OTHER), *edited("c1", "src/a.py")))
    assert text.split("\n")[1:] == [f"- order: {ORDER}", f"- exact value: {OTHER}"]


def test_nothing_is_asked_of_a_summary_without_orders_and_values() -> None:
    assert before_compaction(points(user("Hello."))) == ""


def test_right_after_a_compaction_come_the_prohibitions_the_newest_message_and_the_path() -> None:
    text = after_compaction(points(user(ORDER), user("Always test.")), "Go on.", "/t.jsonl")
    assert text.split("\n")[1:] == [
        f"- order: {ORDER}",
        "The user's newest message: Go on.",
        "The whole conversation is in /t.jsonl",
    ]


def test_only_what_is_missing_is_carried() -> None:
    assert texts(points(user(ORDER), user(OTHER)), "The port is 8081.") == [ORDER]
    assert texts(points(user(ORDER), user(OTHER)), f"{ORDER}\n{OTHER}") == []


def test_the_newest_files_are_carried_up_to_their_number() -> None:
    files = [*edited("c1", "a.py"), *edited("c2", "b.py"), *edited("c3", "c.py")]
    assert texts(points(*files), files=2) == ["b.py", "c.py"]


def test_a_prohibition_comes_first_where_room_is_short() -> None:
    found = points(user(ORDER), user(OTHER), user("Always test the parser."))
    assert texts(found, max_tokens=len(f"- order: {ORDER}\n")) == [ORDER]


@pytest.mark.parametrize("number", [1, 2_000])
def test_each_text_keeps_to_its_limit(number: int) -> None:
    found = points(*(user(f"Never touch table_{i}.") for i in range(number)))
    assert len(before_compaction(found)) <= 2_000
    assert len(after_compaction(found, "x" * 9_000, "/t.jsonl")) <= 1_500
    text = delivery(found, lambda point: f"line {point.message + 1}", "/t.jsonl")
    assert len(text) <= 9_000
    assert f"- order: Never touch table_{number - 1}. [line {number}]" in text


def test_nothing_is_delivered_where_nothing_is_missing() -> None:
    assert delivery([], lambda _: "", "/t.jsonl") == ""
