"""The tokens of media: of images by their pixels, of documents by their pages.

Their base64 text is never counted.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from policyctx.definitions.items import Medium
from policyctx.tokens.provider_models import ProviderModel, provider_model

Size: TypeAlias = tuple[int, int]


class Counts(Protocol):
    """The part of a `TokenCounter` that sizes need."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text."""
        ...


# In a JPEG the size may follow a preview and a colour profile.
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


# The size of a medium of which nothing is known but that it is there.
TOKENS_PER_MEDIUM = 1_600

# What counts towards a size: a text, whose tokens are to be counted, or a number of tokens.
Part: TypeAlias = str | int

# Pages of a PDF that hides them in compressed objects are guessed from its bytes.
_PAGE_BYTES = 50_000
# No provider takes more.
_MOST_PAGES = 600
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")

# The tokens of encrypted reasoning, and of an encrypted compaction, are estimated as OpenAI's Codex
# CLI does (codex-rs, `estimate_reasoning_length` in `core/src/context_manager/history.rs`): the
# bytes behind the base64 text, less an envelope, at four bytes a token. OpenAI documents nothing.
# `Correction` learns the remaining difference from the usage of the responses.
_ENVELOPE_BYTES = 650
_BYTES_PER_TOKEN = 4


def medium_tokens(medium: Medium, counter: Counts, language_model: str | None) -> int:
    """Return what a medium costs, in tokens, by its provider's rules.

    Without a `language_model` these are the rules of the provider in whose shape the medium is.
    The medium remembers the result by the name of the rules.
    """
    model = provider_model(medium.provider, language_model)
    if model.name not in medium.weights:
        medium.weights[model.name] = media_tokens((medium,), model, counter)
    return medium.weights[model.name]


def media_tokens(media: Iterable[Medium], model: ProviderModel, counter: Counts) -> int:
    """Return what media cost together, in tokens.

    What is only named by a URL or an id counts as an image or page whose size is unknown.
    """
    return total((part for medium in media for part in medium_parts(medium, model)), counter)


def total(parts: Iterator[Part], counter: Counts) -> int:
    """Add up parts, the texts among them counted together."""
    tokens, texts = 0, []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            tokens += part
    return tokens + sum(counter.count_many(texts))


def medium_parts(medium: Medium, model: ProviderModel) -> Iterator[Part]:
    """Yield the texts and the numbers of tokens that a medium consists of."""
    if medium.kind == "image":
        yield _image(medium, model)
    elif medium.kind == "sound":
        yield TOKENS_PER_MEDIUM
    elif medium.kind == "reasoning":
        yield _encrypted(len(medium.data) - medium.data_start)
    else:
        for part in medium.parts:
            yield part if isinstance(part, str) else _image(part, model)
        if medium.has_pages:
            yield model.page * _pages(_bytes_of(medium))


def _image(medium: Medium, model: ProviderModel) -> int:
    if medium.low_detail:
        return model.image.low_detail
    size = image_size(_bytes_of(medium, HEAD_BYTES))
    return model.image.unknown if size is None else model.image.tokens(*size)


def _encrypted(base64_chars: int) -> int:
    """Estimate the tokens of encrypted reasoning."""
    size = max(0, base64_chars * 3 // 4 - _ENVELOPE_BYTES)
    return -(-size // _BYTES_PER_TOKEN)


def _pages(raw: bytes) -> int:
    """Count the pages of a PDF, 1 at least."""
    found = len(_PAGE.findall(raw)) or -(-len(raw) // _PAGE_BYTES)
    return min(max(found, 1), _MOST_PAGES)


def _bytes_of(medium: Medium, most: int | None = None) -> bytes:
    """Decode the first `most` bytes or a little less; a text that is not base64 gives none."""
    end = None if most is None else medium.data_start + most // 3 * 4
    try:
        raw = "".join(medium.data[medium.data_start : end].split()).encode("ascii")
        return binascii.a2b_base64(raw[: len(raw) // 4 * 4])
    except ValueError:
        return b""
