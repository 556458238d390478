"""A short approval stands with what it approves, and a lead with its list."""

from __future__ import annotations

import pytest

from tests.compaction.extractive.test_authors import TOLD, group, said, summary_of, user

PLAN = """Here is what I would do:

1. Drain the tank in hall B
2. Replace the gasket of pump 3
3. Fill it again on Monday

{question}"""


@pytest.mark.parametrize("question", ["Shall I proceed?", "Good?", "Does this look right?"])
def test_a_yes_to_a_question_that_names_nothing_has_the_proposal(question: str) -> None:
    lines = group(summary_of(said(PLAN.format(question=question)), user("yes")), TOLD)
    assert lines[0] == "- yes"
    assert "Drain the tank in hall B; Replace the gasket of pump 3" in lines[1]
    assert lines[1].endswith(question)


def test_go_ahead_without_a_question_has_what_was_said_last() -> None:
    proposal = said("The gasket leaks. Pump 3 needs a new one of 40 mm.")
    lines = group(summary_of(proposal, user("do it")), TOLD)
    assert lines == ["- do it", "  answers: The gasket leaks.; Pump 3 needs a new one of 40 mm."]


def test_a_question_that_names_its_thing_stands_alone() -> None:
    asked = said(PLAN.format(question="Shall I replace the gasket of pump 3 with a blue one?"))
    lines = group(summary_of(asked, user("yes")), TOLD)
    assert lines[1] == "  answers: Shall I replace the gasket of pump 3 with a blue one?"


def test_a_word_that_begins_an_option_picks_it() -> None:
    options = said(
        "Two ways:\n\n- Local: run it on this host\n- Remote: run it in hall B\n\nWhich?"
    )
    lines = group(summary_of(options, user("remote")), TOLD)
    assert lines[1] == "  answers: Which?; Remote: run it in hall B"


def test_a_number_picks_from_the_last_list_that_is_long_enough() -> None:
    lists = said("Tasks:\n1. Drain\n2. Clean\n3. Fill\n\nRisks:\n1. A leak\n2. Rust")
    lines = group(summary_of(lists, user("Do the first three")), TOLD)
    assert lines[1] == "  answers: Drain; Clean; Fill"


def test_more_than_an_agreement_is_no_approval_of_everything() -> None:
    proposal = said("The gasket leaks. Pump 3 needs a new one of 40 mm.")
    lines = group(summary_of(proposal, user("yes, but paint the pump in hall A blue")), TOLD)
    assert "  answers: The gasket leaks.; Pump 3 needs a new one of 40 mm." not in lines


def test_a_prohibition_stands_with_each_entry_of_a_long_list() -> None:
    entries = [
        f"The pump in hall {name} has to be drained before the inspection" for name in "ABCD"
    ]
    message = "Never touch these without asking the owner:\n" + "\n".join(f"- {e}" for e in entries)
    lines = group(summary_of(user(message)), TOLD)
    assert lines == [f"- Never touch these without asking the owner: {entry}" for entry in entries]


def test_a_long_request_stands_with_the_first_entry_of_a_long_list() -> None:
    entries = [
        f"The pump in hall {name} has to be drained before the inspection" for name in "ABCD"
    ]
    message = "Bring these to the owner in spring:\n" + "\n".join(f"- {e}" for e in entries)
    lines = group(summary_of(user(message)), TOLD)
    assert lines[0] == f"- Bring these to the owner in spring: {entries[0]}"
    assert lines[1:] == [f"- {entry}" for entry in entries[1:]]


def test_a_lead_leads_only_to_what_is_indented_below_it() -> None:
    message = "- Changes in hall A:\n  - new pump\n- Hall B stays as it is"
    lines = group(summary_of(user(message)), TOLD)
    assert lines == ["- Changes in hall A: new pump", "- Hall B stays as it is"]


def test_a_label_stands_with_the_line_below_it() -> None:
    lines = group(summary_of(user("Root cause:\nThe gasket of pump 3 was too thin.")), TOLD)
    assert lines == ["- Root cause: The gasket of pump 3 was too thin."]


def test_a_lead_of_the_agent_without_what_it_leads_to_is_left_out() -> None:
    summary = summary_of(
        user("Why does it leak?"),
        said("I found the root cause of the leak in pump 3:"),
        user("And?"),
    )
    assert "I found the root cause" not in summary


STEPS = ("Drain the tank in hall B", "Replace the gasket of pump 3", "Fill it again on Monday")
LISTED = "I would do this:\n\n" + "\n".join(f"{i}. {one}" for i, one in enumerate(STEPS, 1))


@pytest.mark.parametrize(
    "reply", ["do it", "yes, do it", "if all is clean do it, if not clean it first"]
)
def test_do_it_approves_all_entries_of_a_list(reply: str) -> None:
    lines = group(summary_of(said(LISTED), user(reply)), TOLD)
    assert lines == [f"- {reply}", f"  answers: {'; '.join(STEPS)}"]


def test_an_offer_behind_a_list_is_what_do_it_means() -> None:
    asked = f"{LISTED}\n\nI can also paint the valve of hall C blue on Sunday."
    lines = group(summary_of(said(asked), user("do it")), TOLD)
    assert lines[1] == "  answers: I can also paint the valve of hall C blue on Sunday."


def test_all_entries_of_a_long_list_are_named() -> None:
    entries = [f"Hall {name}: {'replace the old gasket and ' * 6}test it" for name in "ABCDEF"]
    listed = "I suggest:\n\n" + "\n".join(f"- {entry}" for entry in entries)
    lines = group(summary_of(said(listed), user("do it")), TOLD)
    assert all(f"Hall {name}:" in lines[1] for name in "ABCDEF")
