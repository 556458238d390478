from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.extractive.digest import (
    Digest,
    FileState,
    Group,
    LeftOut,
    Statement,
    ToolCount,
    ToolFailure,
    entries_of,
    label_of,
    read_summary,
)

line = st.text(min_size=1, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
count = st.integers(min_value=1, max_value=10_000)
verbs = st.sampled_from(["read", "written", "edited", "deleted", "named"])
tasks = st.lists(line.map(Statement), max_size=3).map(tuple)
note = st.just("") | line
statements = st.lists(st.builds(Statement, line, note, note, note, st.just(-1), note)).map(tuple)


@st.composite
def file_states(draw: st.DrawFn) -> FileState:
    counts = draw(st.dictionaries(verbs, count, min_size=1))
    last = draw(st.sampled_from(sorted(counts)))
    failed = draw(st.sampled_from(["", " failed"]))
    lines = draw(st.none() | count)
    return FileState(draw(line), tuple(counts.items()), last + failed, lines)


digests = st.builds(
    Digest,
    told=statements,
    pasted=statements,
    agent=statements,
    found=statements,
    carried=statements,
    files=st.lists(file_states(), max_size=3).map(tuple),
    tools=st.lists(st.builds(ToolCount, line, count, count, count), max_size=3).map(tuple),
    repository=statements,
    running=statements,
    done=tasks,
    next=tasks,
    open=tasks,
    failures=st.lists(
        st.builds(ToolFailure, line, line, count, st.just("") | line), max_size=3
    ).map(tuple),
)


def written(digest: Digest) -> str:
    lines = ["## A heading"]
    group = None
    for entry in entries_of(digest):
        if entry.group is not group:
            group = entry.group
            lines.append(str(group))
        lines.append(entry.text)
    return "\n".join(lines)


@pytest.mark.slow
@given(digests)
def test_a_written_summary_reads_back_unchanged(digest: Digest) -> None:
    text = written(digest)
    read = read_summary(text).digest
    assert written(read) == text


@given(statements, tasks)
def test_statements_and_tasks_come_back_exactly(
    said: tuple[Statement, ...], left: tuple[Statement, ...]
) -> None:
    digest = Digest(told=said, agent=said, open=left)
    read = read_summary(written(digest))
    assert read.digest == digest
    assert read.left_over == ""


def test_lines_of_another_writer_are_left_over() -> None:
    text = written(Digest(open=(Statement("ship it"),))) + "\n\nPinned: the key is 4711."
    read = read_summary(text)
    assert read.digest == Digest(open=(Statement("ship it"),))
    assert read.left_over == "Pinned: the key is 4711."


def test_a_summary_by_another_writer_is_left_over_whole() -> None:
    text = "## Files\n- a.py was changed\n\nNext: the tests."
    assert read_summary(text) == (Digest(), text)


def test_an_entry_that_is_not_a_file_is_left_over() -> None:
    text = "Files, last used first:\n- a.py: read 1\n- and some others"
    read = read_summary(text)
    assert [file.path for file in read.digest.files] == ["a.py"]
    assert read.left_over == "- and some others"


def test_the_labels_of_the_first_version_are_read() -> None:
    text = """## Goals & Decisions
User, in order (of two that disagree the later holds):
- Use port 8081.
  replaces: Use port … for the API.
Pasted, or put there by a program:
- rate = 3
Agent, decided or reported:
- The limit is 20 now.
Found in tool results:
- seats: 38
From an earlier summary:
- Go 1.22 is used.

## File Operations
Files, the one used last first:
- src/limits.py: read 1, edited 2; last edited; 30 lines

## Tool Calls
Tools used:
- Edit: 3 calls, 1 failed

## Task Status
Done last:
- Edit src/limits.py
Announced next:
- Next I'll run the tests.
Still open:
- Write the changelog.

## Errors & Resolutions
Failures:
- Bash make => fatal: x (×2)
  resolved: succeeded later"""
    digest, left_over = read_summary(text)
    assert left_over == ""
    assert digest == Digest(
        told=(Statement("Use port 8081.", replaces="Use port … for the API."),),
        pasted=(Statement("rate = 3"),),
        agent=(Statement("The limit is 20 now."),),
        found=(Statement("seats: 38"),),
        carried=(Statement("Go 1.22 is used."),),
        files=(FileState("src/limits.py", (("read", 1), ("edited", 2)), "edited", 30),),
        tools=(ToolCount("Edit", 3, 1),),
        done=(Statement("Edit src/limits.py"),),
        next=(Statement("Next I'll run the tests."),),
        open=(Statement("Write the changelog."),),
        failures=(ToolFailure("Bash make", "fatal: x", 2, "succeeded later"),),
    )


@pytest.mark.parametrize(
    ("left_out", "label"),
    [
        (LeftOut(1), "User, in order; 1 more order left out:"),
        (
            LeftOut(7, ("compaction-001",)),
            "User, in order; 7 more orders in archive compaction-001:",
        ),
        (LeftOut(9, ("a", "b")), "User, in order; 9 more orders in archive a, b:"),
    ],
)
def test_the_label_of_the_users_words_says_what_is_left_out(left_out: LeftOut, label: str) -> None:
    assert label_of(Group.TOLD, left_out) == label
    assert read_summary(f"{label}\n- Use tabs.").digest.left_out == left_out


def test_of_many_archives_the_first_and_the_last_are_named() -> None:
    label = label_of(Group.TOLD, LeftOut(9, ("a", "b", "c", "d")))
    assert label == "User, in order; 9 more orders in archive a, …, d:"
