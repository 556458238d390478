"""Large files in ranges of bytes: any cut gives each recording once, as the whole file does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.executing.executor import Here
from policyctx.replay.places import files, parts
from policyctx.replay.reading import (
    ByteRange,
    NamedRange,
    format_in_lines,
    named_ranges,
    recordings_in,
    recordings_in_range,
    survey,
)
from policyctx.replay.recording import Recording
from tests.conversations import session_of


def chat(text: str, _: int) -> Any:
    return session_of(text)


def tau_bench(text: str, number: int) -> Any:
    return {"task_id": number % 2, "trial": 0, "traj": session_of(text)}


def openhands(text: str, number: int) -> Any:
    event = {"id": 1, "source": "user", "timestamp": "2026-01-01T00:00:00", "action": "message"}
    return {
        "instance_id": f"i{number % 3}",
        "history": [event | {"args": {"content": text}}, event | {"args": {"content": "more"}}],
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines") / "a.jsonl"


def in_ranges(path: Path, cuts: Sequence[int]) -> list[Recording] | None:
    """Read a file in the ranges between cuts."""
    form = format_in_lines(path)
    assert form is not None
    ranges = [ByteRange(form, start, end) for start, end in pairwise(cuts)]
    named = named_ranges(path.name, ranges, [survey(path, one) for one in ranges], partial=True)
    if named is None:
        return None
    return [recording for one in named for recording in recordings_in_range(path, one)]


# Lines that are not recordings: blank, torn, and records that no reader understands.
OTHERS = [b"", b"  ", b'{"torn', b"[]", b"7", b"\xff"]


@given(st.data())
def test_any_cut_gives_each_recording_once(path: Path, data: st.DataObject) -> None:
    record = data.draw(st.sampled_from([chat, tau_bench, openhands]))
    texts = data.draw(st.lists(st.text(max_size=30), min_size=1, max_size=8))
    # A short line after the first one would make a list or a document of the file.
    lines = [json.dumps(record(text, i)).encode() for i, text in enumerate(["first", *texts])]
    for other in data.draw(st.lists(st.sampled_from(OTHERS), max_size=4)):
        lines.insert(data.draw(st.integers(1, len(lines))), other)
    mark, end = (
        data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"])),
        data.draw(st.sampled_from([b"\n", b"\r\n"])),
    )
    raw = mark + end.join(lines) + data.draw(st.sampled_from([b"", end]))
    path.write_bytes(raw)
    starts = [i + 1 for i in range(len(raw) - 2) if raw[i : i + 1] == b"\n"]
    cut = st.integers(1, len(raw) - 1) | st.sampled_from(starts)
    cuts = sorted(data.draw(st.sets(cut, max_size=6)))
    assert in_ranges(path, [0, *cuts, len(raw)]) == list(recordings_in(path, partial=True))


def test_a_cut_at_each_byte_gives_each_recording_once(path: Path) -> None:
    lines = [json.dumps([{"role": "user", "content": text}]) for text in ("a", "é", "")]
    path.write_text("\n".join(lines), encoding="utf-8")
    whole = list(recordings_in(path))
    size = path.stat().st_size
    assert all(in_ranges(path, [0, cut, size]) == whole for cut in range(1, size))


def test_a_file_whose_messages_are_one_session_is_not_read_in_ranges(path: Path) -> None:
    lines = [session_of("x"), *session_of("y")]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (part,) = parts(files([path]), Here(), part_bytes=100)
    assert part.of is None
    assert list(part.recordings()) == list(recordings_in(path))


def test_a_large_file_has_parts_of_about_the_wanted_size(path: Path) -> None:
    path.write_text("\n".join(json.dumps(session_of("x" * 50)) for _ in range(20)))
    size = path.stat().st_size
    made = parts(files([path]), Here(), part_bytes=1000)
    assert len(made) > 4
    assert sum(part.bytes for part in made) == size
    assert [one for part in made for one in part.recordings()] == list(recordings_in(path))


def test_a_file_that_has_changed_since_the_survey_is_an_error(path: Path) -> None:
    line = json.dumps(session_of("x")) + "\n"
    path.write_text(line * 2, encoding="utf-8")
    of = ByteRange("chat", 0, path.stat().st_size)
    for names in (("a.jsonl#1",), ("a.jsonl#1", "a.jsonl#2", "a.jsonl#3")):
        with pytest.raises(UnreadableRecordingError, match="changed since it was surveyed"):
            list(recordings_in_range(path, NamedRange(of, names)))
