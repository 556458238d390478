"""Same-word updates: which earlier value a later one takes back, and which it never does."""

from __future__ import annotations

from pathlib import Path

import pytest

import benchmarks.revisions
from benchmarks.revisions.pairs import SUPERSEDES, judged, pairs_in
from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import group, later, said, summary_of
from tests.conversations import user

TAKEN_BACK = [
    ("The timeout is 30 seconds.", "The timeout is 45 seconds."),
    ("The cap is 500.", "The cap is now 900."),
    ("Limit uploads to 10 MB.", "Please limit uploads to 25 MB instead."),
    ("Tests must finish under 10 minutes.", "Actually, tests must finish under 6 minutes now."),
    ("Spend at most $500 on ads.", "Spend at most $750 on ads."),
    ("超时时间为 30 秒。", "超时时间改成 60 秒。"),
    ("上限是 500。", "上限改为 900。"),
]
BOTH_STAND = [
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


@pytest.mark.parametrize(("first", "second"), TAKEN_BACK)
def test_another_value_in_the_same_words_takes_the_old_one_back(first: str, second: str) -> None:
    assert told(first, second) == [second]
    assert group(later(summary_of(user(first)), user(second)), Group.USER) == [f"- {second}"]


@pytest.mark.parametrize(("first", "second"), BOTH_STAND)
def test_statements_about_two_things_or_in_other_words_both_stand(first: str, second: str) -> None:
    assert told(first, second) == [first, second]


def test_a_value_that_comes_back_is_the_one_that_stands() -> None:
    assert told("The cap is 800.", "The cap is 900.", "The cap is 800.") == ["The cap is 800."]
    assert told(*(f"The cap is {i}." for i in range(300))) == ["The cap is 299."]


def test_the_agent_takes_nothing_of_the_user_back() -> None:
    order = "The timeout is 30 seconds."
    summary = summary_of(user(order), said("The timeout is 90 seconds."), user("Go on with it."))
    assert f"- {order}" in group(summary, Group.USER)


@pytest.mark.parametrize("name", ["development", "frozen"])
def test_no_statement_that_holds_is_taken_back_in_the_shipped_pairs(name: str) -> None:
    path = Path(benchmarks.revisions.__file__).with_name(f"{name}.jsonl")
    results = [judged(pair) for pair in pairs_in(path)]
    assert [one.pair.id for one in results if one.lost and one.pair.label != SUPERSEDES] == []
