"""Words without sense, notes that only guess, and text that stands twice."""

from __future__ import annotations

from tests.compaction.extractive.test_authors import TOLD, group, said, summary_of, user

TASK = """Task.

The log of the tank is wrong in hall B.
Parsing

Find out which pump writes it.
Mend the pump, then write the log again."""


def test_a_word_alone_in_a_long_message_is_no_statement() -> None:
    lines = group(summary_of(user(TASK)), TOLD)
    assert len(lines) == 3
    assert not any(line in ("- Task.", "- Parsing") for line in lines)


def test_a_message_of_one_word_is_an_order() -> None:
    assert group(summary_of(user("commit")), TOLD) == ["- commit"]


def test_what_the_agent_said_is_not_pasted_as_well() -> None:
    finding = "The result of pump 3 is 40 bar in hall B."
    summary = summary_of(
        user("Look at the pumps."),
        said(finding),
        user(f"> {finding}\n\nWhich valve was closed when you saw that in hall B?"),
        said("The reason for the 40 bar is the valve `V-3`."),
    )
    assert summary.count(finding) == 1


def test_a_sentence_of_a_long_message_has_no_note_that_guesses() -> None:
    first = "Make the log of the pumps short. Keep the units in bar. Store it for 30 days. Use UTC."
    second = (
        "The import of the log is slow. Change the log of the pumps so that it has one file. "
        "Store the file for each hall. The units are fine. Do it today."
    )
    assert "may replace" not in summary_of(user(first), said("Done."), user(second))


def test_a_question_has_no_note_that_guesses() -> None:
    first = "Change the log of the pumps to one file."
    asked = "Is the log of the pumps changed to one file now? If so, write it."
    assert "may replace" not in summary_of(user(first), said("Done."), user(asked))


ERROR = """Then we need to mend the import:

it results in:
Error: 400 {"type":"error","message":"rows.236: `tank`
ids were found without a `pump` row. Every row must have one in the
next column."}

The reason is that the log has two columns. Write it with one.
"""


def test_the_text_of_an_error_is_not_the_users() -> None:
    lines = group(summary_of(user(ERROR)), TOLD)
    assert lines[1:] == [
        "- The reason is that the log has two columns.",
        "- Write it with one.",
    ]


def test_an_order_right_below_the_line_of_an_error_is_the_users() -> None:
    text = "TypeError: pump is undefined\n    at log (tank.js:12)\nFix it in hall B first."
    assert group(summary_of(user(text)), TOLD) == ["- Fix it in hall B first."]


def test_the_output_that_the_user_shows_below_a_lead_is_not_the_users() -> None:
    text = (
        "The page is bad.\n\nIt has this output:\n\nOur pumps must never be used with beer, and "
        "we say so on purpose.\n\nNobody ever said that. Take it out."
    )
    lines = group(summary_of(user(text)), TOLD)
    assert not any("with beer" in line for line in lines)
    assert "- Nobody ever said that." in lines
    assert "- Take it out." in lines


def test_a_text_below_a_lead_that_names_no_output_may_be_an_order() -> None:
    text = "Keep this bit:\n\nThe pumps must never be used with beer."
    assert any("with beer" in line for line in group(summary_of(user(text)), TOLD))


def test_a_list_below_a_lead_is_the_users() -> None:
    text = "Write these to the log:\n- the pump must be off\n- the hall must be closed"
    lines = group(summary_of(user(text)), TOLD)
    assert any("the pump must be off" in line for line in lines)
