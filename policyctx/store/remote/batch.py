"""`ObjectBatch`: contents that are created together, under the names that they are to get.

An object is whole or not there, so it needs no temporary name. After an error the created ones
stay, and the next try, which finds its own bytes there, uses them again.
"""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from policyctx.store.remote.client import ObjectClient


class ObjectBatch:
    """The objects of one save. See `WriteBatch`.

    `taken` gets the bytes of each object that had a name before, by its path.
    """

    def __init__(self, client: ObjectClient, taken: dict[str, bytes]) -> None:
        self._client = client
        self._taken = taken
        self._staged: dict[str, tuple[str, bytes]] = {}
        self._created: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._taken.clear()

    def stage(self, path: str, content: bytes) -> str:
        """Keep a content for the next `flush`; return the name of the batch for it."""
        name = f"{len(self._staged)}:{path}"
        self._staged[name] = path, content
        return name

    def expect(self, path: str) -> None:
        """Do nothing: what is there is durable."""

    def flush(self) -> None:
        """Create everything staged since, at the same time; a taken name is no error yet."""
        known = self._created.union(self._taken)
        new = [one for one in self._staged.values() if one[0] not in known]
        found = self._client.all([partial(self._client.create, *one) for one in new])
        for (path, _), other in zip(new, found, strict=True):
            self._note(path, other)

    def publish(self, temporary: str, path: str) -> None:
        """See to it that a staged content has its name. Raises `FileExistsError`."""
        _, content = self._staged[temporary]
        if path not in self._created and path not in self._taken:
            self._note(path, self._client.create(path, content))
        if path in self._taken:
            raise FileExistsError(path)

    def replace(self, temporary: str, path: str) -> None:
        """Write a staged content in the place of what has the name."""
        if path not in self._created:
            self._client.put(path, self._staged[temporary][1])

    def link(self, path: str, new: str) -> None:  # noqa: ARG002
        """Raise `OSError`: an object has one name."""
        raise OSError(errno.ENOTSUP, "an object has one name", new)

    def flush_folders(self) -> None:
        """Do nothing: an object that was created is durable, with its name."""

    def _note(self, path: str, other: bytes | None) -> None:
        if other is None:
            self._created.add(path)
        else:
            self._taken[path] = other
