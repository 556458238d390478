from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.extractive.digest import (
    Digest,
    FileState,
    Statement,
    ToolCount,
    ToolFailure,
    entries_of,
    read_summary,
)

line = st.text(min_size=1, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
count = st.integers(min_value=1, max_value=10_000)
verbs = st.sampled_from(["read", "written", "edited", "deleted", "named"])
texts = st.lists(line, max_size=3).map(tuple)
note = st.just("") | line
statements = st.lists(st.builds(Statement, line, note, note, note)).map(tuple)


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
    done=texts,
    next=texts,
    open=texts,
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


@given(statements, texts)
def test_statements_and_tasks_come_back_exactly(
    said: tuple[Statement, ...], tasks: tuple[str, ...]
) -> None:
    digest = Digest(told=said, agent=said, open=tasks)
    read = read_summary(written(digest))
    assert read.digest == digest
    assert read.left_over == ""


def test_lines_of_another_writer_are_left_over() -> None:
    text = written(Digest(open=("ship it",))) + "\n\nPinned: the key is 4711."
    read = read_summary(text)
    assert read.digest == Digest(open=("ship it",))
    assert read.left_over == "Pinned: the key is 4711."


def test_a_summary_by_another_writer_is_left_over_whole() -> None:
    text = "## Files\n- a.py was changed\n\nNext: the tests."
    assert read_summary(text) == (Digest(), text)


def test_an_entry_that_is_not_a_file_is_left_over() -> None:
    text = "Files, the one used last first:\n- a.py: read 1\n- and some others"
    read = read_summary(text)
    assert [file.path for file in read.digest.files] == ["a.py"]
    assert read.left_over == "- and some others"
