"""Chats of Copilot in VS Code: a document under `workspaceStorage/…/chatSessions/`, or its changes.

A request of the user is answered in rounds, each a call of a model with the calls that it made;
results stand apart, by the id of their call, as trees of texts. As JSON lines a chat is a snapshot
and what changed in it since. What a round cost is not told apart, so no usage is taken.
"""

from collections.abc import Iterator
from typing import Any

from policyctx.replay.readers.building import RecordingBuilder, calls_of, tool_message
from policyctx.replay.readers.home import editor_homes
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, seconds, word
from policyctx.replay.recording import Recording

FORMAT = "copilot-chat"
HOMES = editor_homes("workspaceStorage", "*/chatSessions/*.json*")

_SNAPSHOT, _SET, _APPEND, _DELETE = range(4)


def recognises(record: object) -> bool:
    """Is this the outline of a chat, or the snapshot that its changes begin with."""
    fields = mapping(record)
    is_snapshot = fields.get("kind") == _SNAPSHOT
    if is_snapshot:
        fields = mapping(fields.get("v"))
    requests = fields.get("requests")
    # What is exported has no version, but names who asked and who answered.
    if not isinstance(requests, list) or not fields.keys() & {"version", "responderUsername"}:
        return False
    return is_snapshot if not requests else "message" in mapping(requests[0])


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the chat."""
    chat: Record = {}
    for record in source.objects():
        if "kind" not in record:
            chat = record
        elif record["kind"] == _SNAPSHOT:
            chat = mapping(record.get("v"))
        elif not _changed(chat, record):
            source.pass_over("change that does not fit", record)
    builder = RecordingBuilder()
    for request in builder.objects(chat.get("requests"), "record that is not a request"):
        builder.records += 1
        _read(builder, request)
    yield from builder.found(source.name, FORMAT)


def _changed(chat: Record, change: Record) -> bool:
    """Carry out a change; False when there is no such place."""
    path, value = change.get("k"), change.get("v")
    if not isinstance(path, list) or not path:
        return False
    holder: Any = chat
    *way, last = path
    try:
        for key in way:
            holder = holder[key]
        if change["kind"] == _APPEND:
            kept = change.get("i")
            holder[last][kept if isinstance(kept, int) else len(holder[last]) :] = value or []
        elif change["kind"] == _DELETE:
            del holder[last]
        elif change["kind"] == _SET:
            holder[last] = value
        else:
            return False
    except (IndexError, KeyError, TypeError):
        return False
    return True


def _read(builder: RecordingBuilder, request: Record) -> None:
    metadata = mapping(mapping(request.get("result")).get("metadata"))
    shown = "".join(word(p.get("text")) for p in objects(metadata.get("renderedUserMessage")))
    asked = shown or word(mapping(request.get("message")).get("text"))
    builder.add({"role": "user", "content": asked})
    model = word(metadata.get("resolvedModel") or request.get("modelId")).removeprefix("copilot/")
    at = seconds(request.get("timestamp"))
    results = mapping(metadata.get("toolCallResults"))
    rounds = objects(metadata.get("toolCallRounds"))
    for one in rounds:
        builder.called(None, model or None, at)
        _add_round(builder, one, results)
    said = "".join(word(part.get("value")) for part in objects(request.get("response")))
    if said and not rounds:
        builder.called(None, model or None, at)
        builder.add({"role": "assistant", "content": said})


def _add_round(builder: RecordingBuilder, one: Record, results: Record) -> None:
    reply: Record = {"role": "assistant", "content": word(one.get("response"))}
    builder.add(reply | calls_of(one.get("toolCalls")))
    for call in objects(one.get("toolCalls")):
        call_id = word(call.get("id"))
        if call_id in results:
            parts = objects(mapping(results[call_id]).get("content"))
            text = "".join(_text(part.get("value")) for part in parts)
            builder.add(tool_message(call_id, text))


def _text(value: object) -> str:
    """Return the texts of a tree, in their order."""
    if isinstance(value, str):
        return value
    fields = mapping(value)
    node = mapping(fields.get("node")) or fields
    line_break = "\n" if node.get("lineBreakBefore") is True else ""
    inside = "".join(map(_text, objects(node.get("children"))))
    return f"{line_break}{word(node.get('text'))}{inside}"
