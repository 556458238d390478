"""The tokens of media by pixels and pages, and of a request around its messages.

The base64 text of media is never counted. What the API of a provider adds to the texts of a request
is a constant with its source. Where a provider publishes nothing, the figure was measured on
recorded sessions and says so. The usage of a response corrects the remaining difference: see
`Correction`.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, sqrt
from typing import Any, NamedTuple, Protocol, TypeAlias

from policyctx.definitions.items import Medium, Piece, Provider, RequestMark

Schema: TypeAlias = Mapping[str, Any]
# In a JPEG the size may follow a preview and a colour profile.
HEAD_BYTES = 256 * 1024
_USUAL_HEAD_BYTES = 3 * 1024

_JPEG_MARK = 0xFF
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_WEBP_FRAME_BYTES = 10


class Patches(NamedTuple):
    """A token for each patch of `side` pixels, once the image is within the limits.

    What is larger than `longest_edge` pixels or `most` tokens is scaled down first. Source: Claude
    docs, "Vision", on evaluating image size.
    """

    side: int
    longest_edge: int
    most: int

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of so many pixels, 1 or more each way, costs."""
        scale = min(1.0, self.longest_edge / max(width, height))
        while (cost := self._patches(width * scale, height * scale)) > self.most:
            scale *= min(sqrt(self.most / cost), 0.999)
        return cost

    def _patches(self, width: float, height: float) -> int:
        return max(1, ceil(width / self.side)) * max(1, ceil(height / self.side))

    @property
    def unknown(self) -> int:
        """What to take for an image whose size is not at hand: the most."""
        return self.most

    @property
    def low_detail(self) -> int:
        """What `detail: low` costs: there is no such thing here."""
        return self.unknown


class Tiles(NamedTuple):
    """A base, and a price for each tile of 512 pixels, once the image is scaled down.

    It is fitted into 2,048 pixels, then its shorter side into 768. Source: OpenAI docs, "Images
    and vision", on calculating costs.
    """

    base: int
    tile: int
    side: int = 512
    longest_edge: int = 2_048
    shortest_edge: int = 768

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of so many pixels, 1 or more each way, costs in high detail."""
        scale = min(1.0, self.longest_edge / max(width, height))
        scale = min(scale, self.shortest_edge / min(width, height))
        across, down = ceil(width * scale / self.side), ceil(height * scale / self.side)
        return self.base + self.tile * across * down

    @property
    def unknown(self) -> int:
        """What to take for an image whose size is not at hand: a square one of 768 pixels."""
        return self.tokens(self.shortest_edge, self.shortest_edge)

    @property
    def low_detail(self) -> int:
        """What `detail: low` costs, whatever the size."""
        return self.base


class ToolMarks(NamedTuple):
    """The tokens around the words of a tool's schema, where it is not sent as its JSON."""

    tool: int
    properties: int
    """Once for a tool that has properties."""
    property: int
    enum: int
    """Once for a property that has a list of values."""
    value: int


class ProviderModel(NamedTuple):
    """What one provider's API adds to the texts of a request, in its tokens."""

    name: str
    request: int
    """Once for every request: what begins the reply."""
    message: int
    """For every message: its role and what sets it apart."""
    speaker: int
    """For every message that names who speaks, beside the name."""
    tool_call: int
    """For every call, beside the texts of its name and input."""
    tool_result: int
    """For every result, beside its text."""
    tools: int
    """Once when there are tools."""
    tool_marks: ToolMarks | None
    """For every tool; None where its compact JSON is what is sent."""
    image: Patches | Tiles
    page: int
    """For every page of a document: its text and its image."""


# 14 tokens for the texts "You are a scientist" and "Hello, Claude" leave 7 for the request and its
# message (Claude docs, "Token counting"). 346 with tools on Claude 4, `tool_choice: auto` ("Tool
# use", on pricing). A call and its result: 80 beyond their texts, the lower quartile over the
# recorded sessions of Claude Code. Images: from Claude 4.7 on ("Vision"). A page: the middle of
# 1,500 to 3,000 ("PDF support").
ANTHROPIC = ProviderModel(
    "anthropic", request=3, message=4, speaker=0, tool_call=50, tool_result=30,
    tools=346, tool_marks=None, image=Patches(side=28, longest_edge=2_576, most=4_784), page=2_250,
)  # fmt: skip

# Models before Claude 4.7 see images smaller ("Vision").
ANTHROPIC_BEFORE_4_7 = ProviderModel(
    "anthropic-before-4.7", request=3, message=4, speaker=0, tool_call=50, tool_result=30,
    tools=346, tool_marks=None, image=Patches(side=28, longest_edge=1_568, most=1_568), page=2_250,
)  # fmt: skip

# Messages and tools: OpenAI cookbook, "How to count tokens with tiktoken", gpt-4o. Calls and
# results: the marks around them in the published chat format. Images: gpt-4o and gpt-4.1 ("Images
# and vision"). A page: the image of a letter page (765) and 500 for its text, since both are sent.
OPENAI = ProviderModel(
    "openai", request=3, message=4, speaker=1, tool_call=8, tool_result=4, tools=12,
    tool_marks=ToolMarks(tool=7, properties=3, property=3, enum=-3, value=3),
    image=Tiles(base=85, tile=170), page=1_265,
)  # fmt: skip

_HIGH_RESOLUTION_FROM = (4, 7)


