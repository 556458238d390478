"""Sessions as Gemini CLI records them: a document with the messages, later JSON lines.

A reply carries its calls with their results. Its `thoughts` are summaries for the screen and are
not sent again. Messages take the form of Anthropic's API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.fields import Record, mapping, number, objects, seconds, word
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "gemini-cli"

_HEAD = {"sessionId", "projectHash"}
# What the program tells its user.
_NOT_PROMPT = ("info", "error", "warning")


def recognises(record: object) -> bool:
    """Is this the head of a session, with the messages in it or before them."""
    return isinstance(record, dict) and record.keys() >= _HEAD


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session."""
    session = _Session()
    for record in source.objects():
        if "messages" not in record:
            session.read(record)
            continue
        for message in objects(record["messages"]):
            session.read(message)
    if not session.builder.is_empty:
        yield session.builder.recording(source.name, FORMAT)


class _Session:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._ends: dict[str, int] = {}
        """By the id of a message: how long the context was before it."""

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind = word(record.get("type"))
        before = len(self.builder.context)
        if kind == "user":
            self.builder.add({"role": "user", "content": _content(record.get("content"))})
        elif kind == "gemini":
            self._reply(record)
        elif "$rewindTo" in record:
            end = self._ends.get(word(record["$rewindTo"]), before)
            self.builder.begin_anew(self.builder.context[:end])
        else:
            known = kind in _NOT_PROMPT or "$set" in record or record.keys() >= _HEAD
            self.builder.pass_over(kind or "record about the session", known=known)
        self._ends.setdefault(word(record.get("id")), before)

    def _reply(self, record: Record) -> None:
        model = word(record.get("model")) or None
        self.builder.called(
            _billed(mapping(record.get("tokens"))), model, seconds(record.get("timestamp"))
        )
        calls = objects(record.get("toolCalls"))
        content = [*_blocks(record.get("content")), *map(_call, calls)]
        if content:
            self.builder.add({"role": "assistant", "content": content})
        results = [_result(call) for call in calls if call.get("result") is not None]
        if results:
            self.builder.add({"role": "user", "content": results})


def _billed(tokens: Record) -> Usage | None:
    prompt, cached = number(tokens.get("input")), number(tokens.get("cached"))
    output = number(tokens.get("output")) + number(tokens.get("thoughts"))
    cached = min(prompt, cached)
    return Usage(prompt - cached, cached, 0, output) if prompt else None


def _content(content: object) -> object:
    return _blocks(content) if isinstance(content, list) else content


def _blocks(content: object) -> list[Record]:
    """Return parts as blocks; a text alone is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in objects(content)]


def _block(part: Record) -> Record:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    data = mapping(part.get("inlineData"))
    if data:
        source = {"type": "base64", "media_type": data.get("mimeType"), "data": data.get("data")}
        kind = "image" if word(data.get("mimeType")).startswith("image/") else "document"
        return {"type": kind, "source": source}
    return {"type": next(iter(part), "part"), **part}


def _call(call: Record) -> Record:
    name, call_id = word(call.get("name")), word(call.get("id"))
    return {"type": "tool_use", "id": call_id, "name": name, "input": call.get("args")}


def _result(call: Record) -> Record:
    result = {
        "type": "tool_result",
        "tool_use_id": word(call.get("id")),
        "content": _result_content(call.get("result")),
    }
    return result | ({"is_error": True} if call.get("status") == "error" else {})


def _result_content(result: object) -> object:
    """Return what the tool gave: a text where that is all, else blocks."""
    if isinstance(result, str):
        return result
    parts = result if isinstance(result, list) else [result]
    blocks: list[Record] = []
    for part in objects(parts):
        response = mapping(mapping(part.get("functionResponse")).get("response"))
        if not response:
            blocks.append(_block(part))
            continue
        said = response.get("output", response.get("error"))
        text = said if isinstance(said, str) else compact_json(response)
        blocks.append({"type": "text", "text": text})
    alone = len(blocks) == 1 and blocks[0]["type"] == "text"
    return blocks[0]["text"] if alone else blocks
