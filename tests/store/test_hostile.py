"""What others may do to a store's folder, and ids and texts that nobody would expect."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import names_below, result


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.md").write_text("secret", encoding="utf-8")
    return tmp_path / "elsewhere"


def listing(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("planted", ["tool_result", "tool_result/Bash", ".policyctx"])
def test_nothing_goes_through_a_planted_folder(
    tmp_path: Path, elsewhere: Path, planted: str
) -> None:
    link = tmp_path / "root" / planted
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    before = listing(elsewhere)
    store = ContextFileSystem(tmp_path / "root")
    with pytest.raises(StoreError, match="leads out of"):
        store.save([result("call_1", "x")])
    with pytest.raises(StoreError):
        store.read(f"{planted}/secret.md")
    assert listing(elsewhere) == before


@pytest.mark.parametrize("name", ["lock", "journal.jsonl", "index.json"])
def test_nothing_goes_through_a_planted_file_of_the_state(
    tmp_path: Path, elsewhere: Path, name: str
) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    store.save([result("call_1", "one")])
    (tmp_path / "root/.policyctx" / name).unlink()
    (tmp_path / "root/.policyctx" / name).symlink_to(elsewhere / "secret.md")
    before = listing(elsewhere)
    again = ContextFileSystem(tmp_path / "root", sync="never")
    assert again.read("call_1") == "one"
    if name == "lock":
        with pytest.raises(StoreError, match="leads out of"):
            again.save([result("call_2", "two")])
    else:
        again.save([result("call_2", "two")])
        again.save([result(f"call_{i}", "x" * 99) for i in range(3, 99)])
        assert again.read("call_2") == "two"
    assert listing(elsewhere) == before


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("call_1.md", "is a link that leads back to itself"),
        ("../Bash/call_1.md", "is a link that leads back to itself"),
        ("call_2.md", "is a link, and a store follows none"),
        ("../../../elsewhere/secret.md", "is a link and leads out of "),
    ],
)
def test_a_link_in_the_place_of_a_content_is_described_as_it_is(
    tmp_path: Path, target: str, reason: str
) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    [file, _] = store.save([result("call_1", "one"), result("call_2", "two")])
    Path(file.path).unlink()
    Path(file.path).symlink_to(target)
    with pytest.raises(StoreError, match=f"call_1.md {reason}"):
        store.read("call_1")


def test_a_root_that_is_a_link_to_itself_cannot_be_written_or_read(tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to("root")
    store = ContextFileSystem(tmp_path / "root", sync="never")
    for call in (lambda: store.save([result("call_1", "x")]), store.list):
        with pytest.raises(StoreError, match="Too many levels of symbolic links"):
            call()
    assert store.notices == ()


def test_a_content_exchanged_for_a_link_is_not_followed(tmp_path: Path, elsewhere: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    [file] = store.save([result("call_1", "secret")])
    Path(file.path).unlink()
    Path(file.path).symlink_to(elsewhere / "secret.md")
    for key in ("call_1", file.path):
        with pytest.raises(StoreError, match="leads out of"):
            store.read(key)
    assert [harm.kind for harm in store.verify().harmed] == ["unreadable"]
    # Nor is it what a new content of the name is compared with.
    [other] = store.save([result("call_1", "secret")])
    assert other.path != file.path
    assert store.read(other.path) == "secret"


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    [file] = store.save([result("call_1", "one")])
    for path in (Path(file.path), tmp_path / ".policyctx/index.json"):
        path.unlink()
        os.mkfifo(path)
    again = ContextFileSystem(tmp_path, sync="never")
    with pytest.raises(StoreError, match="not a regular file"):
        again.read("call_1")
    assert again.list()[0].item_id == "call_1"


def test_either_way_of_opening_saves_reads_and_packs(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "a/b", clock=lambda: 0.0)
    store.save([result("call_1", "x" * 5_000), result("call_2", "x" * 5_000)])
    later = ContextFileSystem(tmp_path / "a/b", clock=lambda: 1e6)
    assert len(later.collect().packed) == 2
    assert later.read("call_2") == "x" * 5_000
    assert later.verify().is_clean


def test_a_root_that_is_itself_a_link_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    store = ContextFileSystem(tmp_path / "root", sync="never")
    [file] = store.save([result("call_1", "one")])
    assert store.read(file.path) == "one"
    assert store.read(tmp_path / "real/tool_result/Bash/call_1.md") == "one"


def test_saved_files_are_readable_only_by_the_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = ContextFileSystem(tmp_path / "root")
        store.save([result("call_1", "x" * 5_000), Content("p", "y" * 5_000, packed=True)])
        store.remember([{"a": 1}])
        store.export(tmp_path / "root/out")
    finally:
        os.umask(before)
    modes = {
        stat.S_IMODE(path.stat().st_mode): path.is_dir() for path in (tmp_path / "root").rglob("*")
    }
    assert modes == {0o600: False, 0o700: True}
    assert stat.S_IMODE((tmp_path / "root").stat().st_mode) == 0o700


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may reach: pytest's own is closed to them."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


WITHOUT_PERMISSION = """
import os, sys
from policyctx.errors import StoreError
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result
root = sys.argv[1]
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
store = ContextFileSystem(root)
for act in (
    lambda: store.save([result("call_2", "two")]),
    lambda: store.remember([{"a": 1}]),
    lambda: store.read("call_1"),
    lambda: store.list(),
    lambda: store.collect(max_age=0, max_bytes=0),
):
    try:
        act()
    except StoreError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["", "tool_result/Bash", ".policyctx"])
