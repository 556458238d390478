"""What only a store at a URL does; its objects are in a folder here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from policyctx.definitions.names import url_problem
from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.remote import backend as log
from policyctx.store.remote.backend import PACK_SEGMENTS
from tests.store.contents import DAY, Clock, names_below
from tests.store.contract import offloaded

JOURNAL = ".policyctx/journal.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def url(folder: Path) -> str:
    return f"file://{folder}"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("s3://bucket", ""),
        ("gs://bucket/a/b", ""),
        ("file:///a", ""),
        ("ftp://host/a", "one of s3://, gs://, az://, file://"),
        ("s3://id:secret@bucket/a", "must not contain credentials"),
        ("s3://bucket/a?region=x", "no query"),
        ("s3://bucket/a//b", "no empty"),
        ("s3:///a", "expected s3://BUCKET/PREFIX"),
        ("file://host/a", "an absolute path"),
    ],
)
def test_a_url_is_checked(url: str, problem: str) -> None:
    found = url_problem(url)
    assert problem in found
    assert bool(problem) == bool(found)


def test_an_error_does_not_show_a_secret() -> None:
    with pytest.raises(StoreError) as raised:
        ContextFileSystem("s3://id:secret@bucket/a")
    assert "secret" not in f"{raised.value} {raised.value.path}"


def test_a_url_that_was_made_a_path_is_no_folder() -> None:
    with pytest.raises(StoreError, match="a URL is given as a text"):
        ContextFileSystem(Path("s3://bucket/a"))


def test_objects_cannot_be_overwritten(url: str) -> None:
    with pytest.raises(StoreError, match="on_conflict: overwrite"):
        ContextFileSystem(url, on_conflict="overwrite")


def test_the_writer_that_came_later_ends_the_earlier_one(url: str) -> None:
    first = ContextFileSystem(url)
    offloaded(first, ("call_1", "one"))
    second = ContextFileSystem(url)
    assert len(second.records()) == 1
    offloaded(second, ("call_2", "two"))
    for _ in range(2):
        with pytest.raises(StoreError, match="another process writes this session"):
            offloaded(first, ("call_3", "three"))
    first.close()
    offloaded(second, ("call_4", "four"))
    assert [entry.item_id for entry in ContextFileSystem(url).list()] == [
        "call_1",
        "call_2",
        "call_4",
    ]
    assert first.read("call_4") == "four"


def test_a_journal_that_was_read_on_is_noticed_by_the_next_write(url: str) -> None:
    first = ContextFileSystem(url)
    offloaded(first, ("call_1", "one"))
    second = ContextFileSystem(url)
    second.records()
    offloaded(second, ("call_2", "two"))
    assert first._state is not None
    with first._backend("read") as backend:
        assert len(first._state.lines(backend)) > 0
    with pytest.raises(StoreError, match="another process writes this session"):
        offloaded(first, ("call_3", "three"))
    assert ContextFileSystem(url).notices == ()


def test_of_writers_that_begin_together_one_goes_on(url: str) -> None:
    stores = [ContextFileSystem(url) for _ in range(10)]
    for store in stores:
        assert store.records() == []
    refused = 0
    for number, store in enumerate(stores):
        try:
            offloaded(store, (f"call_{number}", f"text {number}"))
        except StoreError:
            refused += 1
    assert refused == 9
    assert [entry.item_id for entry in ContextFileSystem(url).list()] == ["call_0"]


def test_a_content_that_another_process_collects_is_not_named(url: str) -> None:
    clock = Clock()
    store = ContextFileSystem(url, clock=clock)
    offloaded(store, ("old", "the same"), ("kept", "kept"))
    store.release("old")
    clock.now += DAY
    upkeep = ContextFileSystem(url, clock=clock)
    upkeep.list()
    [file] = store.save([Content("new.md", "the same")], recorded=True)
    assert file.relative_path.endswith("old.md")
    assert len(upkeep.collect(max_age=60).removed) == 1
    with pytest.raises(StoreError, match="was removed by another process"):
        store.remember([{"path": file.relative_path, "state": "offloaded"}])
    [file] = store.save([Content("new.md", "the same")], recorded=True)
    store.remember([{"path": file.relative_path, "state": "offloaded"}])
    assert file.relative_path == "new.md"
    assert ContextFileSystem(url).read("new.md") == "the same"


def test_a_name_that_is_taken_by_something_unknown_gets_a_part_of_the_hash(
    folder: Path, url: str
) -> None:
    left = folder / "tool_result/Bash"
    left.mkdir(parents=True)
    for number in (1, 2):
        (left / f"call_{number}.md").write_text("of a crash")
    store = ContextFileSystem(url)
    one, two, three = offloaded(store, ("call_1", "one"), ("call_2", "two"), ("call_3", "three"))
    assert one.relative_path.startswith("tool_result/Bash/call_1-")
    assert three.relative_path == "tool_result/Bash/call_3.md"
    found = ContextFileSystem(url)
    assert [found.read(file.path) for file in (one, two, three)] == ["one", "two", "three"]
    assert found.read("tool_result/Bash/call_1.md") == "of a crash"
    [again] = offloaded(found, ("call_1", "one"))
    assert again == one


def test_a_prefix_of_several_sessions_is_collected_when_they_have_ended(url: str) -> None:
    clock = Clock()
    for session in "ab":
        offloaded(ContextFileSystem(url, session=session, clock=clock), ("call_1", session))
    clock.now += DAY
    upkeep = ContextFileSystem(url, session="a", clock=clock)
    with pytest.raises(StoreError, match="several sessions share this prefix"):
        upkeep.collect(max_age=60)
    assert len(upkeep.collect(max_age=60, ended=True).removed) == 2


def written(url: str, writes: int) -> ContextFileSystem:
    store = ContextFileSystem(url)
    for number in range(writes):
        store.remember([{"n": number}])
    return store


def test_a_long_journal_is_read_from_packs(folder: Path, url: str) -> None:
    writes = 2 * PACK_SEGMENTS + 5
    written(url, writes)
    for number in range(PACK_SEGMENTS):
        (folder / JOURNAL / f"{number:010}").unlink()
    again = ContextFileSystem(url)
    assert again.records() == [{"n": number} for number in range(writes)]
    assert again.notices == ()
    again.remember([{"n": writes}])
    assert len(ContextFileSystem(url).records()) == writes + 1


def test_a_damaged_pack_is_read_from_its_segments(folder: Path, url: str) -> None:
    writes = 2 * PACK_SEGMENTS + 5
    written(url, writes)
    (folder / JOURNAL / "packs" / f"{0:010}").write_bytes(b"1,2\nx")
    again = ContextFileSystem(url)
    assert again.records() == [{"n": number} for number in range(writes)]
    assert again.notices == ()


def test_large_packs_keep_the_requests_that_open_a_long_journal_few(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PACK_SIZES", (4, 16))
    writes = 2 * 16 + 3 * 4 + 2
    written(url, writes)
    packs = {path.name: path for path in (folder / JOURNAL / "packs").iterdir()}
    assert set(packs) == {f"{4 * i:010}" for i in range(11)} | {f"{0:010}-16", f"{16:010}-16"}
    for number in range(2 * 16 + 3 * 4):
        (folder / JOURNAL / f"{number:010}").unlink()
    for name, path in packs.items():
        if int(name[:10]) < 32 and "-" not in name:
            path.unlink()
    again = ContextFileSystem(url)
    assert again.records() == [{"n": number} for number in range(writes)]
    again.remember([{"n": writes}])
    assert f"{0:010}" not in {path.name for path in (folder / JOURNAL / "packs").iterdir()}


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_without_a_large_pack_its_smaller_ones_are_read(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setattr(log, "PACK_SIZES", (4, 16))
    writes = 3 * 16 + 6
    written(url, writes)
    large = folder / JOURNAL / "packs" / f"{16:010}-16"
    if harm == "missing":
        large.unlink()
    else:
        large.write_bytes(large.read_bytes()[:-1])
    for number in range(3 * 16):
        (folder / JOURNAL / f"{number:010}").unlink()
    again = ContextFileSystem(url)
    assert again.records() == [{"n": number} for number in range(writes)]
    assert again.notices == ()
    again.remember([{"n": writes}])
    assert large.exists()


def test_a_lost_segment_is_noticed_and_nothing_is_added(folder: Path, url: str) -> None:
    store = ContextFileSystem(url)
    for number in range(5):
        offloaded(store, (f"call_{number}", f"text {number}"))
    (folder / JOURNAL / f"{2:010}").unlink()
    again = ContextFileSystem(url)
    assert [again.read(f"call_{number}") for number in range(5)] == [
        f"text {number}" for number in range(5)
    ]
    [notice] = again.notices
    assert "missing" in notice
    with pytest.raises(StoreError, match="the journal is damaged"):
        offloaded(again, ("call_5", "five"))
    (folder / "tool_result/Bash/call_0.md").unlink()
    rebuilt = ContextFileSystem(url).rebuild()
    assert rebuilt.entries == 4
    assert [entry.item_id for entry in rebuilt.gone] == ["call_0"]
    whole = ContextFileSystem(url)
    offloaded(whole, ("call_5", "five"))
    found = ContextFileSystem(url)
    assert {entry.item_id for entry in found.list()} == {f"call_{n}" for n in range(1, 6)}
    assert found.verify().is_clean
    assert found.notices == whole.notices == ()
    assert len(found.records()) == 5  # the one that was lost is lost


def test_a_rebuilt_journal_is_read_from_packs_and_ends_an_earlier_writer(
    folder: Path, url: str
) -> None:
    store = written(url, PACK_SEGMENTS - 2)
    offloaded(store, ("call_1", "one"))
    (folder / "tool_result/Bash/mine.md").write_text("mine")
    rebuilt = ContextFileSystem(url).rebuild()
    assert [entry.path for entry in rebuilt.found] == ["tool_result/Bash/mine.md"]
    with pytest.raises(StoreError, match="another process writes this session"):
        offloaded(store, ("call_2", "two"))
    again = ContextFileSystem(url)
    for number in range(PACK_SEGMENTS):
        again.remember([{"late": number}])
    assert len([*(folder / JOURNAL / "packs").iterdir()]) == 1
    found = ContextFileSystem(url)
    assert len(found.records()) == 2 * PACK_SEGMENTS - 1
    assert [entry.item_id for entry in found.list()] == ["call_1", "mine"]
    assert found.notices == ()
    with pytest.raises(StoreError, match="holds no store"):
        ContextFileSystem(f"{url}-none").rebuild()


def test_a_save_and_its_records_are_one_segment(folder: Path, url: str) -> None:
    store = ContextFileSystem(url)
    for number in range(3):
        offloaded(store, (f"call_{number}", "x" * 99), (f"other_{number}", "y" * 99))
    assert names_below(folder) == {"tool_result/Bash/call_0.md", "tool_result/Bash/other_0.md"}
    assert sorted(path.name for path in (folder / JOURNAL).iterdir()) == [
        f"{number:010}" for number in range(3)
    ]


FORKED = """
import os, sys
from policyctx.store.filesystem import ContextFileSystem
store = ContextFileSystem(sys.argv[1])
store.remember([{"n": 1}])
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
try:
    store.records()
except Exception as error:
    os._exit(7 if "forked" in str(error) else 1)
os._exit(2)
"""


def test_a_forked_child_gets_an_error_in_place_of_a_standstill(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, url], env=os.environ, check=False, timeout=60
    )
    assert done.returncode == 7
