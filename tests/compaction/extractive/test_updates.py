"""Updates: a later statement takes no earlier one back; both stand, in order."""

from __future__ import annotations

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import group, later, said, summary_of
from tests.conversations import user

BOTH_STAND = [
    ("The timeout is 30 seconds.", "The timeout is 45 seconds."),
    ("The cap is 500.", "The cap is now 900."),
    ("Limit uploads to 10 MB.", "Please limit uploads to 25 MB instead."),
    ("Tests must finish under 10 minutes.", "Actually, tests must finish under 6 minutes now."),
    ("Spend at most $500 on ads.", "Spend at most $750 on ads."),
    ("超时时间为 30 秒。", "超时时间改成 60 秒。"),
    ("上限是 500。", "上限改为 900。"),
    ("Run the tests within 10 minutes.", "Run the tests of the proxy within 5 minutes."),
    ("Fix issue 12 first.", "Fix issue 13 first."),
    ("修复第12号问题。", "修复第13号问题。"),
    ("归档3月发票。", "归档4月发票。"),
    ("Raise the limit of user 12.", "Raise the limit of user 13."),
    ("Deploy at 5 pm.", "Deploy the second app at 7 pm."),
    ("Wait 5 seconds.", "Wait 5 minutes."),
    ("Keep logs for 30 days.", "Never keep logs for 40 days."),
    ("Is the cap 500?", "Is the cap 900?"),
    ("Round prices to two decimals.", "Round prices to whole euros instead."),
    ("Server A runs on 10.0.0.1.", "Server B runs on 10.0.0.2."),
]


def told(*texts: str) -> list[str]:
    return [line[2:] for line in group(summary_of(*map(user, texts)), Group.USER)]


@pytest.mark.parametrize(("first", "second"), BOTH_STAND)
def test_both_statements_stand_in_order(first: str, second: str) -> None:
    assert told(first, second) == [first, second]
    again = later(summary_of(user(first)), user(second))
    assert group(again, Group.USER) == [f"- {first}", f"- {second}"]


def test_the_agent_takes_nothing_of_the_user_back() -> None:
    order = "The timeout is 30 seconds."
    summary = summary_of(user(order), said("The timeout is 90 seconds."), user("Go on with it."))
    assert f"- {order}" in group(summary, Group.USER)
