"""Message lists and nothing else: an array of messages, a message a line, or a list a line.

Where a model was called does not show, so every message of an assistant is a call, and items of the
Responses API without one of the client between them are one. All APIs' forms are taken as they are.
"""

from collections.abc import Iterator
from typing import Any

from policyctx.messages.shapes.blocks import BESIDE_CONTENT, BLOCK_TYPES
from policyctx.messages.shapes.built_in import RESPONSES
from policyctx.messages.shapes.responses import BESIDE_REPLIES, ITEM_TYPES
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, word
from policyctx.replay.recording import Recording

FORMAT = "chat"

# Blocks that providers add, and fields of messages that are sent, or that describe a reply.
_OF_PROVIDERS = ("_tool_use", "_result", "_tool_call", "_upload", "_reference", "compaction")
_FIELDS = BESIDE_CONTENT | {
    "annotations", "content", "metadata", "provider_specific_fields", "reasoning",
    "reasoning_details", "thinking_blocks", "usage",
}  # fmt: skip
# How many messages of a list are looked at to see what it is.
_FIRST = 10
_ROLES = frozenset({"assistant", "developer", "function", "system", "tool", "user"})


def recognises(record: object) -> bool:
    """Is this a message or an item, or a list of them, bare or in an object."""
    return any(map(_shows, (record, *_listed(record)[:_FIRST])))


def recordings(source: Source) -> Iterator[Recording]:
    """Yield one recording of a file of messages, and one of each list of messages."""
    names = source.names()
    rest = RecordingBuilder()
    for record in source.records():
        if messages := _listed(record):
            one = RecordingBuilder()
            for message in messages:
                add_said(one, message)
            yield one.recording(names.numbered(), FORMAT)
        elif is_said(record):
            add_said(rest, record)
        else:
            source.pass_over("record that is not a message", record)
    yield from rest.found(source.name, FORMAT)


def is_said(record: object) -> bool:
    """Whether a record is a message: its role, and content or calls; or an item of Responses."""
    fields = mapping(record)
    if "role" not in fields:
        return word(fields.get("type")) in ITEM_TYPES | BESIDE_REPLIES
    return word(fields["role"]) in _ROLES and ("content" in fields or "tool_calls" in fields)


def _shows(record: object) -> bool:
    """Whether a record is a message, or an item that hardly anything else looks like."""
    return is_said(record) and not mapping(record).keys().isdisjoint({"role", "call_id", "summary"})


def add_said(builder: RecordingBuilder, record: object) -> None:
    """Add a message to a recording; one of an assistant is a call as well."""
    builder.records += 1
    if not is_said(record):
        builder.pass_over("record that is not a message", known=False, record=record)
        return
    message: dict[str, Any] = mapping(record)
    before = builder.context[-1] if builder.context else message
    are_items = RESPONSES.recognises(message) or RESPONSES.recognises(before)
    goes_on = are_items and before is not message and _is_of_model(before)
    if _is_of_model(message) and not goes_on:
        builder.called()
    if builder.add(message) and "role" in message:
        miss_unknown(builder, message)


def _is_of_model(message: Record) -> bool:
    if word(message.get("type")) in BESIDE_REPLIES:
        return False
    return (message["role"] if "role" in message else RESPONSES.role(message)) == "assistant"


def miss_unknown(builder: RecordingBuilder, message: Record) -> None:
    """Count what no API has in a message: blocks of unknown types, and fields with more inside."""
    for block in objects(message.get("content")):
        kind = word(block.get("type"))
        if kind not in BLOCK_TYPES and not kind.endswith(_OF_PROVIDERS):
            builder.miss(f"block of the type {kind}", block)
    for name, value in message.items():
        if isinstance(value, dict | list) and value and name not in _FIELDS:
            builder.miss(f"field {name} of a message", value)


def _listed(record: object) -> list[Any]:
    found = mapping(record).get("messages") if isinstance(record, dict) else record
    if "kept" in mapping(record):
        return []  # a line of `Session(record=…)` is only a part of its list
    return found if isinstance(found, list) else []
