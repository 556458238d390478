"""A content made ready to be written: its bytes, its hash, and what the index will say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.planning.excerpts import line_count
from policyctx.planning.paths import File
from policyctx.store.blocks import hollow
from policyctx.store.content import Saved
from policyctx.store.encoding import encoded, sha256_of
from policyctx.store.entries import Entry
from policyctx.store.envelope import enveloped
from policyctx.store.packing import PACKED, packed

if TYPE_CHECKING:
    from policyctx.store.content import Content
    from policyctx.store.files import Format


@dataclass(frozen=True, slots=True)
class Prepared:
    """A content with its text in UTF-8 as `raw`."""

    content: Content
    format: Format
    raw: bytes
    sha256: str
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
        if self.format == "envelope":
            document = enveloped(self.content.text, self.content.origin, now)
        else:
            document = self.raw
        return packed(document) if self.is_packed else document

    def stored_path(self, path: str) -> str:
        """Return where its file is that is read by `path`."""
        return path + PACKED if self.is_packed else path

    def entry(
        self, path: str, now: float, *, same_as: str | None = None, replaces: str | None = None
    ) -> Entry:
        """Return what the index says of it."""
        text, origin = self.content.text, self.content.origin
        block = origin.block if origin else None
        return Entry(
            path=path,
            sha256=self.sha256,
            size=len(self.raw),
            chars=len(text),
            lines=self.lines,
            saved_at=now,
            wanted="" if path == self.wanted else self.wanted,
            format=self.format,
            origin=origin.without_block() if origin else None,
            hollow=None if block is None else hollow(block, text),
            same_as=same_as,
            replaces=replaces,
        )

    def saved(self, path: str, root: str, *, reused: bool, same_as: str | None = None) -> Saved:
        """Return what is answered to the caller."""
        path = self.stored_path(path)
        return Saved(
            File(path, f"{root}/{path}"),
            sha256=self.sha256,
            chars=len(self.content.text),
            lines=self.lines,
            size=len(self.raw),
            reused=reused,
            same_as=same_as,
        )


def prepared(content: Content, form: Format, *, packs: bool) -> Prepared:
    """Encode and hash a content; `packs` says whether the store compresses at all."""
    raw = encoded(content.text)
    lines = line_count(content.text)
    return Prepared(content, form, raw, sha256_of(raw), lines, is_packed=packs and content.packed)
