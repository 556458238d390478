"""`Shape`: how one kind of message is read and edited, and the `Part`s of a message.

A shape is found for each message, so one list may mix shapes. Planning, compaction and the store
see items and roles only; whatever depends on the fields of a message is here.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Literal, NamedTuple, Protocol

from policyctx.definitions.items import Author, Blocks, Medium, Message, Path, Ttl
from policyctx.messages.json_text import JSON, Text

SYSTEM_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
SPEAKING_ROLES = (*SYSTEM_ROLES, "user", "assistant")
REMOVED = "[Content removed]"
"""The text of a result of which nothing is left; providers reject an empty one."""

EMPTY_INPUT = "{}"
"""The input of a call of which nothing is left."""

_TEXT_KINDS = {"assistant": "assistant_message"} | dict.fromkeys(SYSTEM_ROLES, "system_prompt")


def head_of(roles: Iterable[str]) -> int:
    """Return the number of system messages that a list with these roles begins with."""
    return sum(1 for _ in takewhile(SYSTEM_ROLES.__contains__, roles))


class Part(NamedTuple):
    """One piece of a message as its shape reads it, without its place in the list.

    Only the first three fields are needed for a text. A call and its result also have a `call_id`,
    and a call its `tool`; an image or document has its `media`.
    """

    path: Path
    """What names the part to `Shape.replaced`: strings and numbers, unique in the message."""
    kind: str
    """`system_prompt`, `user_message`, `assistant_message`, `thinking`, `tool_call`, `tool_result`,
    `image`, `document`, or `unknown` for what no step may change."""
    text: Text
    """What offloading saves: a text unchanged, the input of a call as JSON, of a result in blocks
    their texts joined by a newline, any other value as JSON."""
    counted: Text | None = None
    """The text whose tokens are billed, if it is not `text`: without the bytes of the `media`."""
    media: tuple[Medium, ...] = ()
    """The images, documents and sounds in the part."""
    tool: str | None = None
    """The name of the tool that a call asks for; a result gets that of its call."""
    call_id: str | None = None
    """What a call and its answers have in common; without one they cannot leave the list.

    A later message may use an id again. A host without ids gives the name of the tool. An `unknown`
    part with an id is one half of a pair that stays together: with a `tool` it is a call that the
    provider runs itself or a question to the client, without one it is the answer.
    """
    error: bool = False
    """Whether a result reports that its call failed."""
    media_type: str | None = None
    """The media type of an image or document, such as `image/png`."""
    number: int = 0
    """The 1-based number among the images and documents inside the result before; 0 outside."""
    author: Author | Literal[""] = ""
    """Who wrote a text or a result, if it is not who the kind says: `program` for what a program
    put into a user's message, `summary` for the summary of another compaction, `user` for a result
    that holds the user's answer."""
    takes_text: bool = True
    """Whether a text may take the place of a result. One for which the provider only accepts its
    own form, such as a screenshot, leaves with its call in a `drop` or a compaction."""
    blocks: Blocks | None = None
    """The blocks of a result whose texts are joined in `text`."""
    signed: bool = False
    """Whether a call has a signature that stands for the later calls of its message, too: Gemini
    signs the first of parallel calls and rejects the others without it."""
    other_id: str | None = None
    """A second id of a call, by which its answers may name it, too."""


class Shape(Protocol):
    """How one kind of message is read and edited.

    To support the message objects of a framework, derive a class, implement the methods that have
    no default, and give an instance to `Session(shapes=[…])`. Shapes of a host are asked before the
    built-in ones, so a list may mix them. `README.md` beside this module has an example.

    No method changes a message, and equal arguments give equal values, also in another process. A
    host shape that breaks this contract raises a `ShapeError` as soon as it shows: the list that
    the session returns, and the files of the store, are never made from such values.
    """

    splits_replies: bool = False
    """Whether one reply of the model is several messages, such as the items of the Responses API.

    The thinking in such a reply leaves the list only together with what follows it.
    """

    alternates: bool = False
    """Whether the API refuses two messages of one role in a row; a short one then parts them."""

    takes_markers: bool = False
    """Whether `marked` can set `cache_control` markers; a policy then may place breakpoints."""

    @abstractmethod
    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of this shape. The value may be of any type."""

    @abstractmethod
    def role(self, message: Message) -> str:
        """Return `system`, `developer`, `user`, `assistant`, `tool` or `function`.

        Only an `assistant` makes calls and thinks. A `user` message may hold results beside texts;
        one of the role `tool` or `function` holds results only.
        """

    @abstractmethod
    def parts(self, message: Message) -> Iterable[Part]:
        """Yield the parts of a message, in the order in which a model reads them.

        Images and documents inside a result follow it. What the shape does not know is a part of
        the kind `unknown`; it stays as it is.
        """

    @abstractmethod
    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a new message with the parts at these paths replaced by a text, or removed.

        `texts` has at least one entry; None removes the part. For a call the text is the JSON of
        its new input. `parts` has to read each new text back as it was given, and every other part
        as before. The new message shares nothing that can change with the old one. The value is
        None if no part is left.
        """

    @abstractmethod
    def written(self, role: str, text: str) -> Message:
        """Return a new message of the role `user` or `assistant` that holds one text.

        A message with a time or an id of its own gets the same one each time.
        """

    def written_with(self, text: str, message: Message, path: Path) -> Message | None:  # noqa: ARG002
        """Return a message of the user with a text and with what the result at a path holds.

        A result with media becomes such a message when its call has left the list. With None, the
        default, it stays.
        """
        return None

    @abstractmethod
    def plain(self, message: Message) -> JSON:
        """Return the JSON values of a message, from which the host can restore it.

        An archive holds these values, and by them a message is recognised after a restart: messages
        that mean the same to the provider should have equal values.
        """

    def block(self, message: Message, path: Path) -> JSON:  # noqa: ARG002
        """Return the JSON values of what holds one part, which the store keeps for `restore`.

        The default is the whole message. A shape that yields `thinking` beside other parts needs a
        method of its own: by these values the session checks that the thinking did not change.
        """
        return self.plain(message)

    def marked(self, message: Message, ttls: Mapping[Path, Ttl]) -> Message:  # noqa: ARG002
        """Return the message with `cache_control` markers at these parts and nowhere else.

        `ttls` says by the path of a part how long the provider keeps the prefix that ends there. A
        marker that is there already, with the same lifetime, stays as it is. The same object comes
        back if nothing changes. `parts` reads the same texts and kinds afterwards. Only called
        where `takes_markers` is true.
        """
        return message

    def ttls(self, message: Message) -> Mapping[Path, Ttl]:  # noqa: ARG002
        """Return the lifetimes that the `cache_control` markers on parts ask for, by path."""
        return {}

    def problem(self, message: Message) -> str | None:  # noqa: ARG002
        """Return what is wrong with a message, None if it can be read.

        The session raises `MessagesError` with this text.
        """
        return None

    def is_empty(self, message: Message) -> bool:
        """Return whether a provider would reject the message because it says nothing."""
        return self.role(message) not in RESULT_ROLES and not list(self.parts(message))

    def stays(self, message: Message) -> bool:  # noqa: ARG002
        """Return whether the message must survive a compaction, since no summary can tell it."""
        return False


def kind_of_text(role: str) -> str:
    """Return the kind of the item for a text of this role."""
    return _TEXT_KINDS.get(role, "user_message")
