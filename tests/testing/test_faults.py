"""Faults of the operating system, for a folder and for a while."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from policyctx.testing.faults import FULL, home_directory, passing_time, refusing_writes


def test_nothing_is_written_below_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "old").write_text("kept")
    with refusing_writes(folder, FULL):
        for write in (
            lambda: (folder / "new").write_text("x"),
            lambda: (folder / "old").open("ab"),
            lambda: os.open(folder / "new", os.O_WRONLY | os.O_CREAT),
            lambda: (folder / "deep" / "er").mkdir(parents=True),
        ):
            with pytest.raises(OSError, match="No space left on device") as error:
                write()
            assert error.value.errno == errno.ENOSPC
        assert (folder / "old").read_text() == "kept"
    assert [path.name for path in folder.iterdir()] == ["old"]


def test_other_folders_stay_writable_and_afterwards_this_one_too(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    with refusing_writes(folder, FULL):
        (tmp_path / "full-too").write_text("x")
    folder.mkdir()
    (folder / "new").write_text("y")
    assert (tmp_path / "full-too").read_text() == "x"
    assert (folder / "new").read_text() == "y"


def test_the_home_directory_is_replaced_temporarily(tmp_path: Path) -> None:
    before = os.path.expanduser("~")  # noqa: PTH111 - what it expands to is what is tested
    with home_directory(tmp_path):
        assert os.path.expanduser("~") == str(tmp_path)  # noqa: PTH111
    assert os.path.expanduser("~") == before  # noqa: PTH111


def test_a_pause_takes_no_time_and_is_reported() -> None:
    passed: list[float] = []
    with passing_time(passed.append):
        time.sleep(3600)
    assert passed == [3600]


def test_a_pause_takes_time_again_afterwards() -> None:
    sleep = time.sleep
    with pytest.raises(KeyError), passing_time(lambda _: None):
        raise KeyError
    assert time.sleep is sleep
