"""From decided edits back to messages: only messages that change are copied.

The input of a call is edited as a JSON text: long strings in it are replaced, and it stays an
object.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from policyctx.definitions.items import UNKNOWN, Item, Message
from policyctx.errors import MessagesError, ShapeError
from policyctx.messages.json_text import JSON, compact_json
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes

_MEDIA = frozenset({"image", "document"})
# A string in a JSON text, and whether it is a key.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(?P<is_key>\s*:)?')


@dataclass(frozen=True, slots=True)
class Edit:
    """The edit of one item: a new text, or its removal.

    A text, the content of a result, and the whole block of an image or document are replaced by the
    text; a block that is replaced keeps its `cache_control`. For a call, `text` is the compact JSON
    of its new input.
    """

    item: Item
    text: str | None
    """The text that replaces the item; None removes it."""


def edited(
    messages: Sequence[Message], edits: Sequence[Edit], shapes: Shapes = BUILT_IN
) -> Sequence[Message]:
    """Return the messages with the edits made.

    The input is not changed. In the output a message without edits is the same object, one with
    edits is a new one, and one of which nothing is left is missing. Without edits the list object
    itself is returned. Raises the errors of `edited_message`.
    """
    if not edits:
        return messages
    by_message: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_message[edit.item.message].append(edit)
    new = [
        edited_message(message, by_message[i], shapes) if i in by_message else message
        for i, message in enumerate(messages)
    ]
    return [message for message in new if message is not None]


def edited_message(
    message: Message, edits: Sequence[Edit], shapes: Shapes = BUILT_IN
) -> Message | None:
    """Return a new message with the edits made; None if nothing of it is left.

    Of an SDK's message object it is the dict that the SDK sends. There is at least one edit, and at
    most one for each item of this message. Raises `MessagesError` for a message that cannot be
    copied, `ShapeError` for a mistake of a host's shape, and `ValueError` for an edit that gives
    thinking a new text, changes a block of an unknown type, or gives a call an input that is not
    JSON.
    """
    for item, text in ((edit.item, edit.text) for edit in edits):
        if item.kind == UNKNOWN or (item.kind == "thinking" and text is not None):
            raise ValueError(f"an item of kind {item.kind} keeps its bytes: {item.item_id}")
    shape, shaped = shapes.shaped(message)
    index = edits[0].item.message
    try:
        return shape.replaced(shaped, {edit.item.path: edit.text for edit in edits})
    except ShapeError as error:
        raise error.at(index) from error.__cause__
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error
    except TypeError as error:
        raise MessagesError(f"message {index}: cannot be copied: {error}", index=index) from error


def keep_structure(items: Iterable[Item], edits: Sequence[Edit]) -> bool:
    """Return whether edits of a message with these items replace nothing but texts by other texts.

    Such an edit breaks no rule of a provider: every part stays in its place, with its kind and its
    id. A text that may count as none does not count, and neither does a message with thinking.
    """
    for edit in edits:
        text, item = edit.text, edit.item
        if not text or text.isspace() or (item.kind in _MEDIA and not item.number):
            return False
    return all(item.kind != "thinking" for item in items)


def block_of(message: Message, item: Item, shapes: Shapes = BUILT_IN) -> JSON:
    """Return the block of an item as plain JSON; for the content of a message, the message."""
    shape, shaped = shapes.shaped(message)
    return shape.block(shaped, item.path)


def shortened_input(text: str, replacement: Callable[[str], str | None]) -> str | None:
    """Return the JSON text of a call's input with long strings replaced.

    `replacement` is called with each string value at any depth, in the order of `text`. If it
    returns a text, this replaces the string. Keys and all other bytes stay. Returns None if `text`
    is not a JSON object, or if nothing was replaced.
    """
    if not _is_object(text):
        return None
    changed = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal changed
        if found["is_key"] or (new := replacement(json.loads(found[0]))) is None:
            return found[0]
        changed = True
        return compact_json(new)

    new_text = _STRING.sub(replaced, text)
    return new_text if changed else None


def has_input(text: str) -> bool:
    """Return whether the text of a call's input is a JSON object that holds something."""
    return _is_object(text) and text.strip("{} \t\r\n") != ""


def strings_in(text: str) -> Iterator[str]:
    """Yield the string values of a call's input at any depth; the text if it is not an object."""
    if not _is_object(text):
        yield text
        return
    for found in _STRING.finditer(text):
        if not found["is_key"]:
            yield json.loads(found[0])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (RecursionError, ValueError):
        return False
