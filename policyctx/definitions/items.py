"""`Item`: one addressable piece of an agent's context, its type, its author and its medium."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

Author: TypeAlias = Literal["user", "program", "summary"]
"""`user`: the user's own words. `program`: put there by a program, such as a skill. `summary`: what
another writer's compaction left of the conversation before."""
AUTHORS: tuple[Author, ...] = get_args(Author)
Ttl: TypeAlias = Literal["5m", "1h"]
"""How long a provider keeps an entry of its cache after the last use."""


class Authored(dict[str, Any]):
    """A message or a block that says who wrote it; it equals the dict without the mark."""

    __slots__ = ("author",)

    author: Author | Literal[""]

    def __init__(self, fields: Mapping[str, Any] = {}, author: Author | Literal[""] = "") -> None:
        super().__init__(fields)
        self.author = author

    def __copy__(self) -> Authored:
        return Authored(self, self.author)


def written_by(author: Author, message: Mapping[str, Any]) -> Authored:
    """Return a message, or a block of one, marked with who wrote it.

    The mark is for summaries, which keep the user's words longest. A provider is sent the same
    fields as before. Raises `ValueError` for an unknown author.
    """
    if author not in AUTHORS:
        raise ValueError(f"expected one of {', '.join(AUTHORS)}, got {author!r}")
    return Authored(message, author)


def author_of(message: object) -> Author | Literal[""]:
    """Return who wrote a message or block, empty if it does not say."""
    return message.author if isinstance(message, Authored) else ""


# A message of any shape: a dict as a provider takes it, or an object of an SDK or a framework.
Message: TypeAlias = Any
HostObject: TypeAlias = Any
"""An object of a class that is not ours: a part, a request or a response of a host."""
SessionOption: TypeAlias = Any
"""A keyword argument that is handed on to `Session`, which checks it."""
PlainValue: TypeAlias = Any
"""A value of JSON or YAML, before anything is known of it."""
# The path of an item in its message, such as ("content", 2, "text").
Path: TypeAlias = tuple[str | int, ...]

# The type of items that are left unchanged because their block is of an unknown type.
UNKNOWN = "unknown"
Provider: TypeAlias = Literal["anthropic", "openai"]
"""The provider of an API; its rules size a request."""


@dataclass(frozen=True, slots=True)
class Medium:
    """Content of a message whose size in tokens does not follow from its text."""

    kind: Literal["image", "document", "sound", "reasoning"]
    """What it is; `reasoning` is encrypted."""
    provider: Provider
    """The provider whose rules size it if the name of the language model is unknown."""
    data: str = field(default="", hash=False, repr=False)
    """The string in the message that contains the base64 text, which is never copied.

    It is empty if the message only names the content by its URL or id.
    """
    data_start: int = 0
    """The position in `data` where the base64 text begins: in a data URL, after the head."""
    low_detail: bool = False
    """Whether the request asks for an image in low detail."""
    parts: tuple[str | Medium, ...] = ()
    """The texts of a document, such as its title, and the images in it."""
    has_pages: bool = True
    """False for a document that is given as text or as content: `parts` are the whole of it."""
    weights: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Remembers its size in tokens by the name of the counting rules."""


class Blocks(Protocol):
    """The blocks of a result whose texts are joined."""

    texts: tuple[str | JsonText, ...]
    """The texts that are joined, the strings of the message itself; empty if they are unknown."""

    @property
    def json(self) -> str:
        """The JSON of the blocks."""

    @property
    def raw_json(self) -> str:
        """The JSON with lone surrogates as they are."""

    @property
    def chars(self) -> int:
        """The characters of the JSON."""


_encode = json.JSONEncoder(ensure_ascii=False).encode
# A string is encoded in pieces of so many characters; each of them may become six.
_PIECE_CHARS = 1 << 13
HELD_CHARS = 1 << 8
"""A string of no more characters is not long: it is no larger than the object that holds it."""


def string_pieces(text: str) -> Iterator[str]:
    """Yield the JSON of a string in pieces, without the quotes around it."""
    cuts = range(0, len(text), _PIECE_CHARS)
    return (_encode(text[at : at + _PIECE_CHARS])[1:-1] for at in cuts)


class JsonText(tuple[str, ...]):
    """Compact JSON of a value that is made where it is read, as `str` of this.

    It has the long strings of the value itself, at odd positions, and the JSON between them. So the
    JSON is not in memory beside the value, and stays the same when the value changes.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return joined((self,))

    @property
    def value(self) -> PlainValue:
        """The value, with the same long strings."""
        # No other string is as long as what stands for the long ones.
        found = json.loads("".join(_LONG if i % 2 else part for i, part in enumerate(self)))
        return _with_long(found, iter(self[1::2]))


def joined(texts: Sequence[str | JsonText]) -> str:
    """Return the texts, joined by a newline."""
    text = ""
    for number, one in enumerate(texts):
        if number:
            text += "\n"
        for i, part in enumerate((one,) if isinstance(one, str) else one):
            for piece in string_pieces(part) if i % 2 else (part,):
                text += piece  # grows in place, where an encoder and a join hold the text twice
    return text


