"""The tokens of images and documents: by their pixels and pages, never by their base64 text."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from policyctx.tokens.blocks import blocks_of, text_of
from policyctx.tokens.provider_models import provider_model

if TYPE_CHECKING:
    from policyctx.tokens.blocks import Block
    from policyctx.tokens.counter import TokenCounter
    from policyctx.tokens.provider_models import ProviderModel

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


# For a medium of which no more is known than that it is there.
TOKENS_PER_MEDIUM = 1_600

# What counts towards a size: a text, whose tokens are to be counted, or a number of tokens.
Part: TypeAlias = str | int

IMAGES = ("image", "image_url", "input_image")
DOCUMENTS = ("document", "file", "input_file")

# Pages of a PDF that hides them in compressed objects are guessed from its bytes.
_PAGE_BYTES = 50_000
# No provider takes more.
_MOST_PAGES = 600
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")


def media_tokens(block: Block, model: ProviderModel, counter: TokenCounter) -> int:
    """Return what an image, a document, or a result that holds some costs for them, in tokens.

    Takes a content block of either API as it lies in a message; 0 for a block without media. What
    is only named by a URL or an id counts as an image or page whose size is not known.
    """
    return total(_media_within(block, model), counter)


def medium_tokens(
    block: Block, counter: TokenCounter, language_model: str | None, weights: dict[str, int]
) -> int:
    """Return what one image, document or sound costs, in tokens, by its provider's rules.

    The block's shape tells the provider where no `language_model` does. `weights` remembers the
    result, by the rules' name; of a sound no more is known than that it is there.
    """
    model = provider_model(({"content": [block]},), language_model)
    if model.name not in weights:
        known = block.get("type") in (*IMAGES, *DOCUMENTS)
        weights[model.name] = media_tokens(block, model, counter) if known else TOKENS_PER_MEDIUM
    return weights[model.name]


def total(parts: Iterator[Part], counter: TokenCounter) -> int:
    """Add up parts, the texts among them counted together."""
    tokens, texts = 0, []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            tokens += part
    return tokens + sum(counter.count_many(texts))


def media_parts(block: Block, model: ProviderModel) -> Iterator[Part]:
    """Yield what one image or document is made of."""
    if block.get("type") in IMAGES:
        yield _image(block, model)
    else:
        yield from _document(block, model)


def _media_within(block: Block, model: ProviderModel) -> Iterator[Part]:
    if block.get("type") in (*IMAGES, *DOCUMENTS):
        yield from media_parts(block, model)
    else:
        for inner in blocks_of(block.get("content")):
            yield from _media_within(inner, model)


def _image(block: Block, model: ProviderModel) -> int:
    held = block.get("image_url")
    detail = held.get("detail") if isinstance(held, Mapping) else block.get("detail")
    if detail == "low":
        return model.image.low_detail
    head = _bytes_of(_base64_of(block), HEAD_BYTES)
    size = image_size(head)
    return model.image.unknown if size is None else model.image.tokens(*size)


def _document(block: Block, model: ProviderModel) -> Iterator[Part]:
    source = block.get("source")
    source = source if isinstance(source, Mapping) else {}
    for key in ("title", "context"):
        yield text_of(block.get(key))
    if source.get("type") == "text":
        yield text_of(source.get("data"))
    elif source.get("type") == "content":
        yield from _inner(source.get("content"), model)
    else:
        yield model.page * _pages(_bytes_of(_base64_of(block), None))


def _inner(content: object, model: ProviderModel) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    for block in blocks_of(content):
        if block.get("type") in IMAGES:
            yield _image(block, model)
        else:
            yield text_of(block.get("text"))


def _pages(raw: bytes) -> int:
    """Count the pages of a PDF, 1 at least."""
    found = len(_PAGE.findall(raw)) or -(-len(raw) // _PAGE_BYTES)
    return min(max(found, 1), _MOST_PAGES)


def _base64_of(block: Block) -> str:
    """Return the base64 text in a block, or in the data URL that it holds; none gives no text."""
    file, url = block.get("file"), block.get("image_url")
    source = block.get("source")
    places = (
        source.get("data") if isinstance(source, Mapping) else None,
        url.get("url") if isinstance(url, Mapping) else url,
        file.get("file_data") if isinstance(file, Mapping) else None,
        block.get("file_data"),
    )
    held = next((place for place in places if isinstance(place, str)), "")
    if held.startswith("data:"):
        return held.partition(";base64,")[2]
    return "" if held.startswith(("http:", "https:")) else held


def _bytes_of(base64: str, most: int | None) -> bytes:
    """Decode the first `most` bytes or a little less; what is no base64 gives none."""
    text = base64 if most is None else base64[: most // 3 * 4]
    try:
        raw = "".join(text.split()).encode("ascii")
        return binascii.a2b_base64(raw[: len(raw) // 4 * 4])
    except ValueError:
        return b""
