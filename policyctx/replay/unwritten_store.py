"""Stores that write nothing: `UnwrittenStore` of a replay, `UnwrittenRecords` of a dry run."""

import os
from collections.abc import Sequence

from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.paths import File, FreePaths
from policyctx.policy.models.steps import Store
from policyctx.store.backend import Root
from policyctx.store.content import Content, encoded, sha256_of
from policyctx.turns.effects import Record


class UnwrittenStore:
    """Takes what a session saves, and keeps its path, its hash and its size, but not its text.

    Paths are given out as the policy's `on_conflict` says; a content saved again has the file that
    it had. Implements `SessionStore`.
    """

    keeps_blocks = True

    def __init__(self, root: Root, settings: Store) -> None:
        self.root = root
        self._settings = settings
        self._hashes: dict[str, str] = {}
        self._paths = FreePaths()
        self._sizes: dict[str, int] = {}

    @property
    def files(self) -> int:
        """How many files would have been written."""
        return len(self._sizes)

    @property
    def bytes(self) -> int:
        """Bytes of their texts in UTF-8, before any compression."""
        return sum(self._sizes.values())

    def size(self, relative_path: str) -> int:
        """Return the bytes of the file at a path below the root; 0 where there is none."""
        return self._sizes.get(relative_path, 0)

    def read(self, path: str | os.PathLike[str]) -> str:
        """Raise `StoreError`: nothing was kept that could be read."""
        raise StoreError(f"{path}: a replay keeps no files", path=str(path))

    def holds(self, path: str) -> bool:
        """Return whether the file would have been written."""
        return path.removeprefix(f"{self.root}/") in self._sizes

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Return the file that each content would have got."""
        del recorded
        return [self._saved(content) for content in contents]

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Forget records: a replay is never taken up again."""

    def records(self) -> list[dict[str, JSON]]:
        """Return none: a replay begins with nothing."""
        return []

    def _saved(self, content: Content) -> File:
        raw = encoded(content.text)
        found = sha256_of(raw)
        path = self._path(content, found)
        self._hashes[path] = found
        self._sizes[path] = len(raw)
        return File(path, f"{self.root}/{path}")

    def _path(self, content: Content, found: str) -> str:
        expected = content.relative_path
        if self._hashes.get(expected, found) == found or self._settings.on_conflict == "overwrite":
            return expected
        if self._settings.on_conflict == "error":
            raise StoreError(f"{expected}: the name is taken", path=f"{self.root}/{expected}")
        return self._paths.take(
            content.wanted_path or expected,
            passes=lambda path: self._hashes.get(path, found) == found,
        )


class UnwrittenRecords(UnwrittenStore):
    """A store that writes nothing, and keeps the records of its session."""

    def __init__(self, root: Root, settings: Store) -> None:
        super().__init__(root, settings)
        self._records: list[dict[str, JSON]] = []

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session in memory."""
        del flush
        self._records += map(dict, records)

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""
        return [*self._records]
