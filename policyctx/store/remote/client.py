"""`ObjectClient`: requests to one prefix of an object store, repeated until a time limit.

An error that another try may cure is tried again, with growing pauses. Every request may be
repeated without harm: what is created is compared with what is there.
"""

import errno
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from policyctx import lazy
from policyctx.definitions.items import HostObject
from policyctx.errors import MissingExtraError, StoreError
from policyctx.store.backend import AwayError, StoreUrl

T = TypeVar("T")

# A server that does not answer at all is asked so often.
_TRIES = 3
# A name may be taken and free again so often while one object is created.
_MOST_TURNS = 20
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_LONGEST_CONNECT_S = 5.0
# Requests at a time; the rest of a large batch waits.
_AT_A_TIME = 16
# Answers between 400 and 499 are final, but for these.
_MAY_BE_CURED = frozenset({408, 409, 425, 429})
_STATUS = re.compile(r"status code: (\d{3})")
_REASON = re.compile(r"<Message>([^<]{1,200})")
# The variable that allows an endpoint without TLS; the package reads it only without options.
_ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}
_PROBE = ".policyctx/~create-only"
_KINDS = {
    "AlreadyExistsError": FileExistsError,
    "PreconditionError": FileExistsError,
    "PermissionDeniedError": PermissionError,
    "UnauthenticatedError": PermissionError,
}
_NUMBERS = {FileExistsError: errno.EEXIST, PermissionError: errno.EACCES}


class ObjectInfo(NamedTuple):
    """The size of an object in bytes, and when it was written, in seconds since 1970."""

    size: int
    modified: float


