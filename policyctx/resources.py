"""Files that are read: the folders that ship with the library, and files that a user names."""

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO

_PACKAGE = Path(__file__).resolve().parent
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def shipped_folder(name: str) -> Path:
    """Return the folder `policies` or `features`, as installed or as checked out.

    A wheel carries both inside the package; in a checkout, and so in an editable install, they
    are beside it.
    """
    installed = _PACKAGE / "shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def open_file(path: Path, *, allow_pipe: bool = False) -> BinaryIO:
    """Open a regular file for reading; with `allow_pipe`, a named pipe or `/dev/fd/N` as well.

    Anything else is refused without waiting for it: a pipe may have no writer, and a device no end.
    Raises `OSError`, whose `strerror` says what the path is.
    """
    mode = path.stat().st_mode
    if allow_pipe and stat.S_ISFIFO(mode):
        return path.open("rb")
    _require_regular(mode, path)
    # The path may be another file by now, so the open file is checked as well.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open_at_once(path, flags)
    try:
        _require_regular(os.fstat(file.fileno()).st_mode, path)
    except OSError:
        file.close()
        raise
    return file


def open_at_once(path: str | Path, flags: int) -> BufferedReader:
    """Open a file for reading, in one call: an interrupt may come after any."""
    (file,) = map(FileIO, map(os.open, (path,), (flags,)))
    file.name = str(path)  # otherwise the number of the descriptor
    return BufferedReader(file)


def _require_regular(mode: int, path: Path) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = next((f": it is {name}" for is_kind, name in _KINDS if is_kind(mode)), "")
    raise OSError(errno.EINVAL, f"not a regular file{kind}", str(path))
