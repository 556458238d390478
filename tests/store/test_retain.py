from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import DAY, HOUR, Clock, ids, names_below, refer, result


def test_a_file_named_by_a_live_placeholder_is_never_removed(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    any_store.save(
        [result("live", "live" * 999), result("dropped", "d"), result("summarised", "s")]
    )
    refer(any_store, "live", "offloaded")
    for gone in ("dropped", "summarised"):
        refer(any_store, gone, "offloaded")
        refer(any_store, gone, gone)
    clock.now += 365 * DAY
    done = any_store.collect(max_age=DAY, max_bytes=0)
    assert [entry.item_id for entry, _ in done.removed] == ["dropped", "summarised"]
    assert done.packed == ()
    assert any_store.read("live") == "live" * 999
    with pytest.raises(StoreError):
        any_store.read("dropped")


def test_an_item_that_a_plan_offloads_anew_is_live_again(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    any_store.save([result("call_1", "one")])
    for state in ("offloaded", "dropped", "offloaded"):
        refer(any_store, "call_1", state)
    clock.now += 365 * DAY
    assert any_store.collect(max_age=DAY).removed == ()


def test_a_recently_saved_file_is_kept(any_store: ContextFileSystem, clock: Clock) -> None:
    any_store.save([result("call_1", "x" * 5_000)])
    clock.now += HOUR - 1
    done = any_store.collect(max_age=1, max_bytes=0)
    assert (done.removed, done.packed) == ((), ())


def test_a_clock_that_stepped_back_makes_nothing_old(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    any_store.save([result("call_1", "x" * 5_000)])
    clock.now -= 400 * DAY
    any_store.save([result("call_2", "y" * 5_000)])
    done = any_store.collect(max_age=1, max_bytes=0)
    assert (done.removed, done.packed) == ((), ())
    assert [entry.item_id for entry in any_store.list()] == ["call_1", "call_2"]


def test_the_oldest_files_are_removed_until_the_store_is_small_enough(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    for i in range(5):
        any_store.save([result(f"call_{i}", f"{i}" * 900)])
        clock.now += DAY
    size = any_store.collect(dry_run=True).size_before
    done = any_store.collect(max_bytes=size * 2 // 5)
    assert ids(tuple(entry for entry, _ in done.removed)) == ["call_0", "call_1", "call_2"]
    assert done.size_after <= size * 2 // 5
    assert ids(any_store.list()) == ["call_3", "call_4"]
    assert any_store.verify().is_clean


def test_a_dry_run_reports_the_same_and_changes_nothing(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    any_store.save([result("call_1", "x" * 5_000), result("call_2", "y")])
    clock.now += DAY
    before = {path: path.stat().st_mtime_ns for path in Path(any_store.root).rglob("*")}
    told = any_store.collect(max_age=HOUR, dry_run=True)
    assert {path: path.stat().st_mtime_ns for path in Path(any_store.root).rglob("*")} == before
    done = any_store.collect(max_age=HOUR)
    assert (told.removed, told.packed, told.size_before, told.size_after) == (
        done.removed,
        done.packed,
        done.size_before,
        done.size_after,
    )
    assert names_below(Path(any_store.root)) <= {"index.json"}


def test_an_unreferenced_file_is_packed_and_reads_the_same(
    any_store: ContextFileSystem, clock: Clock, form: Format
) -> None:
    text = "a line of text \ud800 读\r\n" * 5_000
    [file] = any_store.save([result("call_1", text)])
    clock.now += DAY
    done = any_store.collect()
    assert ids(done.packed) == ["call_1"]
    assert done.size_after < done.size_before / 10
    assert not Path(file.path).exists()
    again = ContextFileSystem(any_store.root, format=form)
    for key in (file.path, f"{file.path}.zst", "call_1"):
        assert again.read(key) == text
    assert [match.line for match in again.search("读")][-1] == 5_000
    assert again.verify().is_clean
    assert again.rebuild().gone == ()


def test_equal_contents_are_packed_into_one(tmp_path: Path, clock: Clock) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=clock)
    store.save([result("call_1", "same" * 999), result("call_2", "same" * 999)])
    clock.now += DAY
    store.collect()
    packed = list(tmp_path.rglob("*.zst"))
    assert len(packed) == 2
    assert len({path.stat().st_ino for path in packed}) == 1


def test_a_packed_file_is_unpacked_when_it_is_saved_again(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    [file] = any_store.save([result("call_1", "x" * 5_000)])
    clock.now += DAY
    any_store.collect()
    [again] = any_store.save([result("call_1", "x" * 5_000)])
    assert again == file
    assert Path(file.path).exists()
    refer(any_store, "call_1", "offloaded")
    clock.now += DAY
    assert any_store.collect(max_bytes=0).removed == ()
    assert any_store.read("call_1") == "x" * 5_000


def test_a_store_that_is_not_to_compress_does_not(tmp_path: Path, clock: Clock) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=clock, compress="none")
    store.save([result("call_1", "x" * 5_000), Content("archive.json", "y" * 5_000, packed=True)])
    clock.now += DAY
    assert store.collect().packed == ()
    assert names_below(tmp_path) == {"tool_result/Bash/call_1.md", "archive.json"}


def test_an_archive_is_packed_at_once(any_store: ContextFileSystem) -> None:
    [file] = any_store.save([Content("archive/1.json", "y" * 5_000, packed=True)])
    assert file.relative_path == "archive/1.json.zst"
    assert Path(file.path).stat().st_size < 500
    assert any_store.read(file.path) == any_store.read("archive/1.json") == "y" * 5_000
    assert any_store.verify().is_clean


def test_a_session_that_ended_keeps_nothing_alive(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    any_store.save([result("call_1", "one")])
    refer(any_store, "call_1", "offloaded")
    clock.now += DAY
    assert any_store.collect(max_age=HOUR).removed == ()
    assert len(any_store.collect(max_age=HOUR, ended=True).removed) == 1


def test_a_file_that_two_sessions_name_goes_when_neither_needs_it(
    tmp_path: Path, clock: Clock
) -> None:
    one = ContextFileSystem(tmp_path, session="one", sync="never", clock=clock)
    two = ContextFileSystem(tmp_path, session="two", sync="never", clock=clock)
    [first], [second] = (store.save([result("call_1", "same")]) for store in (one, two))
    assert first == second
    refer(one, "call_1", "dropped")
    refer(two, "call_1", "offloaded")
    clock.now += DAY
    assert one.collect(max_age=HOUR).removed == ()
    refer(two, "call_1", "dropped")
    assert len(one.collect(max_age=HOUR).removed) == 1
    assert (one.list(), two.list()) == ((), ())


def test_an_adopted_file_is_never_collected(any_store: ContextFileSystem, clock: Clock) -> None:
    [file] = any_store.save([result("call_1", "x" * 5_000)])
    mine = Path(file.path).with_stem("mine")
    mine.write_bytes(Path(file.path).read_bytes())
    any_store.rebuild()
    os.utime(mine, (0, 0))
    clock.now += 365 * DAY
    any_store.collect(max_age=1, max_bytes=0)
    assert mine.exists()
    assert not Path(file.path).exists()


def test_old_temporary_files_of_a_crash_are_removed(
    any_store: ContextFileSystem, clock: Clock
) -> None:
    [file] = any_store.save([result("call_1", "one")])
    left = Path(file.path).parent / f".{'0' * 16}.tmp"
    left.write_text("half", encoding="utf-8")
    os.utime(left, (clock.now, clock.now))
    any_store.collect()
    assert left.exists()
    clock.now += 2 * HOUR
    any_store.collect()
    assert not left.exists()


def test_a_long_past_is_forgotten_and_the_present_is_not(tmp_path: Path, clock: Clock) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=clock)
    store.save([result(f"call_{i}", str(i)) for i in range(500)])
    clock.now += DAY
    store.save([result("new", "new")])
    before = (tmp_path / ".policyctx/journal.jsonl").stat().st_size
    store.collect(max_age=HOUR)
    assert (tmp_path / ".policyctx/journal.jsonl").stat().st_size < before / 10
    other = ContextFileSystem(tmp_path)
    assert ids(other.list()) == ["new"]
    assert other.notices == ()


def test_the_name_of_a_file_packed_by_another_process_is_taken(
    tmp_path: Path, clock: Clock
) -> None:
    one, other = (ContextFileSystem(tmp_path, sync="never", clock=clock) for _ in range(2))
    one.list()
    other.save([result("call_1", "of the other " * 999)])
    clock.now += DAY
    other.collect()
    [file] = one.save([result("call_1", "of the one")])
    assert file.relative_path == "tool_result/Bash/call_1-1.md"
    assert one.read("tool_result/Bash/call_1.md") == "of the other " * 999
    assert one.read(file.path) == "of the one"
    assert one.verify().is_clean


def test_collecting_from_a_shared_session_leaves_the_others_snapshot_in_its_place(
    tmp_path: Path, clock: Clock
) -> None:
    alone = ContextFileSystem(tmp_path, sync="never", clock=clock, format="envelope")
    for i in range(300):
        alone.save([result(f"call_{i}", f"{i} " * 300)])
    clock.now += 2 * DAY
    shared = ContextFileSystem(tmp_path, session="s", sync="never", clock=clock, format="envelope")
    shared.save([result("mine", "mine")])
    shared.collect(max_age=DAY)
    assert not (tmp_path / ".policyctx/index.json").exists()
    again = ContextFileSystem(tmp_path, format="envelope")
    assert (again.list(), again.notices) == ((), ())


def test_collecting_makes_no_folder(tmp_path: Path) -> None:
    """Where a store was removed meanwhile, or never was, a folder would stand for nothing."""
    store = ContextFileSystem(tmp_path / "store", session="s")
    with suppress(StoreError):
        store.collect(max_age=0)
    assert not (tmp_path / "store").exists()
