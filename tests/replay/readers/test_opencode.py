from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.readers import opencode
from policyctx.replay.readers.source import source_of
from policyctx.replay.reading import recordings_in, recordings_of
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.cli.running import policyctx
from tests.replay.readers.reading import document_of, lengths, roles

Record = dict[str, Any]


def ms(second: float) -> int:
    return 1_767_225_600_000 + int(1000 * second)


def user(second: int, *parts: Record) -> Record:
    head = {"id": f"u{second}", "sessionID": "ses_1", "role": "user"}
    return {"info": {**head, "time": {"created": ms(second)}}, "parts": list(parts)}


def reply(second: int, *parts: Record, tokens: Record | None = None, **more: Any) -> Record:
    head = {"id": f"a{second}", "sessionID": "ses_1", "role": "assistant", "modelID": "gpt-x"}
    timed = {**head, "time": {"created": ms(second)}, "tokens": tokens or {}, **more}
    return {"info": timed, "parts": list(parts)}


def text(words: str, **more: Any) -> Record:
    return {"type": "text", "text": words, **more}


def tool(call_id: str, status: str = "completed", **more: Any) -> Record:
    state = {"status": status, "input": {"path": "a"}, "output": f"of {call_id}", **more}
    return {"type": "tool", "callID": call_id, "tool": "read", "state": state}


def tokens(prompt: int, read: int = 0) -> Record:
    return {"input": prompt, "output": 5, "reasoning": 2, "cache": {"read": read, "write": 1}}


def step(number: Record) -> Record:
    return {"type": "step-finish", "reason": "stop", "tokens": number}


def read(*messages: Record) -> Recording:
    return document_of({"info": {"id": "ses_1", "directory": "/srv"}, "messages": list(messages)})


START = {"type": "step-start"}


def test_a_step_is_a_call_with_its_bill_and_the_results_of_its_calls() -> None:
    recording = read(
        user(1, text("go")),
        reply(2, START, text("so"), tool("c1"), tool("c2"), step(tokens(10, 4))),
        reply(3, text("done"), tokens=tokens(20)),
    )
    assert (recording.format, recording.project) == ("opencode", "/srv")
    assert [call.usage for call in recording.calls] == [Usage(10, 4, 1, 7), Usage(20, 0, 1, 7)]
    assert [(call.language_model, call.at) for call in recording.calls] == [
        ("gpt-x", ms(2) / 1000),
        ("gpt-x", ms(3) / 1000),
    ]
    assert roles(recording) == ["user", "assistant", "user", "assistant"]
    results = recording.messages()[2]["content"]
    assert [(one["tool_use_id"], one["content"]) for one in results] == [
        ("c1", "of c1"),
        ("c2", "of c2"),
    ]


def test_a_message_with_several_steps_is_several_calls() -> None:
    steps = [START, tool("c1"), step(tokens(10)), START, tool("c2"), step(tokens(20))]
    recording = read(user(1, text("go")), reply(2, *steps, tokens=tokens(20)))
    assert lengths(recording) == [1, 3]
    assert [call.usage and call.usage.input for call in recording.calls] == [10, 20]


