"""What the user turned down stands for nothing."""

from __future__ import annotations

import pytest

from tests.compaction.extractive.test_authors import said, summary_of, user
from tests.compaction.extractive.test_reports import LABEL, report


@pytest.mark.parametrize(
    "reply",
    [
        "No, put it above pump 3.",
        "no. put it above pump 3",
        "Not like that, put it above pump 3",
        "I'd rather have it above pump 3",
        "不对，放在 3 号泵上面。",
        "Nein, lieber über Pumpe 3.",
        "Non, au-dessus de la pompe 3.",
    ],
)
def test_a_proposal_that_the_user_turned_down_does_not_stand(reply: str) -> None:
    proposal = "I would put the valve of `hall B` below pump 3."
    summary = summary_of(
        user("Where should the valve go?"),
        said(f"The problem is the gasket of pump 3. {proposal}"),
        user(reply),
        said("OK."),
    )
    assert proposal not in summary
    assert "The problem is the gasket of pump 3." in summary


def test_a_proposal_that_was_turned_down_is_not_replaced() -> None:
    summary = summary_of(
        user("Where should the valve go?"),
        said("I would use port 8080 for the valve."),
        user("No, use port 8081 for the valve instead."),
    )
    assert "replaces" not in summary
    assert "8080" not in summary


def test_an_order_that_forbids_leaves_what_was_done() -> None:
    summary = summary_of(
        user("Fix the pump."),
        said("I fixed pump 3 with gasket `G-40`."),
        user("Don't paint it."),
        said("OK."),
    )
    assert "- I fixed pump 3 with gasket `G-40`." in summary


def test_no_to_a_question_leaves_what_was_found() -> None:
    summary = summary_of(
        user("Look at the pump."),
        said("Pump 3 has 40 bar and was fixed in 2021. Is it in hall A?"),
        user("No, hall B."),
        said("OK."),
    )
    assert "- Pump 3 has 40 bar and was fixed in 2021." in summary


def test_a_report_that_was_turned_down_is_none() -> None:
    asked = user("Report on the tanks.")
    summary = summary_of(asked, said(report()), user("No, report on the pumps."), said("OK."))
    assert LABEL not in summary
    thanked = summary_of(asked, said(report()), user("No problem, go on."), said("OK."))
    assert LABEL in thanked
