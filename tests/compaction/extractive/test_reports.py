"""The agent's long closing messages stay as they were written, and lose lines evenly."""

from __future__ import annotations

from itertools import pairwise

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import group, said, summary_of, user

LABEL = "Closing report:"
DUTIES = ("drained", "rinsed with clear water", "inspected for rust", "filled up again")


def report(halls: str = "ABC", thing: str = "tank") -> str:
    """Return a report of one section for each hall, each with four entries."""
    sections = (
        f"## The {thing} of hall {hall}\n\n"
        + "\n".join(f"- The {thing} of hall {hall} was {duty} by the crew" for duty in DUTIES)
        for hall in halls
    )
    table = "| Hall | State |\n|---|---|\n" + "\n".join(f"| {hall} | clean |" for hall in halls)
    return "\n\n".join([*sections, table])


ASKED = user("Report on the tanks.")


def test_a_report_stands_with_its_headings_entries_and_tables_in_order() -> None:
    lines = group(summary_of(ASKED, said(report()), user("Thanks, now the pumps.")), LABEL)
    entries = [f"- The tank of hall A was {duty} by the crew" for duty in DUTIES]
    assert lines[:2] == ["- ## The tank of hall A", "  answers: Report on the tanks."]
    assert lines[2:7] == [*entries, "- ## The tank of hall B"]
    assert lines[-4:] == [
        "- | Hall | State |",
        "- | A | clean |",
        "- | B | clean |",
        "- | C | clean |",
    ]


def test_a_report_with_little_room_keeps_the_beginning_of_each_section() -> None:
    text = report("ABCDEFGH")
    summary = extractive_summary(History([ASKED, said(text)]), Summary(max_words=210))
    lines = group(summary, LABEL)
    for hall in "ABCDEFGH":
        assert any(f"hall {hall} was drained" in line for line in lines), hall
    assert not any("filled up" in line for line in lines)


def test_a_heading_never_stands_without_a_line_below_it() -> None:
    for most in range(40, 200, 10):
        history = History([ASKED, said(report())])
        lines = group(extractive_summary(history, Summary(max_words=most)), LABEL)
        heads = [i for i, line in enumerate(lines) if line.startswith("- ## ")]
        below = [line for line in lines if not line.startswith("  ")]
        assert not below or not below[-1].startswith("- ## "), most
        assert not any(b - a == 1 for a, b in pairwise(heads)), most


def test_the_newest_report_comes_first_and_an_earlier_one_stays() -> None:
    first = summary_of(ASKED, said(report()), user("Report on the pumps."))
    later = [user("Report on the pumps."), said(report(thing="pump")), user("And the roof?")]
    history = History([user(first), *later], earlier={0: first})
    lines = group(extractive_summary(history, Summary(max_words=2000)), LABEL)
    asked = [line for line in lines if line.startswith("  answers: ")]
    assert asked == ["  answers: Report on the pumps.", "  answers: Report on the tanks."]
    assert lines[0] == "- ## The pump of hall A"


def test_a_report_of_an_earlier_summary_is_kept_to_the_byte() -> None:
    first = summary_of(ASKED, said(report()), user("Thanks."))
    history = History([user(first)], earlier={0: first})
    assert extractive_summary(history, Summary(max_words=2000)) == first


def test_what_the_agent_says_before_it_goes_on_is_no_report() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Look", "input": {"hall": "A"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "rust"}
    summary = summary_of(
        ASKED,
        said(report()),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    )
    assert LABEL not in summary


def test_what_a_report_says_is_not_said_again() -> None:
    summary = summary_of(ASKED, said(report()), user("Thanks."))
    entry = "The tank of hall A was drained by the crew"
    assert summary.count(entry) == 1
