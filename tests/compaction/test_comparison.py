"""What a text lacks of a record of orders, exact values, tasks and files."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import ranked_units
from policyctx.compaction.verification import lacking
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.summaries import edited, said
from tests.conversations import Message, call, results, user

TODO = {"todos": [{"content": "Write the migration of orders", "status": "pending"}]}
SESSION = [
    user("Never push to main."),
    user("The port is 8081."),
    user("What a day!"),
    *edited("c1", "src/limits.py"),
    call("c2", "TodoWrite", TODO),
    results(("c2", "ok")),
]
COMPLETE = """The user said that main must never be pushed to. Port: 8081.
Changed: `src/limits.py`. To do: write the migration of the orders."""


def lacked(text: str, *messages: Message) -> list[str]:
    units = ranked_units(History(messages), Summary())
    return sorted(unit.text.removeprefix("- ") for unit in lacking(text, units))


def test_a_text_that_says_everything_lacks_nothing() -> None:
    assert lacked(COMPLETE, *SESSION) == []


@pytest.mark.parametrize(
    ("text", "instead", "line"),
    [
        ("never be", "be", "Never push to main."),
        ("8081", "8082", "The port is 8081."),
        ("8081", "18081", "The port is 8081."),
        ("src/limits.py", "src/limits.pyi", "src/limits.py: edited"),
        ("write the migration", "look", "[pending] Write the migration of orders"),
    ],
)
def test_an_order_a_value_a_file_and_a_task_that_is_missing_is_named(
    text: str, instead: str, line: str
) -> None:
    assert lacked(COMPLETE.replace(text, instead), *SESSION) == [line]


def test_the_state_of_a_task_is_not_compared() -> None:
    assert lacked("Done: the migration of orders is written, write no more.", *SESSION[4:]) == []


def test_two_lines_may_say_an_order_together() -> None:
    text = "## Orders\nNever rename tables\nof the ledger of Ghent"
    assert lacked(text, user("Never rename the tables of the ledger of Ghent.")) == []


def test_an_order_in_chinese_is_compared_by_its_characters() -> None:
    order = user("不要修改支付模块的配置。")
    assert lacked("用户要求不要修改支付模块的配置", order) == []
    assert lacked("支付模块的配置已经修改", order) == ["不要修改支付模块的配置。"]


def test_talk_without_values_is_not_looked_for() -> None:
    assert lacked("Nothing.", user("What a day!"), said("Indeed.")) == []
