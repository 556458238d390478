"""`index.json` is fresh after each turn, and lists every item once a store is closed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from policyctx import Session
from policyctx.errors import StoreError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from policyctx.testing.faults import refusing_writes
from tests.conversations import session_of
from tests.policies import policy
from tests.store.bucket import BUCKET, serving
from tests.store.contents import result


def index_of(root: Path) -> dict[str, Any]:
    """Return what the one index below a root says."""
    [path] = root.rglob("index.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def ids_in(root: Path) -> list[str]:
    return [item["item_id"] for item in index_of(root)["items"]]


def mtimes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


def test_a_closed_store_lists_every_item(any_store: ContextFileSystem) -> None:
    for i in range(19):
        any_store.save([result(f"call_{i}", str(i))])
        assert ids_in(Path(any_store.root)) == [f"call_{n}" for n in range(i + 1)]
    any_store.close()
    assert ids_in(Path(any_store.root)) == [f"call_{i}" for i in range(19)]
    any_store.save([result("call_19", "19")])
    any_store.remember([{"item_id": "call_19"}])
    any_store.close()
    assert ids_in(Path(any_store.root))[-1] == "call_19"
    assert index_of(Path(any_store.root))["records"] == [{"item_id": "call_19"}]


def test_an_index_names_its_journal_and_the_byte_up_to_which_it_covers_it(
    any_store: ContextFileSystem,
) -> None:
    for i in range(5):
        any_store.save([result(f"call_{i}", str(i))])
        covered = index_of(Path(any_store.root))["journal"]
        content = (any_store.root / covered["path"]).read_bytes()
        lines = content[covered.get("listed", covered)["bytes"] :].splitlines()
        left = [json.loads(line)["saved"]["item_id"] for line in lines if b'"saved"' in line]
        assert [*ids_in(Path(any_store.root)), *left] == [f"call_{n}" for n in range(i + 1)]
    any_store.close()
    covered = index_of(Path(any_store.root))["journal"]
    assert covered["bytes"] == (any_store.root / covered["path"]).stat().st_size


@pytest.mark.parametrize("ends", ["closed", "left"])
def test_a_turn_does_not_write_the_records_of_all_earlier_turns_into_the_index(
    tmp_path: Path, ends: str
) -> None:
    store, records = ContextFileSystem(tmp_path, sync="never"), []
    for i in range(20):
        [file] = store.save([result(f"call_{i}", str(i))], recorded=True)
        records.append({"item_id": f"call_{i}", "path": file.relative_path, "state": "offloaded"})
        store.remember(records[-1:])
        assert ids_in(tmp_path) == [f"call_{n}" for n in range(i + 1)]
        assert len(index_of(tmp_path)["records"]) == 1
    if ends == "closed":
        store.close()
        assert index_of(tmp_path)["records"] == records
    again = ContextFileSystem(tmp_path)
    assert (again.records(), again.notices) == (records, ())
    assert [entry.item_id for entry in again.list()] == ids_in(tmp_path)
    assert again.records() == records


def test_the_index_of_an_open_store_has_most_decisions_of_a_long_session(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    for i in range(100):
        [file] = store.save([result(f"call_{i}", str(i))], recorded=True)
        store.remember([{"item_id": f"call_{i}", "path": file.relative_path, "state": "offloaded"}])
    assert len(index_of(tmp_path)["records"]) > 20


@pytest.mark.parametrize("opening", ["records", "list", "session"])
def test_an_index_that_a_kill_left_behind_is_complete_after_the_next_opening(
    tmp_path: Path, opening: str
) -> None:
    with Session(retiring(), root=tmp_path, session_id="s") as session:
        for turn in range(2, 6):
            session.apply(session_of(*texts(turn)))
            if turn == 3:
                [path] = tmp_path.rglob("index.json")
                behind = path.read_bytes()
    path.write_bytes(behind)  # as a kill between the journal and the index leaves it
    assert len(ids_in(tmp_path)) == 2
    if opening == "session":
        Session(retiring(), root=tmp_path, session_id="s").apply(session_of(*texts(5)))
    else:
        again = ContextFileSystem(tmp_path, session="s")
        again.records() if opening == "records" else again.list()
    assert ids_in(tmp_path) == [f"c{i}" for i in range(4)]


def test_an_opening_that_may_not_write_reads_all_the_same(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("call_1", "one"), result("call_2", "two")])
    (tmp_path / ".policyctx/index.json").unlink()
    with refusing_writes(tmp_path, errno.EROFS):
        again = ContextFileSystem(tmp_path)
        assert (again.read("call_2"), again.notices) == ("two", ())
    assert not list(tmp_path.rglob("index.json"))


@pytest.mark.parametrize("root", ["own", "option", "argument", "argument with the field"])
def test_the_index_of_a_session_is_fresh_after_each_turn_and_at_its_root(
    tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    roots: dict[str, dict[str, Any]] = {
        "own": {},
        "option": {"options": {"offload_root_path": tmp_path / "kept"}},
        "argument": {"root": tmp_path / "kept"},
        "argument with the field": {"root": f"{tmp_path}/kept/{{session_id}}"},
    }
    folder = {
        "own": tmp_path / ".agent/context/s",
        "argument with the field": tmp_path / "kept/s",
    }.get(root, tmp_path / "kept")
    tools = {"Bash": {"keep_recent": 1}}
    session = Session("context-filesystem", session_id="s", hints=tools, **roots[root])
    for turn in range(2, 14):
        session.apply(session_of(*texts(turn)))
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        assert [item["item_id"] for item in index["items"]] == [f"c{i}" for i in range(turn - 1)]


def test_two_processes_with_one_session_keep_its_index_fresh(tmp_path: Path) -> None:
    one, two = (ContextFileSystem(tmp_path, sync="never") for _ in range(2))
    for i in range(6):
        (one, two)[i % 2].save([result(f"call_{i}", str(i))])
        assert ids_in(tmp_path) == [f"call_{n}" for n in range(i + 1)]


def test_a_content_that_was_collected_leaves_the_index_at_once(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", clock=lambda: 1e9)
    store.save([result(f"call_{i}", str(i)) for i in range(3)])
    later = ContextFileSystem(tmp_path, sync="never", clock=lambda: 2e9)
    later.collect(max_contents=1, ended=True)
    assert ids_in(tmp_path) == ["call_2"]


def test_closing_again_writes_nothing(any_store: ContextFileSystem, form: Format) -> None:
    any_store.save([result("call_1", "one"), result("call_2", "two")])
    any_store.close()
    before = mtimes(Path(any_store.root))
    any_store.close()
    with ContextFileSystem(any_store.root, format=form) as again:
        assert again.read("call_2") == "two"
    assert mtimes(Path(any_store.root)) == before


def test_an_index_that_was_removed_is_there_again_after_closing(
    any_store: ContextFileSystem,
) -> None:
    any_store.save([result("call_1", "one")])
    any_store.close()
    [path] = Path(any_store.root).rglob("index.json")
    path.unlink()
    any_store.close()
    assert ids_in(Path(any_store.root)) == ["call_1"]


def test_closing_an_unused_store_writes_nothing(tmp_path: Path) -> None:
    for root in (tmp_path / "missing", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        ContextFileSystem(root).close()
        ContextFileSystem(root, session="s").close()
        ContextFileSystem(root, state="none").close()
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_an_index_that_cannot_be_written_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("call_1", "one")])
    store.save([result("call_2", "two")])
    (tmp_path / ".policyctx/index.json").unlink()
    (tmp_path / ".policyctx/index.json").mkdir()
    with pytest.raises(StoreError, match=r"index\.json"):
        store.close()
    (tmp_path / ".policyctx/index.json").rmdir()
    assert ContextFileSystem(tmp_path).read("call_2") == "two"


def retiring() -> OffloadPolicy:
    return policy(
        "min_tokens: 0\nmodel: {tokenizer: approximate}\nstore: {sync: never}\n"
        "items: {tool_result: {offload: true}}\n"
        "steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]"
    )


def texts(number: int) -> list[str]:
    return [f"result {i} " * 200 for i in range(number)]


@pytest.mark.parametrize("way", ["with", "async with", "close"])
def test_the_index_of_a_closed_session_lists_the_contents_of_every_turn(
    tmp_path: Path, way: str
) -> None:
    async def used() -> None:
        async with Session(retiring(), root=tmp_path, session_id="s") as session:
            for turn in range(2, 8):
                await session.apply_async(session_of(*texts(turn)))

    if way == "async with":
        asyncio.run(used())
    elif way == "with":
        with Session(retiring(), root=tmp_path, session_id="s") as session:
            for turn in range(2, 8):
                session.apply(session_of(*texts(turn)))
    else:
        session = Session(retiring(), root=tmp_path, session_id="s")
        for turn in range(2, 8):
            session.apply(session_of(*texts(turn)))
        session.close()
    assert ids_in(tmp_path) == [f"c{i}" for i in range(6)]


def test_a_session_goes_on_after_it_was_closed(tmp_path: Path) -> None:
    session = Session(retiring(), root=tmp_path, session_id="s")
    session.apply(session_of(*texts(3)))
    session.close()
    session.close()
    assert session.apply(session_of(*texts(4))).offloaded_count == 1
    session.close()
    assert ids_in(tmp_path) == ["c0", "c1", "c2"]


def test_a_session_that_decided_nothing_writes_nothing(tmp_path: Path) -> None:
    with Session(retiring(), root=tmp_path / "root", session_id="s") as session:
        session.apply(session_of("short"))
    with Session(retiring(), root=tmp_path / "root", session_id="s"):
        pass
    assert not (tmp_path / "root").exists()


def test_a_store_of_the_callers_need_not_be_closed(tmp_path: Path) -> None:
    class Bare:
        """A store that has what a session asks for, and no `close`."""

        def __init__(self) -> None:
            self.root = tmp_path
            self.kept: list[Any] = []

        def read(self, path: object) -> str:
            return Path(str(path)).read_text(encoding="utf-8")

        def save(self, contents: Any, *, recorded: bool = False) -> list[Any]:
            return ContextFileSystem(tmp_path).save(contents, recorded=recorded)

        def remember(self, records: Any, *, flush: bool = True) -> None:
            self.kept += [*records, flush]

        def records(self) -> list[Any]:
            return []

    with Session(retiring(), session_id="s", store=Bare()) as session:
        assert session.apply(session_of(*texts(3))).offloaded_count == 2


def test_closing_a_store_removes_its_lock_file(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("call_1", "one")], recorded=True)
    store.close()
    assert not list(tmp_path.rglob("writing-*"))


def open_below(folder: Path) -> int:
    """Return how many files and folders below a folder this process holds open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names of descriptors
        with suppress(FileNotFoundError):  # the one that lists them
            found += os.readlink(f"/proc/self/fd/{name}").startswith(f"{folder}/")  # noqa: PTH115
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("state", ["kept", "none"])
def test_a_closed_store_holds_no_folder_open(
    tmp_path: Path, state: Literal["kept", "none"]
) -> None:
    stores = [ContextFileSystem(tmp_path / str(i), state=state) for i in range(3)]
    for store in stores:
        for tool in ("Bash", "Read"):
            store.save([result("call_1", "one", tool=tool)])
    assert open_below(tmp_path) > 0
    for store in stores:
        store.close()
        store.close()
    assert open_below(tmp_path) == 0
    assert stores[0].read("tool_result/Bash/call_1.md") == "one"
    stores[0].close()
    assert open_below(tmp_path) == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no /proc")
def test_a_closed_store_at_a_url_holds_no_folder_and_no_connection_open(tmp_path: Path) -> None:
    with serving() as bucket:
        with ContextFileSystem(f"s3://{BUCKET}/1", spill_to=tmp_path / "waiting") as store:
            store.save([result("call_1", "one")])
            assert store._remote is not None
            store._remote.begin_spilling()
            store.save([result("call_2", "two")])
            assert open_below(tmp_path) > 0
            assert bucket.connections > 0
        assert open_below(tmp_path) == 0
        for _ in range(200):  # the service notices a little later
            if not bucket.connections:
                break
            time.sleep(0.02)
        assert bucket.connections == 0
        assert store.read("call_2") == "two"
        store.save([result("call_3", "three")])
        assert len(store.list()) == 3
