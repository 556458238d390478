"""What files hold that no tool should have written."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import UnreadableRecordingError
from policyctx.messages.reading import items_of
from policyctx.replay.readers.building import usage
from policyctx.replay.readers.registered import glances, readers
from policyctx.replay.readers.source import source_of, value_of
from policyctx.replay.readers.values import number, seconds
from policyctx.replay.reading import recordings_in, recordings_of
from policyctx.replay.recording import Recording
from tests.drawing import IS_LONG
from tests.recordings import each_recording
from tests.replay import synthetic
from tests.replay.fuzzing import places

CHAT = '{"role": "user", "content": %s}'


def read(content: bytes) -> list[Recording]:
    """Read a file, whose messages have to be such as a session takes."""
    found = list(recordings_of(content, "s"))
    for recording in found:
        for context in recording.contexts():
            items_of(context)
        items_of(recording.messages())
    return found


def read_or_refused(content: bytes) -> list[Recording] | str:
    """Read a file, or return the words of its refusal."""
    try:
        return read(content)
    except UnreadableRecordingError as error:
        if "unexpected" in error.why:  # an exception that no code foresaw is a defect
            raise
        return str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999", float("inf")),
        ("-1e999", float("-inf")),
        ("1" * 30, int("1" * 30)),
        ('"\\ud800"', "\ud800"),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("[" * 150 + "]" * 150, None),
    ],
)
def test_odd_json_is_read(text: str, value: object) -> None:
    read_back = value_of(text.encode())
    assert value is None or read_back == value


def test_a_text_with_a_lone_surrogate_is_read_as_its_bytes_are() -> None:
    assert value_of('{"path": "\ud800"}') == {"path": "\ud800"}
    with pytest.raises(ValueError, match="Expecting"):
        value_of("\ud800")


@pytest.mark.parametrize("time", [10**400, -(10**400), 1e308, float("inf"), float("nan")])
def test_a_time_out_of_range_is_ignored(time: float) -> None:
    assert seconds(time) is None


def test_an_impossible_token_count_is_ignored() -> None:
    assert number(10**400) == 0
    assert usage({"input_tokens": 10**400}) is None


def test_nan_is_read() -> None:
    assert str(value_of(b"NaN")) == "nan"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 250 + "]" * 250,
        "[" * 250 + '"\\ud800"' + "]" * 250,
        "[" * 5_000 + '"\\ud800"' + "]" * 5_000,
        "1" * 5_000,
        "{",
        "\0",
    ],
)
def test_hostile_json_is_rejected(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers have words of their own
        value_of(text.encode())


def test_a_message_of_lone_surrogates_is_read() -> None:
    (recording,) = read((CHAT % '"\\ud800 and so on"').encode())
    assert recording.messages()[0]["content"] == "\ud800 and so on"


def test_an_unknown_format_error_lists_the_known_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text('{"title": "notes", "pages": [{"text": "hello"}]}', encoding="utf-8")
    with pytest.raises(UnreadableRecordingError, match=r"claude-code, .* codex, .* chat") as raised:
        list(recordings_in(path))
    assert raised.value.path == str(path)


@each_recording(
    "claude-code", "codex", "gemini", "inspect", "mini-swe", "openai-chat", "openhands", "pi",
    "swe-agent", "tau2",
)  # fmt: skip
def test_a_file_that_was_cut_or_garbled_is_read_or_refused(path: Path) -> None:
    content = path.read_bytes()[:200_000]
    chance = random.Random(path.name)  # noqa: S311 - no secret
    for _ in range(4):
        cut = content[: chance.randrange(len(content))]
        place = chance.randrange(len(cut) + 1)
        for broken in (cut, cut[:place] + b"\0garbage\n" + cut[place:]):
            assert read_or_refused(broken)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
# One record of each format, as a reader knows it by.
RECORDS: list[dict[str, Any]] = [
    {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s",
     "message": {"role": "user", "content": [{"type": "text", "text": "go"}], "usage": {}}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "go"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": {}}},
    {"type": "message", "id": "1", "parentId": None, "message": {
        "role": "assistant", "content": [], "stopReason": "stop", "usage": {}}},
    {"type": "compaction", "summary": "x", "firstKeptEntryIndex": 0, "id": "2", "parentId": "1"},
    {"sessionId": "s", "projectHash": "p", "messages": [
        {"type": "gemini", "content": [], "toolCalls": [{"result": []}], "tokens": {}}]},
    {"type": "assistant.message", "id": "1", "data": {"content": "so", "toolRequests": [{}]}},
    {"version": 3, "requests": [{"message": {}, "response": [{}], "result": {"metadata": {
        "toolCallRounds": [{"toolCalls": [{"id": "a"}]}], "toolCallResults": {"a": {}}}}}]},
    {"kind": 0, "v": {"version": 3, "requests": []}},
    {"kind": 2, "k": ["requests"], "v": [{}], "i": 0},
    {"kind": "ActionEvent", "source": "agent", "timestamp": 1, "thought": [], "tool_call": {}},
    {"kind": "Condensation", "source": "agent", "timestamp": 1, "summary_offset": 0,
     "forgotten_event_ids": [], "summary": "x"},
    {"trajectory": [], "history": [{"role": "tool", "tool_call_ids": []}], "replay_config": "{"},
    {"trajectory_format": "mini-swe-agent-1", "messages": [{"role": "assistant", "extra": {}}]},
    {"instance_id": "i", "history": [
        {"action": "run", "source": "agent", "timestamp": 1, "tool_call_metadata": {}}]},
    {"simulations": [{"messages": [{"role": "assistant", "tool_calls": [{}]}]}], "info": {}},
    {"task_id": 1, "traj": [{"role": "assistant", "content": None, "tool_calls": []}]},
    {"version": 2, "eval": {}, "samples": [
        {"messages": [{"role": "user", "content": []}], "events": [], "attachments": {}}]},
    {"request": {"messages": [{"role": "user", "content": "go"}]}, "response": {"usage": {}}},
    {"role": "user", "content": "go", "tool_calls": []},
]  # fmt: skip


@st.composite
def garbled(draw: st.DrawFn) -> object:
    """A record of some format, in which one value gave way to another."""
    record = json.loads(json.dumps(draw(st.sampled_from(RECORDS))))
    holder: Any = record
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = draw(st.sampled_from(keys))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            holder[key] = draw(JSON)
            return record
        holder = inner


@given(st.lists(garbled() | st.sampled_from(RECORDS), min_size=1, max_size=4))
def test_a_garbled_record_is_counted_or_refused(records: list[object]) -> None:
    lines = "\n".join(map(json.dumps, records)).encode("utf-8", "surrogatepass")
    for content in (lines, json.dumps(records[0]).encode("utf-8", "surrogatepass")):
        found = read_or_refused(content)
        assert found
        assert isinstance(found, str) or all(one.records > 0 for one in found)


ODD: tuple[Any, ...] = (None, 5, "", "x", [], {}, [[]], "9" * 400, {"type": []}, [{"type": {}}])
FORMATS = [*((name, False) for name in synthetic.documents()),
           *((name, True) for name in synthetic.line_records())]  # fmt: skip


def spoiled(content: Any) -> Iterator[Any]:
    """Yield a recording with an odd value in one field, and without it, for each kind of field."""
    seen = set[object]()
    for holder, key in places(content):
        field = (key, frozenset(holder)) if isinstance(holder, dict) else id(holder)
        if field in seen:
            continue
        # In CI each field has a third of the values, and the next field another third.
        values = ODD if IS_LONG else ODD[len(seen) % 3 :: 3]
        seen.add(field)
        before = holder[key]
        for value in values:
            holder[key] = copy.deepcopy(value)
            yield content
        if isinstance(holder, dict):
            del holder[key]
            yield content
        holder[key] = before


@pytest.mark.parametrize(("format_", "is_lines"), FORMATS)
def test_an_odd_value_in_any_field_of_any_format_is_counted_or_refused(
    format_: str, is_lines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "TURNS", 2)
    glancing = [one for one in readers() if hasattr(one, "glances") and format_ == one.FORMAT]
    whole = synthetic.line_records() if is_lines else synthetic.documents()
    for content in spoiled(whole[format_]):
        written = synthetic.encoded_lines(content) if is_lines else synthetic.encoded(content)
        assert read_or_refused(written)
        for reader in glancing:
            list(glances(reader, source_of("s", partial(BytesIO, written))))
