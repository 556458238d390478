"""Trajectories of SWE-agent: one document, of which `history` is the conversation.

The steps of `trajectory` repeat it, each with its whole prompt, and are skipped. A result names
its call in a list, `tool_call_ids`. What was billed is known as a sum alone, `info.model_stats`.
"""

from collections.abc import Iterator

from policyctx.definitions.items import Message
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.source import Source, parsed
from policyctx.replay.readers.values import Record, counts, mapping, objects, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "swe-agent"

_ROLES = ("system", "user", "assistant", "tool")


def recognises(record: object) -> bool:
    """Is this the outline of a trajectory."""
    fields = mapping(record)
    return isinstance(fields.get("trajectory"), list) and isinstance(fields.get("history"), list)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each agent, the first under the file's own name."""
    builders: dict[str, RecordingBuilder] = {}
    model = _model(source)
    for record in map(mapping, source.elements("history")):
        builder = builders.setdefault(word(record.get("agent")), RecordingBuilder())
        builder.records += 1
        role = record.get("role")
        if role not in _ROLES:
            builder.pass_over(f"{role} message", known=False, record=record)
            continue
        if role == "assistant":
            builder.called(language_model=model)
        builder.add(_message(record))
    if len(builders) == 1:
        stats = mapping(source.field("info", "model_stats"))
        sent, output = counts(stats, "tokens_sent", "tokens_received")
        if sent:
            builder.bill_together(Usage(sent, output=output))
    names = source.names()
    for position, (agent, builder) in enumerate(builders.items()):
        yield builder.recording(names.of(agent) if position else source.name, FORMAT)


def _model(source: Source) -> str | None:
    """Return the model's name; in some versions the configuration is JSON in a string."""
    config = parsed(source.field("replay_config"))
    return word(mapping(mapping(mapping(config).get("agent")).get("model")).get("name")) or None


def _message(record: Record) -> Message:
    message: Record = {"role": record["role"], "content": record.get("content")}
    if record["role"] == "tool":
        ids = record.get("tool_call_ids")
        message["tool_call_id"] = word(ids[0]) if isinstance(ids, list) and ids else ""
    if calls := objects(record.get("tool_calls")):
        message["tool_calls"] = calls
    if thinking := objects(record.get("thinking_blocks")):
        text = [{"type": "text", "text": content}] if (content := word(message["content"])) else []
        message["content"] = [*thinking, *text]
    return message
