"""A later event of a compaction reads only what is new, and says what a whole pass says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.integrations.arrival_bounds import (
    claimed_compaction,
    keep_pass,
    kept_pass,
    mark_compaction,
)
from policyctx.integrations.claude_code_compaction import Pass, asked_of_summary, missing, reminder
from policyctx.planning.compiled import OffloadPolicy
from policyctx.tokens.counter import counter_for
from tests.integrations.claude_code import Session

POLICY = "claude-code"
IO = Path("/proc/self/io")
WORDS = st.sampled_from(
    [
        "Never push to main.",
        "Don't touch the tables.",
        "Use at most 3 retries.",
        "The staging port is 8081.",
        "Go on.",
        "The staging port is 8081.\nWrite docs/guide.md.",
    ]
)
SUMMARIES = st.sampled_from(
    ["The parser was begun.", "Never push to main. Port 8081.", "limits.py was edited."]
)


@contextmanager
def cache(folder: str) -> Iterator[None]:
    """Have the hook keep what it found in this folder."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


def bytes_read(action: Callable[[], object]) -> int:
    """Return the bytes that an action read by system calls."""

    def so_far() -> int:
        return int(IO.read_text().split("rchar: ")[1].split()[0])

    before = so_far()
    action()
    return so_far() - before


@pytest.mark.skipif(not IO.exists(), reason="counts what Linux counts")
@pytest.mark.parametrize("keeps", [False, True])
def test_a_later_event_of_a_compaction_reads_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keeps: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    counter_for(OffloadPolicy.load(POLICY).model.tokenizer).count("reads its own file once")
    session = Session(tmp_path)
    session.say("Never push to main.", "The staging port is 8081.", "Go on.")
    for _ in range(20):
        session.call("Bash", {"command": "make"}, "x" * 100_000)
    kept = [session.add("assistant", [{"type": "text", "text": "Port 8081."}])] if keeps else []
    start = session.event("SessionStart", source="compact")
    assert bytes_read(lambda: asked_of_summary(session.event("PreCompact"), POLICY)) > 2_000_000
    assert bytes_read(lambda: reminder(start, POLICY)) < 100_000
    session.summarise("The parser was begun.", kept=kept)
    found: list[str | None] = []
    tool = session.event("PostToolUse")
    assert bytes_read(lambda: found.append(missing(tool, POLICY, 1))) < 100_000
    assert ("The staging port is 8081. [line 3]" in str(found)) is not keeps


@pytest.mark.skipif(not IO.exists(), reason="counts what Linux counts")
def test_what_was_found_is_kept_however_long_it_is(session: Session) -> None:
    session.say("Never push to main.", f"The log of the pump: {'it leaks; ' * 40_000}")
    session.call("Bash", {"command": "make"}, "x" * 2_000_000)
    asked_of_summary(session.event("PreCompact"), POLICY)
    start = session.event("SessionStart", source="compact")
    assert bytes_read(lambda: reminder(start, POLICY)) < 1_000_000


def test_what_no_delivery_removed_is_removed_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_pass("cancelled", "Never push to main.")
    [cancelled] = tmp_path.rglob("*.pass")
    os.utime(cancelled, (0, time.time() - 6 * 86_400))
    keep_pass("next", "")
    assert kept_pass("cancelled") == "Never push to main."
    os.utime(cancelled, (0, time.time() - 8 * 86_400))
    keep_pass("next", "")
    assert not cancelled.exists()
    assert len([*tmp_path.rglob("*.pass")]) == 1


def test_a_process_that_is_killed_while_it_forgets_leaves_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_pass("s", "Never push to main.")
    mark_compaction("s", 1)
    claimed = claimed_compaction("s")
    assert claimed
    removed: list[str] = []
    unlink = os.unlink

    def recorded(path: str) -> None:
        removed.append(Path(path).suffix)
        unlink(path)

    monkeypatch.setattr(os, "unlink", recorded)
    claimed.forget()
    assert removed == [".pass", ".compacted"]


