"""Retention over every store below a root, and removals that a crash cut off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.collector import RetentionLimits
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.retention import StoreCollection, collect_below, store_places
from tests.store.contents import DAY, Clock, names_below, result
from tests.store.contract import offloaded
from tests.store.test_crashes import Faults

AGO = 30 * DAY


@pytest.fixture(params=["folder", "url"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "folder" else f"file://{tmp_path}"


def filled(root: str, clock: Clock) -> dict[str, ContextFileSystem]:
    """Four sessions, each saved a day after the one before, with two texts of 900 bytes."""
    found = {}
    for number in range(4):
        name = f"deep/s{number}" if number == 3 else f"s{number}"
        store = ContextFileSystem(f"{root}/{name}", sync="never", clock=clock)
        store.save([result(f"call_{i}", f"{number}{i} " * 300) for i in range(2)])
        clock.now += DAY
        found[name] = store
    return found


def removed(done: list[StoreCollection], root: str) -> list[tuple[str, str]]:
    return [
        (one.root.removeprefix(f"{root}/"), entry.item_id or "")
        for one in done
        if one.report
        for entry, _ in one.report.removed
    ]


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        (
            RetentionLimits(max_age=2.5 * DAY),
            [("s0", "call_0"), ("s0", "call_1"), ("s1", "call_0")],
        ),
        (RetentionLimits(max_contents=5), [("s0", "call_0"), ("s0", "call_1"), ("s1", "call_0")]),
        (RetentionLimits(max_bytes=4_500), [("s0", "call_0"), ("s0", "call_1"), ("s1", "call_0")]),
        (RetentionLimits(), []),
    ],
)
def test_the_limits_hold_for_all_sessions_together(
    tmp_path: Path, root: str, clock: Clock, limits: RetentionLimits, gone: list[tuple[str, str]]
) -> None:
    stores = filled(root, clock)
    stores["s1"].save([result("call_1", "11 " * 300)])  # saved again: it is the newest
    before = names_below(tmp_path)
    told = [*collect_below(root, limits, clock=clock, compress="none", dry_run=True)]
    assert removed(told, root) == gone
    assert names_below(tmp_path) == before
    done = [*collect_below(root, limits, clock=clock, compress="none")]
    assert removed(done, root) == gone
    assert [(one.root, one.sessions) for one in done] == [
        (f"{root}/{name}", ("",)) for name in ("deep/s3", "s0", "s1", "s2")
    ]
    left = {
        f"{one}/{e.item_id}" for one in stores for e in ContextFileSystem(f"{root}/{one}").list()
    }
    assert len(left) == 8 - len(gone)
    assert not left & {f"{name}/{item}" for name, item in gone}


def test_a_session_that_wrote_lately_keeps_what_its_placeholders_name(
    tmp_path: Path, root: str
) -> None:
    now = 4e9
    for name in ("quiet", "busy", "ended"):
        store = ContextFileSystem(f"{root}/{name}", clock=lambda: now - AGO)
        offloaded(store, ("call_1", f"of {name} " * 300))
        if name == "ended":
            store.release("call_1")
        if name == "busy":  # it saves no more, and goes on
            store.remember([{"n": 1}])
    for path in tmp_path.rglob("*"):
        if path.is_file() and "journal.jsonl" in f"{path}":
            at = now - (DAY if "/busy/" in f"{path}" else AGO)
            os.utime(path, (at, at))

    def gone(idle: float | None) -> list[tuple[str, str]]:
        every = collect_below(
            root, RetentionLimits(max_age=0), idle=idle, clock=lambda: now, dry_run=True
        )
        return removed([*every], root)

    assert gone(None) == [("ended", "call_1")]
    assert gone(7 * DAY) == [("ended", "call_1"), ("quiet", "call_1")]
    assert len(gone(DAY / 2)) == 3


def test_a_text_that_is_in_flight_stays_however_long_its_session_was_idle(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "s1", sync="never", clock=lambda: 4e9 - AGO)
    [file] = store.save([result("call_1", "x" * 900)], recorded=True)
    [one] = collect_below(tmp_path, RetentionLimits(max_contents=0), idle=1, clock=lambda: 4e9)
    assert one.report is not None
    assert one.report.removed == ()
    store.remember([{"path": file.relative_path, "state": "offloaded"}])
    assert store.read(file.path) == "x" * 900


def test_after_an_error_in_one_store_the_others_are_collected(tmp_path: Path, clock: Clock) -> None:
    filled(str(tmp_path), clock)
    lock = tmp_path / "s0/.policyctx/lock"
    lock.unlink()
    lock.mkdir()
    done = [*collect_below(tmp_path, RetentionLimits(max_contents=0), clock=clock)]
    assert [bool(one.error) for one in done] == [False, True, False, False]
    assert names_below(tmp_path / "s1") == set()
    assert len(names_below(tmp_path / "s0")) == 2


def test_what_is_in_a_store_is_no_store(tmp_path: Path, root: str, clock: Clock) -> None:
    filled(root, clock)
    fake = tmp_path / "s1/tool_result/.policyctx"
    (tmp_path / "s2").rename(tmp_path / "moved")
    if root.startswith("/"):
        (tmp_path / "s3").symlink_to(tmp_path / "moved")
    fake.mkdir()
    state = tmp_path / "s1/.policyctx"
    for path in state.rglob("*"):
        target = fake / path.relative_to(state)
        target.parent.mkdir(exist_ok=True)
        if path.is_file():
            target.write_bytes(path.read_bytes())
    assert [place.removeprefix(f"{root}/") for place in store_places(root)] == [
        "deep/s3",
        "moved",
        "s0",
        "s1",
    ]
    assert store_places(f"{root}/s1") == [f"{root}/s1"]
    with pytest.raises(StoreError, match="holds no store, and nothing below it does"):
        next(collect_below(f"{root}/nothing", RetentionLimits()))


def test_a_removal_that_was_cut_off_is_finished_by_the_next_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(monkeypatch, ("open", "write", "fsync", "rename", "unlink"))
    refused = 0
    for passed in range(0, 40, 3):
        root = tmp_path / str(passed)
        form: Format = "envelope" if passed % 2 else "text"
        faults.left = 10**9
        store = ContextFileSystem(root, format=form, clock=lambda: 4e9 - AGO)
        store.save([result(f"call_{i}", f"{i} " * 700) for i in range(4)])
        [kept] = offloaded(store, ("kept", "kept"))
        for path in root.rglob("*.md"):
            os.utime(path, (1e9, 1e9))  # long ago by the clock of the disk too
        faults.left = passed
        try:
            ContextFileSystem(root, format=form, clock=lambda: 4e9).collect(max_age=1)
        except StoreError:
            refused += 1
        faults.left = 10**9
        for path in root.glob(".*.tmp"):  # of the index
            os.utime(path, (1e9, 1e9))
        mine = root / "tool_result/Bash/mine.md"
        mine.write_text("a text of somebody")
        [done] = collect_below(root, RetentionLimits(max_age=1), clock=lambda: 4e9)
        assert done.error == ""
        left = {name for name in names_below(root) if name != "index.json"}
        assert left == {kept.relative_path, "tool_result/Bash/mine.md"}, passed
        again = ContextFileSystem(root, format=form)
        assert [entry.item_id for entry in again.list()] == ["kept"]
        assert again.read(kept.path) == "kept"
        assert again.notices == ()
    assert 3 < refused < 14
