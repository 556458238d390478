"""A content made ready to be written: its bytes, its hash, and what the index will say of it."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policyctx.planning.paths import File
from policyctx.store.blocks import hollow
from policyctx.store.content import Saved
from policyctx.store.encoding import Encoding
from policyctx.store.entries import Entry
from policyctx.store.envelope import enveloped
from policyctx.store.packing import PACKED, packed, packed_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.store.content import Content
    from policyctx.store.files import Format


@dataclass(frozen=True, slots=True)
class Prepared:
    """A content with what was found as its text was encoded."""

    content: Content
    format: Format
    raw: bytes
    """The text in UTF-8, compressed in a packed file of the format `text`."""
    sha256: str
    size: int
    """Bytes of the text in UTF-8."""
    chars: int
    lines: int
    is_packed: bool

    @property
    def wanted(self) -> str:
        """The path without a number."""
        return self.content.wanted_path or self.content.relative_path

    @property
    def item_id(self) -> str | None:
        """The id of the item, None where the content came without."""
        return self.content.origin.item_id if self.content.origin else None

    def document(self, now: float) -> bytes:
        """Return the bytes of its file."""
        if self.format == "text":
            return self.raw
        document = enveloped(self.content.text, self.content.origin, now)
        return packed(document) if self.is_packed else document

    def stored_path(self, path: str) -> str:
        """Return where its file is that is read by `path`."""
        return path + PACKED if self.is_packed else path

    def entry(
        self, path: str, now: float, *, same_as: str | None = None, replaces: str | None = None
    ) -> Entry:
        """Return what the index says of it."""
        origin = self.content.origin
        block = origin.block if origin else None
        return Entry(
            path=path,
            sha256=self.sha256,
            size=self.size,
            chars=self.chars,
            lines=self.lines,
            saved_at=now,
            wanted="" if path == self.wanted else self.wanted,
            format=self.format,
            origin=origin.without_block() if origin else None,
            hollow=None if block is None else hollow(block, self.content.text),
            same_as=same_as,
            replaces=replaces,
        )

    def saved(self, path: str, root: str, *, reused: bool, same_as: str | None = None) -> Saved:
        """Return what is answered to the caller."""
        path = self.stored_path(path)
        return Saved(
            File(path, f"{root}/{path}"),
            sha256=self.sha256,
            chars=self.chars,
            lines=self.lines,
            size=self.size,
            reused=reused,
            same_as=same_as,
        )


def prepared(content: Content, form: Format, *, packs: bool) -> Prepared:
    """Encode and hash a content; `packs` says whether the store compresses at all.

    The pieces of a text are walked once: what is hashed is what will be written.
    """
    is_packed = packs and content.packed
    if form == "envelope":  # which is made of the whole text
        content = replace(content, source=content.text)
    encoding = Encoding(content.pieces)
    raw = packed_pieces(encoding) if is_packed and form == "text" else _joined(iter(encoding))
    return Prepared(
        content,
        form,
        raw,
        encoding.sha256,
        size=encoding.size,
        chars=encoding.chars,
        lines=encoding.lines,
        is_packed=is_packed,
    )


def _joined(raws: Iterator[bytes]) -> bytes:
    """The pieces as one; a single one is not copied."""
    file = io.BytesIO(next(raws, b""))
    file.seek(0, io.SEEK_END)
    file.writelines(raws)
    return file.getvalue()
