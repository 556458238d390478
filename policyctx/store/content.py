"""The values that go into and come out of a store.

`Content` is a text to be saved, `Origin` the item that it came from, `Saved` the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from policyctx.definitions.items import Item
from policyctx.messages.json_text import JSON
from policyctx.paths import File

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


@dataclass(frozen=True, slots=True)
class Saved:
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
    return not _ELSEWHERE & set(parts) and parts[0].casefold() != STATE_FOLDER
