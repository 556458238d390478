"""Folders that policyctx 0.1.0 wrote open, read, verify and continue as they did there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from policyctx.store.filesystem import ContextFileSystem
from tests.store import playing
from tests.store.contents import result
from tests.store.playing import FORMS, MADE_IN, TURNS, TURNS_MADE, Clock, played, session

WRITTEN = Path(__file__).with_name("written_by_0_1")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def root(tmp_path: Path, form: str) -> Path:
    return Path(shutil.copytree(WRITTEN / form, tmp_path / "root"))


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((WRITTEN / f"{name}.json").read_text(encoding="utf-8"))
    return found


def store_in(root: Path, form: str) -> ContextFileSystem:
    found = session(form, root, Clock()).store
    assert isinstance(found, ContextFileSystem)
    return found


def test_every_content_reads_back_by_path_and_by_id(root: Path, form: str) -> None:
    store = store_in(root, form)
    contents = expected(form)["contents"]
    assert playing.contents_of(store) == contents
    for path, text in contents.items():
        assert store.read(MADE_IN / form / path) == text
        entry = store.find(path)
        assert entry is not None
        assert entry.item_id is not None
        if entry.origin is not None and entry.origin.item_type != "tool_call":
            assert store.read(entry.item_id) == text
    assert store.verify().is_clean
    assert store.notices == ()


def test_the_session_continues_with_the_decisions_of_0_1(root: Path, form: str) -> None:
    clock, known = Clock(), expected(form)
    clock.turn = TURNS_MADE
    one = session(form, root, clock)
    assert list(one.apply(playing.conversation(TURNS_MADE)).messages) == known["before"]
    after = played(session(form, root, clock), clock, range(TURNS_MADE, TURNS + 1))
    shown = json.dumps(after).replace(str(root), str(MADE_IN / form))
    assert json.loads(shown) == known["after"]
    again = store_in(root, form)
    assert again.verify().is_clean
    assert again.notices == ()


def test_a_journal_with_old_and_new_lines_loses_neither(root: Path, form: str) -> None:
    store = store_in(root, form)
    before = len(store.records())
    store.save([result("new", "new text")], recorded=True)
    store.remember([{"new": "record"}])
    again = store_in(root, form)
    assert playing.contents_of(again) == {
        **expected(form)["contents"],
        "tool_result/Bash/new.md": "new text",
    }
    assert len(again.records()) == before + 1
    assert again.notices == ()
    assert again.rebuild().gone == ()
    assert store_in(root, form).read("new") == "new text"


def test_a_store_after_retention_opens_without_its_snapshot_too(tmp_path: Path) -> None:
    contents = expected("alone")["contents"]
    for name in ("whole", "without index"):
        root = Path(shutil.copytree(WRITTEN / "alone", tmp_path / name))
        if name == "without index":
            (root / "index.json").unlink()
        store = ContextFileSystem(root, format="envelope", sync="never")
        assert playing.contents_of(store) == contents
        assert sum(event.what == "removed" for event in store.history()) == 6
        store.save([result("call_0", "another text")])
        again = ContextFileSystem(root, format="envelope")
        assert playing.contents_of(again).items() >= contents.items()
        assert again.read("call_0") == "another text"
        assert again.verify().is_clean
        assert again.notices == ()


def test_a_session_that_0_1_exported_is_imported(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, format="envelope", sync="never")
    store.import_from(WRITTEN / "alone.tar.zst")
    assert playing.contents_of(store) == expected("alone")["contents"]
    assert store.verify().is_clean
