"""A content's text in pieces, so that its length does not matter."""

from __future__ import annotations

import hashlib
import json
import re
from typing import IO, TYPE_CHECKING

from policyctx.store.encoding import decoded, encoded
from policyctx.store.folders import READING, check_regular
from policyctx.store.packing import PACKED, unpacking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.store.files import Format
    from policyctx.store.opening import Tree

PIECE_BYTES = 1 << 20
_CONTENT_KEY = '"content": "'
# The head of an envelope is short: ids and names.
_LONGEST_HEAD = 1 << 16
_LONGEST_CHARACTER = 4
# What a JSON string is made of, up to its closing quote or an escape that is cut off. Possessive:
# ways back would be kept for each of a piece's many escapes.
_WHOLE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')
# The first half of a character outside the first plane; the other half may come next.
_FIRST_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_ESCAPE_LENGTH = 6


def pieces(tree: Tree, path: str, form: Format) -> Iterator[str]:
    """Yield the text of a content piece by piece, unpacked and out of its envelope.

    Raises `OSError`, and `ValueError` for what was not written here.
    """
    texts = _texts(_raw(tree, path))
    yield from _unenveloped(texts) if form == "envelope" else texts


def sha256_in(tree: Tree, path: str, form: Format) -> str:
    """Return the sha256, in hex, of the text in a file. Raises what `pieces` does."""
    text = _raw(tree, path) if form == "text" else map(encoded, pieces(tree, path, form))
    found = hashlib.sha256()
    for piece in text:
        found.update(piece)
    return found.hexdigest()


def _raw(tree: Tree, path: str) -> Iterator[bytes]:
    with _opened(tree, path) as file:
        while raw := file.read(PIECE_BYTES):
            yield raw


def _opened(tree: Tree, path: str) -> IO[bytes]:
    folder, name = tree.place(path)
    try:
        descriptor, is_packed = folder.open(name, READING), False
    except FileNotFoundError as error:
        try:
            descriptor, is_packed = folder.open(name + PACKED, READING), True
        except FileNotFoundError:
            raise error from None
    file = open(descriptor, "rb")  # noqa: PTH123, SIM115 - an open descriptor; the caller closes
    check_regular(descriptor, f"{folder.path}/{name}")
    return unpacking(file) if is_packed else file


def _texts(raw: Iterator[bytes]) -> Iterator[str]:
    """Decode pieces whose ends may lie within a character."""
    left = b""
    for piece in raw:
        whole = left + piece
        end = _end_of_characters(whole)
        left = whole[end:]
        yield decoded(whole[:end])
    yield decoded(left)


def _end_of_characters(raw: bytes) -> int:
    """The end of the last character that is surely whole."""
    for back in range(1, min(_LONGEST_CHARACTER, len(raw)) + 1):
        lead = raw[-back]
        if lead < 0x80:  # noqa: PLR2004 - ASCII stands for itself
            return len(raw)
        if lead >= 0xC0:  # noqa: PLR2004 - a character begins here
            return len(raw) - back
    return len(raw)


def _unenveloped(texts: Iterator[str]) -> Iterator[str]:
    """The content of an envelope, which is its last key."""
    left = _after_head(texts)
    while True:
        end = _end_of_whole(left)
        yield json.loads(f'"{left[:end]}"', strict=False)
        if left[end : end + 1] == '"':
            return
        more = next(texts, None)
        if more is None:
            raise ValueError("no envelope, or it is cut off")
        left = left[end:] + more


def _after_head(texts: Iterator[str]) -> str:
    head = ""
    for text in texts:
        head += text
        _, key, content = head.partition(_CONTENT_KEY)
        if key:
            return content
        if len(head) > _LONGEST_HEAD:
            break
    raise ValueError("no envelope: it has no content")


def _end_of_whole(text: str) -> int:
    found = _WHOLE.match(text)
    end = found.end() if found else 0
    at_end = end == len(text) or text[end] == "\\"
    half = _FIRST_HALF.search(text, max(end - _ESCAPE_LENGTH, 0), end) if at_end else None
    return half.start() if half else end
