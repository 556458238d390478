"""What is given to the store, and what it answers: `Content`, `Origin`, `Saved`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.planning.paths import File

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


@dataclass(frozen=True, slots=True)
class Origin:
    """The item that a content was: what finds it again, and what gives it back as it was."""

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
    """The original block, or the whole message where its content is a string; the text may stand
    in it, and is not stored twice. None: there is nothing to restore but the text."""

    def without_block(self) -> Origin:
        """Return what finds the item again, alone."""
        return Origin(
            self.item_id,
            self.item_type,
            self.tool_use_id,
            self.tool_name,
            self.role,
            self.message,
            self.turn,
            self.tokens,
        )


@dataclass(frozen=True, slots=True)
class Content:
    """A text to be saved, and the path below the root that it is expected to get.

    `wanted_path` is that path without a number; when the expected one is taken, the first free
    number behind this one is. A `packed` content is compressed at once, where the store compresses.
    """

    relative_path: str
    source: str | Iterable[str]
    """The text, or its pieces in order, which need not be in memory together."""
    wanted_path: str = ""
    origin: Origin | None = None
    packed: bool = False

    @property
    def text(self) -> str:
        """The whole text; one that comes in pieces is put together each time."""
        return self.source if isinstance(self.source, str) else "".join(self.source)

    @property
    def pieces(self) -> Iterable[str]:
        """The pieces of the text."""
        return (self.source,) if isinstance(self.source, str) else self.source


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a content: its file, and whether the disk held it already."""

    file: File
    sha256: str
    """Of the text in UTF-8, in hex."""
    chars: int
    lines: int
    size: int
    """Bytes of the text in UTF-8."""
    reused: bool = False
    """Did the file hold this very content before."""
    same_as: str | None = None
    """The path below the root of an equal content under another name; the disk holds it once."""
