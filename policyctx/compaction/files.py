"""`WorkingFiles`: the files of a working directory, read without being led out of it."""

from __future__ import annotations

import errno
import os
import stat

from policyctx.errors import UnrestorableFileError

# A pipe must not be waited for, and a link that came since it was looked at not followed.
_READING = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READING |= getattr(os, _flag, 0)

_REPLACED = "it was replaced while it was opened"
_WHY = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.EACCES: "there is no permission to read it",
    errno.EPERM: "there is no permission to read it",
    errno.ELOOP: _REPLACED,
}


class WorkingFiles:
    """The `FileReader` of a real disk."""

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to; raises `UnrestorableFileError`."""
        try:
            folder = os.path.realpath(work_dir)
            resolved = os.path.realpath(os.path.join(folder, path))  # noqa: PTH118 - for realpath
            is_inside = os.path.commonpath((folder, resolved)) == folder
        except (OSError, ValueError) as error:
            raise UnrestorableFileError(path, f"it is no path: {error}") from error
        if not is_inside:
            raise UnrestorableFileError(path, f"it is outside of {folder}")
        return resolved

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a regular file of UTF-8; raises `UnrestorableFileError`.

        What was swapped for a link, at the end of its path or before it, since `resolve` looked at
        it is not read.
        """
        try:
            raw = _file_content(resolved, most_bytes)
        except OSError as error:
            why = _WHY.get(error.errno or 0, f"it cannot be read: {error.strerror}")
            raise UnrestorableFileError(resolved, why) from error
        if b"\0" in raw:
            raise UnrestorableFileError(resolved, "it is no text: there is a NUL byte in it")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnrestorableFileError(resolved, "it is no text in UTF-8") from error


def _file_content(resolved: str, most_bytes: int) -> bytes:
    _check_regular(resolved, os.lstat(resolved))
    with open(os.open(resolved, _READING), "rb") as file:  # noqa: PTH123 - a descriptor
        opened = os.fstat(file.fileno())
        _check_regular(resolved, opened)
        if not _is_at(resolved, opened):
            raise UnrestorableFileError(resolved, _REPLACED)
        raw = b"" if opened.st_size > most_bytes else file.read(most_bytes + 1)
    if max(opened.st_size, len(raw)) > most_bytes:
        size = max(opened.st_size, len(raw))
        raise UnrestorableFileError(resolved, f"it is too large, {size} bytes")
    return raw


def _is_at(resolved: str, opened: os.stat_result) -> bool:
    """Is what was opened the file at this very path, with no link on the way."""
    return os.path.realpath(resolved) == resolved and os.path.samestat(os.lstat(resolved), opened)


def _check_regular(resolved: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnrestorableFileError(resolved, _REPLACED)
    if stat.S_ISDIR(found.st_mode):
        raise UnrestorableFileError(resolved, "it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise UnrestorableFileError(resolved, "it is no regular file")
