"""Logs of inspect: a JSON document, or the same as a zip archive (`.eval`), with a list of samples.

A sample's `messages` are its conversation; what its events tell of a call is taken by the id of the
reply. Model calls beside the conversation, such as a grader's, are skipped. Long texts of some
messages stand apart, under `attachments`.
"""

from collections.abc import Iterator

from policyctx.definitions.items import Message, PlainValue
from policyctx.replay.readers.building import RecordingBuilder, calls_of, thinking
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "inspect"

_ATTACHMENT = "attachment://"


def recognises(record: object) -> bool:
    """Is this the outline of a log."""
    fields = mapping(record)
    return "version" in fields and isinstance(fields.get("eval"), dict) and "samples" in fields


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each sample and epoch."""
    names = source.names()
    model = word(source.field("eval", "model")) or None
    for sample in map(mapping, source.elements("samples")):
        builder = _read(sample, model)
        if not builder.is_empty:
            yield builder.recording(names.of(sample.get("id"), sample.get("epoch")), FORMAT)
        else:
            source.pass_over("sample without a conversation", sample)


def _read(sample: Record, model: str | None) -> RecordingBuilder:
    builder = RecordingBuilder()
    transcript = mapping(sample.get("transcript"))
    texts = mapping(sample.get("attachments") or transcript.get("content"))
    found = sample.get("events") or transcript.get("events")
    events = list(builder.objects(found, "record that is not an event"))
    calls = [event for event in events if event.get("event") == "model"]
    messages = list(builder.objects(sample.get("messages"), "record that is not a message"))
    by_reply = _by_reply(calls, messages)
    for record in messages:
        builder.records += 1
        if _is_reply(record):
            event = by_reply.pop(word(record.get("id")) or id(record), {})
            _call(builder, event, word(record.get("model")) or model)
        builder.add(_message(_resolved(record, texts)))
    builder.records += len(events)
    builder.not_prompt["event"] += len(events) - len(by_reply)
    builder.not_prompt["model call beside the conversation"] += len(by_reply)
    builder.not_prompt = +builder.not_prompt
    return builder


def _is_reply(record: Record) -> bool:
    """Whether a model wrote a message, rather than the data set."""
    return record.get("role") == "assistant" and record.get("source") != "input"


def _by_reply(calls: list[Record], messages: list[Record]) -> dict[str | int, Record]:
    """Return the events of model calls by the ids of their replies.

    Older logs have none: there the calls are told by their order, and by the messages' identity.
    """
    by_id: dict[str | int, Record] = {}
    for position, call in enumerate(calls):
        by_id[_reply_id(call) or -1 - position] = call
    replies = [record for record in messages if _is_reply(record)]
    if len(replies) != len(calls) or any(map(_reply_id, calls)):
        return by_id
    return {id(reply): call for reply, call in zip(replies, calls, strict=True)}


def _reply_id(call: Record) -> str:
    choices = objects(mapping(call.get("output")).get("choices"))
    return word(mapping(choices[0].get("message")).get("id")) if choices else ""


def _call(builder: RecordingBuilder, event: Record, model: str | None) -> None:
    billed = _billed(mapping(mapping(event.get("output")).get("usage")))
    builder.called(billed, model, seconds(event.get("timestamp")), tools=event.get("tools"))


def _billed(fields: Record) -> Usage | None:
    """Return the usage: some versions count what was read from the cache as input, some beside."""
    prompt, output, total = counts(fields, "input_tokens", "output_tokens", "total_tokens")
    read, written = counts(fields, "input_tokens_cache_read", "input_tokens_cache_write")
    if total == prompt + output:
        prompt = max(0, prompt - read - written)
    return Usage(prompt, read, written, output) if prompt + read + written else None


def _resolved(value: PlainValue, texts: Record) -> PlainValue:
    """Put the texts that stand apart back into their places."""
    if isinstance(value, str):
        found = texts.get(value.removeprefix(_ATTACHMENT)) if _ATTACHMENT in value[:13] else None
        return value if found is None else found
    if isinstance(value, list):
        return [_resolved(one, texts) for one in value]
    if isinstance(value, dict):
        return {key: _resolved(one, texts) for key, one in value.items()}
    return value


def _message(record: Record) -> Message:
    content = record.get("content")
    parts = [_part(part) for part in objects(content)] if isinstance(content, list) else content
    message: Record = {"role": record.get("role"), "content": parts}
    if record.get("role") == "tool":
        message["tool_call_id"] = word(record.get("tool_call_id"))
        if error := mapping(record.get("error")):
            message |= {"content": word(error.get("message")) or parts, "is_error": True}
    return message | calls_of(record.get("tool_calls"), name="function")


def _part(part: Record) -> Record:
    kind = part.get("type")
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": word(part.get("image"))}}
    if kind == "reasoning":
        return thinking(word(part.get("reasoning")), part.get("signature"))
    return part
