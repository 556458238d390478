"""From a message list to items: checked, in order, each result beside the call that it answers."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from policyctx.errors import MessagesError
from policyctx.messages.blocks import RESULT_ROLES, as_mapping, pieces_of
from policyctx.messages.items import Item

if TYPE_CHECKING:
    from policyctx.messages.blocks import Piece
    from policyctx.messages.items import Message


def items_of(messages: Sequence[Message]) -> tuple[Item, ...]:
    """See a message list as items, in the order in which a model reads them.

    A result belongs to a call before it with its id. Ids may be used again: within one message the
    oldest unanswered call is meant, and a later message that calls an id takes it over.
    Raises `MessagesError` for what is no message list; see `checked_messages`.
    """
    checked_messages(messages)
    items: list[Item] = []
    open_calls: dict[str, deque[Item]] = defaultdict(deque)
    turn = 0
    for index, message in enumerate(messages):
        turn += _begins_turn(message)
        for piece in _pieces(message, index):
            place = _Place(message["role"], index, turn)
            item = _item(piece, place, _answered_call(piece, open_calls))
            items.append(item)
            if piece.type == "tool_call" and piece.tool_use_id is not None:
                _open(open_calls[piece.tool_use_id], item)
    return tuple(items)


def _pieces(message: Message, index: int) -> list[Piece]:
    try:
        return list(pieces_of(message))
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error
    except (TypeError, ValueError) as error:
        raise MessagesError(f"message {index}: not JSON: {error}", index=index) from error


class _Place(NamedTuple):
    """Where in the list a piece stands."""

    role: str
    message: int
    turn: int


def _open(calls: deque[Item], call: Item) -> None:
    if calls and calls[0].message != call.message:
        calls.clear()
    calls.append(call)


def _answered_call(piece: Piece, open_calls: Mapping[str, deque[Item]]) -> Item | None:
    if piece.type != "tool_result" or piece.tool_use_id is None:
        return None
    calls = open_calls.get(piece.tool_use_id)
    return calls.popleft() if calls else None


def _item(piece: Piece, place: _Place, call: Item | None) -> Item:
    answers = call.message if call else None
    return Item(
        message=place.message,
        path=piece.path,
        kind=piece.type,
        type=piece.type,
        role=place.role,
        text=piece.text,
        counted=piece.counted,
        media=piece.media,
        turn=place.turn,
        tool=call.tool if call else piece.tool,
        tool_use_id=piece.tool_use_id,
        call_message=place.message if piece.type == "tool_call" else answers,
        error=piece.error,
        media_type=piece.media_type,
    )


def _begins_turn(message: Message) -> bool:
    """A turn starts with a user message that is no tool result."""
    if message["role"] != "user":
        return False
    content = message.get("content")
    if isinstance(content, str) or not content:
        return True
    return any(as_mapping(block).get("type") != "tool_result" for block in content)


def checked_messages(messages: object) -> Sequence[Message]:
    """Return `messages` as they are; raises `MessagesError`, naming the first message at fault."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise MessagesError(f"expected a list of messages, got {_kind(messages)}")
    for index, message in enumerate(messages):
        if wrong := _wrong_with(message):
            raise MessagesError(f"message {index}: {wrong}", index=index)
    return messages


def _wrong_with(message: object) -> str | None:
    if not isinstance(message, dict):
        return f'expected an object with "role" and "content", got {_kind(message)}'
    role = message.get("role")
    if not isinstance(role, str):
        return f'expected "role" to be a string such as "user", got {_kind(role)}'
    return _wrong_with_content(message, role) or _wrong_with_calls(message.get("tool_calls"))


def _wrong_with_content(message: Mapping[str, Any], role: str) -> str | None:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return None
    if isinstance(content, Mapping) or not isinstance(content, Sequence):
        return f'expected "content" to be a string or a list of blocks, got {_kind(content)}'
    wrong = map(_wrong_with_block, content) if role not in RESULT_ROLES else ()
    return next((f"content block {i}: {text}" for i, text in enumerate(wrong) if text), None)


def _wrong_with_calls(calls: object) -> str | None:
    if calls is None:
        return None
    if isinstance(calls, str | Mapping) or not isinstance(calls, Sequence):
        return f'expected "tool_calls" to be a list of objects, got {_kind(calls)}'
    odd = next((call for call in calls if isinstance(call, str | int | float | list | None)), ...)
    return None if odd is ... else f'expected "tool_calls" to hold objects, got {_kind(odd)}'


def _wrong_with_block(block: object) -> str | None:
    if isinstance(block, Mapping) and not isinstance(block.get("type"), str):
        return f'expected "type" to be a string such as "text", got {_kind(block.get("type"))}'
    if isinstance(block, str | int | float | list) or block is None:
        return f"expected an object, got {_kind(block)}"
    return None


def _kind(value: object) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    names |= {int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
