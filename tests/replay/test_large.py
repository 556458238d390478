"""Files that are larger than the memory that reading them may take."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import UnreadableRecordingError, install_command
from policyctx.replay.readers.source import READ_WHOLE, source_of
from policyctx.replay.reading import recordings_in
from tests.drawing import in_profile

# Bytes of a file; the night's profile takes larger ones.
SIZE = in_profile(48_000_000, 200_000_000)
# Bytes by which reading may grow the process, whatever the file's size.
GROWTH = 36_000_000

PROGRAM = """
import resource, sys
from pathlib import Path
from policyctx.replay.reading import recordings_in
import ijson
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
calls = sum(len(one.calls) for one in recordings_in(Path(sys.argv[1])))
print(calls, peak() - before)
"""

TURN = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]
FILLER = "x" * 50_000


def claude_code() -> Iterator[str]:
    links = {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s"}
    yield json.dumps({**links, "message": TURN[0]}) + "\n"
    reply = {**links, "type": "assistant", "uuid": "2", "parentUuid": "1", "message": TURN[1]}
    yield json.dumps(reply) + "\n"
    record = json.dumps({"type": "progress", "uuid": "3", "parentUuid": "2", "data": FILLER})
    for _ in range(SIZE // len(record)):
        yield record + "\n"


def listed(before: str, element: object, after: str) -> Iterator[str]:
    """A document with a list that makes it large."""
    text = json.dumps(element)
    yield before
    for _ in range(SIZE // len(text)):
        yield text + ","
    yield text + after


def tau2() -> Iterator[str]:
    simulation = {"task_id": "1", "filler": FILLER, "messages": TURN}
    return listed('{"info": {"seed": 1}, "simulations": [', simulation, '], "tasks": []}')


def tau_bench() -> Iterator[str]:
    return listed("[", {"task_id": 1, "traj": TURN, "info": FILLER}, "]")


def swe_agent() -> Iterator[str]:
    return listed('{"trajectory": [', {"query": FILLER}, f'], "history": {json.dumps(TURN)}}}')


def requests() -> Iterator[str]:
    # Each request repeats the conversation so far, as real ones do.
    prompt: list[dict[str, Any]] = []
    written = 0
    while written < SIZE:
        prompt += [{"role": "user", "content": "x" * 2_000}, TURN[1]]
        line = json.dumps({"model": "m", "messages": prompt[:-1]}) + "\n"
        written += len(line)
        yield line


@pytest.mark.slow
@pytest.mark.parametrize("made", [claude_code, tau2, tau_bench, swe_agent, requests])
def test_a_large_file_does_not_fill_the_memory(
    made: Callable[[], Iterator[str]], tmp_path: Path
) -> None:
    path = tmp_path / "large"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(made())
    assert path.stat().st_size > READ_WHOLE
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, check=True, text=True
    )
    calls, growth = map(int, run.stdout.split())
    assert calls > 0
    assert growth < GROWTH


@pytest.mark.parametrize("document", [{"a": [1, {"b": None}], "c": "x"}, [{"a": 1.5}, "x"]])
def test_a_streamed_document_equals_one_in_memory(document: object) -> None:
    content = json.dumps(document, indent=1).encode()
    whole = source_of("s", lambda: io.BytesIO(content))
    streamed = source_of("s", lambda: io.BytesIO(content), read_whole=1)
    assert type(whole) is not type(streamed)
    assert list(streamed.records()) == list(whole.records())
    assert list(streamed.outlines())[-1] == list(whole.outlines())[-1]
    assert list(streamed.elements("a")) == list(whole.elements("a"))
    assert streamed.field("c") == whole.field("c")


@pytest.mark.parametrize("torn", ['{"a": [1, 2, 3', '{"a": [1, 2, 3]} {}', '{"a": [1, 2, 3], }'])
def test_a_torn_streamed_document_yields_its_complete_elements(torn: str) -> None:
    source = source_of("s", lambda: io.BytesIO(torn.encode()), read_whole=1)
    assert list(source.elements("a")) == [1, 2, 3]
    assert source.not_understood.total() == 1


def test_lines_are_distinguished_from_a_large_document() -> None:
    content = b'torn"}\n{"a": 1}\n{"a": 2}\n'
    source = source_of("s", lambda: io.BytesIO(content), read_whole=12)
    assert list(source.records()) == [{"a": 1}, {"a": 2}]


@pytest.mark.slow
def test_an_archive_is_unpacked_one_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "large.eval"
    sample = json.dumps({"id": 1, "messages": TURN, "store": FILLER * 100})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"version": 2, "eval": {}}))
        for number in range(SIZE // len(sample)):
            packed.writestr(f"samples/{number}.json", sample)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, check=True, text=True
    )
    calls, growth = map(int, run.stdout.split())
    assert calls == SIZE // len(sample)
    assert growth < GROWTH


def test_a_large_document_error_names_the_required_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ijson", None)
    path = tmp_path / "large.json"
    path.write_text(json.dumps([{"role": "user", "content": "x" * READ_WHOLE}]), encoding="utf-8")
    with pytest.raises(UnreadableRecordingError, match=re.escape(install_command("replay"))):
        list(recordings_in(path))
