"""What is appended to a model's summary: the user's words that it lacks."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.writing import Group, read_back
from policyctx.compaction.verification import HEADING, units_of, verified
from policyctx.tokens.encoders import words_in
from tests.conversations import Message, user

PLENTY = 1_000


def appended(summary: str, *said: str, room: int = PLENTY) -> list[str]:
    messages: list[Message] = []
    for text in said:
        messages += [user(text), {"role": "assistant", "content": "I look at it."}]
    found = verified(summary, units_of(History(messages)), room)
    lines = [line for line in found.text.split("\n") if line.startswith("- ")]
    assert found.appended == len(lines)
    assert found.text.startswith(summary)
    return [line.removeprefix("- ") for line in lines]


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("Never touch legacy/.", "The user said: legacy/ must never be touched."),
        ("Never touch legacy/.", "* Do not touch `legacy/`"),
        ("The cap is 1,500 requests.", "Cap: 1500 requests per minute."),
        ("Keep the summary under 300 words.", "Summary stays under 300 words."),
        ("Please use port 8081.", "Port: 8081 (the user's choice)."),
        ("不要修改 config.yaml。", "用户要求：不要修改 config.yaml 文件。"),
        ("What a day!", "Nothing about it."),
    ],
)
def test_what_a_summary_says_in_other_words_is_not_appended(said: str, summary: str) -> None:
    assert appended(summary, said) == []


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("Never touch legacy/.", "The port was moved."),
        ("Never touch legacy/.", "The user asked to touch legacy/."),
        ("Do not push to main.", "The agent will push to main after review."),
        ("Do not push to main.", "Push to main when done.\nNever skip the review."),
        ("Do not push to main.", "It is not done. Push to main then."),
        ("Use at most 3 threads.", "More than 3 threads are fine."),
        ("The cap is 1,500 requests.", "The cap is 500 requests."),
        ("The cap is 500 requests.", "The cap is 1500 requests."),
        ("The release is 2.1.", "The release is 2.10."),
        ("不要修改 config.yaml。", "用户要求修改 config.yaml。"),
        ("Always ask Jonas before a release.", "A release is planned."),
    ],
)
def test_an_order_or_a_value_that_a_summary_lacks_or_turns_around_is_appended(
    said: str, summary: str
) -> None:
    assert appended(summary, said) == [said]


def test_orders_come_first_where_the_room_is_short() -> None:
    said = ("The build has number 4711.", "Never push to main.")
    labels = words_in("\n".join([HEADING, str(Group.USER), str(Group.EARLIER)]))
    room = labels + words_in("- Never push to main.")
    assert appended("Nothing.", *said, room=room) == ["Never push to main."]


def test_without_room_nothing_is_appended_and_what_is_missing_is_counted() -> None:
    found = verified("Nothing.", units_of(History([user("Never push to main.")])), 3)
    assert found == ("Nothing.", 0, 1)


def test_the_agents_words_are_not_appended() -> None:
    history = History([user("Go on."), {"role": "assistant", "content": "The port must be 8081."}])
    assert verified("Nothing.", units_of(history), PLENTY).appended == 0


def test_appended_lines_are_the_users_words_in_the_next_round() -> None:
    first = verified(
        "## Goals\nThe port.", units_of(History([user("Never push to main.")])), PLENTY
    )
    assert [one.text for one in read_back(first.text).contents.said[Group.USER]] == [
        "Never push to main."
    ]
    history = History([user("[Summary]"), user("Go on.")], earlier={0: first.text})
    again = verified("## Goals\nThe port.", units_of(history), PLENTY)
    assert "- Never push to main." in again.text
    assert str(Group.USER) in again.text


def test_an_order_that_a_models_earlier_summary_held_is_looked_for_too() -> None:
    earlier = "## Goals\nThe user forbids any push to main.\n\n## Status\nAll tests pass."
    history = History([user("[Summary]"), user("Go on.")], earlier={0: earlier})
    found = verified("## Goals\nGo on.", units_of(history), PLENTY)
    assert "The user forbids any push to main." in found.text
    assert "All tests pass." not in found.text