def test_without_permission_nothing_is_damaged_and_the_error_names_the_path(
    open_folder: Path, closed: str
) -> None:
    # As root no mode binds, so the child becomes somebody else.
    root = open_folder / "root"
    store = ContextFileSystem(root, sync="never", mode="0644")
    store.save([result("call_1", "one")])
    modes = {path: path.stat().st_mode for path in (root, *root.rglob("*"))}
    (root / closed).chmod(0)
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PERMISSION, str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    for path, mode in modes.items():
        path.chmod(mode)
    told = run.stdout.splitlines()
    assert run.returncode == 0, run.stderr
    assert told
    assert all(str(root) in line and line.endswith("Permission denied") for line in told)
    assert ContextFileSystem(root).read("call_1") == "one"
    assert ContextFileSystem(root).verify().is_clean
    assert names_below(root) == {"tool_result/Bash/call_1.md"}


def test_a_folder_removed_while_in_use_is_made_again(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    store.save([result("call_1", "one"), Content("kept.md", "kept")])
    shutil.rmtree(tmp_path / "root/tool_result")
    store.save([result("call_2", "two")])
    assert store.read("call_2") == "two"
    assert store.read("kept.md") == "kept"
    harmed = [(harm.entry.item_id, harm.kind) for harm in store.verify().harmed]
    assert harmed == [("call_1", "missing")]


def test_a_folder_exchanged_between_two_calls_is_noticed(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    store.save([result("call_1", "one")])
    (tmp_path / "root/tool_result").rename(tmp_path / "moved")
    [file] = store.save([result("call_2", "two")])
    assert Path(file.path).read_text(encoding="utf-8") == "two"
    (tmp_path / "root").rename(tmp_path / "old")
    [file] = store.save([result("call_3", "three")])
    assert Path(file.path).read_text(encoding="utf-8") == "three"
    assert ContextFileSystem(tmp_path / "root").read("call_3") == "three"


def test_a_folder_exchanged_for_a_link_between_two_calls_is_not_followed(
    tmp_path: Path, elsewhere: Path
) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    store.save([result("call_1", "one")])
    (tmp_path / "root/tool_result/Bash").rename(elsewhere / "Bash")
    (tmp_path / "root/tool_result/Bash").symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    with pytest.raises(StoreError, match="leads out of"):
        store.save([result("call_2", "two")])
    assert sorted(path.name for path in elsewhere.iterdir()) == before


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="counts open files there")
def test_many_stores_keep_few_files_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    stores = [ContextFileSystem(tmp_path / str(i), sync="never") for i in range(60)]
    for store in stores:
        store.save([result("call_1", "one")])
        store.read("call_1")
    assert len(os.listdir("/dev/fd")) - before <= 32  # noqa: PTH208
