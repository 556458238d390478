"""Texts as bytes, and the hash that they are known by."""

from __future__ import annotations

import hashlib


def encoded(text: str) -> bytes:
    """Return a text in UTF-8; lone surrogates as CPython's `surrogatepass` writes them."""
    return text.encode("utf-8", "surrogatepass")


def decoded(raw: bytes) -> str:
    """Return the text that was encoded."""
    return raw.decode("utf-8", "surrogatepass")


def sha256_of(raw: bytes) -> str:
    """Return the sha256 in hex."""
    return hashlib.sha256(raw).hexdigest()