# What is counted of a result that holds nothing but media.
_NO_BLOCKS = "[]"
_LONG = "x" * (HELD_CHARS + 1)


def _with_long(value: PlainValue, long: Iterator[str]) -> PlainValue:
    if isinstance(value, str):
        return value if len(value) <= HELD_CHARS else next(long)
    if isinstance(value, dict):
        return {key: _with_long(inner, long) for key, inner in value.items()}
    return [_with_long(one, long) for one in value] if isinstance(value, list) else value


class Item(NamedTuple):
    """A block, or a whole string message, with the attributes that a policy can use.

    `text` is the text that offloading saves: a string unchanged, the texts of a list of blocks
    joined by a newline, a call's input as compact JSON. `counted` is the text whose tokens are
    billed, without the bytes of the `media` in it.
    """

    message: int
    """0-based position of its message in the list."""
    path: Path
    """The path in its message to a text, a call's input, a result's content, or a whole block."""
    kind: str
    """The built-in item type, or `unknown`."""
    type: str
    """The item type under the policy: the kind, or a refinement that the policy defines."""
    role: str
    texts: str | JsonText | tuple[str | JsonText, ...]
    """`text`, or what it is made from: texts that it joins, or the strings in its JSON. So what is
    made is not held beside the messages."""
    counted_texts: str | JsonText | tuple[str | JsonText, ...]
    """The same of `counted`."""
    media: tuple[Medium, ...] = ()
    turn: int = 0
    """The number of turns so far; a user message that is more than tool results begins one."""
    tool: str | None = None
    """The name of the tool, for a call and for a result whose call is in the list."""
    tool_use_id: str | None = None
    call_message: int | None = None
    """The position of the message that made the call; results of parallel calls share it."""
    error: bool = False
    media_type: str | None = None
    """The media type of an image or document, such as `image/png`."""
    inside: int | None = None
    """The position in the list of items of the result that contains this item.

    Such an item has the tool, the id, the call and the error flag of its result.
    """
    number: int = 0
    """The 1-based number among the items inside one result; 0 outside."""
    author: Author | Literal[""] = ""
    """Who wrote the text, where its message or block says so; empty otherwise."""
    takes_text: bool = True
    """Whether a text may take its place; what cannot take one leaves only as a whole."""
    blocks: Blocks | None = None
    """The blocks of a result whose texts are joined in `text`."""
    other_id: str | None = None
    """A second id of a call, by which its answers may name it; of such an answer, the first."""
    signed: bool = False
    """Whether a call has a signature that stands for the later calls of its message, too."""

    @property
    def text(self) -> str:
        """The text that offloading saves."""
        texts = self.texts
        return texts if type(texts) is str else _made(texts)

    @property
    def counted(self) -> str:
        """The text whose tokens are billed."""
        texts = self.counted_texts
        return texts if type(texts) is str else _made(texts)

    @property
    def input(self) -> dict[str, Any]:
        """The input of a call as a value; empty if it is not a JSON object."""
        texts = self.texts
        try:
            value = texts.value if isinstance(texts, JsonText) else json.loads(self.text)
        except (RecursionError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def is_call(self) -> bool:
        """Whether the item is a call: of a tool of the client, or of one that the provider runs."""
        if self.kind == "tool_call":
            return True
        return self.kind == UNKNOWN and self.tool is not None and self.tool_use_id is not None

    @property
    def is_answer(self) -> bool:
        """Whether the item answers a call: a tool result, or what the provider's tool returned."""
        if self.kind == "tool_result":
            return True
        return self.kind == UNKNOWN and self.tool is None and self.tool_use_id is not None

    @property
    def is_media_alone(self) -> bool:
        """Whether the item is a result that holds nothing but media."""
        return bool(self.media) and self.counted == _NO_BLOCKS

    @property
    def chars(self) -> int:
        """The characters that it takes in the list, the base64 text of its media among them."""
        return self.blocks.chars if self.media and self.blocks is not None else len(self.text)

    @property
    def identity(self) -> str:
        """The text that tells it from others of its kind, with the media in it."""
        return self.whole if self.media else self.text

    @property
    def whole(self) -> str:
        """The text with the media in it, which tells a result from what is left of it."""
        return self.text if self.blocks is None else self.blocks.json

    @property
    def item_id(self) -> str:
        """The tool-use id of a call or result, otherwise `msg_` and a three-digit ordinal.

        Inside a result it is the id of the result and the item's number: `toolu_1-2`.
        """
        name = f"msg_{self.message + 1:03}" if self.tool_use_id is None else self.tool_use_id
        return name if self.inside is None else f"{name}-{self.number}"


def _made(texts: str | JsonText | tuple[str | JsonText, ...]) -> str:
    return joined(texts) if type(texts) is tuple else str(texts)


@dataclass(frozen=True, slots=True)
class FileLines:
    """The lines of a file that a result shows; the first line of a file has the number 1."""

    path: str
    first: int
    last: int


BuiltInType: TypeAlias = Literal[
    "system_prompt",
    "user_message",
    "assistant_message",
    "thinking",
    "tool_call",
    "tool_result",
    "image",
    "document",
    "compaction_summary",
    "restored_file",
    "recalled",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemType:
    """One built-in item type.

    `has_tool` is None where an item may have a tool or not. `never_taken` says why no step takes
    an item, `never_on_arrival` why no step on arrival does, `never_replaced` why no text can stand
    in its place. `keep_recent` holds where a policy gives none.
    """

    meaning: str
    has_tool: bool | None = None
    refines: BuiltInType | None = None
    keep_recent: int | None = None
    never_taken: str = ""
    never_on_arrival: str = ""
    never_replaced: str = ""


ITEM_TYPES: dict[str, ItemType] = {
    "system_prompt": ItemType(
        meaning="What is in the system prompt.",
        has_tool=False,
        never_taken="the system prompt stays",
    ),
    "user_message": ItemType(meaning="What the user wrote.", has_tool=False),
    "assistant_message": ItemType(meaning="What the model wrote.", has_tool=False),
    "thinking": ItemType(
        meaning="What the model thought; its bytes are signed.",
        has_tool=False,
        never_replaced="the bytes of thinking are signed",
    ),
    "tool_call": ItemType(meaning="A call of a tool, with its input.", has_tool=True),
    "tool_result": ItemType(meaning="What a tool answered.", has_tool=True),
    "image": ItemType(meaning="An image."),
    "document": ItemType(meaning="A document such as a PDF."),
    "compaction_summary": ItemType(
        meaning="The summary that a compaction left.",
        has_tool=False,
        never_taken="the summary stays until the next compaction",
    ),
    "restored_file": ItemType(meaning="A file that came back after a compaction."),
    # What an agent read back it still needs.
    "recalled": ItemType(
        meaning="A result that read something back from the store; it refines `tool_result`.",
        refines="tool_result",
        keep_recent=3,
        never_on_arrival="what was read back is not taken on arrival",
    ),
}
BUILT_IN_TYPES: tuple[BuiltInType, ...] = get_args(BuiltInType)

# The kinds of items that never have a tool, and those that always have one.
WITHOUT_TOOL = frozenset(name for name, it in ITEM_TYPES.items() if it.has_tool is False)
WITH_TOOL = frozenset(name for name, it in ITEM_TYPES.items() if it.has_tool)
MEDIA_TYPES = frozenset({"image", "document"})
"""The kinds of items that a text may stand in the place of."""
# What no step takes, with the reason; `unknown` is the kind of a block that is not understood.
NEVER_TAKEN: dict[str, str] = {
    name: it.never_taken for name, it in ITEM_TYPES.items() if it.never_taken
} | {"unknown": "a block of a kind not known here stays"}
# What no text can stand in the place of, with the reason.
NEVER_REPLACED: dict[str, str] = NEVER_TAKEN | {
    name: it.never_replaced for name, it in ITEM_TYPES.items() if it.never_replaced
}


class RequestMark(Enum):
    """Something that an API adds around the texts of a request; its size depends on the API."""

    MESSAGE = "message"
    """The role of a message and what separates it from the next."""
    SPEAKER = "speaker"
    """Added to a message that names who speaks, beside the name."""
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


Piece: TypeAlias = str | RequestMark | Medium
"""A part of a request that has a size: a text, a mark of the API, or a medium."""


class RequestContent(NamedTuple):
    """The messages and the system prompt of a request."""

    pieces: Sequence[Piece]
    """Everything that has a size, in the order of the request."""
    provider: Provider
    """The provider in whose shape the messages are."""
    body: Mapping[str, Any] | None = None
    """The fields `messages` and `system` of a request to Anthropic's Messages API.

    None if a message cannot be sent there, as an item of OpenAI's Responses API.
    """


def call_keys(item: Item) -> tuple[object, ...]:
    """Return the keys by which an answer may name a call: its key, and its second id if any."""
    return (call_key(item),) if item.other_id is None else (call_key(item), item.other_id)


def call_key(item: Item) -> object:
    """Return the key that a call and its result share, None for an item that cannot be paired."""
    return key_of(item.tool_use_id, item.tool, item.role, item.path)


def key_of(call_id: str | None, tool: str | None, role: str, path: Path) -> object:
    """Return the `call_key` of the item of a part.

    The key is the id. A legacy `function_call` has none: there it is the function's name.
    """
    if call_id is not None:
        return call_id
    legacy = role == "function" or path == ("function_call",)
    return (tool,) if legacy and tool is not None else None


# The tools whose results are `recalled`.
READ_TOOL = "read_offloaded"
SEARCH_TOOL = "search_offloaded"
ARCHIVE_TYPE = "archive"
"""What the store knows archives by, and the folder that they are in."""
NOTHING_FOUND = "[nothing offloaded contains"
"""How the answer of a search without a match begins."""


def recall_tool(name: str | None) -> str | None:
    """Return which of the two tools has this name, with or without a prefix; None for another."""
    for tool in (READ_TOOL, SEARCH_TOOL):
        if name and name.endswith(tool):
            # A host may put the name of the server before it: `mcp__policyctx__read_offloaded`.
            before = name[: -len(tool)][-1:]
            return None if before.isascii() and before.isalnum() else tool
    return None
