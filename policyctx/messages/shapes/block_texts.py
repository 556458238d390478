"""The text of a list of content blocks, and the media in it: what is shown, counted and saved.

It is the texts of the blocks, joined by a newline. A block without a text of its own is one line of
compact JSON, and images, documents, sounds and videos are not in it.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from policyctx.definitions.items import JsonText, Medium, Provider, joined
from policyctx.messages.json_text import Text, as_mapping, json_text, stringified, text_of
from policyctx.messages.markers import unmarked_block

Block: TypeAlias = Mapping[str, Any]

IMAGES = ("image", "image_url", "input_image")
DOCUMENTS = ("document", "file", "input_file")
SOUNDS = ("input_audio", "audio", "audio_url", "input_video", "video", "video_url")
"""The types of the blocks of each kind; videos are sized as sounds."""

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


TEXT_BLOCKS = ("text", "input_text", "output_text")
# The places of the texts in a block, by its type.
_PLACES: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(TEXT_BLOCKS, (("text",),)),
    "resource": (("resource", "text"),),
    "search_result": (("title",), ("source",), ("content",)),
    "text-plain": (("text",),),
}
# Where a document has its text, by the form of its source.
_TEXT_IN = {"text": "data", "content": "content"}
_MEDIA = (*IMAGES, *DOCUMENTS, *SOUNDS)
# The places of the texts in a block of Bedrock's Converse API, whose one key is its type.
_CONVERSE: dict[str, tuple[tuple[str, ...], ...]] = {
    "text": (("text",),),
    "document": (("document", "source", "text"), ("document", "source", "content")),
    "searchResult": tuple(("searchResult", *path) for path in _PLACES["search_result"]),
}
# The fields that hold a sound or a video, or say where it is.
_CONTENT = frozenset({"data", "url", "base64", "source", "source_type", "file_id", "file", *SOUNDS})
# The fields of a response of which a list of blocks may be the only value.
_HOLDERS = frozenset({"content", "output", "result", "error"})
# What MCP has beside its `content`: the same once more, and that it is complete.
_OF_MCP = ("structuredContent", "structured_content", "resultType", "result_type")

BlockPath: TypeAlias = "tuple[str | int, ...]"


@dataclass(slots=True, unsafe_hash=True)
class BlockList:
    """The blocks of a result whose texts are joined."""

    given: object = field(hash=False, repr=False)
    """The list as it is in the message, without markers, or its JSON as a text."""
    texts: tuple[Text, ...] = field(default=(), compare=False, repr=False)
    """The texts that are joined, the strings of the message itself; empty if they are unknown."""
    _chars: int = field(default=-1, init=False, compare=False, repr=False)

    @property
    def json(self) -> str:
        """The JSON of the list, made anew each time, since it may hold large images."""
        given = self.given
        return str(given if isinstance(given, str | JsonText) else stringified(given))

    @property
    def raw_json(self) -> str:
        """The JSON with lone surrogates as they are, as version 0.2 wrote it."""
        given = self.given
        return str(given if isinstance(given, str | JsonText) else json_text(given))

    @property
    def chars(self) -> int:
        """The characters of the JSON."""
        if self._chars < 0:
            self._chars = len(self.json)
        return self._chars


def blocks_in(value: object) -> Sequence[Any] | None:
    """Return the list of blocks that a result is or holds, None for another value.

    A map holds one as its only value, or as the `content` of an MCP server beside flags. In
    Google's SDK the result of an MCP server is the only value of another map.
    """
    if isinstance(value, Mapping):
        value = _held_in(value)
        if not isinstance(value, str | list | tuple) and value is not None:
            inner = as_mapping(value)
            value = _held_in(inner) if "content" in inner else None
    return value if isinstance(value, list | tuple) else None


def _held_in(value: Mapping[str, Any]) -> object:
    held = value.get("content") if "content" in value else next(iter(value.values()), None)
    is_all = all(
        inner is held or key in _OF_MCP or not isinstance(inner, str | list | tuple | Mapping)
        for key, inner in value.items()
    )
    return held if is_all and not _HOLDERS.isdisjoint(value) else None


def joined_text(blocks: Sequence[object], without: Collection[int] = ()) -> str | None:
    """Return the text of a list of blocks, None if no block has a text of its own."""
    texts = shown_texts(blocks, without)
    return None if texts is None else joined(texts)


def shown_texts(blocks: Sequence[object], without: Collection[int] = ()) -> tuple[Text, ...] | None:
    """Return the texts that `joined_text` joins, None if no block has a text of its own.

    `without` are the positions of other blocks that are left out, such as a host's images. Where
    blocks are left out, a text that is empty counts as none.
    """
    texts: list[Text] = []
    has_text, is_whole = False, True
    for i, block in enumerate(blocks):
        found = [] if i in without else [text for _, text in texts_in(block)]
        if found:
            has_text = True
            texts += found
        elif i in without or _is_medium(block):
            is_whole = False
        else:
            texts.append(json_text(unmarked_block(block)))
    is_shown = is_whole or len(texts) > 1 or any(texts)
    return tuple(texts) if has_text and is_shown else None


def _is_medium(block: object) -> bool:
    """Whether a block without a text is an image, a document, a sound or another binary content."""
    fields = block if type(block) is dict else as_mapping(block)
    kind, held = fields.get("type"), fields.get("resource")
    if kind is None and len(fields) == 1:  # as in Bedrock's Converse API
        [(key, inner)] = fields.items()
        if key in _MEDIA and isinstance(inner, Mapping) and "source" in inner:
            return True
    # A tool may list sounds and videos, by name.
    is_held = kind not in SOUNDS or not _CONTENT.isdisjoint(fields)
    return (
        (kind in _MEDIA and is_held)
        or isinstance(fields.get("base64"), str)
        or (isinstance(held, Mapping) and "blob" in held)
    )


def is_binary(value: object) -> bool:
    """Whether a value within a block is binary content, of whatever API."""
    if isinstance(value, str):
        return value.startswith("data:")
    return isinstance(value, Mapping) and (
        _is_medium(value) or any(value.get(key) for key in ("data", "bytes", "blob"))
    )


def texts_in(block: object) -> Iterator[tuple[BlockPath, str]]:
    """Yield the texts of a block, each with its path in the block."""
    if type(block) is str:
        yield (), block
        return
    fields = block if type(block) is dict else as_mapping(block)
    for path in _places(fields):
        held: Any = fields
        for key in path:
            held = held.get(key) if isinstance(held, Mapping) else None
        if isinstance(held, str):
            yield path, held
        elif isinstance(held, list) and path[-1] == "content":
            for i, inner in enumerate(held):
                yield from (((*path, i, *at), text) for at, text in texts_in(inner))


def _places(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    kind, source = fields.get("type"), fields.get("source")
    if kind == "document":
        form = source.get("type") if isinstance(source, Mapping) else None
        field = _TEXT_IN.get(form) if isinstance(form, str) else None
        return () if field is None else (("source", field),)
    if kind is None:
        return _CONVERSE.get(next(iter(fields)), ()) if len(fields) == 1 else ()
    return _PLACES.get(kind, ()) if isinstance(kind, str) else ()
