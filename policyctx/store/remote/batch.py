"""`ObjectBatch`: contents that are created together, under the names that they are to get.

An object is whole or not there, so it needs no temporary name. After an error the created ones
stay, and the next try of the same process uses them again.
"""

from __future__ import annotations

import errno
from functools import partial
from hashlib import sha256
from typing import Self

from policyctx.store.remote.client import ObjectClient


class ObjectBatch:
    """The objects of one save. See `WriteBatch`.

    `created` holds the SHA-256 of each object that this process created and no journal names yet,
    by its path.
    """

    def __init__(self, client: ObjectClient, created: dict[str, bytes]) -> None:
        self._client = client
        self._unnamed = created
        self._staged: dict[str, tuple[str, bytes]] = {}
        self._created: set[str] = set()
        self._taken: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave everything as it is: there are no temporary names."""

    def stage(self, path: str, content: bytes) -> str:
        """Keep a content for the next `flush`; return the name of the batch for it."""
        name = f"{len(self._staged)}:{path}"
        self._staged[name] = path, content
        return name

    def expect(self, path: str) -> None:
        """Do nothing: what is there is durable."""

    def flush(self) -> None:
        """Create everything staged since, at the same time; a taken name is no error yet."""
        known = self._created | self._taken
        new = {path: content for path, content in self._staged.values() if path not in known}
        again = {path for path in new if self._unnamed.get(path) == _digest(new[path])}
        self._created |= again
        calls = [partial(self._create, *one) for one in new.items() if one[0] not in again]
        self._client.all(calls)

    def is_taken(self, path: str) -> bool:
        """Whether `flush` found that something, unread so far, has the name of a staged content."""
        return path in self._taken

    def publish(self, temporary: str, path: str) -> None:
        """See to it that a staged content has its name. Raises `FileExistsError`."""
        _, content = self._staged[temporary]
        if path not in self._created and self._client.create(path, content) is not None:
            raise FileExistsError(path)
        self._created.add(path)

    def replace(self, temporary: str, path: str) -> None:
        """Write a staged content in the place of what has the name."""
        if path not in self._created:
            self._client.put(path, self._staged[temporary][1])

    def link(self, path: str, new: str) -> None:  # noqa: ARG002
        """Raise `OSError`: an object has one name."""
        raise OSError(errno.ENOTSUP, "an object has one name", new)

    def flush_folders(self) -> None:
        """Do nothing: an object that was created is durable, with its name."""

    def _create(self, path: str, content: bytes) -> None:
        if self._client.create_new(path, content):
            self._created.add(path)
            self._unnamed[path] = _digest(content)
        else:
            self._taken.add(path)


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()
