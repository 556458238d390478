"""Sessions of OpenHands: events, as lines, as an array, or in the `history` of a result.

An event of the agent carries the whole response of the model that it came from; one response may
have several. What an event observed is the result of the call that it names. Results come as JSON
lines, one an instance, or as one document. The resolver of issues writes bare events: their fields
stand beside `action` or `observation`, and nothing says which call an observation answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.readers.building import Names, RecordingBuilder
from policyctx.replay.readers.fields import Record, mapping, number, objects, word
from policyctx.replay.readers.openhands_events import Events
from policyctx.replay.readers.openhands_resolver import read_resolved
from policyctx.replay.readers.openhands_sdk import SdkEvents, is_sdk_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "openhands"


def recognises(record: object) -> bool:
    """Is this an event, or the result of an instance with its events."""
    fields = mapping(record)
    history = fields.get("history")
    if _is_resolved(fields) and (history is None or isinstance(history, list)):
        return True
    if isinstance(history, list) and "instance_id" in fields:
        return any(map(_is_event, history[:1]))
    return _is_event(record)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each instance, or the one session that the events are of."""
    names = Names(source.name)
    alone = RecordingBuilder()
    events: Events | SdkEvents | None = None
    for record in source.objects():
        if _is_event(record) or (events is not None and "kind" in record):
            events = events or _events(alone, record)
            events.read(record)
            continue
        builder = RecordingBuilder()
        if _is_resolved(record):
            read_resolved(record, builder)
        else:
            _read_instance(record, builder)
        if builder.is_empty:
            source.not_understood["instance without a conversation"] += 1
        else:
            yield builder.recording(names.of(_instance(record)), FORMAT)
    if not alone.is_empty:
        yield alone.recording(source.name, FORMAT)


def _is_resolved(fields: Record) -> bool:
    """Whether an object is what the resolver makes of an issue."""
    return "issue" in fields and "instruction" in fields and "history" in fields


def _instance(record: Record) -> str:
    """Return what an instance is called; an issue is `owner/repo#12`, or what of it is known."""
    issue = mapping(record.get("issue"))
    number = issue.get("number")
    where = "/".join(filter(None, (word(issue.get("owner")), word(issue.get("repo")))))
    named = f"{where}#{number}" if where and number is not None else where or str(number or "")
    return word(record.get("instance_id")) or named


def _read_instance(record: Record, builder: RecordingBuilder) -> None:
    history = objects(record.get("history"))
    events = _events(builder, history[0] if history else {}, _longest(record))
    for event in builder.objects(record.get("history"), "record that is no event"):
        events.read(event)


def _longest(record: Record) -> int:
    """Return how many characters of an observation a model was shown, 0 for all."""
    settings = mapping(mapping(record.get("metadata")).get("llm_config"))
    return number(settings.get("max_message_chars"))


def _events(builder: RecordingBuilder, first: Record, longest: int = 0) -> Events | SdkEvents:
    """Return what reads the events of a session, which the first of them tells."""
    return SdkEvents(builder) if is_sdk_event(first) else Events(builder, longest)


def _is_event(record: object) -> bool:
    if is_sdk_event(record):
        return True
    fields = mapping(record)
    known = "action" in fields or "observation" in fields
    return known and "source" in fields and "timestamp" in fields
