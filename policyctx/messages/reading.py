"""From a request or a message list to items: checked, in order, each result beside its call.

A JSON document is a request body with `messages`, or a bare message list. `Reading` checks and
reads each message of a list once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from policyctx.errors import MessagesError
from policyctx.messages.blocks import MessagePosition, as_message, call_key, is_result, items_in

if TYPE_CHECKING:
    from policyctx.definitions.items import Item, Message

_message = attrgetter("message")
# Types that cannot be a block or a call, unlike an object of a provider's SDK.
_NO_OBJECT = (str, int, float, list)


class Reading:
    """The items of a message list that grows; every message is checked and read once.

    A result belongs to an earlier call with its id. Ids may be reused: within one message a result
    answers the oldest unanswered call, and a later message with a call of the same id replaces the
    earlier calls.
    """

    def __init__(self) -> None:
        self.items: list[Item] = []
        """In the order in which a model reads them; only ever appended to."""
        self.partners: dict[int, int] = {}
        """The position in `items` of the result of a call, and of the call of a result."""
        self.turn_starts: list[int] = []
        """Positions of the messages that begin a turn, in ascending order."""
        self.roles: list[str] = []
        """The role of each message."""
        self.message_count = 0
        self._newest_reply = range(0)  # the positions of its items
        self._open_calls: dict[object, list[tuple[int, Item]]] = {}

    @property
    def pending(self) -> int | None:
        """The position of the newest assistant message if one of its calls has no result, or None.

        Messages without items are skipped.
        """
        for i in self._newest_reply:
            if self.items[i].kind == "tool_call" and i not in self.partners:
                return self.items[i].message
        return None

    def items_of(self, message: int) -> range:
        """Return the positions of a message's items."""
        first = bisect_left(self.items, message, key=_message)
        return range(first, bisect_left(self.items, message + 1, lo=first, key=_message))

    def extend(self, messages: Sequence[Message]) -> None:
        """Read the messages that follow those read so far.

        Raises `MessagesError` with the position of the first wrong message in the whole list; the
        reading is then unchanged.
        """
        turn_starts: list[int] = []
        roles: list[str] = []
        items: list[Item] = []
        reply = self._newest_reply
        turn, before = len(self.turn_starts), len(self.items)
        for index, given in enumerate(listed(messages), self.message_count):
            message = given if _is_plain(given) else _checked(given, index)
            role = message["role"]
            roles.append(role)
            if role == "user" and _begins_turn(message.get("content")):
                turn_starts.append(index)
                turn += 1
            found = _read(message, (index, role, turn))
            if role == "assistant" and found:
                first = before + len(items)
                reply = range(first, first + len(found))
            items += found
        self._take(items)
        self._newest_reply = reply
        self.turn_starts += turn_starts
        self.roles += roles
        self.message_count += len(messages)

    def _take(self, items: list[Item]) -> None:
        """Add the items; results and the items inside them get the tool of their call."""
        first, result = len(self.items), -1
        # Each is replaced in its place, so that not all items exist twice at once.
        for i, item in enumerate(items):
            kind = item.kind
            if kind == "tool_result":
                result = i
                items[i] = self._paired(item, first + i)
            elif item.number:
                items[i] = _inside(item, items[result], first + result)
            elif kind == "tool_call":
                self._open(item, first + i)
        self.items += items

    def _open(self, call: Item, position: int) -> None:
        key = call_key(call)
        if key is None:
            return
        calls = self._open_calls.setdefault(key, [])
        if calls and calls[0][1].message != call.message:
            calls.clear()
        calls.append((position, call))

    def _paired(self, result: Item, position: int) -> Item:
        key = call_key(result)
        calls = self._open_calls.get(key)
        if not calls:
            return result
        answered, call = calls.pop(0)
        if not calls:
            del self._open_calls[key]
        self.partners[answered] = position
        self.partners[position] = answered
        return result._replace(tool=call.tool, call_message=call.message)


def _inside(item: Item, result: Item, position: int) -> Item:
    """Return an item inside a result with what it has from that result, and its position."""
    return item._replace(tool=result.tool, call_message=result.call_message, inside=position)


def items_of(messages: Sequence[Message]) -> tuple[Item, ...]:
    """Return the items of a message list, in the order in which a model reads them.

    Raises `MessagesError` like `checked_messages`. `Reading` says how results and calls are paired.
    """
    reading = Reading()
    reading.extend(messages)
    return tuple(reading.items)


def _read(message: Message, place: MessagePosition) -> list[Item]:
    index, _, _ = place
    try:
        return items_in(message, place)
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error
    except (TypeError, ValueError) as error:
        raise MessagesError(f"message {index}: not JSON: {error}", index=index) from error


def _begins_turn(content: str | Sequence[object] | None) -> bool:
    """Whether a user message with this content starts a turn: it is more than tool results."""
    if isinstance(content, str) or not content:
        return True
    return any(_type_of(block) != "tool_result" for block in content)