def provider_model(provider: Provider, language_model: str | None = None) -> ProviderModel:
    """Return the constants for a request to a model.

    `language_model` is the name in the request, such as `claude-sonnet-4-5`. If it is unknown, the
    constants are those of the `provider` in whose shape the messages are.
    """
    if language_model is None:
        return OPENAI if provider == "openai" else ANTHROPIC
    if "claude" not in language_model:
        return OPENAI
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", language_model)
    version = tuple(map(int, numbers[:2]))
    return ANTHROPIC_BEFORE_4_7 if () < version < _HIGH_RESOLUTION_FROM else ANTHROPIC


def schemas_of(tools: object) -> Iterator[Schema]:
    """Yield the schema of each tool in a list, or in Bedrock's map with a list, as a map.

    An SDK's object becomes the map that it stands for, and a bare string a text block. Values that
    are neither are skipped.
    """
    if isinstance(tools, Mapping):
        tools = tools.get("tools")
    for tool in tools if isinstance(tools, list | tuple) else ():
        if type(tool) is dict or isinstance(tool, Mapping):  # the first test is the quick one
            yield tool
        elif isinstance(tool, str):
            yield {"type": "text", "text": tool}
        elif callable(dump := getattr(tool, "model_dump", None)):
            yield dump(mode="json")
        elif callable(schema := getattr(tool, "to_dict", None)):  # a `beta_tool` of Anthropic's
            yield schema()


def schema_parts(tool: Schema, model: ProviderModel) -> Iterator[Part]:
    """Yield the texts and the numbers of tokens that one tool adds to a request."""
    marks = model.tool_marks
    if marks is None:
        yield _text(tool)
        return
    function = tool.get("function")
    function = function if isinstance(function, Mapping) else tool
    yield marks.tool
    yield f"{function.get('name', '')}:{_description(function)}"
    yield from _properties(function.get("parameters"), marks)
    if isinstance(form := function.get("format"), Mapping):  # of a custom tool: a grammar
        yield _text(form.get("definition"))


def _properties(schema: object, marks: ToolMarks) -> Iterator[Part]:
    """Yield the properties in an object's schema, and those of its inner objects."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not properties or not isinstance(properties, Mapping):
        return
    yield marks.properties
    for name, value in properties.items():
        inner = value if isinstance(value, Mapping) else {}
        yield marks.property
        yield f"{name}:{_text(inner.get('type'))}:{_description(inner)}"
        choices = inner.get("enum")
        if isinstance(choices, list) and choices:
            yield marks.enum
            for choice in choices:
                yield marks.value
                yield _text(choice)
        yield from _properties(inner, marks)
        yield from _properties(inner.get("items"), marks)


def _description(schema: Schema) -> str:
    return _text(schema.get("description")).removesuffix(".")


def _text(value: object) -> str:
    """Return a string unchanged, nothing as an empty text, and any other value as compact JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return _encode(value)
    except (RecursionError, ValueError):
        return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
Size: TypeAlias = tuple[int, int]


class CountsTokens(Protocol):
    """The part of a `TokenCounter` that sizes need."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text."""


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


def medium_tokens(medium: Medium, counter: CountsTokens, language_model: str | None) -> int:
    """Return what a medium costs, in tokens, by its provider's rules.

    Without a `language_model` these are the rules of the provider in whose shape the medium is.
    The medium remembers the result by the name of the rules.
    """
    model = provider_model(medium.provider, language_model)
    if model.name not in medium.weights:
        medium.weights[model.name] = media_tokens((medium,), model, counter)
    return medium.weights[model.name]


def media_tokens(media: Iterable[Medium], model: ProviderModel, counter: CountsTokens) -> int:
    """Return what media cost together, in tokens.

    What is only named by a URL or an id counts as an image or page whose size is unknown.
    """
    return total((part for medium in media for part in medium_parts(medium, model)), counter)


def total(parts: Iterator[Part], counter: CountsTokens) -> int:
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
    # Most formats say their size at once, before anything that is long.
    heads = (_bytes_of(medium, most) for most in (_USUAL_HEAD_BYTES, HEAD_BYTES))
    size = next(filter(None, map(image_size, heads)), None)
    return model.image.unknown if size is None else model.image.tokens(*size)


def _encrypted(base64_chars: int) -> int:
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
        raw = "".join(medium.data[medium.data_start : end].split())
        return binascii.a2b_base64(raw[: len(raw) // 4 * 4])
    except ValueError:
        return b""


def request_tokens(
    counter: CountsTokens, pieces: Iterable[Piece], tools: object, model: ProviderModel
) -> int:
    """Return the tokens of a request, by the documented constants of its provider.

    `pieces` are those of its messages and of its system prompt, `tools` the schemas of the
    available tools, in the form in which any of the APIs takes them.
    """
    return total(_request_parts(pieces, tools, model), counter)


def _request_parts(pieces: Iterable[Piece], tools: object, model: ProviderModel) -> Iterator[Part]:
    yield model.request
    yield from _parts(pieces, model)
    if tools:
        yield model.tools
        for schema in schemas_of(tools):
            yield from schema_parts(schema, model)


def _parts(pieces: Iterable[Piece], model: ProviderModel) -> Iterator[Part]:
    marks = {
        RequestMark.MESSAGE: model.message,
        RequestMark.SPEAKER: model.speaker,
        RequestMark.TOOL_CALL: model.tool_call,
        RequestMark.TOOL_RESULT: model.tool_result,
    }
    for piece in pieces:
        if isinstance(piece, RequestMark):
            yield marks[piece]
        elif isinstance(piece, Medium):
            yield from medium_parts(piece, model)
        else:
            yield piece
