"""From decided texts back to messages: only what changes is copied."""

from __future__ import annotations

import copy
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from policyctx.errors import MessagesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Item, Message, Path


def edited(messages: Sequence[Message], texts: Sequence[tuple[Item, str]]) -> Sequence[Message]:
    """Return the messages with each item's content replaced by its text.

    The input is not changed. An untouched message is the same object in the output, a touched one
    is a deep copy; with no texts the very same list comes back.
    """
    if not texts:
        return messages
    by_message: dict[int, list[tuple[Item, str]]] = defaultdict(list)
    for item, text in texts:
        by_message[item.message].append((item, text))
    result = list(messages)
    for index, replacements in by_message.items():
        result[index] = _deep_copy(messages[index], index)
        for item, text in replacements:
            _put(result[index], item.path, text)
    return result


def _deep_copy(message: Message, index: int) -> Message:
    try:
        return copy.deepcopy(message)
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error


def _put(message: Message, path: Path, text: str) -> None:
    """Put `text` where `path` leads; a block may be a map or an object of a provider's SDK."""
    *folders, last = path
    holder: Any = message
    for part in folders:
        holder = holder[part] if hasattr(holder, "__getitem__") else getattr(holder, str(part))
    if hasattr(holder, "__setitem__"):
        holder[last] = text
    else:
        setattr(holder, str(last), text)
