"""Message lists and nothing else: an array of messages, a message a line, or a list a line.

Where a model was called does not show, so every message of an assistant is a call. Both APIs' forms
are taken as they are.
"""

from collections.abc import Iterator
from typing import Any

from policyctx.replay.readers.building import RecordingBuilder, mapping, word
from policyctx.replay.readers.source import Source
from policyctx.replay.recording import Recording

FORMAT = "chat"

_ROLES = frozenset({"assistant", "developer", "function", "system", "tool", "user"})


def recognises(record: object) -> bool:
    """Is this a message of either API, or a list of them, bare or in an object."""
    return is_chat_message(record) or any(map(is_chat_message, _listed(record)[:1]))


def stands_alone(record: object) -> bool:
    """Is this a whole conversation, or nothing of one."""
    return bool(_listed(record)) or not is_chat_message(record)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield one recording of a file of messages, and one of each list of messages."""
    names = source.names()
    rest = RecordingBuilder()
    for record in source.records():
        messages = _listed(record)
        if messages:
            one = RecordingBuilder()
            for message in messages:
                add_said(one, message)
            yield one.recording(names.numbered(), FORMAT)
        elif is_chat_message(record):
            add_said(rest, record)
        else:
            source.not_understood["record that is not a message"] += 1
    if not rest.is_empty:
        yield rest.recording(source.name, FORMAT)


def is_chat_message(record: object) -> bool:
    """Whether a record is a message: its role, and content or calls."""
    fields = mapping(record)
    return word(fields.get("role")) in _ROLES and ("content" in fields or "tool_calls" in fields)


def add_said(builder: RecordingBuilder, record: object) -> None:
    """Add a message to a recording; one of an assistant is a call as well."""
    builder.records += 1
    if not is_chat_message(record):
        builder.pass_over("record that is not a message", known=False)
        return
    message: dict[str, Any] = mapping(record)
    if message["role"] == "assistant":
        builder.called()
    builder.add(message)


def _listed(record: object) -> list[Any]:
    found = mapping(record).get("messages") if isinstance(record, dict) else record
    return found if isinstance(found, list) else []