class ObjectClient:
    """Requests to the objects below a URL; keys are relative to it, with `/`.

    Credentials, endpoint and region come from the environment, as the service's own tools read
    them. No request takes longer than `timeout` seconds, retries included. Raises `OSError`:
    `FileNotFoundError` for a missing object, `FileExistsError` for a name that is taken.
    """

    def __init__(self, url: StoreUrl, *, timeout: float) -> None:
        self.url, self._timeout = url, timeout
        self._process = os.getpid()
        self._api, self._opened = _opened(url, timeout)

    @property
    def _store(self) -> HostObject:
        if self._opened is None:
            _, self._opened = _opened(self.url, self._timeout)
        return self._opened

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._opened = None

    def get(self, key: str) -> bytes:
        """Return the bytes of an object."""
        return bytes(self._tried(key, lambda: self._api.get(self._store, key).bytes()))

    def find(self, key: str) -> bytes | None:
        """Return the bytes of an object, None if there is none."""
        try:
            return self.get(key)
        except FileNotFoundError:
            return None

    def _there(self, key: str) -> bytes | None:
        """Return the bytes of an object of the service, None if there is none."""
        try:
            return ObjectClient.get(self, key)
        except FileNotFoundError:
            return None

    def info(self, key: str) -> ObjectInfo:
        """Return what is known of an object without its bytes."""
        found = self._tried(key, lambda: self._api.head(self._store, key))
        return ObjectInfo(int(found["size"]), found["last_modified"].timestamp())

    @property
    def is_spilling(self) -> bool:
        """Whether what is created waits in a folder of this computer."""
        return False

    def waiting(self, key: str) -> bytes | None:  # noqa: ARG002
        """Return the bytes of an object that waits in a folder; None for any other."""
        return None

    def create_segment(self, key: str, raw: bytes) -> bytes | None:
        """Create an object whose name nobody else may have; see `create`."""
        return self.create(key, raw)

    def create_new(self, key: str, raw: bytes) -> bool:
        """Create an object; return whether its name was free, without a look at what has it.

        Where a try failed, the object may be its own, and is looked at.
        """
        tries = 0

        def put() -> object:
            nonlocal tries
            tries += 1
            return self._api.put(self._store, key, raw, mode="create")

        try:
            with self._in_bucket():
                self._tried(key, put)
        except FileExistsError:
            return tries > 1 and self._there(key) == raw
        return True

    def create(self, key: str, raw: bytes, *, patient: bool = True) -> bytes | None:
        """Create an object; return None, or the other bytes that have the name.

        An object with these very bytes is the wanted one: an earlier try may have made it. Unless
        `patient`, a request is not repeated.
        """
        for _ in range(_MOST_TURNS):
            try:
                self._put_new(key, raw, patient=patient)
            except FileExistsError:
                found = self._there(key)
                if found is None:  # another writer was at it and gave up
                    continue
                return None if found == raw else found
            return None
        raise OSError(errno.EIO, "the name is taken, and nothing has it", f"{self.url}/{key}")

    def put(self, key: str, raw: bytes) -> None:
        """Write an object, in the place of what has the name."""
        self._tried(key, lambda: self._api.put(self._store, key, raw))

    def remove(self, key: str) -> None:
        """Remove an object. Raises `FileNotFoundError` only where the service says so."""
        self._tried(key, lambda: self._api.delete(self._store, key))

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects and folders in a folder, sorted."""
        found = self._tried(
            folder, lambda: self._api.list_with_delimiter(self._store, folder or None)
        )
        keys = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        return sorted({key.rstrip("/").rpartition("/")[2] for key in keys})

    def listed(self) -> Iterator[str]:
        """Yield the key of every object, in order."""
        found = self._tried("", lambda: [*self._api.list(self._store)])
        yield from sorted(one["path"] for chunk in found for one in chunk)

    def all(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Make several calls at a time, and return their results in order.

        All calls have ended when this raises the first error.
        """
        if len(calls) <= 1:
            return [call() for call in calls]
        # Threads cost little beside a request, and hundreds of stores may wait for their next turn.
        with lazy.futures.ThreadPoolExecutor(min(len(calls), _AT_A_TIME)) as threads:
            waiting = [threads.submit(call) for call in calls]
        return [one.result() for one in waiting]

    def check_creating(self, *, patient: bool = True) -> None:
        """Raise `StoreError` when the service overwrites an object that must only be created."""
        for _ in range(2):
            try:
                self._put_new(_PROBE, b"", patient=patient)
            except FileExistsError:
                return
        raise StoreError(
            f"{self.url} cannot hold a store: the service ignores `If-None-Match: *`, so two"
            " writers would overwrite each other's objects; use a service with conditional writes",
            path=str(self.url),
        )

    def _put_new(self, key: str, raw: bytes, *, patient: bool) -> None:
        def put() -> object:
            return self._api.put(self._store, key, raw, mode="create")

        with self._in_bucket():
            self._tried(key, put, patient=patient)

    @contextmanager
    def _in_bucket(self) -> Iterator[None]:
        """Say of an object that cannot be created that its bucket is missing."""
        try:
            yield
        except FileNotFoundError as error:
            raise OSError(errno.ENOENT, "no such bucket", str(self.url)) from error

    def _tried(self, key: str, call: Callable[[], T], *, patient: bool = True) -> T:
        if self._process != os.getpid():
            raise StoreError(
                f"{self.url} was opened before this process was forked; open it again in a process"
                " that is started anew (multiprocessing: `spawn` or `forkserver`)",
                path=str(self.url),
            )
        # The last try begins early enough to end in time.
        end = time.monotonic() + (self._timeout * (1 - 1 / _TRIES) if patient else 0)
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return call()
            except (FileNotFoundError, ValueError) as error:
                raise _os_error(error, f"{self.url}/{key}") from error
            except self._api.exceptions.BaseError as error:
                where = f"{self.url}/{key}"
                if not _is_curable(error):
                    raise _os_error(error, where) from error
                if end - time.monotonic() < pause:
                    raise AwayError(errno.EIO, _reason(error), where) from error
            time.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _opened(url: StoreUrl, timeout: float) -> tuple[Any, Any]:
    """Return the package, and its store of a URL."""
    try:
        import obstore  # noqa: PLC0415 - 30 ms, and only for a store at a URL
        import obstore.exceptions  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(f"a store at {url.scheme}://", extra="cloud") from error
    stores: Any = obstore.store
    if url.scheme == "file":
        return obstore, stores.LocalStore(unquote(urlsplit(url.text).path), mkdir=True)
    each = timedelta(seconds=timeout / _TRIES)
    options = {
        "timeout": each,
        "connect_timeout": min(each, timedelta(seconds=_LONGEST_CONNECT_S)),
        "allow_http": os.environ.get(_ALLOW_HTTP.get(url.scheme, ""), "").lower() in {"1", "true"},
    }
    try:
        found = stores.from_url(
            url.text, client_options=options, retry_config={"max_retries": 0, "retry_timeout": each}
        )
    except (ValueError, obstore.exceptions.BaseError) as error:
        raise StoreError(f"{url} cannot be opened: {_first_line(error)}", path=url.text) from error
    return obstore, found


def _is_curable(error: Exception) -> bool:
    """Whether another try may succeed: no answer, or one that is not about the request itself."""
    if type(error).__name__ != "GenericError" or "builder error" in str(error):
        return False
    if "Not a directory" in str(error):  # of `file://`
        return False
    status = _STATUS.search(str(error))
    return status is None or int(status[1]) >= 500 or int(status[1]) in _MAY_BE_CURED  # noqa: PLR2004


def _os_error(error: Exception, where: str) -> OSError:
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such object", where)
    if "Not a directory" in str(error):  # of `file://`
        return NotADirectoryError(errno.ENOTDIR, "not a folder", where)
    kind = _KINDS.get(type(error).__name__, OSError)
    return kind(_NUMBERS.get(kind, errno.EIO), _reason(error), where)


def _reason(error: Exception) -> str:
    found = _REASON.search(str(error))
    return found[1] if found else _first_line(error)


def _first_line(error: Exception) -> str:
    """Return what an error of the package says first; the rest repeats it for developers."""
    line = str(error).partition("\n")[0]
    return line if len(line) <= 300 else f"{line[:299]}…"  # noqa: PLR2004 - a line of a message
