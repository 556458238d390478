"""A content's file: plain or packed, a text or an envelope around one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.store.encoding import decoded
from policyctx.store.envelope import opened_envelope
from policyctx.store.opening import read_whole
from policyctx.store.packing import PACKED, unpacked

if TYPE_CHECKING:
    from policyctx.store.content import Origin
    from policyctx.store.opening import Tree

Format: TypeAlias = Literal["text", "envelope"]


def stored_bytes(tree: Tree, path: str) -> bytes:
    """Return the bytes of a content's file, unpacked where it is packed.

    Raises `OSError`, and `ValueError` for what was packed and is harmed.
    """
    folder, name = tree.place(path)
    try:
        return read_whole(folder, name)
    except FileNotFoundError as error:
        try:
            return unpacked(read_whole(folder, name + PACKED))
        except FileNotFoundError:
            raise error from None


def is_stored(tree: Tree, path: str) -> bool:
    """Is there a file for a content, plain or packed."""
    for ending in ("", PACKED):
        try:
            folder, name = tree.place(path + ending)
            folder.stat(name)
        except FileNotFoundError:
            continue
        return True
    return False


def text_of(raw: bytes, form: Format) -> str:
    """Return the text in a file. Raises `ValueError` for what was not written here."""
    return opened_envelope(raw)[0] if form == "envelope" else decoded(raw)


def origin_in(raw: bytes, form: Format) -> Origin | None:
    """Return what a file itself tells of the item that it holds."""
    return opened_envelope(raw)[1] if form == "envelope" else None
