"""What a text lacks of the user's orders and exact values."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.verification import lacking, units_of
from tests.compaction.extractive.summaries import said
from tests.conversations import Message, user

SESSION = [
    user("Never push to main."),
    user("The port is 8081."),
    user("What a day!"),
]
COMPLETE = """The user said that main must never be pushed to. Port: 8081."""


def lacked(text: str, *messages: Message) -> list[str]:
    units = units_of(History(messages))
    return sorted(unit.text.removeprefix("- ") for unit in lacking(text, units))


def test_a_text_that_says_everything_lacks_nothing() -> None:
    assert lacked(COMPLETE, *SESSION) == []


@pytest.mark.parametrize(
    ("text", "instead", "line"),
    [
        ("never be", "be", "Never push to main."),
        ("8081", "8082", "The port is 8081."),
        ("8081", "18081", "The port is 8081."),
    ],
)
def test_an_order_and_a_value_that_is_missing_is_named(text: str, instead: str, line: str) -> None:
    assert lacked(COMPLETE.replace(text, instead), *SESSION) == [line]


def test_two_lines_may_say_an_order_together() -> None:
    text = "## Orders\nNever rename tables\nof the ledger of Ghent"
    assert lacked(text, user("Never rename the tables of the ledger of Ghent.")) == []


def test_an_order_in_chinese_is_compared_by_its_characters() -> None:
    order = user("不要修改支付模块的配置。")
    assert lacked("用户要求不要修改支付模块的配置", order) == []
    assert lacked("支付模块的配置已经修改", order) == ["不要修改支付模块的配置。"]


def test_talk_without_values_is_not_looked_for() -> None:
    assert lacked("Nothing.", user("What a day!"), said("Indeed.")) == []
