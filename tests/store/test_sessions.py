"""Several sessions in one folder: which there are, and which one a call means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from policyctx.errors import AmbiguousSessionError, StoreError
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import stores_in
from tests.counting import functions_called
from tests.store.contents import ids, result


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    for name in ("one", "two/x"):
        ContextFileSystem(tmp_path, session=name).save([result("call_1", f"of {name}")])
    return tmp_path


def test_the_sessions_of_a_folder_are_listed(shared: Path) -> None:
    assert ContextFileSystem.sessions(shared) == ("one", "two/x")
    ContextFileSystem(shared).save([result("call_2", "the folder's own")])
    assert ContextFileSystem.sessions(str(shared)) == ("", "one", "two/x")
    found = [ids(ContextFileSystem(shared, session=s or None).list()) for s in ("", "one", "two/x")]
    assert found == [["call_2"], ["call_1"], ["call_1"]]


def test_a_folder_without_a_store_has_no_sessions(tmp_path: Path) -> None:
    assert ContextFileSystem.sessions(tmp_path) == ()
    assert ContextFileSystem.sessions(tmp_path / "missing") == ()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be read"):
        ContextFileSystem.sessions(tmp_path / "file")


CALLS: dict[str, Callable[[ContextFileSystem], object]] = {
    "list": lambda store: store.list(),
    "find": lambda store: store.find("call_1"),
    "read": lambda store: store.read("call_1"),
    "restore": lambda store: store.restore("call_1"),
    "release": lambda store: store.release("call_1"),
    "search": lambda store: list(store.search("of")),
    "history": lambda store: store.history(),
    "verify": lambda store: store.verify(),
    "export": lambda store: store.export(Path(store.root) / "out"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_read_that_needs_a_session_is_rejected_with_the_list(shared: Path, name: str) -> None:
    with pytest.raises(AmbiguousSessionError, match=r"choose one .*: one, two/x") as raised:
        CALLS[name](ContextFileSystem(shared))
    assert raised.value.sessions == ("one", "two/x")
    assert raised.value.path == str(shared)
    assert not (shared / "out").exists()


def test_one_session_in_a_shared_folder_is_not_guessed_either(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path, session="one").save([result("call_1", "one")])
    with pytest.raises(AmbiguousSessionError, match="one"):
        ContextFileSystem(tmp_path).list()


def test_a_path_says_which_file_is_meant_without_a_session(shared: Path) -> None:
    store = ContextFileSystem(shared)
    assert store.read("tool_result/Bash/call_1.md") == "of one"
    assert store.read(shared / "tool_result/Bash/call_1-1.md") == "of two/x"


def test_a_store_without_a_session_can_begin_in_a_shared_folder(shared: Path) -> None:
    store = ContextFileSystem(shared)
    assert store.records() == []
    store.save([result("call_2", "two")])
    assert ids(store.list()) == ["call_2"]


def test_the_stores_of_a_folder_are_found_whatever_they_hold(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    for root, count in ((few, 3), (many, 90)):
        with ContextFileSystem(root, session="a", sync="never") as store:
            store.save([result(f"call_{i}", str(i)) for i in range(count)])
    for root in (few, many):  # what is called once
        stores_in(root)
    assert functions_called(lambda: stores_in(few)) == functions_called(lambda: stores_in(many))


def test_sessions_with_a_complete_index_are_listed_without_opening_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with ContextFileSystem(tmp_path, session=name, sync="never") as store:
            store.save([result(f"call_{name}", name)])
            store.remember([{"item_id": f"call_{name}", "state": "offloaded"}])
    stores = stores_in(tmp_path)
    listed = list(stores.contents())
    assert not stores.opened
    opened = [(name, [*store.list()], store.records()) for name, store in stores.items()]
    assert listed == opened
    assert [ids(entries) for _, entries, _ in listed] == [["call_a"], ["call_b"]]


@pytest.mark.parametrize("damage", ["cut", "grown", "changed", "no index", "other index"])
def test_a_listed_session_whose_index_is_not_complete_is_opened(
    tmp_path: Path, damage: str
) -> None:
    for name in ("a", "b"):
        with ContextFileSystem(tmp_path, session=name, sync="never") as store:
            store.save([result("call_1", name), result("call_2", name)])
    state = tmp_path / ".policyctx" / "a"
    journal, index = state / "journal.jsonl", state / "index.json"
    lines = journal.read_bytes().splitlines(keepends=True)
    match damage:
        case "cut":
            journal.write_bytes(b"".join(lines[:-1]))
        case "grown":
            ContextFileSystem(tmp_path, session="a", sync="never").remember([{"state": "read"}])
        case "changed":
            journal.write_bytes(b"".join(lines).replace(b'"size":', b'"sizE":').replace(b"1", b"2"))
        case "no index":
            index.unlink()
        case _:
            index.write_bytes((tmp_path / ".policyctx" / "b" / "index.json").read_bytes())
    stores = stores_in(tmp_path)
    [(_, listed, _), _] = stores.contents()
    assert list(stores.opened) == ["a"]
    assert ids(listed) == ["call_1", "call_2"]


def test_a_store_that_was_only_read_closes_without_reading_again(tmp_path: Path) -> None:
    with ContextFileSystem(tmp_path, session="a", sync="never") as store:
        store.save([result("call_1", "text")])
    opened: list[int] = []
    for _ in range(2):  # what is called once
        [store] = stores_in(tmp_path).values()
        opened = [functions_called(work) for work in (store.list, store.records, store.close)]
    _, recalling, closing = opened
    # To read the journal again, and what the snapshot says of it, takes twice as many.
    assert closing < 1.5 * recalling


def test_a_folder_of_many_stores_is_an_error_that_names_some(tmp_path: Path) -> None:
    for i in range(100):
        (tmp_path / f"s{i}" / ".policyctx").mkdir(parents=True)
    with pytest.raises(StoreError, match="the folders in it do") as raised:
        stores_in(tmp_path)
    assert len(str(raised.value)) < len(str(tmp_path)) + 200


def test_the_newest_content_that_can_be_read_says_the_format(tmp_path: Path) -> None:
    forms: tuple[Format, ...] = ("text", "envelope")
    for form in forms:
        with ContextFileSystem(tmp_path, session="a", format=form, sync="never") as store:
            store.save([result(f"call_{form}", "text")])
    [found] = stores_in(tmp_path).values()
    assert found.read("call_envelope") == "text"
    path = tmp_path / ".policyctx" / "a" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line.replace(b'"sha256":"', b'"sha256":"0') for line in lines))
    assert list(stores_in(tmp_path)) == ["a"]
