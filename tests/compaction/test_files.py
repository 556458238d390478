from __future__ import annotations

import os
from pathlib import Path

import pytest

from policyctx.compaction.restoration import WorkingFiles
from policyctx.errors import UnrestorableFileError

READER = WorkingFiles()
PLENTY = 10_000


def refused(path: Path | str, most_bytes: int = PLENTY) -> str:
    with pytest.raises(UnrestorableFileError) as caught:
        READER.read(str(path), most_bytes)
    return caught.value.why


def not_resolved(path: str, work_dir: Path) -> str:
    with pytest.raises(UnrestorableFileError) as caught:
        READER.resolve(path, str(work_dir))
    assert caught.value.path == path
    return caught.value.why


def test_a_relative_path_is_resolved_in_the_working_directory(tmp_path: Path) -> None:
    assert READER.resolve("src/../a.py", str(tmp_path)) == str(tmp_path / "a.py")


def test_an_absolute_path_inside_is_accepted(tmp_path: Path) -> None:
    path = str(tmp_path / "a.py")
    assert READER.resolve(path, str(tmp_path)) == path


def test_a_relative_working_directory_is_resolved_in_that_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert READER.resolve("a.py", ".") == str(tmp_path / "a.py")


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../secret"])
def test_a_path_that_leads_outside_is_rejected(tmp_path: Path, path: str) -> None:
    assert not_resolved(path, tmp_path) == f"it is outside of {tmp_path}"


def test_a_sibling_folder_with_the_same_name_prefix_is_outside(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert "outside" in not_resolved("../work-2/a.py", tmp_path / "work")


def test_a_link_that_leads_outside_is_rejected(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "folder").symlink_to(tmp_path)
    assert "outside" in not_resolved("link", work)
    assert "outside" in not_resolved("folder/secret", work)


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a.py")
    assert READER.resolve("link", str(tmp_path)) == str(tmp_path / "a.py")


@pytest.mark.parametrize("path", ["itself", "one", "two", "itself/a.py", "way/a.py"])
def test_a_link_that_leads_back_to_itself_is_named_so(tmp_path: Path, path: str) -> None:
    for name, target in (("itself", "itself"), ("one", "two"), ("two", "one"), ("way", "./way")):
        (tmp_path / name).symlink_to(target)
    assert not_resolved(path, tmp_path) == "it is a link that leads back to itself"


def test_a_symlinked_working_directory_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "real")
    assert READER.resolve("a.py", str(tmp_path / "work")) == str(tmp_path / "real" / "a.py")


def test_an_invalid_path_is_rejected(tmp_path: Path) -> None:
    assert "not a path" in not_resolved("a\0b", tmp_path)
    assert "not a path" in not_resolved("a\ud800b", tmp_path)


def test_a_text_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\ufeffäöü 中文\r\n".encode())
    assert READER.read(str(tmp_path / "a"), PLENTY) == "\ufeffäöü 中文\r\n"


def test_a_file_of_exactly_the_size_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert READER.read(str(tmp_path / "a"), 5) == "12345"


def test_a_larger_file_is_rejected_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456")
    assert refused(tmp_path / "a", 5) == "it is too large, 6 bytes"


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 42)
    assert "too large" in refused(tmp_path / "huge")


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")  # noqa: PTH110
def test_a_file_that_reports_no_size_is_bounded() -> None:
    path = os.path.realpath("/proc/self/status")
    assert "too large" in refused(path, 10)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert refused(tmp_path / "none") == "there is no such file"
    assert refused(tmp_path / "file" / "none") == "there is no such file"


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    assert refused(tmp_path) == "it is a folder"


def test_a_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == "it is not a regular file"


def test_a_device_is_rejected() -> None:
    assert refused("/dev/zero") == "it is not a regular file"


def test_a_file_with_a_nul_byte_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PK\x03\x04\0\0")
    assert "NUL" in refused(tmp_path / "a")


def test_a_file_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("größe".encode("latin-1"))
    assert refused(tmp_path / "a") == "it is not text in UTF-8"


def test_a_file_without_permission_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)
    user = os.geteuid()
    if user == 0:  # who may read all gives that up for the while
        os.seteuid(65534)
    try:
        assert refused(tmp_path / "a") == "there is no permission to read it"
    finally:
        os.seteuid(user)


def test_a_file_swapped_for_a_link_since_it_was_resolved_is_not_read(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s")
    (work / "a").write_text("x")
    resolved = READER.resolve("a", str(work))
    (work / "a").unlink()
    (work / "a").symlink_to(tmp_path / "secret")
    assert refused(resolved) == "it was replaced while it was opened"


def test_a_file_swapped_for_a_link_as_it_is_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "a").write_text("x")
    opened = os.open

    def swapped_before(path: str, flags: int) -> int:
        (tmp_path / "a").unlink()
        (tmp_path / "a").symlink_to(tmp_path / "secret")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", swapped_before)
    assert refused(tmp_path / "a") == "it was replaced while it was opened"


def test_a_folder_on_the_way_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work / "src", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a").write_text(folder.name)
    resolved = READER.resolve("src/a", str(work))
    (work / "src").rename(work / "old")
    (work / "src").symlink_to(elsewhere)
    assert refused(resolved) == "it was replaced while it was opened"
