"""`ContextFileSystem`: where offloaded content lives, and how it is read back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from policyctx.planning.paths import EXTENSIONS, path_parts, relative_path
from policyctx.store.content import Content, Origin
from policyctx.store.history import Event, events
from policyctx.store.searching import matches
from policyctx.store.upkeep import Upkeep

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from policyctx.messages.items import Item
    from policyctx.store.content import JSON, Saved
    from policyctx.store.entries import Entry
    from policyctx.store.reading import Reader
    from policyctx.store.searching import Match

__all__ = ["Content", "ContextFileSystem"]

# Where `offload` puts an item: as a policy that says nothing else.
PATH = "{item_type}/{tool_name}/{item_id}.{ext}"


class ContextFileSystem(Upkeep):
    """Everything that left a context: saved for good, and read back by path, id or text."""

    def offload(
        self,
        item: Item,
        *,
        tokens: int | None = None,
        block: JSON = None,
        path: str = PATH,
    ) -> Saved:
        """Save one item; a placeholder may name its file until `release` says otherwise.

        `block` is the item's original block, or message, for `restore`; `path` the form of its
        path, as a policy's `store.path`. Raises `StoreError`.
        """
        values = {
            "item_id": item.item_id,
            "item_type": item.type,
            "tool_name": item.tool,
            "tool_use_id": item.tool_use_id,
            "session_id": self._session or "",
            "ext": EXTENSIONS[self._format],
        }
        origin = Origin(
            item.item_id,
            item.type,
            item.tool_use_id,
            item.tool,
            item.role,
            item.message,
            item.turn,
            tokens,
            block,
        )
        wanted = relative_path(path_parts(path), values, item.text)
        [saved] = self.saved([Content(wanted, item.text, origin=origin)], recorded=True)
        self._refer(item.item_id, saved.file.relative_path, saved.sha256, "offloaded")
        return saved

    def release(self, key: str | os.PathLike[str]) -> None:
        """Say that no placeholder names a content any longer, so that `collect` may take it."""
        with self._reading(key) as reader:
            entry = reader.known(key)
        self._refer(entry.item_id, entry.path, entry.sha256, "dropped")

    def read(self, key: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> str:
        """Return the saved text: by path, absolute or below the root, by item id or tool-use id.

        `lines` are the first and last wanted, from 1 on. Of an id that was used twice, the newest
        is meant. Raises `CorruptContentError` when the file holds another text than was saved,
        `AmbiguousSessionError` for an id where only sessions with an id share the root and this
        store has none, and `StoreError` when there is no file, it cannot be read, or it is not in
        this store.
        """
        with self._reading(key) as reader:
            return reader.text(key, lines)

    def restore(self, key: str | os.PathLike[str]) -> JSON:
        """Return the original block, or message where its content is a string, as it was.

        `key` and errors are those of `read`; it is an error too when the block was not given.
        """
        with self._reading(key) as reader:
            return reader.block(key)

    def find(self, key: str | os.PathLike[str]) -> Entry | None:
        """Return what the index knows of a path, item id or tool-use id; None for nothing.

        Raises `AmbiguousSessionError` as `read` does.
        """
        with self._reading(key) as reader:
            return reader.entry(key)

    def list(self) -> tuple[Entry, ...]:
        """Return what the index knows, oldest first; nothing with `state: none`.

        Raises `AmbiguousSessionError` where sessions share the root and this store is none of them;
        `sessions` lists their ids.
        """
        with self._tree("read") as tree:
            return tuple(self._index(tree))

    def search(
        self,
        text: str,
        *,
        ignore_case: bool = False,
        item_type: str | None = None,
        tool: str | None = None,
    ) -> Iterator[Match]:
        """Yield each line that has the text, oldest content first, in memory that does not grow.

        Tells where something is; `read` then hands it out, checked. `item_type` and `tool` are
        exact. Raises `StoreError`, for an empty text too, and `AmbiguousSessionError` as `list`.
        """
        with self._tree("read") as tree:
            entries = tuple(self._index(tree))
            chosen = (entry for entry in entries if _is_of(entry, item_type, tool))
            yield from matches(tree, chosen, text, ignore_case=ignore_case)

    def history(self) -> tuple[Event, ...]:
        """Return what was saved, packed and removed, in the order in which it happened.

        It goes back to when the journal was written anew last: at a rebuild, or when most of it
        told of what is gone.
        """
        if self._state is None:
            return ()
        with self._tree("read") as tree:
            self._index(tree)
            return tuple(events(self._state.lines(tree)))

    @contextmanager
    def _reading(self, key: str | os.PathLike[str]) -> Iterator[Reader]:
        """Give a reader, where it is clear in which session it looks for the key."""
        with self._tree("read", str(key)) as tree:
            reader = self._reader(tree)
            if not reader.has(key):
                self._choose_session(tree)
            yield reader

    def _refer(self, item_id: str | None, path: str, sha256: str, state: str) -> None:
        self.remember([{"item_id": item_id, "path": path, "sha256": sha256, "state": state}])


def _is_of(entry: Entry, item_type: str | None, tool: str | None) -> bool:
    origin = entry.origin
    found = (origin.item_type, origin.tool_name) if origin else (None, None)
    return item_type in {None, found[0]} and tool in {None, found[1]}
