"""Texts as bytes, and the hash that they are known by."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def encoded(text: str) -> bytes:
    """Return a text in UTF-8; lone surrogates as CPython's `surrogatepass` writes them."""
    return text.encode("utf-8", "surrogatepass")


def decoded(raw: bytes) -> str:
    """Return the text that was encoded."""
    return raw.decode("utf-8", "surrogatepass")


def sha256_of(raw: bytes) -> str:
    """Return the sha256 in hex."""
    return hashlib.sha256(raw).hexdigest()


class Encoding:
    """The pieces of a text in UTF-8, walked once, and what is found of the text meanwhile."""

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
