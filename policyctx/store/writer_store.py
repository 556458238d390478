"""`WriterStore`: contents that go where the caller's own writer puts them."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal, Protocol

from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.paths import File, FreePaths
from policyctx.planning.placeholders import content_hash
from policyctx.store.backend import absolute_root
from policyctx.store.content import Content


class FileWriter(Protocol):
    """The caller's own way to write files: to memory, an archive, a remote store."""

    def write(self, path: str, text: str) -> None:
        """Write the whole `text` under an absolute path, over a file that is there.

        The writer makes the folder itself. An exception that it raises is a failed write.
        """
        ...


class AsyncFileWriter(Protocol):
    """A `FileWriter` whose `write` is awaited."""

    async def write(self, path: str, text: str) -> None:
        """Write as a `FileWriter` does."""
        ...


class WriterStore:
    """A store that saves through a writer, without folder, index or flush.

    The names of the files are below `root`. A name is taken when this store has written another
    text under it, and within one `save` also when an equal text gets it. Names that other stores
    gave out are not known; a session takes those that the placeholders of its list name. `loop` is
    the running event loop in which an asynchronous writer is awaited; `save` is then called in
    another thread.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        writer: FileWriter | AsyncFileWriter,
        *,
        on_conflict: Literal["suffix", "overwrite", "error"] = "suffix",
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.root = absolute_root(root)
        self._writer = writer
        self._on_conflict = on_conflict
        self._loop = loop
        self._hashes: dict[str, str] = {}
        """Of the text that was written last under each path."""

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:  # noqa: ARG002 - there are no records
        """Write the contents one after the other, and return the file of each.

        Raises `StoreError` when a write fails; what was written before it stays.
        """
        names = FreePaths()
        files = [self._file(names, content) for content in contents]
        for file, content in zip(files, contents, strict=True):
            self._write(file.path, content.text)
            self._hashes[file.relative_path] = content_hash(content.text)
        return files

    def read(self, path: str | os.PathLike[str]) -> str:
        """Raise `StoreError`: a writer cannot read back."""
        raise StoreError(f"{path} cannot be read: a writer only writes", path=str(path))

    def remember(self, records: Sequence[Mapping[str, JSON]], *, flush: bool = True) -> None:
        """Keep nothing: a writer cannot read back."""

    def records(self) -> list[dict[str, JSON]]:
        """Return nothing: no record is kept."""
        return []

    def _file(self, names: FreePaths, content: Content) -> File:
        path, own = content.relative_path, content_hash(content.text)

        def is_free(path: str) -> bool:
            return self._hashes.get(path, own) == own

        if self._on_conflict == "error" and (path in names or not is_free(path)):
            target = str(self.root / path)
            raise StoreError(f"{target} holds another item already", path=target)
        if self._on_conflict != "overwrite":
            path = names.take(path, passes=is_free)
        return File(path, str(self.root / path))

    def _write(self, path: str, text: str) -> None:
        try:
            pending = self._writer.write(path, text)
            if inspect.isawaitable(pending):
                self._await(pending)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise StoreError(f"{path} cannot be written: {reason}", path=path) from error

    def _await(self, pending: Awaitable[None]) -> None:
        if self._loop is None:
            if inspect.iscoroutine(pending):
                pending.close()
            raise TypeError("the writer is asynchronous, so the call has to be as well")
        asyncio.run_coroutine_threadsafe(_awaited(pending), self._loop).result()


async def _awaited(pending: Awaitable[None]) -> None:
    await pending
