"""The values that go into and come out of a store.

`Content` is a text to be saved, `Origin` the item that it came from, `Saved` the result. A
`WriterStore` puts contents where the caller's own writer puts them.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from policyctx import lazy
from policyctx.definitions.items import Item
from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.paths import File, FreePaths
from policyctx.planning.placeholders import content_hash
from policyctx.store.backend import absolute_root

STATE_FOLDER = ".policyctx"
# In a folder whose objects wait for a store at a URL: that URL.
URL_FILE = f"{STATE_FOLDER}/url"
# The ending of the name of a compressed file.
PACKED = ".zst"
# The parts of a path that lead elsewhere.
_ELSEWHERE = frozenset({"", ".", ".."})


def encoded(text: str) -> bytes:
    """Return a text in UTF-8, with lone surrogates as CPython's `surrogatepass` writes them."""
    return text.encode("utf-8", "surrogatepass")


def decoded(raw: bytes) -> str:
    """Return the text that `encoded` encoded."""
    return raw.decode("utf-8", "surrogatepass")


def sha256_of(raw: bytes) -> str:
    """Return the sha256 in hex."""
    return hashlib.sha256(raw).hexdigest()


class Encoding:
    """The pieces of a text in UTF-8, iterated once; counts and hashes the text on the way."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()
        self._newlines, self._last = 0, ""
        self.size = 0
        """Bytes so far."""
        self.chars = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            raw = encoded(piece)
            self._hash.update(raw)
            self._newlines += piece.count("\n")
            self._last = piece[-1:] or self._last
            self.size += len(raw)
            self.chars += len(piece)
            yield raw

    @property
    def sha256(self) -> str:
        """The sha256 so far, in hex."""
        return self._hash.hexdigest()

    @property
    def lines(self) -> int:
        """The number of lines so far, as `line_count` counts them."""
        return self._newlines + (self._last not in {"", "\n"})


@dataclass(frozen=True, slots=True)
class Origin:
    """The item that a content came from: the keys that find it, and its original block."""

    item_id: str
    item_type: str
    tool_use_id: str | None = None
    tool_name: str | None = None
    role: str | None = None
    message: int | None = None
    """0-based position of its message in the list."""
    turn: int | None = None
    tokens: int | None = None
    block: JSON = None
    """The original block, or the whole message where its content is a string. A text that is in it
    is not stored twice. None: only the text can be restored."""

    @classmethod
    def of(cls, item: Item, *, tokens: int | None, block: JSON) -> Origin:
        """Return the origin of an item; `tokens` is None where they were not counted."""
        found = item.item_id, item.type, item.tool_use_id, item.tool, item.role, item.message
        return cls(*found, item.turn, tokens, block)

    def without_block(self) -> Origin:
        """Return the origin without its block."""
        # By hand, since `replace` takes four times as long.
        item = self.item_id, self.item_type, self.tool_use_id, self.tool_name
        return Origin(*item, self.role, self.message, self.turn, self.tokens)


@dataclass(frozen=True, slots=True)
class Content:
    """A text to be saved, and the path below the root that it is expected to get.

    `wanted_path` is that path without a number. When the expected path is taken, the content gets
    `wanted_path` with the first free number. A `packed` content is compressed at once, where the
    store compresses.
    """

    relative_path: str
    source: str | Iterable[str]
    """The text, or its pieces in order, which need not be in memory together."""
    wanted_path: str = ""
    origin: Origin | None = None
    packed: bool = False
    is_rest: bool = False
    """Whether it is the hollow block of another content, whose index entry would be large with it.
    Nothing but `restore` reads it."""

    @property
    def text(self) -> str:
        """The whole text; pieces are joined each time."""
        return self.source if isinstance(self.source, str) else "".join(self.source)

    @property
    def pieces(self) -> Iterable[str]:
        """The pieces of the text."""
        return (self.source,) if isinstance(self.source, str) else self.source


class Saved(NamedTuple):
    """The result of saving a content: its file, and whether the disk held it already."""

    file: File
    sha256: str
    """Of the text in UTF-8, in hex."""
    chars: int
    lines: int
    size: int
    """Bytes of the text in UTF-8."""
    reused: bool = False
    """Whether the file held this very content before."""
    same_as: str | None = None
    """The path below the root of an equal content with another name; the disk holds it once."""


def is_inside(path: object) -> bool:
    """Whether a content may have this path: it is relative, inside the root, and not the state."""
    if not isinstance(path, str) or "\0" in path:
        return False
    parts = path.split("/")
    return _ELSEWHERE.isdisjoint(parts) and parts[0].casefold() != STATE_FOLDER


class FileWriter(Protocol):
    """The caller's own way to write files: to memory, an archive, a remote store."""

    def write(self, path: str, text: str) -> None:
        """Write the whole `text` under an absolute path, over a file that is there.

        The writer makes the folder itself. An exception that it raises is a failed write.
        """


class AsyncFileWriter(Protocol):
    """A `FileWriter` whose `write` is awaited."""

    async def write(self, path: str, text: str) -> None:
        """Write as a `FileWriter` does."""


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
        loop: lazy.asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.root = absolute_root(root)
        self._writer, self._on_conflict, self._loop = writer, on_conflict, loop
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
        lazy.asyncio.run_coroutine_threadsafe(_awaited(pending), self._loop).result()


async def _awaited(pending: Awaitable[None]) -> None:
    await pending
