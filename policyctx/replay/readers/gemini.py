"""Sessions of Gemini CLI: a document with the messages, later JSON lines.

A reply carries its calls with their results. Its `thoughts` are summaries for the screen and are
not sent again. In lines, a message is written again whenever something joins it, and the newest
version counts; a change further back is written as a new list of all messages.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import is_
from typing import Any

from policyctx.definitions.items import Message, author_of, written_by
from policyctx.messages.json_text import compact_json
from policyctx.replay.readers.building import RecordingBuilder, tool_result, tool_use
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, media, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage


def prompt_of(record: Record, answered: Collection[str]) -> list[Message]:
    """Return what the user said; results of calls that are `answered` are left out."""
    content = record.get("content")
    if isinstance(content, list | dict):
        blocks = [block for block in blocks_of(content) if block.get("tool_use_id") not in answered]
        content = _alone(blocks)
    return [] if content == [] else [{"role": "user", "content": content}]


def reply_of(record: Record) -> list[Message]:
    """Return a reply with its calls, and what these gave, as far as there is either."""
    calls = objects(record.get("toolCalls"))
    said = blocks_of(record.get("content"))
    if calls:
        said = [block for block in said if block["type"] != "tool_use"]
    content = [*said, *map(_call, calls)]
    results = [_result(call) for call in calls if call.get("result") is not None]
    messages = [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return [message for message in messages if message["content"]]


def _billed(reply: Record) -> Usage | None:
    """Return the usage of a reply, None where nothing was billed."""
    billed = with_cached(reply.get("tokens"), "input", "cached", "output")
    (thoughts,) = counts(reply.get("tokens"), "thoughts")
    return billed and replace(billed, output=billed.output + thoughts)


def with_cached(fields: object, *names: str) -> Usage | None:
    """Return what was billed; the names are of the prompt, what of it was cached, and the output.

    A fourth is of a total, which tells whether the output is without what was thought.
    """
    prompt, cached, output, *total = counts(fields, *names)
    output = max(output, sum(total) - prompt)
    return Usage.of_whole(prompt, cached, 0, output) if prompt else None


def blocks_of(content: object) -> list[Record]:
    """Return parts as blocks; a text alone is one, and so is a part alone."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in objects([content] if isinstance(content, dict) else content)]


def _block(part: Record) -> Record:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if call := mapping(part.get("functionCall")):
        return _call(call)
    if answer := mapping(part.get("functionResponse")):
        return _result({"id": answer.get("id"), "result": part})
    if data := mapping(part.get("inlineData")):
        return media(data.get("mimeType"), data.get("data"))
    return {**part, "type": next(iter(part), "part")}


def _call(call: Record) -> Record:
    return tool_use(call.get("id"), call.get("name"), call.get("args"))


def _result(call: Record) -> Record:
    call_id = word(call.get("id"))
    content = _result_content(call.get("result"), call_id)
    return tool_result(call_id, content, is_error=call.get("status") == "error")


def _result_content(result: object, call_id: str) -> object:
    """Return what the tool gave; results of other calls may stand with it."""
    if isinstance(result, str):
        return result
    blocks: list[Record] = []
    for part in objects(result if isinstance(result, list) else [result]):
        if "functionResponse" not in part:
            blocks.append(_block(part))
            continue
        answer = mapping(part["functionResponse"])
        if word(answer.get("id")) in ("", call_id):
            response = mapping(answer.get("response"))
            said = response.get("output", response.get("error"))
            text = said if isinstance(said, str) else compact_json(response)
            blocks.append({"type": "text", "text": text})
    return _alone(blocks)


def _alone(blocks: list[Record]) -> object:
    """Return a text where that is all there is, else the blocks."""
    alone = blocks[0].get("text") if len(blocks) == 1 else None
    return alone if isinstance(alone, str) else blocks


FORMAT = "gemini-cli"
HOMES = (Home("~/.gemini/tmp", "*/chats/**/*.json*", "GEMINI_CLI_HOME", "~"),)

_HEAD = {"sessionId", "projectHash"}
_MESSAGES = ("user", "gemini")
# What the program says of the project, before the first prompt.
_CONTEXT = "<session_context>"
# How a summary begins that a compaction leaves.
_SNAPSHOT = "<state_snapshot>"
_FOLDER = re.compile(r"Workspace Directories:\*\*\s+- (.+)")
# What the program tells its user.
_NOT_PROMPT = ("info", "error", "warning")


