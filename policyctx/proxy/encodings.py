"""Content encodings: decoding a request's body within a limit, and a response's while it passes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial

import zstandard

from policyctx.proxy.scanning import UntouchableError

_GZIP = {"gzip", "x-gzip"}
READABLE = frozenset({"identity", "deflate", "zstd", *_GZIP})
"""The encodings of a response whose usage can be read."""
# With this much memory for its window a decoder reads what the usual levels write.
_WINDOW = 2**27
# Of a body: it is decoded in pieces of this size, and one of this size is never too dense.
_PIECE = 2**20
# Of what a piece of a response is decoded to, and of the pieces in which zstd gets it: one byte
# stands for 32 KB at most.
_MOST, _SLICE = 2**23, 2**7


class BodyTooLargeError(ValueError):
    """A body is larger than the limit, or would be when it is decoded."""


def decoded(raw: bytes, encoding: str, limit: int, ratio: int) -> bytes:
    """Return a request's body without its content encoding.

    Raises `BodyTooLargeError` above `limit` bytes, and `UntouchableError` for an encoding that is
    unknown or damaged, or if a body of more than a megabyte has `ratio` times its bytes or more.
    Never holds more than that.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return raw
    if name not in _GZIP and name != "zstd":
        raise UntouchableError("the body has an unknown content encoding")
    size, most = 0, max(_PIECE, ratio * len(raw))
    parts: list[bytes] = []
    try:
        for part in _inflated(raw) if name in _GZIP else _decompressed(raw):
            size += len(part)
            if size > limit:
                raise BodyTooLargeError
            if size > most:
                parts.clear()
            else:
                parts.append(part)
    except (zlib.error, zstandard.ZstdError):
        raise UntouchableError("the body cannot be decoded") from None
    if size > most:
        raise UntouchableError("the body is much larger than its compressed form")
    return b"".join(parts)


def _inflated(raw: bytes) -> Iterator[bytes]:
    inflating = zlib.decompressobj(wbits=31)
    for start in range(0, len(raw), _PIECE):
        left = raw[start : start + _PIECE]
        while left:
            yield inflating.decompress(left, _PIECE)
            left = inflating.unconsumed_tail
    if not inflating.eof or inflating.unused_data:
        raise zlib.error


def _decompressed(raw: bytes) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    with decompressor.stream_reader(raw, read_across_frames=True) as reader:
        yield from iter(partial(reader.read, _PIECE), b"")


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that decodes the pieces of a response in order, None for no such one.

    It raises the error of its library for a piece that is damaged, or decoded too large.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return bytes
    if name in _GZIP:
        return partial(_inflated_piece, zlib.decompressobj(wbits=31))
    if name == "deflate":
        return partial(_inflated_piece, zlib.decompressobj())
    if name == "zstd":
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        return partial(_decompressed_piece, decompressor.decompressobj().decompress)
    return None


def _inflated_piece(inflating: zlib._Decompress, piece: bytes) -> bytes:
    found = inflating.decompress(piece, _MOST)
    if inflating.unconsumed_tail:
        raise zlib.error
    return found


def _decompressed_piece(decode: Callable[[bytes], bytes], piece: bytes) -> bytes:
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(piece), _SLICE):
        parts.append(decode(piece[start : start + _SLICE]))
        size += len(parts[-1])
        if size > _MOST:
            raise zstandard.ZstdError
    return b"".join(parts)


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
