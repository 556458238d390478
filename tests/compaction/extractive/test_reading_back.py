"""Summaries as text, and the contents that are read from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.extractive import Group
from policyctx.compaction.extractive.files import FileState
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.writing import Contents, left_out_line, read_back, written
from tests.compaction.extractive.summaries import group, later, said, summary_of
from tests.conversations import user

line = st.text(min_size=1, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
verbs = st.sampled_from(["read", "written", "edited", "deleted"])


def quotes(*, user: bool) -> st.SearchStrategy[tuple[Quote, ...]]:
    quote = st.builds(Quote, line, st.just(-1), st.just(user), st.just(value=False))
    return st.lists(quote, max_size=3).map(tuple)


files = st.builds(FileState, line, verbs, st.just(-1), st.just(value=False))
groups = {group: quotes(user=group is Group.USER) for group in Group if group is not Group.FILES}
contents = st.builds(
    Contents,
    st.fixed_dictionaries(groups),
    st.lists(files, max_size=3).map(tuple),
    st.sampled_from([(), ("c-001",)]),
)


def text_of(one: Contents) -> str:
    lines = ["## A heading"]
    for label in Group:
        if entries := one.of(label):
            lines += [label.label, *(written(entry, label) for entry in entries)]
    lines += [left_out_line(one.left_out)] if one.left_out else []
    return "\n".join(lines)


@pytest.mark.slow
@given(contents)
def test_a_written_summary_reads_back_unchanged(one: Contents) -> None:
    read = read_back(text_of(one))
    assert text_of(read.contents) == text_of(one)
    assert read.left_over == ""


def test_lines_of_another_writer_are_left_over() -> None:
    read = read_back(f"{Group.USER}\n- [agent] It runs.\n\nPinned: the key is 4711.")
    assert [one.text for one in read.contents.said[Group.AGENT]] == ["It runs."]
    assert read.left_over == "Pinned: the key is 4711."


def test_a_summary_by_another_writer_is_left_over_whole() -> None:
    text = "## Files\n- a.py was changed\n\nNext: the tests."
    assert read_back(text) == (Contents({}), text)


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        (("c-001",), "Left out: lines of the user; archive c-001."),
        (("a", "b"), "Left out: lines of the user; archives a, b."),
    ],
)
def test_what_is_left_out_is_named_and_read_back(left_out: tuple[str, ...], text: str) -> None:
    assert left_out_line(left_out) == text
    assert read_back(f"{Group.USER}\n- Use tabs.\n{text}").contents.left_out == left_out


def test_of_many_archives_the_first_and_the_last_are_named() -> None:
    text = "Left out: lines of the user; archives a, …, d."
    assert left_out_line(("a", "b", "c", "d")) == text


OLDER = """## Goals & Decisions
User, in order (of two that disagree the later holds):
- Use port 8081.
  replaces: Use port … for the API.
- 20
  answers: The limit, 20 or 25?

## Task Status
Still open:
- Write the changelog."""


def test_of_a_summary_of_an_older_version_the_users_words_stay() -> None:
    again = later(later(OLDER, user("Go on with the pump.")))
    carried = "\n".join(group(again, Group.EARLIER))
    assert "Use port 8081." in carried
    assert "Write the changelog." in carried
    assert "changelog" not in later(later(OLDER, said("All is written.")))
    assert group(again, Group.USER) == ["- Go on with the pump."]


def test_a_line_that_looks_like_a_label_stays_a_quotation() -> None:
    told = [user("Left out: 3 lines of the user."), user(f"{Group.FILES}")]
    summary = summary_of(*told)
    assert later(summary) == summary
    assert len(group(summary, Group.USER)) == 2
