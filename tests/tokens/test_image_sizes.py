from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.sizes import image_size

Made: TypeAlias = Callable[[int, int], bytes]


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    checked = struct.pack(">I", len(head)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + checked


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00"


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(width: int, height: int, *before: bytes, frame: int = 0xC0) -> bytes:
    head = struct.pack(">BHHB", 8, height, width, 3) + b"\x01\x11\x00" * 3
    return b"\xff\xd8" + b"".join(before) + segment(frame, head) + b"\xff\xda\x00\x08"


def riff(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + struct.pack("<I", len(body)) + body


def lossy_webp(width: int, height: int) -> bytes:
    return riff(b"VP8 ", b"\x10\x20\x30\x9d\x01\x2a" + struct.pack("<HH", width, height))


def lossless_webp(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return riff(b"VP8L", b"\x2f" + struct.pack("<I", bits) + b"\x00" * 8)


def extended_webp(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return riff(b"VP8X", b"\x10\x00\x00\x00" + sizes)


FORMATS = (png, gif, jpeg, lossy_webp, lossless_webp, extended_webp)


@pytest.mark.parametrize("made", FORMATS)
@given(width=st.integers(1, 16_383), height=st.integers(1, 16_383))
def test_the_size_is_read_from_the_head(made: Made, width: int, height: int) -> None:
    assert image_size(made(width, height)) == (width, height)


@pytest.mark.parametrize("frame", [0xC0, 0xC1, 0xC2, 0xCF])
def test_a_jpegs_frame_may_be_of_any_kind(frame: int) -> None:
    assert image_size(jpeg(30, 40, frame=frame)) == (30, 40)


def test_a_jpegs_frame_is_found_after_other_segments() -> None:
    preview = segment(0xE1, b"Exif\x00\x00" + jpeg(7, 7))
    tables = segment(0xC4, b"\x00" * 30) + segment(0xDB, b"\x01" * 60)
    assert image_size(jpeg(640, 480, preview, tables, b"\xff\xff")) == (640, 480)


@pytest.mark.parametrize("made", [png, gif, lossy_webp])
def test_zero_pixels_give_no_size(made: Made) -> None:
    assert image_size(made(0, 5)) is None


@pytest.mark.parametrize(
    "head",
    [b"", b"GIF", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBPVP8 ", b"\xff\xd8\xff", b"BM",
     b"\xff\xd8" + b"\x00" * 40, b"\xff\xd8\xff\xe1\xff\xff" + b"\x00" * 100],
)  # fmt: skip
def test_a_head_without_a_size_has_no_size(head: bytes) -> None:
    assert image_size(head) is None


@pytest.mark.parametrize("made", FORMATS)
@given(kept=st.integers(0, 60), noise=st.binary(max_size=40))
def test_a_torn_head_is_never_an_error(made: Made, kept: int, noise: bytes) -> None:
    found = image_size(made(300, 200)[:kept] + noise)
    assert found is None or min(found) > 0
