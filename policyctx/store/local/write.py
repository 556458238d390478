"""Files that are written so that a name never refers to half a content.

Each content goes to a temporary file in its folder first. When all are complete (and flushed to
stable storage where asked), each gets its name in one step, and the folders are flushed. A file
that has its name stays: another process may rely on it already.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from policyctx.store.local.tree import NEW_FILE, READING, set_mode

if TYPE_CHECKING:
    from policyctx.store.local.tree import Folder, Tree

try:
    from fcntl import F_FULLFSYNC, fcntl  # type: ignore[attr-defined,unused-ignore] # macOS has it
except ImportError:
    F_FULLFSYNC = None  # type: ignore[assignment,unused-ignore]

TEMPORARY = ".tmp"
# A disk takes several flushes at a time; from eight on it is no faster.
_FLUSHING_THREADS = 8
# Files that wait open for their flush; systems allow some hundreds to a process.
_WAITING = 64


class Batch:
    """The files of one plan: staged one by one, flushed together, and named one by one.

    Temporary names begin with the id that the batch is announced by, where it is. Raises `OSError`
    as the operating system does. Leaving the context removes what got no name.
    """

    def __init__(self, tree: Tree, *, mode: int, flush: bool, of: str | None = None) -> None:
        self._prefix = "." if of is None else f".{of}-"
        self._tree = tree
        self._mode = mode
        self._flush = flush
        self._unnamed: set[str] = set()
        self._waiting: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._waiting:
            os.close(descriptor)
        for temporary in self._unnamed:
            with contextlib.suppress(OSError):
                folder, name = self._tree.place(temporary)
                folder.remove(name)

    def stage(self, path: str, content: bytes) -> str:
        """Write `content` beside `path`, complete but without its name; return where."""
        folder, _ = self._tree.place(path)
        name = f"{self._prefix}{secrets.token_hex(8)}{TEMPORARY}"
        descriptor = folder.open(name, NEW_FILE, self._mode)
        temporary = _beside(path, name)
        self._unnamed.add(temporary)
        try:
            set_mode(descriptor, self._mode)
            write_all(descriptor, content)
        except OSError as error:
            os.close(descriptor)
            error.filename = f"{folder.path}/{path.rpartition('/')[2]}"
            raise
        self._wait_for(descriptor)
        return temporary

    def expect(self, path: str) -> None:
        """Have a file that is there already flushed with the others."""
        if self._flush:
            folder, name = self._tree.place(path)
            self._wait_for(folder.open(name, READING))

    def flush(self) -> None:
        """Wait until the disk keeps the content of everything staged or expected."""
        waiting, self._waiting = self._waiting, []
        try:
            if len(waiting) == 1:
                flush_file(waiting[0])
            elif waiting:
                with ThreadPoolExecutor(min(_FLUSHING_THREADS, len(waiting))) as threads:
                    for _ in threads.map(flush_file, waiting):
                        pass
        finally:
            for descriptor in waiting:
                os.close(descriptor)

    def name(self, temporary: str, path: str) -> None:
        """Give a staged file its name; `FileExistsError` when that is taken."""
        folder, name = self._tree.place(temporary)
        new = path.rpartition("/")[2]
        try:
            folder.link(name, folder, new)
        except FileExistsError:
            raise
        except OSError:
            _replace_reserved(folder, name, new)
        else:
            # The name is given. A second one that cannot be removed is litter, no failure.
            with contextlib.suppress(OSError):
                folder.remove(name)
        self._unnamed.discard(temporary)
        self._tree.changed.add(path.rpartition("/")[0])

    def link(self, path: str, new: str) -> None:
        """Give a file that is there a second name; `FileExistsError` when that is taken."""
        folder, name = self._tree.place(path)
        target, new_name = self._tree.place(new)
        folder.link(name, target, new_name)
        self._tree.changed.add(new.rpartition("/")[0])

    def put(self, temporary: str, path: str) -> None:
        """Give a staged file its name, over what has it."""
        folder, name = self._tree.place(temporary)
        folder.replace(name, path.rpartition("/")[2])
        self._unnamed.discard(temporary)
        self._tree.changed.add(path.rpartition("/")[0])

    def flush_folders(self) -> None:
        """Wait until the disk keeps the names."""
        if self._flush:
            self._tree.flush_changed()

    def _wait_for(self, descriptor: int) -> None:
        if not self._flush:
            os.close(descriptor)
            return
        self._waiting.append(descriptor)
        if len(self._waiting) >= _WAITING:
            self.flush()


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; the system may take fewer at a time."""
    written = os.write(descriptor, content)
    if written < len(content):
        left = memoryview(content)[written:]
        while left:
            left = left[os.write(descriptor, left) :]


def flush_file(descriptor: int) -> None:
    """Wait until the disk itself keeps the file; macOS calls that by another name."""
    if F_FULLFSYNC is not None:
        with contextlib.suppress(OSError):  # a file system that does not know it
            fcntl(descriptor, F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _beside(path: str, name: str) -> str:
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{name}"


def _replace_reserved(folder: Folder, name: str, new: str) -> None:
    """Rename where there are no hard links: reserve the name, then replace the empty file."""
    os.close(folder.open(new, NEW_FILE))
    try:
        folder.replace(name, new)
    except OSError:
        folder.remove(new)
        raise
