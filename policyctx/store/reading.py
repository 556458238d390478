"""Reading a content back, by any of its keys, and only as it was saved."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from policyctx.errors import CorruptContentError, StoreError
from policyctx.policy.diagnosing import hint
from policyctx.store.encoding import decoded, encoded, sha256_of
from policyctx.store.entries import is_inside
from policyctx.store.files import is_stored, stored_bytes, text_of
from policyctx.store.naming import is_temporary
from policyctx.store.packing import PACKED
from policyctx.store.rebuilding import is_named_after, stray_files

if TYPE_CHECKING:
    import os

    from policyctx.store.content import JSON
    from policyctx.store.entries import Entry
    from policyctx.store.files import Format
    from policyctx.store.index import Index
    from policyctx.store.opening import Tree


class Reader:
    """Reads from one store. The `reserved` paths are no contents; None says that it keeps no index.

    Raises `OSError`, `StoreError` and `CorruptContentError`.
    """

    def __init__(
        self, tree: Tree, index: Index, form: Format, *, reserved: frozenset[str] | None = None
    ) -> None:
        self._reserved = reserved
        self._tree = tree
        self._index = index
        self._format = form

    def text(self, key: str | os.PathLike[str], lines: tuple[int, int] | None = None) -> str:
        """Return the text of a path, item id or tool-use id; its `lines`, or all of it."""
        entry = self.entry(key)
        found = self._unknown(key) if entry is None else self.of(entry)
        return found if lines is None else _lines(found, *lines)

    def has(self, key: str | os.PathLike[str]) -> bool:
        """Whether the index knows a key, or there is a file at it as a path."""
        path = self._relative(key)
        return self.entry(key) is not None or (path is not None and is_stored(self._tree, path))

    def known(self, key: str | os.PathLike[str]) -> Entry:
        """Return what the index knows of a key. Raises `StoreError` when that is nothing."""
        entry = self.entry(key)
        if entry is None:
            raise StoreError(f"{key} is not in the index of {self._tree.root}", path=str(key))
        return entry

    def block(self, key: str | os.PathLike[str]) -> JSON:
        """Return the original block of a content."""
        entry = self.known(key)
        if entry.hollow is None:
            raise StoreError(f"{key}: its original block was not kept", path=str(key))
        return entry.hollow.filled(self.of(entry))

    def entry(self, key: str | os.PathLike[str]) -> Entry | None:
        """Return what the index knows of a path or an id, a path first."""
        path = self._relative(key)
        if path is not None:
            found = self._index.at(path) or self._index.at(path.removesuffix(PACKED))
            if found is not None:
                return found
        return self._index.by_id(key) if isinstance(key, str) else None

    def of(self, entry: Entry) -> str:
        """Return the text of an entry. Raises `CorruptContentError` when its file holds another."""
        try:
            raw = stored_bytes(self._tree, entry.path)
            text = decoded(raw) if entry.format == "text" else text_of(raw, entry.format)
        except ValueError as error:
            raise self._corrupt(entry, f"no content: {error}") from error
        found = sha256_of(raw if entry.format == "text" else encoded(text))
        if found not in {entry.sha256, entry.replaces}:
            raise self._corrupt(entry, found)
        return text

    def _unknown(self, key: str | os.PathLike[str]) -> str:
        """The text of a file that no index tells of, such as another session's."""
        try:
            return text_of(stored_bytes(self._tree, self._path(key)), self._format)
        except FileNotFoundError as error:
            found = self._stray(key)
            if found is not None:
                return found
            where = str(self._tree.root / key)
            meant = hint(key, self._index.ids())
            reason = f"No such file, and no item of this id{meant and '; '}{meant}"
            raise StoreError(f"{where} cannot be read: {reason}", path=where) from error

    def _stray(self, key: str | os.PathLike[str]) -> str | None:
        """The text of a file that is named after an item, of which the journal lost every line."""
        if self._reserved is None or not isinstance(key, str):
            return None
        for path in stray_files(self._tree, self._index, but=self._reserved):
            if is_named_after(path, key):
                with suppress(OSError, ValueError):
                    return text_of(stored_bytes(self._tree, path), self._format)
        return None

    def _corrupt(self, entry: Entry, found: str) -> CorruptContentError:
        target = f"{self._tree.root}/{entry.path}"
        return CorruptContentError(path=target, expected=entry.sha256, found=found)

    def _path(self, key: str | os.PathLike[str]) -> str:
        path = self._relative(key)
        if path is None or is_temporary(path):
            where = self._tree.root / key
            raise StoreError(f"{where} is not in the store {self._tree.root}", path=str(where))
        return path

    def _relative(self, key: str | os.PathLike[str]) -> str | None:
        """The path below the root that `key` may be; None where it lies elsewhere."""
        given = Path(key)
        if not given.is_absolute():
            path = given.as_posix()
            return path if is_inside(path) else None
        here = (self._tree.root, self._tree.root.resolve())
        for root in (*here, *map(Path, self._index.roots)):
            if given.is_relative_to(root):
                path = given.relative_to(root).as_posix()
                return path if is_inside(path) else None
        return None


def _lines(text: str, first: int, last: int) -> str:
    every = re.findall(r"[^\n]*\n|[^\n]+", text)
    return "".join(every[max(first, 1) - 1 : max(last, 0)])