def _type_of(block: object) -> object:
    if type(block) is dict or isinstance(block, Mapping):
        return block.get("type")
    return getattr(block, "type", None)


def _is_plain(message: object) -> bool:
    """Whether a message passes a quick test, as most do; others need the full check."""
    if type(message) is not dict or type(message.get("role")) is not str:
        return False
    content = message.get("content")
    if type(content) is list:
        for block in content:
            if type(block) is not dict or type(block.get("type")) is not str:
                return False
    elif type(content) is not str and content is not None:
        return False
    return "tool_calls" not in message and "function_call" not in message


def checked_messages(messages: object, first: int = 0) -> Sequence[Message]:
    """Return `messages` unchanged; raises `MessagesError` with the first wrong message.

    `first` is the position of the first message in the whole list.
    """
    found = listed(messages)
    for index, message in enumerate(found, first):
        _checked(message, index)
    return found


def is_message(message: object) -> bool:
    """Whether `checked_messages` accepts the message."""
    return _is_plain(message) or (isinstance(message, dict) and _wrong_with(message) is None)


def listed(messages: object) -> Sequence[Message]:
    """Return `messages` unchanged; raises `MessagesError` if the value is not a list."""
    if type(messages) is list:  # the quick test
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise MessagesError(f"expected a list of messages, got {_kind(messages)}")
    return messages


def _checked(given: Any, index: int) -> Message:  # noqa: ANN401 - what a caller gives
    """Return a message as a dict; raises `MessagesError` for what is not a message."""
    try:
        message = as_message(given)
    except Exception as error:
        text = f"message {index}: {_kind(given)} cannot be read: {error}"
        raise MessagesError(text, index=index) from error
    if not isinstance(message, dict):
        wrong: str | None = f'expected an object with "role" and "content", got {_kind(given)}'
    elif message is not given and "role" not in message:
        wrong = f'expected a message, got {_kind(given)} without "role"'
    else:
        wrong = _wrong_with(message)
    if wrong:
        raise MessagesError(f"message {index}: {wrong}", index=index)
    return message


def _wrong_with(message: dict[str, Any]) -> str | None:
    role = message.get("role")
    if not isinstance(role, str):
        return f'expected "role" to be a string such as "user", got {_kind(role)}'
    return _wrong_with_content(message) or _wrong_with_calls(message)


def _wrong_with_content(message: dict[str, Any]) -> str | None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return None
    if isinstance(content, Mapping) or not isinstance(content, Sequence):
        return f'expected "content" to be a string or a list of blocks, got {_kind(content)}'
    wrong = () if is_result(message) else map(_wrong_with_block, content)
    return next((f"content block {i}: {text}" for i, text in enumerate(wrong) if text), None)


def _wrong_with_calls(message: Mapping[str, Any]) -> str | None:
    calls, call = message.get("tool_calls"), message.get("function_call")
    if isinstance(call, _NO_OBJECT):
        return f'expected "function_call" to be an object, got {_kind(call)}'
    if calls is None:
        return None
    if type(calls) is not list and (
        isinstance(calls, str | Mapping) or not isinstance(calls, Sequence)
    ):
        return f'expected "tool_calls" to be a list of objects, got {_kind(calls)}'
    odd = next((call for call in calls if call is None or isinstance(call, _NO_OBJECT)), ...)
    return None if odd is ... else f'expected "tool_calls" to hold objects, got {_kind(odd)}'


def _wrong_with_block(block: object) -> str | None:
    if isinstance(block, Mapping) and not isinstance(block.get("type"), str):
        return f'expected "type" to be a string such as "text", got {_kind(block.get("type"))}'
    if block is None or isinstance(block, _NO_OBJECT):
        return f"expected an object, got {_kind(block)}"
    return None


def _kind(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """A model call: the messages, and the request body around them if there is one."""

    messages: Sequence[Message]
    body: Mapping[str, Any] | None = None

    @property
    def system(self) -> object:
        """The `system` of the request: a string, a list of blocks, or None."""
        return self.body and self.body.get("system")

    @property
    def tools(self) -> object:
        """The schemas of the available tools, or None."""
        return self.body and self.body.get("tools")

    def document_with(self, messages: Sequence[Message]) -> object:
        """Return the document with its messages replaced by these."""
        return list(messages) if self.body is None else {**self.body, "messages": list(messages)}


def request_of(document: object) -> Request:
    """Return the request in a JSON document: an array of messages, or an object with `messages`.

    Raises `MessagesError` for any other document, with the first wrong message.
    """
    if isinstance(document, Mapping):
        if "messages" not in document:
            raise MessagesError(
                'expected a list of messages or a request body, got an object without "messages"'
            )
        return Request(checked_messages(document["messages"]), document)
    return Request(checked_messages(document))
