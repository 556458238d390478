"""Lines of an earlier summary give way when later events contradict them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policyctx import written_by
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import TOLD, group, said, summary_of, user
from tests.compaction.extractive.test_places import call

if TYPE_CHECKING:
    from policyctx.definitions.items import Message

EARLIER = """## Goals & Decisions
User, in order:
- commit
- Never commit without a test.
- Push the log of hall B only on Monday.
Agent:
- The script `tools/pump.py` has 40 lines because of the valve table.
- `tools/pump.py` writes `logs/tank.csv`.
Earlier summary:
- The import of the tank log failed with a wrong header.
- The pump export failed because of the units.

## Task Status
Still open:
- Mend tools/pump.py
- Write the label"""


def after(*later: Message) -> str:
    history = History([user(EARLIER), *later], earlier={0: EARLIER})
    return extractive_summary(history, Summary(max_words=2000))


@pytest.mark.parametrize(
    "command",
    [
        "rm tools/pump.py",
        "git rm -f a.txt tools/pump.py",
        "mv tools/pump.py tools/pumps.py",
        "cd /srv/brew && git mv tools/pump.py tools/pumps.py",
    ],
)
def test_what_is_only_about_a_file_that_is_gone_goes(command: str) -> None:
    summary = after(*call(1, "Bash", command=command))
    assert "40 lines" not in summary
    assert "- Mend tools/pump.py" not in summary
    assert "- `tools/pump.py` writes `logs/tank.csv`." in summary
    assert "- Write the label" in summary


def test_a_file_that_was_written_again_is_there() -> None:
    again = call(2, "Write", file_path="tools/pump.py", content="a\nb\n")
    summary = after(*call(1, "Bash", command="rm tools/pump.py"), *again)
    assert "40 lines" in summary


def test_a_removal_that_failed_removes_nothing() -> None:
    summary = after(*call(1, "Bash", "Error: no such file", command="rm tools/pump.py"))
    assert "40 lines" in summary


def test_a_problem_that_is_solved_goes_and_another_stays() -> None:
    summary = after(said("I fixed the header, so the import of the tank log is fine."))
    assert "wrong header" not in summary
    assert "- The pump export failed because of the units." in summary


def test_an_errand_that_was_carried_out_says_so_and_rules_do_not() -> None:
    summary = after(*call(1, "Bash", command="git commit -m 'Mend the log'"))
    lines = group(summary, TOLD)
    assert lines[:2] == ["- commit", "  done: git commit -m 'Mend the log'"]
    assert lines[2:] == [
        "- Never commit without a test.",
        "- Push the log of hall B only on Monday.",
    ]


def test_what_was_carried_out_is_read_back() -> None:
    first = after(*call(1, "Bash", command="git commit -m 'Mend the log'"))
    again = extractive_summary(History([user(first)], earlier={0: first}), Summary(max_words=2000))
    assert again == first


def test_the_summary_without_later_events_stays() -> None:
    assert after() == EARLIER
    assert "40 lines" in after(said("Thanks."))


def test_what_a_client_says_about_going_on_is_no_task() -> None:
    foreign = (
        "Summary:\n\n## Pending Tasks\n- Write the label\n"
        "- Please continue the conversation from where we left it off\n"
    )
    summary = summary_of(user("Go on."), said("I'll create a todo list to track the label."))
    assert "todo list" not in summary.partition("Next:")[2]
    history = History([written_by("summary", user(foreign)), user("Go on.")])
    text = extractive_summary(history, Summary())
    assert "- Write the label" in text
    assert "continue the conversation" not in text
