"""Images, documents and sounds in the blocks of all APIs.

Anthropic's blocks contain a `source`. A chat message of OpenAI contains `image_url`, `file` and
`input_audio` parts with an object of the same name. In an item of OpenAI's Responses API the
fields are those of the part itself, and `image_url` is a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from policyctx.definitions.items import Medium, Provider
from policyctx.messages.json_text import text_of

Block: TypeAlias = Mapping[str, Any]

IMAGES = ("image", "image_url", "input_image")
DOCUMENTS = ("document", "file", "input_file")
SOUNDS = ("input_audio",)
"""The types of the blocks of each kind."""

_KINDS: dict[str, Literal["image", "document", "sound"]] = {
    **dict.fromkeys(IMAGES, "image"),
    **dict.fromkeys(DOCUMENTS, "document"),
    **dict.fromkeys(SOUNDS, "sound"),
}
# All other types are OpenAI's.
_ANTHROPIC_TYPES = ("image", "document")
_DATA_URL = re.compile(r"data:([^;,]+)")
_BASE64_MARK = ";base64,"


def blocks_of(content: object) -> Iterator[Block]:
    """Yield the blocks of a content list as maps; a text has none.

    An SDK's object becomes the map that it stands for, and a bare string a text block. Values that
    are neither are skipped.
    """
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping):
            yield block
        elif isinstance(block, str):
            yield {"type": "text", "text": block}
        elif callable(dump := getattr(block, "model_dump", None)):
            yield dump(mode="json")


def medium_of(block: Block) -> Medium:
    """Return the medium in a block whose type is in `IMAGES`, `DOCUMENTS` or `SOUNDS`."""
    kind = _KINDS[block["type"]]
    provider: Provider = "anthropic" if block["type"] in _ANTHROPIC_TYPES else "openai"
    if kind == "sound":
        return Medium(kind, provider)
    data, start = _base64_in(block)
    if kind == "image":
        return Medium(kind, provider, data, start, low_detail=_detail(block) == "low")
    parts, has_pages = _document_parts(block)
    return Medium(kind, provider, data, start, parts=parts, has_pages=has_pages)


def media_type_of(block: Block) -> str | None:
    """Return the media type of a block; in OpenAI's APIs it is part of a data URL."""
    for part in (block.get("source"), block.get("image_url"), block.get("file"), block):
        if isinstance(part, Mapping) and isinstance(said := part.get("media_type"), str):
            return said
        url = part.get("url", part.get("file_data")) if isinstance(part, Mapping) else part
        if isinstance(url, str) and (found := _DATA_URL.match(url)):
            return found[1]
    return None


def _detail(block: Block) -> object:
    image = block.get("image_url")
    return image.get("detail") if isinstance(image, Mapping) else block.get("detail")


def _document_parts(block: Block) -> tuple[tuple[str | Medium, ...], bool]:
    """Return the texts and images of a document, and whether it has pages beside them."""
    source = block.get("source")
    source = source if isinstance(source, Mapping) else {}
    parts: list[str | Medium] = [text_of(block.get("title")), text_of(block.get("context"))]
    is_text, is_content = source.get("type") == "text", source.get("type") == "content"
    if is_text:
        parts.append(text_of(source.get("data")))
    elif is_content:
        parts += _content_parts(source.get("content"))
    return tuple(part for part in parts if part != ""), not (is_text or is_content)


def _content_parts(content: object) -> Iterator[str | Medium]:
    if isinstance(content, str):
        yield content
    for block in blocks_of(content):
        is_image = block.get("type") in IMAGES
        yield medium_of(block) if is_image else text_of(block.get("text"))


def _base64_in(block: Block) -> tuple[str, int]:
    """Return the string with the base64 text of a block, and where in it that text begins.

    The string is empty if the block only names its content by a URL or an id.
    """
    source, image, file = block.get("source"), block.get("image_url"), block.get("file")
    places = (
        source.get("data") if isinstance(source, Mapping) else None,
        image.get("url") if isinstance(image, Mapping) else image,
        file.get("file_data") if isinstance(file, Mapping) else None,
        block.get("file_data"),
    )
    held = next((place for place in places if isinstance(place, str)), "")
    if held.startswith("data:"):
        mark = held.find(_BASE64_MARK)
        return ("", 0) if mark < 0 else (held, mark + len(_BASE64_MARK))
    return ("", 0) if held.startswith(("http:", "https:")) else (held, 0)
