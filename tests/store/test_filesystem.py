from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.filesystem import Content, ContextFileSystem
from tests.store.contents import names_below


def test_nothing_is_made_before_something_is_saved(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path / "root")
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    "text", ["plain", "", "a\r\nb\n", "nul \0", "读 🙂", "lone \ud800 surrogate", "x" * 1_000_000]
)
def test_every_text_reads_back_as_it_was(tmp_path: Path, text: str) -> None:
    store = ContextFileSystem(tmp_path / "root")
    [file] = store.save([Content("a/b.md", text)])
    assert store.read(file.path) == text
    assert store.read(file.relative_path) == text


def test_a_file_holds_the_bytes_and_nothing_else_is_left(tmp_path: Path) -> None:
    ContextFileSystem(tmp_path).save([Content("a/b.md", "café\r\n")])
    assert (tmp_path / "a/b.md").read_bytes() == b"caf\xc3\xa9\r\n"
    assert names_below(tmp_path) == {"a/b.md"}


@pytest.mark.parametrize(
    ("mode", "file_mode", "folder_mode"), [("0600", 0o600, 0o700), ("0640", 0o640, 0o750)]
)
def test_permissions_do_not_depend_on_the_umask(
    tmp_path: Path, mode: str, file_mode: int, folder_mode: int
) -> None:
    before = os.umask(0o277)
    try:
        [file] = ContextFileSystem(tmp_path / "r", mode=mode).save([Content("a/b.md", "x")])
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path(file.path).stat().st_mode) == file_mode
    assert stat.S_IMODE((tmp_path / "r" / "a").stat().st_mode) == folder_mode
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == folder_mode


def test_another_content_of_the_same_name_gets_a_number(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path)
    store.save([Content("a.md", "one")])
    files = store.save([Content("a.md", "two"), Content("a.md", "three")])
    assert [file.relative_path for file in files] == ["a-1.md", "a-2.md"]
    assert store.read("a.md") == "one"


def test_the_same_content_of_the_same_name_is_the_same_file(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path)
    contents = [Content("a.md", "one"), Content("a.md", "two")]
    first = store.save(contents)
    inode = Path(first[0].path).stat().st_ino
    assert store.save(contents) == first
    assert Path(first[0].path).stat().st_ino == inode
    assert names_below(tmp_path) == {"a.md", "a-1.md"}


def test_within_one_plan_every_item_gets_a_file_of_its_own(tmp_path: Path) -> None:
    files = ContextFileSystem(tmp_path).save([Content("a.md", "x"), Content("a.md", "x")])
    assert [file.relative_path for file in files] == ["a.md", "a-1.md"]


def test_a_later_content_overwrites_where_the_policy_says_so(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, on_conflict="overwrite")
    store.save([Content("a.md", "one")])
    store.save([Content("a.md", "two"), Content("a.md", "three")])
    assert store.read("a.md") == "three"
    assert names_below(tmp_path) == {"a.md"}


def test_a_taken_name_is_an_error_where_the_policy_says_so(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, on_conflict="error")
    store.save([Content("a.md", "one")])
    store.save([Content("a.md", "one")])
    with pytest.raises(StoreError, match=r"a\.md holds another item"):
        store.save([Content("b.md", "x"), Content("a.md", "two")])
    assert names_below(tmp_path) == {"a.md"}


def test_a_root_that_cannot_be_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StoreError) as raised:
        ContextFileSystem(tmp_path / "file" / "root").save([Content("a.md", "x")])
    assert str(tmp_path / "file") in str(raised.value)
    assert str(raised.value).endswith(("cannot be written: Not a directory", "exists"))
    assert names_below(tmp_path) == {"file"}


def test_when_a_later_write_fails_the_earlier_ones_are_taken_back(tmp_path: Path) -> None:
    # A name that no file system takes, after one that every file system does.
    store = ContextFileSystem(tmp_path / "root")
    with pytest.raises(StoreError):
        store.save([Content("new/a.md", "x"), Content("y" * 300, "y")])
    assert names_below(tmp_path) == set()


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    # A limit on the size of files is a disk that is full after so many bytes; it binds the whole
    # process, so a child has it.
    script = f"""
import resource, signal
from policyctx.errors import StoreError
from policyctx.store.filesystem import Content, ContextFileSystem
from tests.store.contents import names_below
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store = ContextFileSystem({str(tmp_path / "root")!r})
try:
    store.save([Content("a", "x"), Content("b", "x" * 5000)])
except StoreError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "File too large" in run.stdout
    assert names_below(tmp_path) == set()


def test_nothing_outside_the_root_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    store = ContextFileSystem(tmp_path / "root")
    store.save([Content("a.md", "x")])
    for path in ("../secret", tmp_path / "secret"):
        with pytest.raises(StoreError, match="is not in the store"):
            store.read(path)


def test_a_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    store = ContextFileSystem(tmp_path / "root")
    store.save([Content("a.md", "x")])
    (tmp_path / "root" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(StoreError, match="leads out of"):
        store.read("link")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no\.md cannot be read: No such file"):
        ContextFileSystem(tmp_path).read("no.md")


def test_writers_at_the_same_time_never_overwrite_one_another(tmp_path: Path) -> None:
    stores = [ContextFileSystem(tmp_path, sync="never") for _ in range(4)]

    def save(number: int) -> str:
        return stores[number % 4].save([Content("same.md", f"content {number}")])[0].path

    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(save, range(40)))
    texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    assert texts == [f"content {number}" for number in range(40)]
    assert len(names_below(tmp_path)) == 40


def test_numbering_continues_from_another_session(tmp_path: Path) -> None:
    contents = [Content("t.md", "1", "t.md"), Content("t-1.md", "2", "t.md")]
    ContextFileSystem(tmp_path).save(contents)
    others = [Content("t.md", "3", "t.md"), Content("t-1.md", "4", "t.md")]
    files = ContextFileSystem(tmp_path).save(others)
    assert [file.relative_path for file in files] == ["t-2.md", "t-3.md"]


def test_nothing_is_written_through_a_link_out_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="leads out of"):
        ContextFileSystem(tmp_path / "root").save([Content("a/b.md", "x")])
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_name_that_no_file_can_have_is_an_error_of_the_store(tmp_path: Path, name: str) -> None:
    store = ContextFileSystem(tmp_path)
    with pytest.raises(StoreError):
        store.read(name)
    with pytest.raises(StoreError):
        store.save([Content(name, "x")])


def test_a_root_of_an_unknown_user_is_an_error_of_the_store() -> None:
    with pytest.raises(StoreError, match="no-such-user"):
        ContextFileSystem("~no-such-user/x")
