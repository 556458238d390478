"""`Backend`: what the store needs of a place that holds its files.

`local/` implements it with a folder of this computer and `remote/` with the objects below a URL;
all other modules of the store use only these operations. Paths are those below the root of the
store, with `/`; "" is the root. Every operation raises `OSError`: `FileNotFoundError` for a missing
file, `FileExistsError` for a name that is taken, and one with a number of `NOT_A_STORE_FILE` for a
link, a folder or a pipe; `failing_as` raises a `StoreError` in its place.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import clear_frames
from typing import IO, NamedTuple, Protocol, Self, TypeAlias

from policyctx.definitions.names import SCHEMES, is_url, url_problem
from policyctx.errors import StoreError

# The ending of the name of a temporary file, which begins with a dot.
TEMPORARY = ".tmp"
# What opening a link, a folder or a pipe in the place of a file says.
NOT_A_STORE_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.EINVAL})


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A prefix in an object store, such as `s3://bucket/prefix`, without a slash at its end."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return self.text

    @property
    def scheme(self) -> str:
        """The part before `://`."""
        return self.text.partition("://")[0]


Root: TypeAlias = Path | StoreUrl
Progress: TypeAlias = Callable[[int, int], object]
"""Called with the number done and the total."""


def absolute_root(root: str | os.PathLike[str]) -> Path:
    """Return the folder that `root` names, with `~` expanded; it need not exist.

    Raises `StoreError` for the home of an unknown user.
    """
    try:
        return Path(root).expanduser().absolute()
    except RuntimeError as error:
        raise StoreError(f"{root}: {error}", path=os.fspath(root)) from error


def store_root(root: str | os.PathLike[str]) -> Root:
    """Return the folder or the URL that `root` names. Raises `StoreError` for a wrong one."""
    text = os.fspath(root)
    if isinstance(root, Path) and root.parts[:1] in {(f"{scheme}:",) for scheme in SCHEMES}:
        sentence = f"{text} is no folder; a URL is given as a text, where one is possible"
        raise StoreError(sentence, path=text)
    if isinstance(root, Path) or not is_url(text):
        return absolute_root(root)
    if problem := url_problem(text):
        raise StoreError(f"{text.rpartition('@')[2]}: {problem}", path=text.rpartition("@")[2])
    return StoreUrl(text.rstrip("/"))


class AwayError(OSError):
    """The service of a store did not answer within the time limit; a later try may succeed."""


def random_name() -> str:
    """Return 16 random hex digits: a name that nothing else has."""
    return os.urandom(8).hex()


class FileStatus(NamedTuple):
    """The status of an entry in a folder; a link counts as itself."""

    is_file: bool
    """Whether it is a regular file."""
    size: int
    """In bytes."""
    modified: float
    """Seconds since 1970, by the clock of the disk."""
    identity: tuple[int, int]
    """The same for all names of one file; no two files that exist at the same time share it."""


class AppendLog(Protocol):
    """A file that grows at its end, held open."""

    @property
    def status(self) -> FileStatus:
        """Its status when it was opened."""

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return `size` bytes from `start` on, by default all; fewer where the file is shorter."""

    def append(self, raw: bytes, *, flush: bool) -> None:
        """Write all bytes at the end, and with `flush` wait until the disk keeps them."""

    def truncate(self, size: int) -> None:
        """Cut the file off after `size` bytes."""

    def close(self) -> None:
        """Close the file."""


class WriteBatch(Protocol):
    """Files that are staged one by one, flushed together, and named one by one.

    A file that has its name stays, since another process may rely on it already. Leaving the
    context removes the staged files that have no name.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def stage(self, path: str, content: bytes) -> str:
        """Write `content` to a temporary file beside `path`; return the temporary path."""

    def expect(self, path: str) -> None:
        """Include an existing file in the next `flush`."""

    def flush(self) -> None:
        """Wait until the disk keeps the contents of everything staged or expected."""

    def is_taken(self, path: str) -> bool:
        """Whether `flush` found that the name of a staged file is taken."""

    def publish(self, temporary: str, path: str) -> None:
        """Give a staged file its name. Raises `FileExistsError` when the name is taken."""

    def replace(self, temporary: str, path: str) -> None:
        """Give a staged file its name, in the place of the file that has it."""

    def link(self, path: str, new: str) -> None:
        """Give an existing file a second name. Raises `FileExistsError` when that is taken."""

    def flush_folders(self) -> None:
        """Wait until the disk keeps the names."""


class Backend(Protocol):
    """A place that holds the files of a store. It belongs to one thread.

    A backend that was opened for reading makes no folders. Where the store does not wait for the
    disk, `flush` has no effect.
    """

    @property
    def is_remote(self) -> bool:
        """Whether each operation is a request: nothing is locked then, and a batch takes names."""

    @property
    def is_spilling(self) -> bool:
        """Whether what is written waits in a folder, since the service of a URL is away.

        What has a name at the URL cannot be asked then.
        """

    @property
    def root(self) -> Root:
        """The absolute path, or the URL, by which callers name the root."""

    def roots(self) -> tuple[Root, ...]:
        """Return all absolute paths, or URLs, by which callers may name the root."""

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""

    def open(self, path: str) -> IO[bytes]:
        """Open a file to read it in pieces."""

    def open_log(self, path: str, *, writing: bool) -> AppendLog:
        """Open an existing file to read it, and where `writing`, to append to it."""

    def status(self, path: str) -> FileStatus:
        """Return the status of what is at a path."""

    def names(self, folder: str) -> list[str]:
        """Return the names of all entries of a folder, sorted."""

    def files(self, *, without: frozenset[str]) -> Iterator[str]:
        """Yield the path of every regular file, in order, but skip `without` in the root."""

    def write(self, path: str, content: bytes, *, flush: bool) -> FileStatus:
        """Put a new file in the place of what is at `path`, in one step; return its status."""

    def batch(self, name: str | None = None) -> WriteBatch:
        """Return a batch to write files with. Its temporary files are named after it."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Return the lock on a file, which excludes other threads and processes.

        The file is made when it is missing. Raises `StoreError` when another process keeps the lock
        for too long.
        """

    def is_locked(self, path: str) -> bool:
        """Return whether a process holds the lock on a file; a missing file is not locked.

        A free lock is acquired for a moment to find out, so whoever acquires it has to wait.
        """

    def time_in(self, folder: str) -> float:
        """Return the time, in seconds since 1970, that a file written now in a folder gets."""


def is_temporary(path: str) -> bool:
    """Whether this is the path of a temporary file, which a crash may have left."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(TEMPORARY)


@contextmanager
def failing_as(verb: str, root: Root, path: str = "") -> Iterator[None]:
    """Raise `StoreError` instead of `OSError` and `ValueError`: what cannot be `verb`, and why."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        where = str(getattr(error, "filename", None) or path or root)
        if getattr(error, "errno", None) == errno.ELOOP:
            raise StoreError(_about_link(where, str(root)), path=where) from error
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{where} cannot be {verb}: {reason}", path=where) from error
    except BaseException as error:
        if not isinstance(error, Exception):
            clear_frames(error.__traceback__)  # one of them may hold a lock that it has just taken
        raise


def _about_link(path: str, root: str) -> str:
    target, inside = (os.path.realpath(one) for one in (path, root))
    if os.path.islink(target):  # noqa: PTH114 - a path of text
        return f"{path} is a link that leads back to itself"
    if Path(target).is_relative_to(inside):
        return f"{path} is a link, and a store follows none"
    return f"{path} is a link and leads out of {root}"