@st.composite
def changes(draw: st.DrawFn, session: Session, uuids: list[str | None]) -> None:
    """Let a session go on in a drawn way."""
    kinds = ["say", "say", "call", "summary", "summary", "program", "rewind", "file"]
    match draw(st.sampled_from(kinds)):
        case "say":
            uuids.append(session.add("user", draw(WORDS)))
            uuids.append(session.add("assistant", [{"type": "text", "text": "ok"}]))
        case "call":
            path = draw(st.sampled_from(["src/limits.py", "/w/src/limits.py", "b.md"]))
            tasks = [
                {
                    "content": "Write the test",
                    "status": draw(st.sampled_from(["pending", "completed"])),
                }
            ]
            calls: list[tuple[str, dict[str, Any], str]] = [
                ("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, "ok"),
                ("Bash", {"command": f"rm {path}"}, ""),
                ("Bash", {"command": f"sed -i s/a/b/ {path}"}, ""),
                ("TodoWrite", {"todos": tasks}, "ok"),
                ("TaskCreate", {"subject": "Write the test"}, "Task #1 created"),
                ("TaskUpdate", {"taskId": "1", "status": "completed"}, "ok"),
            ]
            session.call(*draw(st.sampled_from(calls)))
        case "summary":
            kept = [*filter(None, uuids[-draw(st.integers(0, 2)) :])] if draw(st.booleans()) else []
            session.summarise(draw(SUMMARIES), kept=kept)
        case "program":
            session.add(
                draw(st.sampled_from(["progress", "system", "attachment"])), "", isMeta=True
            )
        case "rewind":
            session.rewind(draw(st.sampled_from(uuids)))
        case "file":
            text = session.path.read_text() if session.path.exists() else ""
            lines = text.splitlines(keepends=True)
            cut = lines[: draw(st.integers(0, len(lines)))]
            new = [
                "".join(cut),
                "".join(lines[1:]),
                text.replace("8081", "9091"),
                text.replace("push to", "publish"),
                text[: len(text) - draw(st.integers(0, 9))],
            ]
            session.path.write_text(draw(st.sampled_from(new)))


def said_for(event: str, session: Session, before: int) -> str | None:
    if event == "PreCompact":
        return asked_of_summary(session.event(event), POLICY)
    if event == "PostToolUse":
        return missing(session.event(event), POLICY, before)
    return reminder(session.event("SessionStart", source=event), POLICY)


@given(st.data())
def test_an_event_says_what_it_says_without_an_earlier_one(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        session = Session(Path(folder))
        uuids: list[str | None] = [None]
        session.path.touch()
        before = 0
        for _ in range(data.draw(st.integers(1, 9))):
            for _ in range(data.draw(st.sampled_from([0, 1, 1, 2, 3]))):
                data.draw(changes(session, uuids))
            events = ["PreCompact", "compact", "compact", "PostToolUse", "PostToolUse", "resume"]
            event = data.draw(st.sampled_from(events))
            with cache(f"{folder}/cache"):
                found = said_for(event, session, before)
            with TemporaryDirectory() as empty, cache(empty):
                assert said_for(event, session, before) == found
            if event == "compact":
                before = session.path.stat().st_size


def test_what_was_kept_by_a_broken_disk_or_another_version_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    session = Session(tmp_path)
    session.say("Never push to main.")
    event = session.event("PreCompact")
    said = asked_of_summary(event, POLICY)
    [path] = (tmp_path / "policyctx/arrival").glob("*.pass")
    whole = path.read_text()
    assert [point.text for point in Pass.from_json(kept_pass("s1")).points] == [
        "Never push to main."
    ]
    for content in (
        "",
        "[1]",
        whole[:-9],
        whole.replace("[", "{"),
        f"0{whole}",
        whole.replace('"', ""),
    ):
        path.write_text(content)
        assert asked_of_summary(event, POLICY) == said
        assert path.read_text() == whole


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Session(tmp_path)


def test_a_task_that_is_done_after_the_summary_is_not_delivered(session: Session) -> None:
    session.say("Write it.")
    session.call("TaskCreate", {"subject": "Measure the parser"}, "Task #1 created")
    session.say("The staging port is 8081.", "Go on.")
    reminder(session.event("SessionStart", source="compact"), POLICY)
    session.summarise("The work was begun.")
    assert "Measure" in (missing(session.event("PostToolUse"), POLICY, 1) or "")
    session.call("TaskUpdate", {"taskId": "1", "status": "completed"}, "ok")
    text = missing(session.event("PostToolUse"), POLICY, 1) or ""
    assert "8081" in text
    assert "Measure" not in text


def test_words_that_were_taken_back_after_the_summary_are_not_delivered(session: Session) -> None:
    session.say("The staging port is 8081.")
    kept = session.add("user", "Write the parser.")
    session.say("The customer is KD-48213.", "Go on.")
    reminder(session.event("SessionStart", source="compact"), POLICY)
    session.summarise("The work was begun.")
    session.rewind(kept)
    session.say("Go on in another way.")
    text = missing(session.event("PostToolUse"), POLICY, 1) or ""
    assert "8081" in text
    assert "KD-48213" not in text
