"""A restarted session reads its records without its index; damage is repaired as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyctx.store.filesystem import Content, ContextFileSystem
from policyctx.store.local.backend import LocalBackend
from policyctx.store.snapshot import recalled_records

FOLDER = ".policyctx/s"
JOURNAL, SNAPSHOT = f"{FOLDER}/journal.jsonl", f"{FOLDER}/index.json"


def store(root: Path) -> ContextFileSystem:
    return ContextFileSystem(root, session="s", sync="never")


def filled(root: Path, turns: int, *, text: str = "saved") -> list[dict[str, Any]]:
    one = store(root)
    for i in range(turns):
        one.save([Content(f"a/{i}.md", f"{text} {i}")], recorded=True)
        one.remember([{"record": "decision", "path": f"a/{i}.md", "state": "offloaded", "n": i}])
    return store(root).records()


def recalled(root: Path) -> list[dict[str, Any]] | None:
    with LocalBackend(root) as backend:
        return recalled_records(backend, FOLDER, SNAPSHOT)


@pytest.mark.parametrize("turns", [1, 60])
def test_the_records_are_those_of_the_whole_journal(tmp_path: Path, turns: int) -> None:
    expected = filled(tmp_path, turns)
    again = store(tmp_path)
    again.list()  # reads the whole journal
    assert recalled(tmp_path) == expected == again.records()
    assert [record["n"] for record in expected] == [*range(turns)]
    store(tmp_path).close()  # a snapshot of the whole journal
    assert recalled(tmp_path) == expected


def test_a_snapshot_is_used_and_so_the_journal_is_read_from_its_end(tmp_path: Path) -> None:
    expected = filled(tmp_path, 60)
    assert (tmp_path / SNAPSHOT).stat().st_size > 1_000
    (tmp_path / SNAPSHOT).unlink()
    assert recalled(tmp_path) == expected


def test_records_of_another_process_are_seen_by_the_next_call(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    one = store(tmp_path)
    assert len(one.records()) == 3
    store(tmp_path).remember([{"record": "call", "at": 1.0}])
    assert len(one.records()) == 4


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (JOURNAL, b'"n":8,', b'"n":9,'),
        (JOURNAL, b"offloaded", b"offloadeX"),
        (SNAPSHOT, b"offloaded", b"offloadeX"),
        (JOURNAL, b'{"journal":', b'{"journaX":'),
    ],
)
def test_what_is_damaged_is_not_recalled_but_repaired(
    tmp_path: Path, path: str, old: bytes, new: bytes
) -> None:
    filled(tmp_path, 60)
    file = tmp_path / path
    raw = file.read_bytes()
    assert old in raw
    file.write_bytes(raw.replace(old, new, 1))
    assert recalled(tmp_path) is None
    one = store(tmp_path)
    assert len(one.records()) >= 59
    assert one.notices


def test_no_changed_byte_hides_a_record(tmp_path: Path) -> None:
    expected = filled(tmp_path, 3)
    file = tmp_path / JOURNAL
    raw = file.read_bytes()
    kept = 0
    for at in range(len(raw)):
        for new in {b"\n", b" ", bytes([raw[at] ^ 1]), b""}:
            file.write_bytes(raw[:at] + new + raw[at + 1 :])
            found = recalled(tmp_path)
            assert found is None or found == expected, (at, new)
            kept += found is not None
    assert kept < 2 * len(raw)  # where nothing of a record is damaged


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_lost_repeated_or_exchanged_line_hides_a_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("store", numbered=True)
    expected = filled(root, 4)
    file = root / JOURNAL
    lines = file.read_bytes().splitlines(keepends=True)
    chosen = data.draw(st.lists(st.sampled_from(lines), max_size=len(lines) + 2))
    order = [lines[0], *chosen] if data.draw(st.booleans()) else sorted(chosen, key=lines.index)
    file.write_bytes(b"".join(order))
    found = recalled(root)
    whole = [line for line in order if line.startswith(b'{"record":')]
    assert found is None or found == expected[: len(whole)]


def test_an_incomplete_last_line_is_not_recalled(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"record":{"rec')
    assert recalled(tmp_path) is None
    assert len(store(tmp_path).records()) == 3


def test_a_text_that_is_no_unicode_is_recalled(tmp_path: Path) -> None:
    one = store(tmp_path)
    one.remember([{"record": "note", "text": "\ud800"}])
    assert store(tmp_path).records() == [{"record": "note", "text": "\ud800"}]
    assert recalled(tmp_path) in (None, [{"record": "note", "text": "\ud800"}])


def test_a_store_that_has_no_journal_has_no_records(tmp_path: Path) -> None:
    assert store(tmp_path).records() == []