def recognises(record: object) -> bool:
    """Is this the head of a session, with the messages in it or before them."""
    return isinstance(record, dict) and record.keys() >= _HEAD


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session."""
    session = _GeminiSession()
    for record in source.elements("messages"):
        session.read(mapping(record))
    if not session.builder.records:
        for record in source.objects():
            session.read(record)
    session.settle()
    yield from session.builder.found(source.name, FORMAT)


class _GeminiSession:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._turns: dict[str, list[Message]] = {}
        """By the id of a record: what it put into the context, which is all of them in order."""
        self._newest: Record | None = None
        """A message of which a newer version may come."""
        self._answered: set[str] = set()

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind = word(record.get("type"))
        changed = mapping(record.get("$set"))
        if kind in _MESSAGES:
            self._add(record)
        elif "$rewindTo" in record:
            self._rewind(word(record["$rewindTo"]))
        elif isinstance(changed.get("messages"), list):
            self._replace(changed["messages"])
        else:
            known = kind in _NOT_PROMPT or "$set" in record or record.keys() >= _HEAD
            what = kind or "record about the session"
            self.builder.pass_over(what, known=known, record=record)

    def _add(self, record: Record) -> None:
        before = self._newest
        if before is not None and word(before.get("id")) == word(record.get("id")) != "":
            self.builder.pass_over("earlier version of a message")
        else:
            self.settle()
        self._newest = record

    def settle(self) -> None:
        """Put the newest message into the context: no newer version of it comes."""
        record, self._newest = self._newest, None
        if record is None:
            return
        key, messages = self._key(record), self._messages(record)
        if key in self._turns:
            self.builder.pass_over("earlier version of a message")
            if messages != self._turns[key]:
                self._turns[key] = messages
                self.builder.begin_anew(self._context(), why="change")
            return
        if record.get("type") == "gemini":
            model = word(record.get("model")) or None
            self.builder.called(_billed(record), model, seconds(record.get("timestamp")))
        self._turns[key] = [message for message in messages if self.builder.add(message)]

    def _rewind(self, to: str) -> None:
        """Take back a message and all after it; all there is when it is unknown."""
        self.settle()
        keys = list(self._turns)
        for key in keys[keys.index(to) if to in keys else 0 :]:
            del self._turns[key]
        self.builder.begin_anew(self._context(), why="rewind")

    def _replace(self, records: list[Any]) -> None:
        """Take a new list of all messages, which begins the context anew where it differs."""
        self.settle()
        known, self._turns, self._answered = self._turns, {}, set()
        for record in map(mapping, records):
            key, messages = self._key(record), self._messages(record)
            self._turns[key] = known[key] if known.get(key) == messages else messages
        old, new = self.builder.context, self._context()
        if len(new) >= len(old) and all(map(is_, old, new)):
            for message in new[len(old) :]:
                self.builder.add(message)
        else:
            new_summary = any(author_of(one) == "summary" and one not in old for one in new)
            self.builder.begin_anew(new, why="compaction" if new_summary else "change")

    def _key(self, record: Record) -> str:
        return word(record.get("id")) or f"#{len(self._turns)}"

    def _context(self) -> list[Message]:
        return [message for messages in self._turns.values() for message in messages]

    def _messages(self, record: Record) -> list[Message]:
        if record.get("type") == "gemini":
            calls = objects(record.get("toolCalls"))
            answered = (call for call in calls if call.get("result") is not None)
            self._answered.update(word(call.get("id")) for call in answered)
            return reply_of(record)
        said = prompt_of(record, self._answered) if record.get("type") == "user" else []
        return [self._marked(message) for message in said]

    def _marked(self, message: Message) -> Message:
        """Return a message, which says who wrote it, and learn the folder from it."""
        content = message["content"]
        first = next(iter(objects(content)), {})
        text = content if isinstance(content, str) else word(first.get("text"))
        if text.startswith(_SNAPSHOT):
            return written_by("summary", message)
        if not text.startswith(_CONTEXT):
            return message
        folder = _FOLDER.search(text)
        self.builder.project = self.builder.project or (folder[1] if folder else "")
        return written_by("program", message)
