"""Sessions as Copilot CLI records them: JSON lines of events under `~/.copilot/session-state/`.

Replies name the calls that they ask for; what a tool gave comes with the event that it was done.
What a call of a model cost is not kept. Sub-agents name the call that they were started by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.readers.building import Names, RecordingBuilder
from policyctx.replay.readers.fields import (
    Record,
    function_call,
    mapping,
    objects,
    seconds,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "copilot-cli"

# Families of events that tell of the session, and those that repeat what others hold.
_NOT_PROMPT = ("session.", "hook.", "skill.", "subagent.", "assistant.", "tool.", "abort")


def recognises(record: object) -> bool:
    """Is this an event in its envelope."""
    fields = mapping(record)
    kind = word(fields.get("type"))
    known = kind == "user.message" or kind.startswith(("session.", "assistant.", "tool.execution"))
    return known and isinstance(fields.get("data"), dict) and "id" in fields


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session, then its sub-agents."""
    session = _Session()
    for event in source.objects():
        session.read(event, mapping(event.get("data")))
    names = Names(source.name)
    for agent, builder in session.builders.items():
        if not builder.is_empty:
            yield builder.recording(names.of(agent) if agent else source.name, FORMAT)


class _Session:
    def __init__(self) -> None:
        self.builders: dict[str, RecordingBuilder] = {}
        self._model: str | None = None

    def builder(self, agent: str) -> RecordingBuilder:
        """Return what an agent's events go into; the session's own agent has no name."""
        return self.builders.setdefault(agent, RecordingBuilder())

    def read(self, event: Record, fields: Record) -> None:
        kind = word(event.get("type"))
        self._model = word(fields.get("newModel") or fields.get("selectedModel")) or self._model
        builder = self.builder(word(fields.get("parentToolCallId")))
        builder.records += 1
        if kind == "user.message":
            said = word(fields.get("transformedContent")) or word(fields.get("content"))
            builder.add({"role": "user", "content": said})
        elif kind == "system.message":
            builder.add({"role": "system", "content": word(fields.get("content"))})
        elif kind == "assistant.message":
            model = word(fields.get("model")) or self._model
            builder.called(None, model, seconds(event.get("timestamp")))
            builder.add(_reply(fields))
        elif kind == "tool.execution_complete":
            builder.add(_result(fields))
        elif kind == "session.compaction_complete" and word(fields.get("summaryContent")):
            _compact(builder, fields)
        else:
            known = kind.startswith(_NOT_PROMPT)
            builder.pass_over(kind or "event without a type", known=known)


def _reply(fields: Record) -> Record:
    message: Record = {"role": "assistant", "content": word(fields.get("content"))}
    if calls := objects(fields.get("toolRequests")):
        message["tool_calls"] = [
            function_call(call.get("toolCallId"), call.get("name"), call.get("arguments"))
            for call in calls
        ]
    return message


def _result(fields: Record) -> Record:
    result = fields.get("result")
    content = mapping(result).get("content", result)
    error = mapping(fields.get("error")).get("message", fields.get("error"))
    said = content if fields.get("success") is not False else error or content
    text = said if isinstance(said, str) else compact_json(said)
    message: Record = {"role": "tool", "tool_call_id": word(fields.get("toolCallId"))}
    message["content"] = "" if said is None else text
    return message | ({"is_error": True} if fields.get("success") is False else {})


def _compact(builder: RecordingBuilder, fields: Record) -> None:
    """Begin the context anew with its system prompt and the summary."""
    head = [message for message in builder.context if message["role"] == "system"]
    builder.begin_anew([*head, {"role": "user", "content": word(fields.get("summaryContent"))}])
