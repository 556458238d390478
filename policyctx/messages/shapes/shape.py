"""`Shape`: how one kind of message is read and edited, and the `Part`s of a message.

A shape is found for each message, so one list may mix shapes. Planning, compaction and the store
see items and roles only; whatever depends on the fields of a message is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.definitions.items import Item, Medium, Message, Path
    from policyctx.messages.json_text import JSON

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
REMOVED = "[Content removed]"
"""The text of a result of which nothing is left; providers reject an empty one."""

_TEXT_KINDS = {"assistant": "assistant_message"} | dict.fromkeys(SYSTEM_ROLES, "system_prompt")


class Part(NamedTuple):
    """One piece of a message as its shape reads it, without its place in the list.

    `text` is what offloading saves: a string unchanged, a list of blocks or the input of a call as
    compact JSON. `counted` is the text whose tokens are billed, without the bytes of the `media`.
    """

    path: Path
    """What names the part to `Shape.replaced`: any tuple that is unique in the message."""
    kind: str
    """The built-in item type, or `unknown`, which no step changes."""
    text: str
    counted: str
    media: tuple[Medium, ...] = ()
    tool: str | None = None
    call_id: str | None = None
    """What a call and its result have in common."""
    error: bool = False
    """Whether a result reports that its call failed."""
    media_type: str | None = None
    """The media type of an image or document, such as `image/png`."""
    number: int = 0
    """The 1-based number among the images and documents inside the result before; 0 outside."""


class Shape(Protocol):
    """How one kind of message is read and edited.

    No method changes a message. To support the objects of a framework, derive a class, implement
    the methods without a default, and give an instance to `Session(shapes=[…])`.
    """

    splits_replies: bool = False
    """Whether one reply of the model is several messages, such as the items of the Responses API.

    The thinking in such a reply leaves the list only together with what follows it.
    """

    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of this shape."""
        ...

    def role(self, message: Any) -> str:  # noqa: ANN401 - each shape has its own type of message
        """Return `system`, `developer`, `user`, `assistant`, `tool` or `function`.

        A message of the role `tool` or `function` holds results only.
        """
        ...

    def parts(self, message: Any) -> Sequence[Part]:  # noqa: ANN401
        """Return the parts of a message, in the order in which a model reads them.

        Images and documents inside a result follow it. May raise `TypeError` or `ValueError` for
        a message that cannot be read.
        """
        ...

    def replaced(self, message: Any, texts: Mapping[Path, str | None]) -> Message | None:  # noqa: ANN401
        """Return a new message with the parts at these paths replaced by a text, or removed.

        `texts` has at least one entry; None removes the part. The new message shares nothing that
        can change with the old one, and is None if nothing is left. For a call the text is the
        compact JSON of its new input.
        """
        ...

    def written(self, role: str, text: str) -> Message:
        """Return a new message of the role `user` or `assistant` that holds one text."""
        ...

    def plain(self, message: Any) -> JSON:  # noqa: ANN401
        """Return the plain JSON values of a message, from which it can be recognised and restored.

        Messages that mean the same to the provider should have equal values.
        """
        ...

    def problem(self, message: Any) -> str | None:  # noqa: ANN401, ARG002
        """Return what is wrong with a message, None if it can be read."""
        return None

    def block(self, message: Any, path: Path) -> JSON:  # noqa: ANN401, ARG002
        """Return the plain JSON of the block around a part, which the store keeps for `restore`."""
        return self.plain(message)

    def is_empty(self, message: Any) -> bool:  # noqa: ANN401
        """Return whether a provider would reject the message because it says nothing."""
        return self.role(message) not in RESULT_ROLES and not self.parts(message)

    def stays(self, message: Any) -> bool:  # noqa: ANN401, ARG002
        """Return whether the message must survive a compaction, since no summary can tell it."""
        return False


def kind_of_text(role: str) -> str:
    """Return the kind of the item for a text of this role."""
    return _TEXT_KINDS.get(role, "user_message")


def call_key(item: Item) -> object:
    """Return the key that a call and its result share, None for an item that cannot be paired.

    The key is the id. A legacy `function_call` has none: there it is the function's name.
    """
    if item.tool_use_id is not None:
        return item.tool_use_id
    legacy = item.role == "function" or item.path == ("function_call",)
    return (item.tool,) if legacy and item.tool is not None else None
