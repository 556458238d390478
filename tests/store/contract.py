"""What every store does, wherever its root is.

A test class for a kind of root inherits `StoreContract` and has a fixture `root`: a root that no
other test uses, of which nothing exists yet.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.paths import File
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import stores_in
from tests.store.contents import DAY, Clock, result

WRITER = """
import json, sys
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result
store, run = ContextFileSystem(sys.argv[1], sync="never"), sys.argv[2]
known = len(store.records())
for turn in range(10**9):
    texts = {f"{run}_{turn}_{i}": f"{run} {turn} {i} " * 50 for i in range(1 + turn % 3)}
    files = store.save([result(*one) for one in texts.items()], recorded=True)
    store.remember([{"path": file.relative_path, "state": "offloaded"} for file in files])
    for file, text in zip(files, texts.values()):
        print(json.dumps([file.path, text]), flush=True)
"""
RUNS = 4


def offloaded(store: ContextFileSystem, *texts: tuple[str, str]) -> list[File]:
    """Save results by id and text, and record their placeholders."""
    files = store.save([result(*one) for one in texts], recorded=True)
    store.remember(
        [
            {"item_id": item_id, "path": file.relative_path, "state": "offloaded"}
            for (item_id, _), file in zip(texts, files, strict=True)
        ]
    )
    return files


class StoreContract:
    """The tests that a store passes at each kind of root."""

    @pytest.fixture
    def root(self) -> str:
        raise NotImplementedError

    def test_what_was_saved_reads_back_in_another_process(self, root: str) -> None:
        store = ContextFileSystem(root)
        text = "读 \ud800\r\n" * 40
        [file] = offloaded(store, ("call/1", text))
        assert file.path == f"{store.root}/{file.relative_path}"
        for one in (store, ContextFileSystem(root)):
            assert [one.read(key) for key in (file.path, file.relative_path, "call/1")] == [
                text
            ] * 3
            block = {"type": "tool_result", "tool_use_id": "call/1", "content": text}
            assert one.restore("call/1") == block
            assert [match.line for match in one.search("读")] == [*range(1, 41)]
            assert one.verify().is_clean
            assert one.notices == ()
            with pytest.raises(StoreError):
                one.read(f"{store.root}-elsewhere/{file.relative_path}")

    def test_nothing_is_overwritten_and_an_equal_content_is_used_again(self, root: str) -> None:
        first = ContextFileSystem(root, state="none")
        first.save([Content("a.md", "one")])
        store = ContextFileSystem(root, state="none")
        contents = [Content("a.md", text) for text in ("two", "one", "three", "two")]
        files = [file.relative_path for file in store.save(contents)]
        assert sorted(set(files)) == sorted(files)
        assert [store.read(path) for path in files] == ["two", "one", "three", "two"]
        assert files[1] == "a.md"
        [again] = ContextFileSystem(root, state="none").save([Content("a.md", "one")])
        assert again.relative_path == "a.md"
        with pytest.raises(StoreError, match="holds another item"):
            ContextFileSystem(root, on_conflict="error").save([Content("a.md", "four")])

    def test_an_item_saved_again_after_a_restart_gets_a_number(self, root: str) -> None:
        offloaded(ContextFileSystem(root), ("call_1", "one"))
        store = ContextFileSystem(root)
        files = offloaded(store, ("call_1", "two"), ("call_2", "one"))
        assert [store.read(file.path) for file in files] == ["two", "one"]
        assert store.read("call_1") == "two"
        assert store.read("tool_result/Bash/call_1.md") == "one"
        assert len(store.list()) == 3

    def test_records_are_kept_in_their_order(self, root: str) -> None:
        store = ContextFileSystem(root)
        for number in range(5):
            store.remember([{"n": number}], flush=number % 2 == 0)
        assert store.records() == [{"n": number} for number in range(5)]
        store.close()
        assert ContextFileSystem(root).records() == [{"n": number} for number in range(5)]

    def test_sessions_share_a_root(self, root: str) -> None:
        assert ContextFileSystem.sessions(root) == ()
        for session in ("a", "b/c"):
            with ContextFileSystem(root, session=session) as store:
                offloaded(store, ("call_1", f"of {session}"))
        assert ContextFileSystem.sessions(root) == ("a", "b/c")
        found = {name: store.read("call_1") for name, store in stores_in(root).items()}
        assert found == {"a": "of a", "b/c": "of b/c"}
        with pytest.raises(StoreError, match="no session 'd'"):
            stores_in(root, session="d")

    def test_collecting_leaves_what_a_placeholder_names(self, root: str) -> None:
        clock = Clock()
        store = ContextFileSystem(root, clock=clock)
        offloaded(store, ("kept", "kept " * 400), ("old", "old " * 400), ("gone", "gone"))
        store.release("old")
        store.release("gone")
        clock.now += DAY
        store.close()
        upkeep = ContextFileSystem(root, clock=clock)
        packed = upkeep.collect()
        assert [entry.item_id for entry in packed.packed] == ["old"]
        assert upkeep.read("old") == "old " * 400
        removed = upkeep.collect(max_age=60)
        assert {entry.item_id for entry, _ in removed.removed} == {"old", "gone"}
        assert [entry.item_id for entry in upkeep.list()] == ["kept"]
        assert upkeep.verify().checked == 1
        assert [event.what for event in upkeep.history()][-2:] == ["removed", "removed"]

    def test_threads_share_a_store(self, root: str) -> None:
        store = ContextFileSystem(root, sync="never")

        def saved(number: int) -> str:
            [file] = offloaded(store, (f"same_{number % 3}", f"text {number}"))
            return store.read(file.path)

        with ThreadPoolExecutor(4) as threads:
            texts = [*threads.map(saved, range(24))]
        assert texts == [f"text {number}" for number in range(24)]
        assert len(ContextFileSystem(root).list()) == len(store.records()) == 24

    def test_a_session_moves_between_stores(self, root: str, tmp_path: Path) -> None:
        store = ContextFileSystem(root)
        [file] = offloaded(store, ("call_1", "one"))
        store.export(tmp_path / "out.tar.zst")
        folder = ContextFileSystem(tmp_path / "folder")
        assert folder.import_from(tmp_path / "out.tar.zst") == 1
        assert folder.read(file.path) == "one"
        folder.export(tmp_path / "back.tar.zst")
        back = ContextFileSystem(f"{root}-back")
        assert back.import_from(tmp_path / "back.tar.zst") == 1
        assert [back.read(path) for path in (file.path, f"{folder.root}/{file.relative_path}")] == [
            "one"
        ] * 2
        assert ContextFileSystem(f"{root}-back").records() == store.records()
        with pytest.raises(StoreError, match="holds a session already"):
            back.import_from(tmp_path / "back.tar.zst")

    def test_a_copy_that_was_cut_off_goes_on(self, root: str, tmp_path: Path) -> None:
        source, target = ContextFileSystem(tmp_path / "source"), ContextFileSystem(root)
        texts = [(f"call_{number}", f"text {number} " * 200) for number in range(70)]
        files = offloaded(source, *texts)

        def interrupted(done: int, _: int) -> None:
            if done >= 60:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            target.import_from(source, progress=interrupted)
        assert ContextFileSystem(root).list() == ()
        Path(files[0].path).unlink()  # what was copied is not asked for again
        assert ContextFileSystem(root).import_from(source) == 70
        copied = ContextFileSystem(root)
        assert [copied.read(file.path) for file in files] == [text for _, text in texts]
        assert copied.records() == source.records()
        assert copied.verify().is_clean
        back = ContextFileSystem(tmp_path / "back")
        assert back.import_from(copied) == 70
        assert back.read(f"{copied.root}/{files[69].relative_path}") == texts[69][1]
        with pytest.raises(StoreError, match="holds a session already"):
            copied.import_from(source)

    @pytest.mark.slow
    def test_what_was_handed_out_survives_kills_of_its_writer(self, root: str) -> None:
        told: list[tuple[str, str]] = []
        for run in range(RUNS):
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, root, str(run)], stdout=subprocess.PIPE, text=True
            )
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(20 + run)]
            writer.send_signal(signal.SIGKILL)
            lines += writer.communicate()[0].splitlines()
            told += [tuple(json.loads(line)) for line in lines]
        store = ContextFileSystem(root)
        assert [store.read(path) for path, _ in told] == [text for _, text in told]
        recorded = {f"{store.root}/{record['path']}" for record in store.records()}
        assert {path for path, _ in told} <= recorded
        assert store.verify().is_clean
        assert store.notices == ()
