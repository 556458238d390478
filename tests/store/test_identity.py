from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import names_below, result


@pytest.fixture
def store(tmp_path: Path) -> ContextFileSystem:
    return ContextFileSystem(tmp_path, sync="never")


def inode(path: str) -> int:
    return Path(path).stat().st_ino


def test_equal_content_under_two_ids_is_stored_once_and_said_to_be(
    store: ContextFileSystem,
) -> None:
    [first] = store.saved([result("call_1", "same")])
    [second] = store.saved([result("call_2", "same")])
    assert inode(first.file.path) == inode(second.file.path)
    assert second.same_as == first.file.relative_path
    assert [store.read("call_1"), store.read("call_2")] == ["same", "same"]
    assert [entry.same_as for entry in store.list()] == [None, first.file.relative_path]


def test_equal_contents_of_one_plan_are_stored_once(store: ContextFileSystem) -> None:
    first, second = store.saved([result("call_1", "same"), result("call_2", "same")])
    assert inode(first.file.path) == inode(second.file.path)
    assert names_below(Path(store.root)) == {first.file.relative_path, second.file.relative_path}


def test_without_links_equal_content_is_a_reference_to_the_same_file(
    store: ContextFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    [first] = store.saved([result("call_1", "same")])
    [second] = store.saved([result("call_2", "same")])
    assert second.file == first.file
    assert second.same_as == first.file.relative_path
    assert store.read("call_2") == "same"
    assert names_below(Path(store.root)) == {first.file.relative_path}


def test_a_file_changed_from_outside_is_not_linked_to(store: ContextFileSystem) -> None:
    [first] = store.saved([result("call_1", "same")])
    Path(first.file.path).write_text("else", encoding="utf-8")
    [second] = store.saved([result("call_2", "same")])
    assert second.same_as is None
    assert store.read("call_2") == "same"


def test_a_file_that_is_there_already_is_used_again(store: ContextFileSystem) -> None:
    store.save([result("call_1", "same")])
    [again] = store.saved([result("call_1", "same")])
    assert again.reused
    assert len(store.list()) == 1


def test_overwriting_one_name_leaves_its_equals_alone(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, on_conflict="overwrite", sync="never")
    store.save([result("call_1", "same")])
    store.save([result("call_2", "same")])
    store.save([result("call_1", "other")])
    assert [store.read("call_1"), store.read("call_2")] == ["other", "same"]


def test_without_state_every_content_has_a_file_of_its_own(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, state="none", sync="never")
    first, second = store.save([Content("a.md", "same"), Content("b.md", "same")])
    assert inode(first.path) != inode(second.path)


def test_without_state_only_contents_are_ever_created(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", state="none")
    store.save([result("call_1", "text")])
    store.remember([{"kind": "decided"}])
    store.records()
    store.read("tool_result/Bash/call_1.md")
    found = {path.relative_to(tmp_path / "root").as_posix() for path in tmp_path.rglob("*.*")}
    assert found == {"tool_result/Bash/call_1.md"}


@pytest.mark.slow
def test_the_number_behind_a_name_is_found_at_once_among_thousands(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    for start in range(0, 3_000, 1_000):
        store.save([Content("t.md", f"{start + i}") for i in range(1_000)])
    [file] = ContextFileSystem(tmp_path).save([Content("t.md", "last")])
    assert file.relative_path == "t-3000.md"
