"""Damaged lines of a journal, and damaged indexes, lose nothing that the files still hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from policyctx.session import Session
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import results
from tests.drawing import IS_LONG
from tests.store import playing
from tests.store.contents import result
from tests.store.damaging import WRITTEN_BY_0_1
from tests.store.playing import TURNS_MADE, Clock, played, session

# `POLICYCTX_DAMAGES=10000` and the long profile look longer.
RUNS = int(os.environ.get("POLICYCTX_DAMAGES", "2000" if IS_LONG else "30"))


@pytest.mark.slow
@pytest.mark.timeout(36_000)
def test_random_damage_loses_no_file_and_stops_no_session() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.store.damaging", str(RUNS), "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    *wrong, summary = run.stdout.splitlines() or [run.stderr]
    assert (wrong, run.returncode, run.stderr) == ([], 0, "")
    assert json.loads(summary)["runs"] == RUNS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path, clock: Clock) -> Path:
    """The folder of a session after some turns."""
    played(session("text", tmp_path, clock), clock, range(1, TURNS_MADE + 1))
    (tmp_path / ".policyctx/old/index.json").unlink()
    return tmp_path


def lines_of(root: Path) -> list[bytes]:
    return (root / ".policyctx/old/journal.jsonl").read_bytes().splitlines(keepends=True)


def write_lines(root: Path, lines: list[bytes]) -> None:
    (root / ".policyctx/old/journal.jsonl").write_bytes(b"".join(lines))


def store_of(one: Session) -> ContextFileSystem:
    assert isinstance(one.store, ContextFileSystem)
    return one.store


def _without_checksum(line: bytes) -> dict[str, Any]:
    """Return what a line holds, as policyctx 0.1 would have written it."""
    return {key: value for key, value in json.loads(line).items() if key not in {"n", "crc32"}}


def value_in(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_line_has_its_number_and_the_checksum_of_its_bytes(root: Path) -> None:
    for number, line in enumerate(lines_of(root)):
        start, key, end = line.rpartition(b',"crc32":"')
        assert key
        assert end == b'%08x"}\n' % zlib.crc32(start)
        assert value_in(line)["n"] == number
    assert value_in(lines_of(root)[0])["journal"]["schema_version"] == "2.0"


@pytest.mark.parametrize("field", ["sha256", "path", "item_id", "bytes"])
def test_a_changed_digit_in_a_saved_line_is_noticed_and_the_file_read(
    root: Path, clock: Clock, field: str
) -> None:
    lines = lines_of(root)
    at = next(i for i, line in enumerate(lines) if line.startswith(b'{"saved":'))
    saved = value_in(lines[at])["saved"]
    text = (root / saved["path"]).read_text(encoding="utf-8")
    position = lines[at].index(b'"%b":' % field.encode()) + len(field) + 5
    changed = bytearray(lines[at])
    changed[position] ^= 1
    write_lines(root, [*lines[:at], bytes(changed), *lines[at + 1 :]])
    one = session("text", root, clock)
    store = store_of(one)
    assert store.read(saved["path"]) == store.read(root / saved["path"]) == text
    found = store.find(saved["path"])
    assert found is not None
    assert (found.sha256, found.item_id) == (saved["sha256"], saved["item_id"])
    assert any("1 line of the journal could not be read" in notice for notice in store.notices)
    assert any("could not be read" in one for one in one.apply(playing.conversation(20)).warnings)


def test_a_file_with_a_lost_journal_line_is_known_from_the_record_that_names_it(
    tmp_path: Path,
) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("call_1", "one")])
    [file] = store.save([result("call_1", "two")], recorded=True)
    [entry] = [entry for entry in store.list() if entry.path == file.relative_path]
    store.remember(
        [{"item_id": "call_1", "path": entry.path, "sha256": entry.sha256, "state": "offloaded"}]
    )
    journal = tmp_path / ".policyctx/journal.jsonl"
    (tmp_path / ".policyctx/index.json").unlink()
    kept = [
        line for line in journal.read_bytes().splitlines(keepends=True) if b'"saved"' not in line
    ]
    journal.write_bytes(b"".join(kept))
    again = ContextFileSystem(tmp_path, sync="never")
    found = again.find("tool_result/Bash/call_1-1.md")
    assert found is not None
    assert (found.item_id, found.adopted) == ("call_1", False)
    assert any("2 lines of the journal are missing" in notice for notice in again.notices)


def test_a_damaged_decision_is_decided_anew_with_a_warning(root: Path, clock: Clock) -> None:
    lines = lines_of(root)
    at = next(i for i, line in enumerate(lines) if b'"state":"cleared"' in line)
    item_id = value_in(lines[at])["record"]["item_id"]
    write_lines(root, [*lines[:at], lines[at].replace(b"cleared", b"dropped"), *lines[at + 1 :]])
    clock.turn = 9  # before the compaction
    done = session("text", root, clock).apply(playing.conversation(9))
    assert any("could not be read" in warning for warning in done.warnings)
    assert [(d.item.item_id, d.action) for d in done.plan.new] == [(item_id, "clear")]


@pytest.mark.parametrize("head", [b"\n", b"", b'{"journal":{"id":5}}\n', b"\xff\x00\n"])
def test_a_damaged_header_loses_nothing(root: Path, clock: Clock, head: bytes) -> None:
    before = store_of(session("text", root, clock))
    contents, records = playing.contents_of(before), before.records()
    write_lines(root, [head, *lines_of(root)[1:]])
    store = store_of(session("text", root, clock))
    assert (playing.contents_of(store), store.records()) == (contents, records)
    assert store.notices


def test_a_duplicate_line_counts_once(root: Path, clock: Clock) -> None:
    before = store_of(session("text", root, clock)).records()
    lines = lines_of(root)
    write_lines(root, [*lines, lines[5], lines[-1]])
    store = store_of(session("text", root, clock))
    assert store.records() == before
    assert any("2 lines of the journal appear twice" in notice for notice in store.notices)


_DECISION: dict[str, Any] = {
    "kind": "tool_result",
    "tool_use_id": "call_99",
    "sha256": "0" * 64,
    "occurrence": 0,
    "chars": 4,
    "item_id": "call_99",
    "item_type": "tool_result",
    "state": "cleared",
    "step": "tidy",
    "policy": "",
    "placeholder": "cleared",
    "path": None,
}
FOREIGN: list[dict[str, Any]] = [
    {"record": "compaction"},
    {"record": "compaction", "skipped": "x", "count": 0},
    {"record": "decision"},
    {"record": "decision", "kind": 5, "state": "sold"},
    {"record": "decision", **_DECISION, "rewritten": ["no", "text"]},
    {"record": "mark", "step": "tidy"},
    {"record": "unreadable"},
    {"record": "unreadable", "sha256": [["no", "text"]]},
    {"record": "call"},
    {"record": "call", "at": "noon"},
    {"record": "usage"},
    {"record": "usage", "scale": float("inf")},
    {"record": "of a later version", "any": ["thing"]},
    {"record": ["no", "name"]},
    {},
]


@pytest.mark.parametrize("record", FOREIGN, ids=str)
def test_a_foreign_record_stops_no_session(
    root: Path, clock: Clock, record: dict[str, Any]
) -> None:
    clock.turn = TURNS_MADE
    expected = session("text", root, clock).apply(playing.conversation(TURNS_MADE)).messages
    line = json.dumps({"record": record}).encode() + b"\n"
    write_lines(root, [*lines_of(root), line])
    done = session("text", root, clock).apply(playing.conversation(TURNS_MADE))
    assert done.messages == expected
    kinds = ["compaction", "decision", "mark", "call", "usage", "unreadable"]
    is_own = record.get("record") in kinds
    assert any("of the session could not be read" in one for one in done.warnings) == is_own


def openings(form: str, root: Path, count: int = 3) -> list[list[str]]:
    """Return the warnings of a session that is opened and continued again and again."""
    clock, found = Clock(), []
    clock.turn = TURNS_MADE
    for _ in range(count):
        with session(form, root, clock) as one:
            first = one.apply(playing.conversation(TURNS_MADE)).warnings
            found.append([*first, *one.apply(playing.conversation(TURNS_MADE)).warnings])
    return found


@pytest.mark.parametrize("form", playing.FORMS)
def test_a_meaningless_record_is_warned_of_once(tmp_path: Path, form: str) -> None:
    root = Path(shutil.copytree(WRITTEN_BY_0_1 / form, tmp_path / "root"))
    before = store_of(session(form, root, Clock()))
    contents, records = playing.contents_of(before), before.records()
    meaningless = {"record": "compaction"}
    line = json.dumps({"record": meaningless}).encode() + b"\n"
    write_lines(root, [*lines_of(root), line])
    [first], *later = openings(form, root)
    assert "1 record of the session could not be read" in first
    assert later == [[], []]
    store = store_of(session(form, root, Clock()))
    assert playing.contents_of(store) == contents
    assert store.records()[: len(records) + 1] == [*records, meaningless]
    # Another one is not known yet, nor is the same one when it is there again.
    for one in (b'{"record":{"record":"usage"}}\n', line):
        write_lines(root, [*lines_of(root), one])
        assert [len(warnings) for warnings in openings(form, root)] == [1, 0, 0]
    store.rebuild()
    assert openings(form, root, 1) == [[]]


def test_an_arrival_warns_of_a_meaningless_record_once(root: Path) -> None:
    write_lines(root, [*lines_of(root), b'{"record":{"record":"call"}}\n'])
    arrival = results(("call_99", "text"))
    warnings = [session("text", root, Clock()).on_tool_result(arrival).warnings for _ in range(3)]
    assert [len(one) for one in warnings] == [1, 0, 0]


def test_half_of_a_dropped_pair_is_warned_of_once(root: Path) -> None:
    unknown = (b'{"in_flight"', b'{"record":{"record":"compaction"')
    lines = [line for line in lines_of(root) if not line.startswith(unknown)]
    lost = next(line for line in lines if b'"dropped"' in line and b'"tool_call"' in line)
    lines.remove(lost)
    unnumbered = [json.dumps(_without_checksum(line)).encode() + b"\n" for line in lines]
    write_lines(root, unnumbered)
    assert [len(warnings) for warnings in openings("text", root)] == [1, 0, 0]


def test_a_damaged_line_is_warned_of_until_the_store_is_closed(tmp_path: Path) -> None:
    with ContextFileSystem(tmp_path, sync="never") as store:
        store.save([result("call_1", "one")])
    journal = tmp_path / ".policyctx/journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"bytes"', b'"bites"'))
    notices = []
    for _ in range(3):
        with ContextFileSystem(tmp_path, sync="never") as store:
            assert store.read("call_1") == "one"
            notices.append(len(store.notices))
    assert notices == [1, 0, 0]


@pytest.mark.parametrize("half", ["tool_call", "tool_result"])
def test_half_of_a_dropped_pair_is_decided_anew(root: Path, clock: Clock, half: str) -> None:
    wanted = f'"kind":"{half}"'.encode()
    lines = [one for one in lines_of(root) if b'"state":"dropped"' not in one or wanted not in one]
    assert len(lines) == len(lines_of(root)) - 2
    write_lines(root, [one for one in lines if b'"record":"compaction"' not in one])
    clock.turn = 9
    done = session("text", root, clock).apply(playing.conversation(9))
    assert any("of the session could not be read" in warning for warning in done.warnings)
    # Nothing is half dropped: the pair is there, or it is not.
    shown = json.dumps(done.messages, ensure_ascii=True)
    for call_id in ("call_2", "call_6"):
        assert shown.count(f'"id": "{call_id}"') == shown.count(f'"tool_use_id": "{call_id}"')


def test_a_damaged_index_is_ignored(root: Path, clock: Clock) -> None:
    one = session("text", root, clock)
    one.ledger  # noqa: B018 - reads the journal
    one.close()
    index = root / ".policyctx/old/index.json"
    whole = index.read_bytes()
    index.write_bytes(whole.replace(b'"state":"dropped"', b'"state":"cleared"'))
    assert index.read_bytes() != whole
    store = store_of(session("text", root, clock))
    assert sum(record.get("state") == "dropped" for record in store.records()) == 4
    assert any("index.json" in notice for notice in store.notices)


def test_a_changed_letter_in_the_path_that_a_shared_index_names_is_noticed(
    tmp_path: Path, clock: Clock
) -> None:
    """It names no other session's journal, so it is not taken for the index of another session."""
    with session("envelope", tmp_path, clock) as one:
        played(one, clock, range(1, TURNS_MADE + 1))
    index = tmp_path / "index.json"
    whole = index.read_bytes()
    index.write_bytes(whole.replace(b"/old/journal", b"/olf/journal", 1))
    assert index.read_bytes() != whole
    found = openings("envelope", tmp_path, 1)
    assert "index.json is damaged" in str(found)
