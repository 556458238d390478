"""Lists are shortened by item: heads before bodies, each body under its own head."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policyctx.compaction.extractive.texts import shortened
from tests.compaction.extractive.summaries import later, ran, said, summary_of
from tests.conversations import Message, user
from tests.growing import grows_at_most

BODIES = st.lists(st.integers(0, 4), min_size=2, max_size=6)


def report(bodies: list[int]) -> str:
    """Return a report with a numbered item for each of the bodies, of so many lines."""
    lines = ["I have looked at all of the halls, and found what leaks in them:", ""]
    for i, count in enumerate(bodies):
        lines += [f"{i + 1}. **Pump{i} leaks at its lid.** It stands in hall {i}.", ""]
        for j in range(count):
            lines += [
                f"   Body{i} says in its line {j} why that lid leaks, and how to seal it.",
                "",
            ]
    return "\n".join([*lines, "The other halls are dry, and none of their pumps has been moved."])


@given(bodies=BODIES, most=st.integers(10, 200), is_last=st.booleans())
@example(bodies=[3, 3, 3], most=70, is_last=False)
def test_what_is_said_of_an_item_stands_under_its_own_head(
    bodies: list[int], most: int, *, is_last: bool
) -> None:
    after = () if is_last else (user("Mend them all."), said("All of the lids are sealed now."))
    first = summary_of(user("What leaks?"), said(report(bodies)), *after, max_words=most)
    for summary in (first, later(first, max_words=most)):
        head = None
        for line in summary.split("\n"):
            if pump := re.search(r"\d\. \*\*Pump(\d)", line):
                head = pump[1]
            if body := re.search(r"Body(\d)", line):
                assert body[1] == head


@given(BODIES)
@example([4, 4, 4, 4, 4, 4])
def test_the_heads_of_all_items_are_kept_before_their_bodies(bodies: list[int]) -> None:
    most = 60 + 12 * len(bodies)
    messages = [user("What leaks?"), said(report(bodies))]
    first = summary_of(*messages, max_words=most)
    for summary in (first, later(first, max_words=most)):
        heads = re.findall(r"(\d)\. \*\*Pump(\d)", summary)
        assert heads == [(f"{i + 1}", f"{i}") for i in range(len(bodies))]


FORBIDDEN = "push to the main branch"


@pytest.mark.parametrize(
    ("lead", "inner"),
    [
        ("Never:", "touch files without asking:"),
        ("Please do not:", "commit without tests:"),
        ("## Do not", "run commands that never end:"),
        ("Do not:", "use libraries with no license:"),
        ("Never do this:", "deploy on Friday, not even:"),
    ],
)
def test_what_forbids_a_list_forbids_its_entries_behind_a_list_in_it(lead: str, inner: str) -> None:
    typed = f"{lead}\n- {inner}\n  - one\n  - two\n- {FORBIDDEN}\n- merge branches"
    lines = summary_of(user(typed)).split("\n")
    told = lead.removeprefix("## ").removesuffix(":")
    assert [line.lstrip("- ") for line in lines if FORBIDDEN in line] == [f"{told}: {FORBIDDEN}"]
    assert f"{told}: merge branches" in "\n".join(lines)
    assert f"{told}: {inner} two" in "\n".join(lines)


def test_an_entry_that_forbids_its_own_entries_stands_beside_the_entry_before_it() -> None:
    typed = (
        "- Only in an emergency:\n  - call me at night about the pumps of the hall\n"
        "- Never:\n  - push to main\n  - merge branches without a review\n"
        "- Always:\n  - run the tests before you say that it works"
    )
    assert summary_of(user(typed)).split("\n")[2:] == [
        "- Only in an emergency:",
        "  call me at night about the pumps of the hall",
        " Never: push to main",
        " Never: merge branches without a review",
        " Always:",
        "  run the tests before you say that it works",
    ]


def test_an_entry_with_a_list_of_its_own_leads_no_entry_beside_it() -> None:
    typed = "- Halls:\n  - {0} 1\n  - {0} 2\n- Pumps:\n  - {1} 3\n- The valves, of which none leaks"
    typed = typed.format("The hall with the many lids and valves of number", "The small pump")
    lines = summary_of(user("What leaks?"), said(typed)).split("\n")
    assert lines[-6:] == [
        "- [agent] Halls:",
        "  The hall with the many lids and valves of number 1",
        "  The hall with the many lids and valves of number 2",
        " Pumps:",
        "  The small pump 3",
        " The valves, of which none leaks",
    ]


@pytest.mark.parametrize("title", ["## Open question", "# Report\n\n### Details"])
def test_the_agents_question_under_a_title_is_kept_before_what_leads_to_it(title: str) -> None:
    looks = [
        f"I went through hall {i} and read its meters, which all stand still." for i in range(12)
    ]
    asked = "The pump of hall 4 would stop. Shall I turn it off now, or wait for the keeper?"
    found = summary_of(user("Look."), said("\n\n".join([*looks, title, asked])), max_words=80)
    assert "Shall I turn it off now, or wait for the keeper?" in found


def test_orders_below_entries_are_kept_before_the_heads_of_these() -> None:
    topics = "\n".join(
        f"- Hall number {i} with all that belongs to it, as we saw it on the first day\n"
        f"  - Never open lid {i}."
        for i in range(12)
    )
    found = summary_of(user(topics), said("Fine."), max_words=80)
    assert found.count("Never open lid") > found.count("Hall number")


def test_a_long_list_of_entries_that_point_back_is_read_in_linear_time() -> None:
    def summary(entries: int) -> partial[str]:
        listed = "\n".join(f"- It has the seal {i}." for i in range(entries))
        return partial(summary_of, user("Look."), said(f"Found:\n{listed}\n\nThis is all."))

    assert "It has the seal 39." in summary(40)()
    assert grows_at_most(summary, 100, times=32)


def findings(count: int, *, quoted: bool = False) -> str:
    """Return a report with so many titles, much under each, and its conclusion at the end."""
    lines = ["# Review"]
    for i in range(count):
        lines += [f"### {i + 1}. Pump{i} leaks at its lid", ""]
        lines += ["```", f"lid{i} = open(pump[{i}], seal=None); close(lid{i})", "```"] * quoted
        lines += [f"The lid{i} of it is of tin."]
        lines += [f"It was looked at in hall {j} by Ann{i}, and in the yard." for j in range(9)]
        lines += [f"Fix: seal the lid of pump{i}.", ""]
    lines += ["## TL;DR", "None of these stops the hall.", "Mend pump 2 at first.", "", "## Note"]
    return "\n".join([*lines, *(f"The hall {i} was open in the night." for i in range(6))])


@pytest.mark.parametrize("quoted", [False, True])
def test_of_a_report_titles_and_conclusions_are_kept_before_what_is_said_of_them(
    *, quoted: bool
) -> None:
    report = said(findings(6, quoted=quoted))
    first = summary_of(user("What leaks?"), report, max_words=240)
    for summary in (first, later(first, max_words=240)):
        fixes = [f"Fix: seal the lid of pump{i}." for i in range(6)]
        titles = [f"### {i + 1}. Pump{i} leaks at its lid" for i in range(6)]
        conclusion = ["None of these stops the hall.", "Mend pump 2 at first."]
        assert [one for one in (*titles, *fixes, *conclusion) if one not in summary] == []


def test_of_an_earlier_report_the_conclusions_are_kept_before_lines_that_stand_near_them() -> None:
    looks = [f"I went through hall {i} and read its meters." for i in range(9)]
    report = "\n\n".join([*looks[:3], "What changed:", "- Lid 4 is oiled.", *looks[3:]])
    summary = summary_of(user("Look."), said(report), user("Go on."), said("Well."), max_words=70)
    assert "Lid 4 is oiled." in summary
    assert looks[3] not in summary


def test_of_each_entry_of_a_report_the_beginning_is_kept_before_the_rest_and_before_code() -> None:
    report = said(findings(6, quoted=True))
    summary = summary_of(user("What leaks?"), report, max_words=240)
    assert [i for i in range(6) if f"The lid{i} of it is of tin." not in summary] == []
    assert "seal=None" not in summary


@pytest.mark.parametrize(
    "head", ["**What changed:**", "## Zusammenfassung", "## Résumé", "## 总结", "Next steps:"]
)
def test_the_conclusion_of_a_report_is_known_in_four_languages(head: str) -> None:
    parts = "\n".join(f"The pump {i} of hall {i} was looked at today by Ann." for i in range(60))
    told = f"# Halls\n{parts}\n{head}\n- Oil the lid\n- Seal the pipe\n# Rest\n{parts}"
    summary = summary_of(user("Look."), said(told), max_words=80)
    assert "Oil the lid" in summary
    assert "Seal the pipe" in summary


@pytest.mark.parametrize("said_of", [said, user])
def test_a_quoted_command_is_one_piece(said_of: Callable[[str], Message]) -> None:
    told = "I saw that `pump show --hall . --format json` fails. Its mark ` is odd. Leave it so."
    summary = summary_of(user("Look."), said_of(told))
    assert "I saw that `pump show --hall . --format json` fails." in summary
    assert summary.endswith("\n Its mark ` is odd.\n Leave it so.")


@pytest.mark.parametrize(
    "title",
    ["### Minor Issues (non-blocking):", "### ⚠️ **Known issues**", "Not done:", "3. Failing tests:",
     "已知问题：", "Noch offen:", "Limites :"],
)  # fmt: skip
@pytest.mark.parametrize("is_last", [True, False])
def test_what_is_wrong_is_kept_before_what_went_well(title: str, is_last: bool) -> None:
    well = "\n".join(f"{i}. **Part {i}**: all of its operations work as asked" for i in range(1, 9))
    report = f"## Summary\n\n### Done:\n{well}\n\n{title}\n- The sum of two pumps is wrong\n"
    then = [user("Next."), *ran("./run", "7"), said("The run says 7."), user("Go on.")]
    messages = [user("Go."), said(report), *([] if is_last else then)]
    summary = summary_of(*messages, max_words=60)
    assert "The sum of two pumps is wrong" in summary


def test_a_cut_leaves_no_end_of_a_word() -> None:
    text = "x" * 60 + "=print(serialize(field,value)(1)(2)(3)(4)(5))"
    for most in range(40, 90):
        _, _, tail = shortened(text, most).partition(" … ")
        assert text.endswith(tail)
        assert not (tail[0].isalnum() and text[-len(tail) - 1].isalnum())
