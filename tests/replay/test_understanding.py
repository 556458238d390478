"""A reader takes a file only if it understands most of it, and every command says what it skips."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.readers.registered import LISTS, Reader, readers
from policyctx.replay.readers.source import source_of
from policyctx.replay.reading import Understanding, recordings_in, recordings_of
from tests.cli.running import policyctx
from tests.replay import synthetic

FILES = {
    **{(form, "lines"): synthetic.encoded_lines(r) for form, r in synthetic.line_records().items()},
    **{(form, "document"): synthetic.encoded(d) for form, d in synthetic.documents().items()},
    ("inspect", "archive"): synthetic.archived(synthetic.documents()["inspect"]),
}
# Lists of messages: what other formats put around theirs, they do not look at.
AROUND_MESSAGES = {("mini-swe-agent", "chat"), ("cline", "chat"), ("cline-cli", "chat")}
SAID = {"role": "user", "content": "Read the files."}


def share_of(reader: Reader, content: bytes) -> bool:
    """Whether a reader knows a record of a file, and then understands enough of it."""
    source = source_of("s", lambda: BytesIO(content))
    if not any(map(reader.recognises, source.outlines())):
        return False
    source.begin()
    found = Understanding()
    for recording in reader.recordings(source):
        found.add(recording)
    found.add(source)
    return found.is_enough(source.bytes)


@pytest.mark.parametrize("file", FILES, ids="-".join)
def test_no_reader_takes_the_file_of_another(file: tuple[str, str]) -> None:
    taken = {reader.FORMAT for reader in readers() if share_of(reader, FILES[file])}
    around = {other for form, other in AROUND_MESSAGES if form == file[0]}
    assert taken - around == {file[0]}
    assert {one.format for one in recordings_of(FILES[file], "s")} == {file[0]}


def lines(*records: object) -> bytes:
    return synthetic.encoded_lines(records)


def wrapped(kind: str, **more: Any) -> dict[str, Any]:
    """An event as an exporter wraps it: most have a role, and few have content."""
    return {"role": "assistant", "kind": kind, "time": 1, "raw": {"type": kind, **more}}


# What other agents write: it has roles, and is no list of messages.
FOREIGN: dict[str, bytes] = {
    "wrapped events": lines(
        {"role": "user", "kind": "user.message", "content": "Go.", "raw": {"type": "user.message"}},
        *[wrapped("agent.tool_use", id=f"c{n}", name="bash", input={}) for n in range(9)],
    ),
    "stream of events": lines(
        {"type": "begin", "session": "s"},
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "tool_call", "toolName": "ls", "toolCallId": "c1", "parameters": {}},
        {"type": "tool_result", "toolCallId": "c1", "value": "a.txt"},
        {"type": "message", "role": "assistant", "content": "Done.", "delta": True},
    ),
    "blocks of another kind": lines(
        SAID,
        {"role": "assistant", "content": [{"type": "toolRequest", "id": "c1", "toolCall": {}}]},
        {"role": "user", "content": [{"type": "toolResponse", "id": "c1", "toolResult": {}}]},
    ),
    "a list with blocks of another kind": synthetic.encoded(
        [SAID, {"role": "user", "content": [{"type": "toolResponse", "toolResult": "x" * 90}]}]
    ),
    "content that is an object": lines(
        SAID,
        {"role": "assistant", "content": {"type": "tool_use", "tool_id": "c1", "input": {}}},
        {"role": "tool", "content": {"type": "tool_result", "tool_id": "c1", "output": "x"}},
    ),
    "calls beside the content": lines(
        SAID,
        {"role": "assistant", "content": "So.", "steps": [{"tool": "ls", "output": "x" * 90}]},
    ),
}
POLICY = ("tool-direct-offload",)
ON_MESSAGES = [
    ("tokens",), ("plan", *POLICY), ("explain", *POLICY), ("apply", *POLICY), ("summary",),
]  # fmt: skip
ON_FOLDERS = [("replay", *POLICY), ("diff", *POLICY, "small-context"), ("tune",)]


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_only_has_roles_is_no_chat(content: bytes) -> None:
    with pytest.raises(UnreadableRecordingError, match="are not understood: ") as raised:
        list(recordings_of(content, "s"))
    assert raised.value.format in LISTS
    assert "docs/recordings.md" in raised.value.why
    assert list(recordings_of(content, "s", partial=True))


@pytest.mark.slow
@pytest.mark.parametrize("command", [*ON_MESSAGES, *ON_FOLDERS], ids=lambda words: words[0])
@pytest.mark.parametrize("kind", ["wrapped events", "a list with blocks of another kind"])
def test_each_command_refuses_what_is_not_understood(
    tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(FOREIGN[kind])
    run = policyctx(*command, path, cwd=tmp_path)
    assert (run.returncode, "[" in run.stdout) == (1, False)
    assert f"error: {path}: " in run.stderr
    assert "are not understood: " in run.stderr
    assert "--partial" in run.stderr
    given = policyctx(*command, path, "--partial", cwd=tmp_path)
    assert f"note: {path}: not understood: " in given.stderr
    assert "error: " not in given.stderr.replace("error: no recording", "")


def mostly_understood() -> bytes:
    """A session of which one record in twenty is not understood."""
    known = synthetic.line_records()["claude-code"]
    return lines(*known[:10], {"type": "brand-new", "sessionId": "s"}, *known[10:])


@pytest.mark.slow
@pytest.mark.parametrize("command", [*ON_MESSAGES, *ON_FOLDERS], ids=lambda words: words[0])
def test_each_command_says_what_it_does_not_understand(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(mostly_understood())
    run = policyctx(*command, path, cwd=tmp_path)
    assert f"note: {path}: not understood: 1 × brand-new\n" in run.stderr


@pytest.mark.slow
def test_reports_for_programs_have_the_counts(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(mostly_understood())
    run = policyctx("apply", *POLICY, path, "--json", cwd=tmp_path)
    assert json.loads(run.stderr)["recording"]["not_understood"] == {"brand-new": 1}
    run = policyctx("diff", *POLICY, "small-context", path, "--json", cwd=tmp_path)
    assert json.loads(run.stdout)["not_understood"] == {str(path): {"brand-new": 1}}


def test_a_format_with_too_many_unknown_records_is_refused() -> None:
    known = synthetic.line_records()["claude-code"]
    content = lines(*known, *[{"type": "brand-new", "sessionId": "s"}] * 3)
    with pytest.raises(UnreadableRecordingError, match=r"16% of the records .*3 × brand-new"):
        list(recordings_of(content, "s"))


def test_a_format_with_one_large_unknown_record_is_refused() -> None:
    known = synthetic.line_records()["claude-code"]
    content = lines(*known, {"type": "brand-new", "data": "x" * 5_000})
    with pytest.raises(UnreadableRecordingError, match="of the bytes are not understood: 1 × bran"):
        list(recordings_of(content, "s"))


def test_a_last_line_that_is_cut_off_is_counted_and_never_refused() -> None:
    (one,) = recordings_of(lines(SAID) + b'\n{"role": "assist', "s")
    assert one.not_understood == {"line that is not JSON": 1}


def test_another_reader_takes_a_file_that_the_first_refuses() -> None:
    content = lines(SAID, *synthetic.line_records()["claude-code"])
    (one,) = recordings_of(content, "s")
    assert (one.format, one.not_understood) == ("claude-code", {"record without a type": 1})


def test_many_recordings_of_a_file_are_read_or_none() -> None:
    listed = [synthetic.documents()["chat"]] * 3
    content = lines(*listed, *[{"pages": n} for n in range(30)])
    with pytest.raises(UnreadableRecordingError, match="30 × record that is not a message"):
        next(recordings_of(content, "s"))


def database(path: Path, *tables: str) -> bytes:
    made = sqlite3.connect(path)
    for table in tables:
        made.execute(f"CREATE TABLE {table} (id TEXT PRIMARY KEY, data TEXT)")
    made.commit()
    made.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            lambda path: database(path, "pages", "words"),
            "a SQLite database with the tables pages, words; none of the known formats",
        ),
        (
            lambda path: database(path, "sessions", "messages", "files"),
            "with the tables files, messages, sessions: Crush's sessions, which are not read",
        ),
        (
            lambda _: lines({"role": "user", "message": {"content": []}}, {"role": "user"}),
            "JSON lines with the keys role, message: a transcript of Cursor; it lacks ",
        ),
        (
            lambda _: lines({"kind": "x", "type": "a"}, {"page": 1, "type": "b"}),
            "JSON lines with the keys kind, type, page, of the types a, b; none of the known",
        ),
        (
            lambda _: FOREIGN["stream of events"],
            "keys type, session, role, content, toolName, toolCallId, parameters, value, …, of",
        ),
        (lambda _: b"PAR1\0\0", "a Parquet file, whose rows have to be written as JSON lines"),
        (lambda _: b"# aider chat started at 2026\n", "Aider's history; it has no prompts"),
    ],
)
@pytest.mark.slow
def test_an_error_says_what_a_file_looks_like_and_how_to_read_it(
    tmp_path: Path, content: Callable[[Path], bytes], sentence: str
) -> None:
    path = tmp_path / "s"
    path.write_bytes(content(tmp_path / "made"))
    with pytest.raises(UnreadableRecordingError) as raised:
        list(recordings_in(path))
    assert sentence in raised.value.why
    assert "docs/recordings.md" in raised.value.why
    for command in (("explain", *POLICY), ("tokens",)):
        run = policyctx(*command, path, cwd=tmp_path)
        assert (run.returncode, run.stderr) == (1, f"error: {path}: {raised.value.why}\n")
