"""Writing files so that a name never stands for half a content.

Every content goes to a temporary file in its folder first; when all are complete (and flushed to
stable storage where asked), each gets its name in one step, and the folders are flushed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Windows cannot flush a folder; there the rename itself is what can be had.
_FOLDERS_CAN_BE_FLUSHED = os.name != "nt"


class Batch:
    """The files of one plan: staged one by one, published together, or taken back together.

    Raises `OSError` as the operating system does; `roll_back` then leaves the disk as it was, but
    for names already overwritten where overwriting was asked for.
    """

    def __init__(self, *, mode: int, flush: bool) -> None:
        self._mode = mode
        self._flush = flush
        self._staged: list[tuple[Path, Path]] = []
        self._published: list[Path] = []
        self._folders: list[Path] = []

    def stage(self, target: Path, content: bytes) -> None:
        """Write `content` beside `target`, complete but without its name."""
        self._make_folder(target.parent)
        temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
        self._staged.append((target, temporary))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), self._mode)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - an open descriptor, not a path
            _set_mode(temporary, self._mode)
            file.write(content)

    def publish(self, *, overwrite: bool) -> None:
        """Give every staged file its name, and have the disk keep it where that was asked for.

        Without `overwrite`, raises `FileExistsError` when another writer took a name in the
        meantime.
        """
        if self._flush:
            for _, temporary in self._staged:
                _flush_to_disk(temporary, os.O_RDWR)
        for target, temporary in self._staged:
            if overwrite:
                temporary.replace(target)
            else:
                _give_new_name(temporary, target)
                self._published.append(target)
        if self._flush and _FOLDERS_CAN_BE_FLUSHED:
            changed = {target.parent for target, _ in self._staged}
            for folder in changed | {made.parent for made in self._folders}:
                _flush_to_disk(folder, os.O_RDONLY)

    def roll_back(self) -> None:
        """Remove what this batch made: temporary files, published names, folders left empty."""
        for path in [*(temporary for _, temporary in self._staged), *self._published]:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        missing = [f for f in (folder, *folder.parents) if not f.is_dir()]
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                path.mkdir()
                self._folders.append(path)
                _set_mode(path, folder_mode(self._mode))


def folder_mode(file_mode: int) -> int:
    """Return the mode of a folder whose files have `file_mode`: x wherever they have r."""
    return file_mode | (file_mode & 0o444) >> 2


def _set_mode(path: Path, mode: int) -> None:
    """Set the mode whatever the umask was."""
    path.chmod(mode)


def _give_new_name(temporary: Path, target: Path) -> None:
    """Rename, but never over an existing file; `FileExistsError` when there is one."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        _replace_reserved(temporary, target)
    else:
        # The name is given. A second one that cannot be removed is litter, no failure.
        with contextlib.suppress(OSError):
            temporary.unlink()


def _replace_reserved(temporary: Path, target: Path) -> None:
    """Rename where there are no hard links: reserve the name, then replace the empty file."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    try:
        temporary.replace(target)
    except OSError:
        target.unlink()
        raise


def _flush_to_disk(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
