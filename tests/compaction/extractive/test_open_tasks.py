"""What is still open: a task leaves the list when it is done, withdrawn, or nobody works on it."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx import written_by
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import group
from tests.compaction.extractive.test_contents import edited, said, summary_of
from tests.compaction.extractive.test_survival import after
from tests.conversations import call, results, user

Message = dict[str, Any]

OPEN = "Still open:"
TODOS = [
    {"content": "Weigh the hops of store B", "status": "pending"},
    {"content": "Print new labels for the stout", "status": "pending"},
]
LISTED = [user("Get ready."), call("c1", "TodoWrite", {"todos": TODOS}), results(("c1", "ok"))]
BOTH = ["- Weigh the hops of store B", "- Print new labels for the stout"]


def still_open(*later: Message, rounds: int = 1) -> list[str]:
    summary = summary_of(*LISTED)
    assert group(summary, OPEN) == BOTH
    for _ in range(rounds):
        summary = extractive_summary(after(summary, later), Summary())
    return group(summary, OPEN)


def test_tasks_stay_open_while_the_agent_works_on_the_same_request() -> None:
    assert still_open(*edited("c2", "src/kettle.py"), rounds=3) == BOTH


def test_tasks_that_nothing_new_is_about_are_not_repeated() -> None:
    other = [user("Why is the kettle cold?"), said("A fuse of the kettle has blown.")]
    assert still_open(*other) == []


def test_the_others_of_a_list_stay_open_while_one_is_worked_on() -> None:
    done = [user("Go on."), said("The hops of store B are done: 41 kg. Now the rest.")]
    assert still_open(*done) == BOTH[1:]


def test_an_exact_value_of_a_task_is_about_it() -> None:
    todos = [{"content": "Session bands for the chart (#48)", "status": "pending"}]
    first = summary_of(user("Go."), call("c1", "plan", {"todos": todos}), results(("c1", "ok")))
    later = [user("Register the other wish."), said("It is #54, apart from #48.")]
    second = extractive_summary(after(first, later), Summary())
    assert group(second, OPEN) == ["- Session bands for the chart (#48)"]


@pytest.mark.parametrize(
    "report",
    [
        "Fixed: new labels for the stout are printed.",
        "The labels for the stout are finished.",
    ],
)
def test_a_task_that_a_later_report_says_is_done_is_closed(report: str) -> None:
    assert still_open(user("And?"), said(report)) == BOTH[:1]


@pytest.mark.parametrize("report", ["All tasks are complete.", "All 2 tasks completed:"])
def test_a_report_that_all_tasks_are_done_closes_them(report: str) -> None:
    assert still_open(said(report)) == []
    assert group(summary_of(*LISTED, said(report)), OPEN) == []


@pytest.mark.parametrize("report", ["Not all tasks are complete.", "All tasks need you until 5."])
def test_a_report_that_some_tasks_are_left_closes_none(report: str) -> None:
    assert group(summary_of(*LISTED, said(report)), OPEN) == BOTH


@pytest.mark.parametrize(
    "words", ["Skip the labels for the stout.", "Forget about the labels, weigh the hops."]
)
def test_a_task_that_the_user_withdraws_is_closed(words: str) -> None:
    assert BOTH[1] not in still_open(user(words), said("I weigh the hops of store B now."))
    assert group(summary_of(*LISTED, user(words)), OPEN) == BOTH[:1]


def test_an_announcement_is_repeated_once() -> None:
    first = summary_of(user("Fix the boiler."), said("The valve leaks. Now I'll cut a gasket."))
    other = [user("Look at the pump first."), said("The pump is fine.")]
    second = extractive_summary(after(first, other), Summary())
    assert group(second, OPEN) == ["- Now I'll cut a gasket."]
    third = extractive_summary(after(second, [user("And the fan?"), said("Clean.")]), Summary())
    assert group(third, OPEN) == []


@pytest.mark.parametrize("line", ["Awaiting next instruction.", "No pending task: all is merged."])
def test_a_line_of_another_summary_that_nothing_is_open_is_no_task(line: str) -> None:
    foreign = f"Summary:\n\n## Pending Tasks\n- Weigh the hops of store B\n- {line}\n"
    summary = summary_of(written_by("summary", user(foreign)), said("I weigh the hops now."))
    assert group(summary, OPEN) == BOTH[:1]
