"""Content encodings: decoding a request's body within a limit, and a response's while it passes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import zstandard

from policyctx.proxy.scanning import UntouchableError

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP = {"gzip", "x-gzip"}
READABLE = frozenset({"identity", "deflate", "zstd", *_GZIP})
"""The encodings of a response whose usage can be read."""
# With this much memory for its window a decoder reads what the usual levels write.
_WINDOW = 2**27


class TooLargeError(ValueError):
    """A body is larger than the limit, or would be when it is decoded."""


def decoded(raw: bytes, encoding: str, limit: int) -> bytes:
    """Return a request's body without its content encoding.

    Raises `TooLargeError`, and `UntouchableError` for an encoding that is unknown or damaged.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return raw
    try:
        if name in _GZIP:
            found = _inflated(raw, limit)
        elif name == "zstd":
            with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(raw) as reader:
                found = reader.read(limit + 1)
        else:
            raise UntouchableError("the body has an unknown content encoding")
    except (zlib.error, zstandard.ZstdError):
        raise UntouchableError("the body cannot be decoded") from None
    if len(found) > limit:
        raise TooLargeError
    return found


def _inflated(raw: bytes, limit: int) -> bytes:
    inflating = zlib.decompressobj(wbits=31)
    found = inflating.decompress(raw, limit + 1)
    if len(found) <= limit and (not inflating.eof or inflating.unused_data):
        raise UntouchableError("the body cannot be decoded")
    return found


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that decodes the pieces of a response in order, None for no such one."""
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return _same
    if name in _GZIP:
        return zlib.decompressobj(wbits=31).decompress
    if name == "deflate":
        return zlib.decompressobj().decompress
    if name == "zstd":
        return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj().decompress
    return None


def _same(piece: bytes) -> bytes:
    return piece


def readable(accepted: str) -> str:
    """Return an `Accept-Encoding` without the encodings whose usage could not be read.

    It names `identity` if nothing else is left.
    """
    kept = [
        one.strip()
        for one in accepted.split(",")
        if one.partition(";")[0].strip().lower() in READABLE
    ]
    return ", ".join(kept) or "identity"
