"""`Shapes`: finds the shape of each message of a list."""

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import NamedTuple

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError, ShapeError
from policyctx.messages.json_text import as_message
from policyctx.messages.shapes.anthropic import AnthropicShape
from policyctx.messages.shapes.blocks import BESIDE_CONTENT, fields_of, lacks_content, named
from policyctx.messages.shapes.chat import ChatShape
from policyctx.messages.shapes.google import GeminiShape
from policyctx.messages.shapes.host import host_shapes
from policyctx.messages.shapes.responses import ResponsesShape, is_plain_item
from policyctx.messages.shapes.shape import SPEAKING_ROLES, Shape

ANTHROPIC, CHAT, RESPONSES = AnthropicShape(), ChatShape(), ResponsesShape()
# For an object of a class that no shape knows.
_OF_A_HOST = "; the objects of a framework need its shape: `shapes=[…]`"
# Shapes of dicts whose fields show their API.
_DISTINCT: tuple[Shape, ...] = (GeminiShape(),)


class Shaped(NamedTuple):
    """A message with the shape that reads it; an SDK's object is the dict that the SDK sends."""

    shape: Shape
    message: Message


class Shapes:
    """The shapes of the messages of one session: those of its `host`, then the built-in ones.

    What the shapes of the host answer is checked. Raises `ShapeError` for one that is not a shape.
    """

    def __init__(self, host: Iterable[Shape] = ()) -> None:
        self.host = host_shapes(host)

    def shaped(self, given: Message) -> Shaped:
        """Return a message that was checked before with its shape."""
        for shape in self.host:
            if shape.recognises(given):
                return Shaped(shape, given)
        message = given if type(given) is dict else as_message(given)
        return Shaped(_built_in(message), message)

    def checked(self, given: object, index: int) -> Shaped:
        """Return a message with its shape; raises `MessagesError` for what is not a message."""
        if type(given) is dict and not self.host:
            if _is_plain(given):
                return Shaped(ANTHROPIC, given)
            if is_plain_item(given):
                return Shaped(RESPONSES, given)
        try:
            found = self._recognised(given)
            wrong = found if isinstance(found, str) else found.shape.problem(found.message)
        except ShapeError as error:
            raise error.at(index) from error.__cause__
        except Exception as error:
            text = f"message {index}: {named(given)} cannot be read: {error}"
            raise MessagesError(text, index=index) from error
        if isinstance(found, str) or wrong is not None:
            raise MessagesError(f"message {index}: {wrong}", index=index)
        return found

    def _recognised(self, given: object) -> Shaped | str:
        """Return a message with its shape, or why a value is not a message."""
        for shape in self.host:
            if shape.recognises(given):
                return Shaped(shape, given)
        message = as_message(given)
        if not isinstance(message, dict):
            hint = _OF_A_HOST if named(given) == type(given).__name__ else ""
            return f'expected an object with "role" and "content", got {named(given)}{hint}'
        if message is given:
            for own in _DISTINCT:
                if own.recognises(message):
                    return Shaped(own, message)
            if isinstance(message.get("role"), str) and lacks_content(message):
                return f'expected "content", a text or a list of blocks, in {fields_of(message)}'
        elif lacking := _lacking(message):
            return f'expected a message, got {named(given)} without "{lacking}"{_OF_A_HOST}'
        return Shaped(_built_in(message), message)

    def comparable(self, given: Message) -> object:
        """Return a value that is equal for an SDK's object and for the dict that was saved of it.

        An object may be saved with its unset fields as None, or without them.
        """
        shape, message = self.shaped(given)
        return shape.plain(message)

    def document(self, given: Message) -> object:
        """Return what an archive holds of a message: a dict, or the plain values of a host's."""
        shape, message = self.shaped(given)
        is_own = isinstance(message, dict) and shape not in self.host
        return message if is_own else shape.plain(message)

    def role(self, given: Message) -> str:
        """Return the role of a message."""
        shape, message = self.shaped(given)
        return shape.role(message)

    def text(self, given: Message) -> str | None:
        """Return the text of a message that is one text of a role, None for any other message."""
        shape, message = self.shaped(given)
        parts = list(shape.parts(message))
        is_text = len(parts) == 1 and parts[0].kind in TEXTS
        return str(parts[0].text) if is_text else None

    def writing(self, messages: Sequence[Message]) -> Shape:
        """Return the shape in which a message is written that replaces these.

        It is the first shape that only one API or framework has.
        """
        found = (self.shaped(message).shape for message in messages)
        return next((shape for shape in found if shape not in {ANTHROPIC, CHAT}), ANTHROPIC)


_CONTENTS = frozenset({str, list, NoneType})
TEXTS = frozenset({"user_message", "assistant_message", "system_prompt"})
BUILT_IN = Shapes()


def _built_in(message: Message) -> Shape:
    if not isinstance(message, dict):  # it is refused when it is checked
        return ANTHROPIC
    if "content" not in message:  # the first tests are the quick ones
        for shape in _DISTINCT:
            if shape.recognises(message):
                return shape
    if "type" in message and RESPONSES.recognises(message):
        return RESPONSES
    return CHAT if CHAT.recognises(message) else ANTHROPIC


def _lacking(message: Message) -> str | None:
    """Return the field without which the object of an SDK is none of these messages.

    An object of another framework may have some of the fields, too.
    """
    if "role" in message:
        return "content" if lacks_content(message) else None
    is_item = RESPONSES.recognises(message) and (
        "content" not in message or not RESPONSES.stays(message)
    )
    return None if is_item else "role"


def _is_plain(message: dict[str, object]) -> bool:
    """Whether a quick test shows a correct Anthropic message, as it does for most."""
    if message.get("role") not in SPEAKING_ROLES or "content" not in message:
        return False
    if "type" in message or not BESIDE_CONTENT.isdisjoint(message):
        return False
    content = message.get("content")
    if type(content) is list:
        for block in content:
            if type(block) is not dict or type(block.get("type")) is not str:
                return False
    return type(content) in _CONTENTS