def test_a_failed_call_has_its_error_and_one_that_was_interrupted_says_so() -> None:
    recording = read(
        user(1, text("go")),
        reply(2, tool("c1", "error", error="no such file")),
        reply(3, tool("c2", "running")),
        user(4, text("stop")),
        reply(5, tool("c3", "pending")),
    )
    results = [
        block
        for message in recording.messages()
        if message["role"] == "user"
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert [(one["content"], one["is_error"]) for one in results] == [
        ("no such file", True),
        ("[Tool execution was interrupted]", True),
    ]
    assert recording.messages()[-1]["content"][0]["id"] == "c3"


def compacted(second: int, **more: Any) -> list[Record]:
    summary = reply(second + 1, text(f"All until {second}."), tokens=tokens(20), summary=True)
    return [user(second, {"type": "compaction", "auto": True, **more}), summary]


def test_the_newest_messages_stay_beside_a_summary_that_names_the_first_of_them() -> None:
    recording = read(
        user(1, text("go")),
        *[reply(second, tool(f"c{second}"), tokens=tokens(10)) for second in (2, 3, 4)],
        *compacted(5, tail_start_id="a3"),
        *[reply(second, tool(f"c{second}"), tokens=tokens(10)) for second in (7, 8)],
        *compacted(9, tail_start_id="a4"),
        reply(11, text("done"), tokens=tokens(5)),
    )
    assert [call.why_anew for call in recording.calls] == [
        *[None] * 4, "compaction", None, None, "compaction"
    ]  # fmt: skip
    assert lengths(recording) == [1, 3, 5, 7, 6, 8, 10, 8]
    said = [message["content"] for message in recording.messages()]
    assert [one[0]["text"] for one in said[1:2]] == ["All until 9."]
    calls = [one["tool_use_id"] for content in said for one in content
             if isinstance(one, dict) and one["type"] == "tool_result"]  # fmt: skip
    assert calls == ["c4", "c7", "c8"]


def test_a_summary_that_names_an_unknown_message_stays_alone() -> None:
    first = [user(1, text("go")), reply(2, tool("c1"), tokens=tokens(10))]
    recording = read(*first, *compacted(3, tail_start_id="x"), reply(5, text("done")))
    assert lengths(recording) == [1, 3, 2]


def test_a_compaction_begins_the_list_anew_with_the_summary() -> None:
    recording = read(
        user(1, text("go")),
        reply(2, tool("c1"), tokens=tokens(10)),
        user(3, {"type": "compaction", "auto": True}),
        reply(4, text("All was read."), tokens=tokens(20), summary=True, mode="compaction"),
        user(5, text("and now?")),
        reply(6, text("done"), tokens=tokens(5)),
    )
    assert [call.why_anew for call in recording.calls] == [None, None, "compaction"]
    assert lengths(recording) == [1, 3, 3]
    assert recording.messages()[1]["content"] == [{"type": "text", "text": "All was read."}]


def test_a_cleared_result_is_short_from_the_next_call_on() -> None:
    recording = read(
        user(1, text("go")),
        reply(2, tool("c1", time={"compacted": ms(3.5)})),
        reply(3, tool("c2")),
        reply(4, text("done")),
    )
    seen = [list(context) for context in recording.contexts()]
    assert [context[2]["content"][0]["content"] for context in seen[1:]] == [
        "of c1",
        "[Old tool result content cleared]",
    ]
    assert [call.why_anew for call in recording.calls] == [None, None, "change"]


def test_every_part_is_accounted_for() -> None:
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"}
    listed = {"type": "file", "mime": "text/plain", "url": "file:///srv/a.txt"}
    recording = read(
        user(1, text("go"), text("the file a.txt", synthetic=True), listed, picture),
        reply(2, {"type": "reasoning", "text": "hm"}, {"type": "patch"}, {"type": "hologram"}),
        reply(3),
    )
    assert [block["type"] for one in recording.messages() for block in one["content"]] == [
        "text", "text", "image", "thinking",
    ]  # fmt: skip
    assert recording.not_understood == {"part of the type hologram": 1}
    assert recording.not_prompt == {"empty reply": 1}
    assert recording.records == 3


def stored(path: Path, *sessions: Sequence[Record]) -> sqlite3.Connection:
    """Write sessions as OpenCode's database has them, in a journal that stays open."""
    made = sqlite3.connect(path)
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT)")
    made.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT)")
    made.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
    for number, messages in enumerate(sessions):
        made.execute("INSERT INTO session VALUES (?, '/srv')", [f"ses_{number}"])
        for message in messages:
            name = f"{number}{message['info']['id']}"
            row = [name, f"ses_{number}", message["info"]["time"]["created"]]
            data = json.dumps(message["info"])
            made.execute("INSERT INTO message VALUES (?, ?, ?, ?)", [*row, data])
            for place, part in enumerate(message["parts"]):
                row = [f"prt_{place}", name, f"ses_{number}", json.dumps(part)]
                made.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    made.commit()
    return made


TALK = [
    user(1, text("go")),
    reply(2, START, text("so"), tool("c1"), step(tokens(10, 4))),
    reply(3, text("done"), tokens=tokens(20)),
]


def test_the_database_reads_as_its_exports_also_from_the_journal_beside_it(tmp_path: Path) -> None:
    made = stored(tmp_path / "opencode.db", TALK, TALK[:2])
    first, second = recordings_in(tmp_path / "opencode.db")
    assert first.calls == read(*TALK).calls
    assert (first.name, second.name, first.project) == (
        "opencode.db#ses_0", "opencode.db#ses_1", "/srv",
    )  # fmt: skip
    given = policyctx("tokens", tmp_path / "opencode.db", "--session", "ses_1", "--json")
    assert len(json.loads(given.stdout)["billed"]["calls"]) == 1, given.stderr
    made.close()


def test_a_database_that_comes_as_bytes_is_read_and_one_that_is_closed_is_not_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "opencode.db"
    stored(path, TALK).close()
    before = {one: one.read_bytes() for one in tmp_path.iterdir()}
    (one,) = recordings_in(path)
    (other,) = recordings_of(path.read_bytes(), "opencode.db")
    assert one.calls == other.calls == read(*TALK).calls
    assert {one: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_glance_at_the_database_leaves_large_parts_out(tmp_path: Path) -> None:
    compaction = [user(4, {"type": "compaction"}), reply(5, text("x" * 9_000), summary=True)]
    stored(tmp_path / "opencode.db", [*TALK, *compaction, reply(6, text("y"))], TALK[:2]).close()
    whole = list(recordings_in(tmp_path / "opencode.db"))
    source = source_of("opencode.db", lambda: (tmp_path / "opencode.db").open("rb"))
    glanced = list(opencode.glances(source))
    for one, other in zip(glanced, whole, strict=True):
        assert [replace(call, new=()) for call in one.calls] == [
            replace(call, new=(), left=()) for call in other.calls
        ]
        assert (one.name, one.project) == (other.name, other.project)
    assert "x" * 9_000 not in str(glanced)
    assert glanced[0].calls[-1].why_anew == "compaction"


def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    stored(path, TALK).close()
    path.write_bytes(path.read_bytes()[:100] + b"x" * 20_000)
    with pytest.raises(UnreadableRecordingError, match=r"malformed|not a database|SQLite"):
        list(recordings_in(path))
