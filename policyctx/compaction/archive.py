"""The archive of a compaction: the replaced messages, whole, as one JSON document."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.errors import MessagesError
from policyctx.messages.blocks import as_message
from policyctx.messages.items import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.messages.items import Message

ITEM_TYPE = "archive"
"""What the store knows archives by."""

_SCHEMA_VERSION = "1.0"


def archive_name(number: int) -> str:
    """Return what the archive of the session's first, second, … compaction is called."""
    return f"compaction-{number:03}"


@dataclass(frozen=True, slots=True)
class Archive:
    """The document, written message by message; `archived_messages` reads it back.

    A message object of a provider's SDK is written as a request would have it, a block object as
    the plain values that it stands for.
    """

    number: int
    messages: Sequence[Message]

    def __iter__(self) -> Iterator[str]:
        """Yield the text of the document in pieces, one for each message and two around them."""
        empty = {"schema_version": _SCHEMA_VERSION, "compaction": self.number, "messages": []}
        yield compact_json(empty).removesuffix("]}")
        for i, message in enumerate(self.messages):
            text = compact_json(as_message(message))
            yield f",{text}" if i else text
        yield "]}"


def messages_text(text: str) -> str:
    """Return the part of a document that holds the messages, a JSON array, byte for byte.

    Raises `MessagesError` for another text.
    """
    return compact_json(archived_messages(text))


def archived_messages(text: str) -> list[dict[str, Any]]:
    """Return the messages of a document, as they were. Raises `MessagesError` for another text."""
    try:
        messages = json.loads(text)["messages"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MessagesError("this is no archive of a compaction") from error
    if not isinstance(messages, list):
        raise MessagesError("this is no archive of a compaction")
    return messages
