"""What is in flight between a save and the record that names it stays, whatever a clock says."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.backend import Backend
from policyctx.store.collector import CollectionPlan, Collector, Terms
from policyctx.store.files import Format, Prepared
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.in_flight import OpenBatches
from policyctx.store.local import folder
from policyctx.store.local.backend import Batch, LocalBackend
from policyctx.store.save import PathAllocator
from policyctx.store.state import State
from tests.growing import grows_at_most
from tests.store.contents import DAY, HOUR, Clock, ids, names_below, refer, result

STATE = ".policyctx"


def date_by_clock(root: Path) -> None:
    """Date every file by the clock of the tests; a file without an entry has no other date."""
    now = Clock().now
    for path in root.rglob("*"):
        os.utime(path, (now, now))


def later(root: Path, form: Format = "text") -> ContextFileSystem:
    """The same store in a process whose clock is two hours ahead."""
    ahead = Clock()
    ahead.now += 2 * HOUR
    return ContextFileSystem(root, sync="never", clock=ahead, format=form)


def locks_in(root: Path) -> list[Path]:
    return [*(root / STATE).rglob("writing-*")]


def held_locks(root: Path) -> list[Path]:
    """The locks that some writer holds."""
    found = []
    for path in locks_in(root):
        descriptor = os.open(path, os.O_RDWR)
        if not folder.is_acquired(descriptor):
            found.append(path)
        os.close(descriptor)
    return found


@contextmanager
def probed_lock(root: Path) -> Iterator[None]:
    """Hold a writer's free lock, as `collect` does for a moment to see whether the writer lives."""
    [path] = locks_in(root)
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert folder.is_acquired(descriptor)
        yield
    finally:
        os.close(descriptor)


def journal_of(root: Path) -> list[dict[str, object]]:
    lines = (root / STATE / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_clock_that_is_ahead_removes_nothing_between_save_and_record(
    any_store: ContextFileSystem, form: Format
) -> None:
    [file] = any_store.save([result("call_1", "x" * 5_000)], recorded=True)
    assert len(held_locks(Path(any_store.root))) == 1
    done = later(Path(any_store.root), form).collect(max_age=1, max_bytes=0)
    assert (done.removed, done.packed) == ((), ())
    any_store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    assert later(Path(any_store.root), form).collect(max_age=1, max_bytes=0).removed == ()
    assert any_store.read(file.path) == "x" * 5_000
    assert held_locks(Path(any_store.root)) == []
    any_store.close()
    assert locks_in(Path(any_store.root)) == []


def test_a_file_that_is_used_again_is_in_flight_too(
    any_store: ContextFileSystem, clock: Clock, form: Format
) -> None:
    any_store.save([result("call_1", "one")])
    refer(any_store, "call_1", "dropped")
    [file] = any_store.save([result("call_1", "one")], recorded=True)
    assert later(Path(any_store.root), form).collect(max_age=1).removed == ()
    any_store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "dropped"}])
    clock.now += 2 * HOUR
    assert len(any_store.collect(max_age=1).removed) == 1


def test_a_file_that_got_another_name_than_expected_is_in_flight(
    any_store: ContextFileSystem, form: Format
) -> None:
    any_store.save([result("call_1", "one")])
    [file] = any_store.save([result("call_1", "another")], recorded=True)
    assert file.relative_path == "tool_result/Bash/call_1-1.md"
    done = later(Path(any_store.root), form).collect(max_age=1)
    assert [entry.path for entry, _ in done.removed] == ["tool_result/Bash/call_1.md"]
    any_store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    assert any_store.read(file.path) == "another"
    assert held_locks(Path(any_store.root)) == []


def test_the_batch_is_announced_before_its_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    take = PathAllocator.take

    def looked_at(names: PathAllocator, one: Prepared, *, exactly: bool) -> object:
        seen.append((journal_of(tmp_path)[-1].get("in_flight"), names_below(tmp_path)))
        return take(names, one, exactly=exactly)

    monkeypatch.setattr(PathAllocator, "take", looked_at)
    ContextFileSystem(tmp_path, sync="never").save([result("call_1", "one")], recorded=True)
    [(announced, files)] = seen
    assert isinstance(announced, dict)
    assert announced["paths"] == ["tool_result/Bash/call_1.md"]
    assert files == set()


