"""`Spill`: a folder in which the objects of a session wait while their service is away.

An object waits under the key that it is to get, in a file that is on stable storage. A content
gets a name that only these very bytes have, since what is taken at the service cannot be asked. A
segment of the journal gets the next number, as if it had been written. So to upload is to create
what waits, the contents before the segments that name them. It can be repeated after a crash at any
moment.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import RLock

from policyctx.errors import StoreError
from policyctx.store.backend import AwayError, Backend, StoreUrl, is_temporary, random_name
from policyctx.store.content import STATE_FOLDER, URL_FILE
from policyctx.store.index import GRACE_S
from policyctx.store.journal import JOURNAL
from policyctx.store.remote.client import ObjectClient, ObjectInfo

# Segments that can no longer be uploaded.
_ASIDE = f"{STATE_FOLDER}/set-aside"


class TakenOverError(StoreError):
    """Another process went on with the session while its objects waited here."""


class Spill:
    """The objects that wait in `folder` for the store at a URL.

    `opened` returns the folder's backend; `making` makes a folder that is missing.
    Raises `OSError`, and `StoreError` for a folder with objects of another store.
    """

    def __init__(
        self, folder: Path, url: StoreUrl, opened: Callable[..., AbstractContextManager[Backend]]
    ) -> None:
        self.folder = folder
        self.is_used = False
        """Whether something waits, or new objects are to."""
        self._url = str(url).encode()
        self._opened = opened
        segments, contents = self.waiting()
        if segments or contents:
            self._check_url()
            self.is_used = True

    def waiting(self) -> tuple[list[str], list[str]]:
        """Return the keys of the segments that wait, in their order, and those of the contents.

        The segments are looked for first, so every content that they name is among the others.
        """
        return self._keys(segments=True), self._keys(segments=False)

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object that waits; None for any other."""
        try:
            with self._opened(making=False) as backend:
                return backend.read(key)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def keep(self, key: str, raw: bytes) -> bytes | None:
        """Keep an object on stable storage; return other bytes that wait under this key."""
        with self._opened(making=True) as backend:
            if not self._has_url(backend):
                backend.write(URL_FILE, self._url, flush=True)
            with backend.batch() as batch:
                temporary = batch.stage(key, raw)
                batch.flush()
                try:
                    batch.publish(temporary, key)
                except FileExistsError:
                    found = backend.read(key)
                    return None if found == raw else found
                batch.flush_folders()
        self.is_used = True
        return None

    def remove(self, key: str) -> None:
        """Remove an object that waits no longer."""
        with self._opened(making=False) as backend:
            backend.remove(key)

    def tidy(self) -> None:
        """Remove the temporary files that a crash left more than an hour ago."""
        try:
            with self._opened(making=False) as backend:
                for path in [*filter(is_temporary, backend.files(without=frozenset()))]:
                    now = backend.time_in(path.rpartition("/")[0])
                    if now - backend.status(path).modified > GRACE_S:
                        backend.remove(path)
        except FileNotFoundError:
            return  # another process was at it

    def set_aside(self, keys: list[str]) -> str:
        """Put segments where nobody uploads them; return the path of their folder."""
        place = f"{_ASIDE}/{random_name()}"
        with self._opened(making=True) as backend:
            for key in keys:
                backend.write(f"{place}/{key.rpartition('/')[2]}", backend.read(key), flush=True)
            for key in keys:
                backend.remove(key)
        return f"{self.folder}/{place}"

    def _keys(self, *, segments: bool) -> list[str]:
        try:
            with self._opened(making=False) as backend:
                found = [path for path in backend.files(without=frozenset()) if _waits(path)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(path for path in found if _is_segment(path) == segments)

    def _has_url(self, backend: Backend) -> bool:
        try:
            return backend.read(URL_FILE) == self._url
        except FileNotFoundError:
            return False

    def _check_url(self) -> None:
        with self._opened(making=False) as backend:
            if not self._has_url(backend):
                raise StoreError(
                    f"{self.folder} holds objects that wait for another store than"
                    f" {self._url.decode()}; upload them first (policyctx store upload)",
                    path=str(self.folder),
                )


def _waits(path: str) -> bool:
    aside = path == URL_FILE or path.startswith(f"{_ASIDE}/")
    return not aside and not is_temporary(path)


def _is_segment(path: str) -> bool:
    return path.startswith(f"{STATE_FOLDER}/") and f"/{JOURNAL}/" in path


class SpillingClient(ObjectClient):
    """An `ObjectClient` whose objects wait in a folder while the service is away."""

    def __init__(self, url: StoreUrl, *, timeout: float, spill: Spill) -> None:
        super().__init__(url, timeout=timeout)
        self._spill = spill
        self._uploading = RLock()
        self._own: dict[str, bytes] = {}
        """The segments that this client let wait, until it knows that they are at the service."""

    @property
    def is_spilling(self) -> bool:
        """Whether what is created waits in the folder."""
        return self._spill.is_used

    def get(self, key: str) -> bytes:
        """Return the bytes of an object, wherever it is."""
        found = self.waiting(key)
        return super().get(key) if found is None else found

    def waiting(self, key: str) -> bytes | None:
        """Return the bytes of an object that waits; None for any other."""
        return self._spill.get(key) if self.is_spilling else None

    def info(self, key: str) -> ObjectInfo:
        """Return what is known of an object; the time of one that waits is that of no upload."""
        found = self.waiting(key)
        return super().info(key) if found is None else ObjectInfo(len(found), 0.0)

    def create_new(self, key: str, raw: bytes) -> bool:
        """Create an object where the others are; return whether its name was free, or its own."""
        if self.is_spilling:
            return self._spill.keep(key, raw) is None
        return super().create_new(key, raw)

    def create(self, key: str, raw: bytes, *, patient: bool = True) -> bytes | None:
        """Create an object where the others are."""
        if self.is_spilling and patient:
            return self._spill.keep(key, raw)
        return super().create(key, raw, patient=patient)

    def create_segment(self, key: str, raw: bytes) -> bytes | None:
        """Create an object whose name nobody else may have; it waits where the service is away."""
        try:
            if not self.is_spilling:
                return super().create(key, raw)
        except AwayError:
            pass
        other = self._spill.keep(key, raw)
        if other is None:
            self._own[key] = raw
        return other

    def upload(self) -> int:
        """Create everything that waits; return how many objects that were.

        Raises `OSError` when the service is away, and `TakenOverError` when another process wrote
        the session's next segment: the contents are there then, and the segments are set aside.
        """
        with self._uploading:
            segments, contents = self._spill.waiting()
            done = sum(self.all([partial(self._uploaded, key) for key in contents]))
            for i, key in enumerate(segments):
                raw = self._spill.get(key)
                if raw is None:
                    continue
                if super().create(key, raw, patient=False) is not None:
                    raise self._taken_over(self._spill.set_aside(segments[i:]))
                self._spill.remove(key)
                self._own.pop(key, None)
                done += 1
            for key, raw in [*self._own.items()]:  # which another process uploaded, or set aside
                if self._there(key) != raw:
                    raise self._taken_over(str(self._spill.folder))
                del self._own[key]
            self._spill.is_used = any(self._spill.waiting())
            self._spill.tidy()
            return done

    def _taken_over(self, aside: str) -> TakenOverError:
        self._spill.is_used = False
        self._own.clear()
        return TakenOverError(
            f"another process went on with this session while {self.url} was away; the contents"
            f" were uploaded, and what was decided here is in {aside}",
            path=str(self.url),
        )

    def _uploaded(self, key: str) -> bool:
        raw = self._spill.get(key)
        if raw is None:  # another process uploads too
            return False
        if super().create(key, raw, patient=False) is not None:
            raise FileExistsError(17, "another object has the name of one that waits", key)
        self._spill.remove(key)
        return True
