"""The size of an image in pixels, read from the first bytes of its file; nothing is decoded."""

from __future__ import annotations

from typing import TypeAlias

Size: TypeAlias = tuple[int, int]

# In a JPEG the size may stand behind a preview and a colour profile.
HEAD_BYTES = 256 * 1024

_JPEG_MARK = 0xFF
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_WEBP_FRAME_BYTES = 10


def image_size(head: bytes) -> Size | None:
    """Return width and height from the head of a PNG, JPEG, GIF or WebP file, in pixels.

    None when the format is another, the head is too short, or it says 0 pixels.
    """
    size: Size | None = None
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        size = _big(head[16:20]), _big(head[20:24])
    elif head.startswith((b"GIF87a", b"GIF89a")):
        size = _little(head[6:8]), _little(head[8:10])
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg_size(head)
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp_size(head)
    return size if size and all(size) else None


def _jpeg_size(head: bytes) -> Size | None:
    """Walk over the segments up to the frame, whose head holds the size."""
    at = 2
    while at + 9 <= len(head):
        if head[at] != _JPEG_MARK:
            return None
        marker = head[at + 1]
        if marker in _JPEG_FRAMES:
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        if marker == _JPEG_MARK:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + max(2, _big(head[at + 2 : at + 4]))
    return None


def _webp_size(head: bytes) -> Size | None:
    """Read the frame of whichever of the three kinds it is: lossy, lossless, extended."""
    kind, body = head[12:16], head[20:30]
    if len(body) < _WEBP_FRAME_BYTES:
        return None
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return _little(body[6:8]) & 0x3FFF, _little(body[8:10]) & 0x3FFF
    if kind == b"VP8L" and body.startswith(b"\x2f"):
        bits = _little(body[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return _little(body[4:7]) + 1, _little(body[7:10]) + 1
    return None


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
