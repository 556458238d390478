"""Recordings in an object store: what is at a URL, and its bytes, piece by piece."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO, NamedTuple

from policyctx.store.backend import StoreUrl
from policyctx.store.remote.client import ObjectClient

# Seconds for one request, repetitions included.
_TIMEOUT_S = 60.0
# A smaller object is fetched at once, and kept while it is read.
_FETCHED_WHOLE = 16 * 2**20
_PIECE = 4 * 2**20


class ObjectUrl(NamedTuple):
    """An object in an object store, or all objects below a prefix."""

    bucket: str
    """Such as `s3://bucket`."""
    key: str

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    def size(self) -> int:
        """Return the bytes of the object. Raises `OSError`."""
        return _bucket(self.bucket).info(self.key).size

    def below(self) -> Iterator[tuple[ObjectUrl, int]]:
        """Yield each object below the prefix with its size in bytes, sorted. Raises `OSError`."""
        for key, size in _bucket(self.bucket).sizes(self.key):
            yield ObjectUrl(self.bucket, key), size


class Opener:
    """Opens an object as a file, several times. Raises `OSError`."""

    def __init__(self, url: ObjectUrl) -> None:
        self._url = url
        self._size: int | None = None
        self._content: bytes | None = None

    def __call__(self) -> BinaryIO:
        """Return the object as a file at its beginning."""
        bucket = _bucket(self._url.bucket)
        if self._size is None:
            self._size = self._url.size()
        if self._size > _FETCHED_WHOLE:
            return io.BufferedReader(_ObjectFile(bucket, self._url.key, self._size), _PIECE)
        if self._content is None:
            self._content = bucket.get(self._url.key)
        return io.BytesIO(self._content)


class _Bucket(ObjectClient):
    """Requests that only recordings need."""

    def sizes(self, prefix: str) -> list[tuple[str, int]]:
        """Return each object below a prefix with its size in bytes, sorted."""
        found = self._tried(prefix, lambda: [*self._api.list(self._store, prefix or None)])
        return sorted((one["path"], int(one["size"])) for chunk in found for one in chunk)

    def piece(self, key: str, start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` to before `end`."""
        get = self._api.get_range
        return bytes(self._tried(key, lambda: get(self._store, key, start=start, end=end)))


@lru_cache(maxsize=8)  # a client keeps its connections
def _bucket(url: str) -> _Bucket:
    return _Bucket(StoreUrl(url), timeout=_TIMEOUT_S)


class _ObjectFile(io.RawIOBase):
    """An object as a file, of which each read is a request."""

    def __init__(self, bucket: _Bucket, key: str, size: int) -> None:
        super().__init__()
        self._bucket, self._key, self._size = bucket, key, size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read as many bytes as the buffer takes, up to the end."""
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        piece = self._bucket.piece(self._key, self._position, end)
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
