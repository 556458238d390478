from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from policyctx.resources import open_file


def test_a_regular_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\r\nb")
    with open_file(path) as file:
        assert file.read() == b"a\r\nb"


def test_a_pipe_without_a_writer_is_rejected_at_once(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file: it is a pipe"):
        open_file(path)


def test_a_socket_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the names of sockets must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(OSError, match="not a regular file: it is a socket"):
            open_file(Path("socket"), allow_pipe=True)


def test_a_device_is_rejected() -> None:
    with pytest.raises(OSError, match="not a regular file: it is a device"):
        open_file(Path("/dev/zero"), allow_pipe=True)


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
