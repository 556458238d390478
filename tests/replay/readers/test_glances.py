"""A glance at a file has the calls, the bills and the compactions that reading it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from policyctx.replay.readers.registered import glances, readers
from policyctx.replay.readers.source import source_of
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from tests.recordings import each_recording
from tests.replay import synthetic

READERS = {reader.FORMAT: reader for reader in readers() if hasattr(reader, "glances")}


def used(recordings: Iterable[Recording]) -> Counter[Any]:
    """What a table of sessions shows of a file."""
    found: Counter[Any] = Counter()
    for recording in recordings:
        found[recording.project] = int(bool(found[recording.project] or recording.calls))
        for call in recording.calls:
            found[call.usage, call.language_model, call.at, call.id] += 1
            found["compactions"] += call.why_anew == "compaction"
    return +found


def glanced(path: Path, format_: str) -> list[Recording]:
    return list(glances(READERS[format_], source_of(path.name, lambda: path.open("rb"))))


@pytest.mark.parametrize("format_", READERS)
def test_a_glance_at_a_session_has_what_reading_it_has(tmp_path: Path, format_: str) -> None:
    records = synthetic.line_records().get(format_)
    document = synthetic.documents().get(format_)
    assert records or document, f"tests/replay/synthetic.py has no session of the format {format_}"
    path = tmp_path / "s"
    path.write_bytes(synthetic.encoded_lines(records) if records else synthetic.encoded(document))
    assert used(glanced(path, format_)) == used(recordings_in(path))


@each_recording("claude-code")
def test_a_glance_at_a_trace_has_what_reading_it_has(path: Path) -> None:
    found = list(recordings_in(path))
    assert used(glanced(path, found[0].format)) == used(found)


@pytest.mark.parametrize("odd", [{}, {"message": "text"}, {"message": None}, {"message": {}},
                                 {"message": {"content": 5}}])  # fmt: skip
def test_a_glance_passes_over_a_reply_that_is_none(tmp_path: Path, odd: dict[str, object]) -> None:
    path = tmp_path / "s"
    records = [*synthetic.line_records()["claude-code"], {"type": "assistant", **odd}]
    path.write_bytes(synthetic.encoded_lines(records))
    assert used(glanced(path, "claude-code")) == used(recordings_in(path))
