"""`Item`: one addressable piece of an agent's context, with what a policy can ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

# A message of any shape: a dict as a provider takes it, or an object of an SDK or a framework.
Message: TypeAlias = Any
# The path of an item in its message, such as ("content", 2, "text").
Path: TypeAlias = tuple[str | int, ...]

# The type of items that are left unchanged because their block is of an unknown type.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Medium:
    """An image, a document or a sound: its block in a message.

    `weights` remembers its size in tokens by the name of the counting rules.
    """

    block: Mapping[str, Any] = field(hash=False)
    weights: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


class Item(NamedTuple):
    """A block, or a whole string message, with the attributes that a policy can use.

    `text` is the text that offloading saves: a string unchanged, a list of blocks or a call's input
    as compact JSON. `counted` is the text whose tokens are billed, without the bytes of the `media`
    in it.
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

    @property
    def item_id(self) -> str:
        """The tool-use id of a call or result, otherwise `msg_` and a three-digit ordinal.

        Inside a result it is the id of the result and the item's number: `toolu_1-2`.
        """
        name = f"msg_{self.message + 1:03}" if self.tool_use_id is None else self.tool_use_id
        return name if self.inside is None else f"{name}-{self.number}"