def test_a_file_without_its_name_is_left_to_a_living_writer(
    any_store: ContextFileSystem, form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    any_store.save([result("call_0", "zero")])
    refer(any_store, "call_0", "offloaded")
    flush = Batch.flush

    def collected_before_naming(batch: Batch) -> None:
        ahead = ContextFileSystem(any_store.root, clock=lambda: 4e9, format=form, sync="never")
        ahead.collect(max_age=1)
        flush(batch)

    monkeypatch.setattr(Batch, "flush", collected_before_naming)
    [file] = any_store.save([result("call_1", "one")], recorded=True)
    assert any_store.read(file.path) == "one"
    # Without a record to follow nothing is announced: the disk's own clock keeps the file.
    [file] = any_store.save([result("call_2", "two")])
    assert any_store.read(file.path) == "two"


def test_a_writer_whose_lock_is_probed_waits_for_it(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    store.save([result("call_0", "zero")], recorded=True)
    refer(store, "call_0", "offloaded")
    with ThreadPoolExecutor(1) as thread:
        with probed_lock(tmp_path):
            saving = thread.submit(store.save, [result("call_1", "one")], recorded=True)
            wait([saving], timeout=0.2)
        [file] = saving.result()
    assert len(held_locks(tmp_path)) == 1
    assert later(tmp_path).collect(max_age=1).removed == ()
    assert store.read(file.path) == "one"


def test_a_lock_that_another_process_keeps_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder.wait_for, "__defaults__", (0.0,))
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    store.save([result("call_0", "zero")], recorded=True)
    refer(store, "call_0", "offloaded")
    with (
        probed_lock(tmp_path),
        pytest.raises(StoreError, match=r"writing-\w+ has been held .* 0 s"),
    ):
        store.save([result("call_1", "one")], recorded=True)
    [file] = store.save([result("call_1", "one")], recorded=True)
    assert store.read(file.path) == "one"


def test_a_new_file_that_is_collected_with_an_older_one_of_its_name_is_saved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    assert store.list() == ()
    other = later(tmp_path)
    other.save([result("call_1", "y" * 5_000)])
    refer(other, "call_1", "dropped")
    ahead = Clock()
    ahead.now += 4 * HOUR
    other = ContextFileSystem(tmp_path, sync="never", clock=ahead)
    assert len(other.collect().packed) == 1  # so the name is free on the disk
    flush_folders = Batch.flush_folders
    removed: list[object] = []

    def collected_after_naming(batch: Batch) -> None:
        if not removed:
            removed.append(None)
            removed[:] = other.collect(max_age=1).removed
        flush_folders(batch)

    monkeypatch.setattr(Batch, "flush_folders", collected_after_naming)
    [file] = store.save([result("call_1", "one")])
    assert len(removed) == 1
    assert store.read(file.path) == "one"
    assert store.verify().is_clean


DEAD = """
import os, signal, sys
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import Clock, result
store = ContextFileSystem(sys.argv[1], sync="never", clock=Clock())
store.save([result("call_1", "one")], recorded=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["killed", "ended"])
def test_in_flight_files_of_a_dead_writer_are_collected(tmp_path: Path, end: str) -> None:
    subprocess.run([sys.executable, "-c", DEAD, str(tmp_path), end], check=False)
    assert len(locks_in(tmp_path)) == 1
    date_by_clock(tmp_path)
    store = later(tmp_path)
    assert store.read("call_1") == "one"
    dry = store.collect(max_age=1, dry_run=True)
    assert ids(tuple(entry for entry, _ in dry.removed)) == ["call_1"]
    assert ids(tuple(entry for entry, _ in store.collect(max_age=1).removed)) == ["call_1"]
    assert locks_in(tmp_path) == []
    assert names_below(tmp_path) == set()
    last = [line["in_flight"] for line in journal_of(tmp_path) if "in_flight" in line][-1]
    assert isinstance(last, dict)
    assert last["paths"] == []


@pytest.mark.slow
def test_a_collection_beside_a_dry_run_leaves_no_entry_without_its_file(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", DEAD, str(tmp_path), "killed"], check=False)
    date_by_clock(tmp_path)
    store = later(tmp_path)
    assert ids(tuple(one for one, _ in store.collect(max_age=1, dry_run=True).removed)) == [
        "call_1"
    ]
    assert len(later(tmp_path).collect(max_age=1).removed) == 1
    store.save([result("call_2", "two")])
    store.close()
    assert ids(later(tmp_path).list()) == ["call_2"]
    assert later(tmp_path).verify().is_clean


@pytest.mark.slow
def test_a_collection_that_begins_beside_another_leaves_no_entry_without_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", DEAD, str(tmp_path), "killed"], check=False)
    date_by_clock(tmp_path)
    remove = Collector._remove
    faster: list[None] = []

    def remove_after_another(self: Collector, terms: Terms) -> CollectionPlan:
        if not faster:
            faster.append(None)
            assert len(later(tmp_path).collect(max_age=1).removed) == 1
        return remove(self, terms)

    monkeypatch.setattr(Collector, "_remove", remove_after_another)
    store = later(tmp_path)
    assert store.collect(max_age=1).removed == ()
    store.close()
    assert faster
    assert later(tmp_path).list() == ()
    assert later(tmp_path).verify().is_clean


@pytest.mark.slow
def test_files_of_a_writer_that_dies_during_a_collection_are_known_to_the_next(
    tmp_path: Path,
) -> None:
    def die(_done: int, _total: int) -> None:
        subprocess.run([sys.executable, "-c", DEAD, str(tmp_path), "killed"], check=False)
        date_by_clock(tmp_path)

    store = later(tmp_path)
    store.save([result("call_0", "zero")])
    store.collect(max_age=DAY, progress=die)
    assert later(tmp_path).read("call_1") == "one"
    assert ids(tuple(entry for entry, _ in later(tmp_path).collect(max_age=1).removed)) == [
        "call_1"
    ]


def test_an_entry_is_in_the_journal_before_closing_ends_its_protection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    store.save([result("call_1", "one")], recorded=True)
    close_all = OpenBatches.close_all

    def close_and_collect(self: OpenBatches, backend: Backend) -> None:
        close_all(self, backend)
        date_by_clock(tmp_path)
        assert len(later(tmp_path).collect(max_age=1).removed) == 1

    monkeypatch.setattr(OpenBatches, "close_all", close_and_collect)
    store.close()
    assert later(tmp_path).list() == ()
    assert later(tmp_path).verify().is_clean


def test_a_file_that_was_removed_after_a_failed_close_has_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    store.save([result("call_1", "one"), result("call_2", "two")], recorded=True)
    with monkeypatch.context() as full:
        full.setattr(State, "complete_snapshot", fail)
        with pytest.raises(StoreError, match="No space left"):
            store.close()
    date_by_clock(tmp_path)
    assert len(later(tmp_path).collect(max_age=1, max_bytes=3).removed) == 2
    store.save([result("call_2", "two")])
    store.close()
    assert ids(later(tmp_path).list()) == ["call_2"]
    assert later(tmp_path).verify().is_clean


def test_a_file_in_flight_is_known_after_another_process_wrote_the_journal_anew(
    tmp_path: Path,
) -> None:
    store, other = (ContextFileSystem(tmp_path, sync="never", clock=Clock()) for _ in range(2))
    other.save([result(f"old_{i}", str(i)) for i in range(500)])
    store.save([result("call_1", "one")], recorded=True)
    assert len(later(tmp_path).collect(max_age=1).removed) == 500
    assert ids(store.list()) == ["call_1"]
    refer(store, "call_1", "offloaded")
    assert later(tmp_path).read("call_1") == "one"
    assert later(tmp_path).verify().is_clean


def test_the_index_and_the_records_of_a_turn_are_one_append(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    [file] = store.save([result("call_1", "one")], recorded=True)
    before = journal_of(tmp_path)
    assert not any("saved" in line for line in before)
    assert [entry.path for entry in store.list()] == [file.relative_path]
    refer(store, "call_1", "offloaded")
    added = journal_of(tmp_path)[len(before) :]
    assert [next(iter(line)) for line in added] == ["in_flight", "saved", "record"]


def test_an_entry_without_a_record_is_written_when_the_store_closes(tmp_path: Path) -> None:
    with ContextFileSystem(tmp_path, sync="never", clock=Clock()) as store:
        store.save([result("call_1", "one")], recorded=True)
    other = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    assert [entry.item_id for entry in other.list()] == ["call_1"]


def test_a_save_after_a_crash_before_the_records_uses_the_file_again(tmp_path: Path) -> None:
    lost = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    [before] = lost.save([result("call_1", "one")], recorded=True)
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    [saved] = store.saved([result("call_1", "one")], recorded=True)
    assert (saved.file, saved.reused) == (before, True)
    refer(store, "call_1", "offloaded")
    assert store.verify().is_clean


@pytest.mark.slow
def test_writers_that_do_not_close_leave_one_lock_file_between_them(tmp_path: Path) -> None:
    for _ in range(3):
        subprocess.run([sys.executable, "-c", DEAD, str(tmp_path), "ended"], check=False)
    assert len(locks_in(tmp_path)) == 1


def test_a_failed_save_leaves_nothing_in_flight(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", on_conflict="error")
    store.save([result("call_1", "one")])
    with pytest.raises(StoreError, match="holds another item"):
        store.save([result("call_1", "two")], recorded=True)
    assert held_locks(tmp_path) == []


def test_a_rebuilt_journal_keeps_in_flight_files(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    [file] = store.save([result("call_1", "one")], recorded=True)
    later(tmp_path).rebuild()
    assert later(tmp_path).collect(max_age=1).removed == ()
    store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    assert store.read(file.path) == "one"


def test_a_batch_that_is_never_recorded_costs_no_more_than_its_lock(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    for _ in range(40):
        [file] = store.save([result("call_1", "one")], recorded=True)
    assert len(locks_in(tmp_path)) == 1
    store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    store.close()
    assert locks_in(tmp_path) == []


def test_two_writers_that_expect_one_name_protect_a_file_each(tmp_path: Path) -> None:
    one, two = (ContextFileSystem(tmp_path, sync="never", clock=Clock()) for _ in range(2))
    [first] = one.save([result("call_1", "of one")], recorded=True)
    [second] = two.save([result("call_1", "of two")], recorded=True)
    assert later(tmp_path).collect(max_age=1).removed == ()
    two.remember([{"item_id": "call_1", "path": second.relative_path, "state": "dropped"}])
    done = later(tmp_path).collect(max_age=1)
    assert [entry.path for entry, _ in done.removed] == [second.relative_path]
    one.remember([{"item_id": "call_1", "path": first.relative_path, "state": "offloaded"}])
    assert one.read(first.path) == "of one"
    assert held_locks(tmp_path) == []


def test_a_file_that_two_writers_use_stays_until_both_have_recorded_it(tmp_path: Path) -> None:
    one, two = (ContextFileSystem(tmp_path, sync="never", clock=Clock()) for _ in range(2))
    [file] = one.save([result("call_1", "the same")], recorded=True)
    two.save([result("call_1", "the same")], recorded=True)
    one.remember([{"item_id": "call_1", "path": file.relative_path, "state": "dropped"}])
    assert later(tmp_path).collect(max_age=1).removed == ()
    two.remember([{"item_id": "call_1", "path": file.relative_path, "state": "dropped"}])
    assert len(later(tmp_path).collect(max_age=1).removed) == 1


def test_announcing_a_batch_adds_no_disk_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ContextFileSystem(tmp_path)
    store.save([result("call_0", "zero")])
    flushed: list[None] = []
    flush = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(flush(descriptor)))
    [file] = store.save([result("call_1", "one")], recorded=True)
    assert len(flushed) == 2  # the file and its folder
    store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    assert len(flushed) == 3  # the journal


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_writer_is_not_its_parent(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    store.save([result("call_0", "zero")], recorded=True)
    pid = os.fork()
    if pid == 0:
        store.save([result("call_1", "one")], recorded=True)
        os._exit(0)
    os.waitpid(pid, 0)
    date_by_clock(tmp_path)
    done = later(tmp_path).collect(max_age=1)
    assert ids(tuple(entry for entry, _ in done.removed)) == ["call_1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_releases_nor_keeps_the_lock_of_its_parent(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=Clock())
    [file] = store.save([result("call_0", "zero")], recorded=True)
    asked, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        store.close()  # of the child's own batches, of which there are none
        os.write(told, b".")
        signal.pause()
    try:
        os.read(asked, 1)
        assert len(held_locks(tmp_path)) == 1
        refer(store, "call_0", "offloaded")
        assert held_locks(tmp_path) == []
        assert store.read(file.path) == "zero"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(asked)
        os.close(told)


def test_the_records_of_a_large_batch_settle_it_in_linear_time(tmp_path: Path) -> None:
    def settling(files: int) -> Callable[[], object]:
        paths = [f"tool_result/{i}.md" for i in range(files)]
        batches = OpenBatches(STATE)
        batch = batches.open(backend, paths)

        def work() -> None:
            assert batches.named_by([{"path": path} for path in paths[1:]]) == {batch: {paths[0]}}
            batches.abandon()

        return work

    with LocalBackend(tmp_path, making=True) as backend:
        assert grows_at_most(settling, 2_000)
