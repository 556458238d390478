"""From decided edits back to messages: only messages that change are copied.

The input of a call is edited as a JSON text: long strings in it are replaced, and it stays an
object.
"""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from policyctx.definitions.items import UNKNOWN
from policyctx.errors import MessagesError
from policyctx.messages.blocks import (
    REMOVED,
    RESULT_ROLES,
    as_mapping,
    as_message,
    input_path,
    is_result,
    says_nothing,
)
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import MARKER, marker_of, unmarked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from policyctx.definitions.items import Item, Message, Path

# Types of JSON values that contain no other values.
_FLAT = frozenset({str, int, bool, NoneType})
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


def edited(messages: Sequence[Message], edits: Sequence[Edit]) -> Sequence[Message]:
    """Return the messages with the edits made.

    The input is not changed. In the output a message without edits is the same object, one with
    edits is a deep copy, and one of which nothing is left is missing. Without edits the list object
    itself is returned. Raises the errors of `edited_message`.
    """
    if not edits:
        return messages
    by_message: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_message[edit.item.message].append(edit)
    new = [
        edited_message(message, by_message[i]) if i in by_message else message
        for i, message in enumerate(messages)
    ]
    return [message for message in new if message is not None]


def edited_message(message: Message, edits: Sequence[Edit]) -> Message | None:
    """Return a deep copy of the message with the edits made; None if nothing of it is left.

    The copy of an SDK's message object is the dict that `as_message` returns for it. There is at
    least one edit, and at most one for each item of this message. Raises `MessagesError` for a
    message that cannot be copied, and `ValueError` for an edit that gives thinking a new text,
    changes a block of an unknown type, or gives a call an input that is not JSON.
    """
    message = as_message(message)
    by_path = {edit.item.path: edit for edit in edits}
    is_whole_result = is_result(message)
    whole = by_path.get(("content",))
    if is_whole_result and whole is not None and whole.text is None:
        return None
    new = _deep_copy(message, edits[0].item.message)
    # From the end, so that a removal does not move later edits; inner items come before outer ones.
    for path in sorted(by_path, reverse=True):
        _edit(new, by_path[path])
    if message.get("content") and not new.get("content") and not is_whole_result:
        if message["role"] in RESULT_ROLES:
            return None
        new["content"] = None  # the only empty content that is allowed beside calls
    return None if says_nothing(new) else new


def _deep_copy(message: Message, index: int) -> Message:
    try:
        return copy.deepcopy(message)
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error
    except TypeError as error:
        raise MessagesError(f"message {index}: cannot be copied: {error}", index=index) from error


def _edit(message: Message, edit: Edit) -> None:
    item, text = edit.item, edit.text
    if item.kind == UNKNOWN or (item.kind == "thinking" and text is not None):
        raise ValueError(f"an item of kind {item.kind} keeps its bytes: {item.item_id}")
    if text is None:
        _remove(message, item.path)
    elif item.kind == "tool_call":
        _put_input(message, item.path, text)
    elif item.kind in {"image", "document"}:
        block = as_mapping(_at(message, item.path))
        text_kind = "input_text" if block["type"].startswith("input_") else "text"
        marked = {} if (marker := marker_of(block)) is None else {MARKER: marker}
        _put(message, item.path, {"type": text_kind, "text": text, **marked})
    else:
        _put(message, item.path, text)


def _remove(message: Message, path: Path) -> None:
    """Remove the block at or around `path`, and its list if that becomes empty.

    A result of which nothing is left gets a short text that says so.
    """
    *holder, last = path if isinstance(path[-1], int) else path[:-1] or path
    if not isinstance(last, int):  # the whole content, or a legacy `function_call`
        del message[last]
        return
    is_of_result = is_result(message) or holder != ["content"]
    blocks = _list_at(message, holder)
    del blocks[last]
    if not blocks and holder == ["tool_calls"]:
        del message["tool_calls"]
    elif not blocks:
        _put(message, holder, REMOVED if is_of_result else "")


def _put_input(message: Message, path: Path, text: str) -> None:
    """Give a call a new input, in the form of the old one: a JSON text or a value."""
    sent_as_text = False
    if path[0] != "content":
        path = (*path, *input_path(as_mapping(_at(message, path))))
        sent_as_text = isinstance(_at(message, path), str)
    _put(message, path, text if sent_as_text else json.loads(text))


def _at(message: Message, path: Sequence[str | int]) -> object:
    """Return the value at `path`; a block may be a map or an object of a provider's SDK."""
    found: Any = message
    for part in path:
        found = found[part] if hasattr(found, "__getitem__") else getattr(found, str(part))
    return found


def _put(message: Message, path: Sequence[str | int], value: object) -> None:
    *folders, last = path
    holder: Any = _list_at(message, folders) if isinstance(last, int) else _at(message, folders)
    if hasattr(holder, "__setitem__"):
        holder[last] = value
    else:
        setattr(holder, str(last), value)


def _list_at(message: Message, path: Sequence[str | int]) -> list[Any]:
    """Return the list at `path`; another sequence there is replaced by a list."""
    found: Any = _at(message, path)
    blocks: list[Any] = found if isinstance(found, list) else list(found)
    if blocks is not found:
        _put(message, path, blocks)
    return blocks


def block_of(message: Message, item: Item) -> Any:  # noqa: ANN401 - a block is any JSON
    """Return the block of an item as plain JSON; for the content of a message, the message.

    Its `cache_control` markers are left out.
    """
    message = unmarked(as_message(message))
    indices = [i for i, part in enumerate(item.path) if isinstance(part, int)]
    block = _at(message, item.path[: indices[-1] + 1]) if indices else message
    if type(block) is dict and _FLAT.issuperset(map(type, block.values())):
        return dict(block)  # the usual case: one or two texts
    return json.loads(compact_json(block))


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
