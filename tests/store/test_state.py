from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result

JOURNAL = ".policyctx/journal.jsonl"
INDEX = ".policyctx/index.json"

RECORD: dict[str, JSON] = {"kind": "decided", "item_id": "call_1", "lone": "\ud800", "n": [1, None]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with one content and one record."""
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("call_1", "one")])
    store.remember([RECORD])
    assert store.notices == ()
    return tmp_path


def test_records_are_read_back_after_a_restart(root: Path) -> None:
    store = ContextFileSystem(root)
    store.remember([{"second": True}, {"third": True}])
    assert ContextFileSystem(root).records() == [RECORD, {"second": True}, {"third": True}]


def test_records_of_another_process_are_seen(root: Path) -> None:
    one, other = ContextFileSystem(root), ContextFileSystem(root)
    one.records()
    other.remember([{"from": "other"}], flush=False)
    assert one.records() == [RECORD, {"from": "other"}]


def test_records_that_are_not_json_are_rejected_together(root: Path) -> None:
    store = ContextFileSystem(root)
    with pytest.raises(StoreError):
        store.remember([{"fine": True}, {"wrong": object()}])  # type: ignore[dict-item]
    assert ContextFileSystem(root).records() == [RECORD]


def test_sessions_that_share_a_root_have_records_and_ids_of_their_own(tmp_path: Path) -> None:
    one = ContextFileSystem(tmp_path, session="one")
    two = ContextFileSystem(tmp_path, session="../two")
    [first] = one.save([result("call_1", "one")])
    [second] = two.save([result("call_1", "two")])
    one.remember([{"of": "one"}])
    assert (one.read("call_1"), two.read("call_1")) == ("one", "two")
    assert (one.read(second.path), two.read(first.path)) == ("two", "one")
    assert (one.records(), two.records()) == ([{"of": "one"}], [])
    assert one.notices == two.notices == ()
    assert {path.name for path in (tmp_path / ".policyctx").iterdir()} == {"one", "..%2Ftwo"}


def indexed_in(path: Path) -> list[str]:
    return [item["item_id"] for item in json.loads(path.read_bytes())["items"]]


def test_sessions_that_share_a_root_of_envelopes_have_an_index_each(tmp_path: Path) -> None:
    one = ContextFileSystem(tmp_path, session="one", format="envelope")
    two = ContextFileSystem(tmp_path, session="two", format="envelope")
    for _ in range(2):
        one.save([result("call_1", "one")])
        two.save([result("call_2", "two")])
    again = ContextFileSystem(tmp_path, session="one", format="envelope")
    assert [entry.item_id for entry in again.list()] == ["call_1"]
    assert one.notices == two.notices == again.notices == ()
    assert indexed_in(tmp_path / "index.json") == ["call_1"]
    assert indexed_in(tmp_path / ".policyctx/two/index.json") == ["call_2"]
    assert not (tmp_path / ".policyctx/one/index.json").exists()


def test_an_index_json_of_somebody_else_stays_in_the_root(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"a": "page"}', encoding="utf-8")
    for number in range(2):
        one = ContextFileSystem(tmp_path, session="one", format="envelope")
        one.save([result(f"call_{number}", "one")])
        one.rebuild()
        one.close()
        assert one.notices == ()
    assert (tmp_path / "index.json").read_text(encoding="utf-8") == '{"a": "page"}'
    assert indexed_in(tmp_path / ".policyctx/one/index.json") == ["call_0", "call_1"]


def test_a_session_of_plain_texts_takes_no_index_for_a_content(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path, session="one", format="envelope").save([result("call_1", "one")])
    two = ContextFileSystem(tmp_path, session="two")
    two.save([result("call_2", "two")])
    two.rebuild()
    assert [entry.item_id for entry in two.list()] == ["call_2"]


@pytest.mark.parametrize("session", ["one", None])
def test_a_reader_of_envelopes_that_does_not_know_their_format_writes_no_second_index(
    tmp_path: Path, session: str | None
) -> None:
    writer = ContextFileSystem(tmp_path, session=session, format="envelope")
    writer.save([result("call_1", "one")])
    reader = ContextFileSystem(tmp_path, session=session)
    assert reader.read("call_1") == "one"
    reader.rebuild()
    reader.close()
    writer.save([result("call_2", "two")])
    assert [path.parent for path in tmp_path.rglob("index.json")] == [tmp_path]
    assert indexed_in(tmp_path / "index.json") == ["call_1", "call_2"]


def test_a_damaged_index_in_a_shared_root_is_reported_and_written_anew(tmp_path: Path) -> None:
    one = ContextFileSystem(tmp_path, session="one", format="envelope")
    one.save([result("call_1", "one")])
    (tmp_path / "index.json").write_bytes(b"torn")
    again = ContextFileSystem(tmp_path, session="one", format="envelope")
    assert [entry.item_id for entry in again.list()] == ["call_1"]
    assert "index.json is damaged" in again.notices[0]
    again.close()
    assert indexed_in(tmp_path / "index.json") == ["call_1"]


def test_state_is_readable_by_its_owner_alone(root: Path) -> None:
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (root / ".policyctx").iterdir()}
    assert modes == {"index.json": 0o600, "journal.jsonl": 0o600, "lock": 0o600}
    assert stat.S_IMODE((root / ".policyctx").stat().st_mode) == 0o700


def test_a_torn_tail_is_ignored_and_reported(root: Path) -> None:
    with (root / JOURNAL).open("ab") as file:
        file.write(b'{"record":{"half":')
    store = ContextFileSystem(root)
    assert store.records() == [RECORD]
    store.remember([{"next": 1}])
    assert ContextFileSystem(root).records() == [RECORD, {"next": 1}]
    assert any("torn" in notice for notice in store.notices)


@pytest.mark.slow
def test_every_place_to_cut_a_journal_leaves_a_store_that_works(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path / "whole", sync="never").save([result("call_1", "one")])
    whole = (tmp_path / "whole" / JOURNAL).read_bytes()
    for cut in range(len(whole)):
        root = tmp_path / str(cut)
        shutil.copytree(tmp_path / "whole", root)
        (root / JOURNAL).write_bytes(whole[:cut])
        store = ContextFileSystem(root, sync="never")
        assert store.read("tool_result/Bash/call_1.md") == "one"
        assert store.read("call_1") == "one"
        store.save([result("call_2", "two")])
        assert ContextFileSystem(root).read("call_2") == "two"
        assert store.notices


def harmed_by(content: bytes) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        path.write_bytes(content)

    return harm


def deepened(path: Path) -> None:
    path.write_bytes(b'{"saved":' + b"[" * 100_000 + b"\n")


def linked_elsewhere(path: Path) -> None:
    (path.parent.parent.parent / "elsewhere").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(path.parent.parent.parent / "elsewhere")


HARMS: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": harmed_by(b""),
    "garbage": harmed_by(os.urandom(4096)),
    "lines of garbage": harmed_by(b"\n\x00\xff\n{}\n[]\n" * 10),
    "another JSON": harmed_by(b'{"saved": 1}\n{"journal": []}\n"x"\n12345\n'),
    "too deep": deepened,
    "a link": linked_elsewhere,
}


@pytest.fixture(params=HARMS)
def harmed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    """A store in which one file of its state was harmed."""
    root = tmp_path / "root"
    store = ContextFileSystem(root, sync="never")
    store.save([result("call_1", "one"), result("call_2", "two")])
    store.remember([RECORD])

    def harm(name: str) -> Path:
        HARMS[request.param](root / name)
        return root

    return harm


def test_a_damaged_journal_is_rebuilt_and_reported(harmed: Callable[[str], Path]) -> None:
    root = harmed(JOURNAL)
    store = ContextFileSystem(root, sync="never")
    assert [store.read("call_1"), store.read("call_2")] == ["one", "two"]
    assert store.read(root / "tool_result/Bash/call_2.md") == "two"
    assert store.notices
    store.save([result("call_3", "three")])
    again = ContextFileSystem(root)
    assert [again.read(f"call_{i}") for i in (1, 2, 3)] == ["one", "two", "three"]
    assert again.notices == ()


def test_a_damaged_snapshot_loses_nothing_and_is_reported(harmed: Callable[[str], Path]) -> None:
    root = harmed(INDEX)
    is_missing = not (root / INDEX).exists()
    store = ContextFileSystem(root, sync="never")
    assert store.records() == [RECORD]
    assert store.restore("call_2") == result("call_2", "two").origin.block  # type: ignore[union-attr]
    assert indexed_in(root / INDEX) == ["call_1", "call_2"] if is_missing else store.notices
    store.save([result(f"call_{i}", str(i)) for i in range(3, 200)])
    again = ContextFileSystem(root)
    assert len(again.list()) == 199
    assert again.notices == ()


def test_without_journal_and_snapshot_the_store_is_rebuilt_from_the_files(root: Path) -> None:
    (root / JOURNAL).unlink()
    (root / INDEX).unlink()
    store = ContextFileSystem(root)
    [entry] = store.list()
    assert entry.adopted
    assert entry.origin is not None
    assert (entry.item_id, entry.origin.tool_name) == ("call_1", "Bash")
    assert store.read("call_1") == "one"
    assert any("rebuilt" in notice for notice in store.notices)


def lines_of(root: Path) -> list[bytes]:
    return (root / JOURNAL).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret", "a/../../secret", "", ".policyctx/x", "a\0b", 5, None]
)
def test_an_entry_that_leads_outside_is_ignored(root: Path, path: JSON) -> None:
    (root.parent / "secret").write_text("secret", encoding="utf-8")
    *_, saved, record = lines_of(root)
    value = json.loads(saved)
    value["saved"]["path"] = path
    value["saved"]["item_id"] = "planted"
    (root / JOURNAL).write_bytes(b"".join([*lines_of(root), json.dumps(value).encode(), b"\n"]))
    (root / INDEX).unlink()
    store = ContextFileSystem(root)
    with pytest.raises(StoreError):
        store.read("planted")
    assert store.read("call_1") == "one"
    assert json.loads(record)["record"] in store.records()


def test_a_store_removed_while_in_use_goes_on_and_says_so(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    store.save([result("call_1", "one")])
    store.remember([RECORD])
    shutil.rmtree(tmp_path / "root")
    store.save([result("call_2", "two")])
    again = ContextFileSystem(tmp_path / "root")
    assert again.read("call_2") == "two"
    assert again.records() == [RECORD]
    assert any("removed while in use" in notice for notice in store.notices)
    with pytest.raises(StoreError, match="call_1"):
        again.read("call_1")


def test_a_journal_put_back_from_an_old_copy_loses_nothing(root: Path) -> None:
    store = ContextFileSystem(root, sync="never")
    old = (root / JOURNAL).read_bytes()
    store.save([result("call_2", "two")])
    (root / JOURNAL).write_bytes(old)
    store.save([result("call_3", "three")])
    again = ContextFileSystem(root)
    assert [again.read(f"call_{i}") for i in (1, 2, 3)] == ["one", "two", "three"]


def test_the_snapshot_is_complete_up_to_1000_entries_and_then_lacks_one_in_twenty(
    tmp_path: Path,
) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([Content(f"{i}.md", str(i)) for i in range(990)])
    written = set()
    for i in range(990, 1400):
        store.save([Content(f"{i}.md", str(i))])
        listed = len(json.loads((tmp_path / INDEX).read_bytes())["items"])
        assert listed == i + 1 if i < 1000 else (i + 1 - listed) * 20 <= i + 1
        written.add((tmp_path / INDEX).stat().st_ino)
        os.link(tmp_path / INDEX, tmp_path / f".{i}.tmp")  # so that no number is given out again
    assert 10 < len(written) < 20
    assert len(ContextFileSystem(tmp_path).list()) == 1400
