"""`Item`: one addressable piece of an agent's context, with what a policy can ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from policyctx.definitions.authors import Author

# A message of any shape: a dict as a provider takes it, or an object of an SDK or a framework.
Message: TypeAlias = Any
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

    @property
    def json(self) -> str:
        """The JSON of the blocks."""
        ...

    @property
    def raw_json(self) -> str:
        """The JSON with lone surrogates as they are."""
        ...

    @property
    def chars(self) -> int:
        """The characters of the JSON."""
        ...


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
    text: str
    counted: str
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


@dataclass(frozen=True, slots=True)
class FileLines:
    """The lines of a file that a result shows; the first line of a file has the number 1."""

    path: str
    first: int
    last: int
