"""Tasks of Cline, and of Roo Code and Kilo Code, which are made of it.

`api_conversation_history.json` has the messages, and `ui_messages.json` beside it what was billed.
A call is a block, or text in angle brackets; its result is a block, or text behind a line such as
`[read_file for 'a.py'] Result:`. Blocks stand for both here. What is deleted to save room stays in
the file: Cline notes its range on the screen, the others in the messages.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import compress, pairwise
from typing import NamedTuple

from policyctx.definitions.items import Message, written_by
from policyctx.replay.readers.building import RecordingBuilder, thinking, tool_result, tool_use
from policyctx.replay.readers.chat import miss_unknown
from policyctx.replay.readers.home import editor_homes
from policyctx.replay.readers.source import Source, parsed
from policyctx.replay.readers.values import Record, counts, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "cline"
_HISTORY, _SCREEN = "api_conversation_history", "ui_messages"
_FILES = f"*/{_HISTORY}.json"
HOMES = (
    *editor_homes("globalStorage/saoudrizwan.claude-dev/tasks", _FILES),
    *editor_homes("globalStorage/rooveterinaryinc.roo-cline/tasks", _FILES, agent="roo-code"),
    *editor_homes("globalStorage/kilocode.kilo-code/tasks", _FILES, agent="kilo-code"),
)
_DETAILS = "<environment_details>"
_TASKS = ("<task>", "<user_message>", _DETAILS)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")
_MODEL = re.compile(r"<model>([^<\n]+)</model>")
_RESULT = re.compile(r"\[(\w+)(?:\]| .*?\]) Result:\n?|Tool \[(\w+)\] was not executed", re.DOTALL)
_FAILED = "The tool execution failed"
_TAG = re.compile(r"<(/?)(\w+)>")
_LEAF = re.compile(r"<(\w+)>([^<]*)</\1>")


def recognises(record: object) -> bool:
    """Is this a message that one of these programs sent, or was given; the first block tells."""
    fields = mapping(record)
    if {"role", "content", "modelInfo", "metrics"} <= fields.keys():
        return True
    text = next((word(block.get("text")) for block in objects(fields.get("content"))), "")
    begins = text.startswith(_TASKS) and "ts" in fields
    return fields.get("role") == "user" and (begins or _RESULT.match(text) is not None)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the task."""
    task = _Task(list(source.objects()), _requests(source.beside(_HISTORY, _SCREEN)))
    task.read()
    yield from task.builder.found(source.name, FORMAT)


class _Request(NamedTuple):
    """What is known of a request; its input, as it is written, may include what was cached."""

    at: float | None
    model: str
    bill: Usage
    deleted: tuple[int, ...] = ()
    """The first and the last message that it was sent without."""


def _own_request(record: Record) -> _Request:
    """Return what a reply says of its request; what was cached is one number there."""
    tokens = mapping(mapping(record.get("metrics")).get("tokens"))
    prompt, cached, output = counts(tokens, "prompt", "cached", "completion")
    model = word(mapping(record.get("modelInfo")).get("modelId"))
    return _Request(seconds(record.get("ts")), model, Usage(prompt, cached, 0, output))


def _requests(screen: Source | None) -> list[_Request]:
    """Return the requests that the screen shows."""
    found: list[_Request] = []
    for shown in screen.objects() if screen else ():
        ends = shown.get("conversationHistoryDeletedRange")
        deleted = tuple(map(number, ends)) if isinstance(ends, list) and len(ends) > 1 else ()
        if shown.get("say") == "api_req_started":
            said = parsed(word(shown.get("text")))
            bill = Usage(*counts(said, "tokensIn", "cacheReads", "cacheWrites", "tokensOut"))
            found.append(_own_request(shown)._replace(bill=bill, deleted=deleted))
        elif found and deleted:
            found[-1] = found[-1]._replace(deleted=deleted)
    return found


class _Task:
    def __init__(self, history: list[Record], requests: list[_Request]) -> None:
        self.builder = RecordingBuilder()
        self._history = history
        self._blocks = [list(_blocks(record.get("content"))) for record in history]
        for place, (reply, answer) in enumerate(pairwise(self._blocks)):
            if [one.get("role") for one in history[place : place + 2]] == ["assistant", "user"]:
                _pair(reply, answer, f"call_{place}")
        said = [one for one in compress(history, self._blocks) if one.get("role") == "assistant"]
        replies = [one for one in said if one.get("isSummary") is not True]
        requests = requests or list(map(_own_request, replies))
        self._requests = iter(_paired(replies, requests))
        # An input that is never less than what was cached includes it.
        self._includes_cached = all(one.bill.prompt <= 2 * one.bill.input for one in requests)
        self._model, self._deleted = "", tuple[int, ...]()

    def read(self) -> None:
        messages: list[Message] = []
        for record, blocks in zip(self._history, self._blocks, strict=True):
            self.builder.records += 1
            role = word(record.get("role"))
            message: Message = {"role": role, "content": blocks}
            messages.append(message)
            for text in (word(block.get("text")) for block in blocks):
                if text.startswith(_DETAILS):
                    folder, model = _FOLDER.search(text), _MODEL.search(text)
                    self._model = model[1] if model else self._model
                    self.builder.project = self.builder.project or (folder[1] if folder else "")
            if role not in ("user", "assistant"):
                self.builder.pass_over(f"{role} message", known=False, record=record)
            elif not blocks:
                self.builder.pass_over("empty message")
            elif record.get("isSummary") is True:
                context = [*messages[: role == "assistant"], written_by("summary", message)]
                self.builder.begin_anew(context, why="compaction")
            elif record.get("isTruncationMarker") is True:
                hidden = record.get("truncationId")
                of = zip(messages, self._history, strict=False)
                left = {id(one) for one, by in of if by.get("truncationParent", "") == hidden}
                kept = [one for one in self.builder.context if id(one) not in left]
                self.builder.begin_anew([*kept, message], why="compaction")
            else:
                if role == "assistant":
                    self._call(record, messages[:-1])
                self.builder.add(message)
            miss_unknown(self.builder, message)

    def _call(self, record: Record, before: list[Message]) -> None:
        own = _own_request(record)._replace(deleted=self._deleted)
        request = next(self._requests, None) or own
        if request.deleted != self._deleted:
            self._deleted = request.deleted
            first, last = request.deleted[:2] or (1, 0)
            kept = [one for i, one in enumerate(before) if not first <= i <= last]
            self.builder.begin_anew([one for one in kept if one["content"]], why="compaction")
        bill, cached = request.bill, request.bill.prompt - request.bill.input
        if self._includes_cached:
            bill = replace(bill, input=max(0, bill.input - cached))
        model = own.model or request.model or self._model or None
        self.builder.called(bill if bill.prompt else None, model, request.at)


def _paired(replies: list[Record], requests: list[_Request]) -> list[_Request | None]:
    """Return the request of each reply, by time if both have one, else counted from the end."""
    times = [at for one in replies if (at := seconds(one.get("ts"))) is not None]
    begun, shown = [one.at or 0.0 for one in requests], [None, *requests]
    if len(times) == len(replies) != len(requests):
        return [shown[bisect_right(begun, at)] for at in times]
    if len(requests) > len(replies):
        requests = [one for one in requests if one.bill.prompt][-len(replies) :]
    return [*[None] * (len(replies) - len(requests)), *requests]


def _blocks(content: object) -> Iterator[Record]:
    """Yield the blocks of a message as an API takes them."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for position, block in enumerate(objects(content)):
        kind, text = word(block.get("type")), word(block.get("text"))
        if kind == "text" and text:
            shown: Record = {"type": "text", "text": text}
            yield written_by("program", shown) if text.startswith(_DETAILS) else shown
        elif kind == "reasoning":
            yield thinking(text)
        elif kind == "tool_use":
            call_id = word(block.get("id")) or f"call_{position}"
            yield tool_use(call_id, block.get("name"), mapping(block.get("input")))
        elif kind not in ("text", "thoughtSignature"):
            yield {**block, "type": kind}


def _pair(reply: list[Record], answer: list[Record], call_id: str) -> None:
    """Make blocks of the results in the texts of an answer, and of the calls in a reply's."""
    results = [block for block in answer if block["type"] == "tool_result"]
    answered = {word(block.get("tool_use_id")) for block in results}
    calls = [one for one in reply if one["type"] == "tool_use" and one["id"] not in answered]
    rest: list[Record] = []
    for name, content in _parts(answer):
        named = (one for one in calls if one["name"] == name)
        call = next(named, calls[0] if calls else None) if name else None
        if call is not None:
            calls.remove(call)
        elif name:
            call = _written(reply, name, f"{call_id}_{len(results)}")
        if call is not None:
            texts = [word(block.get("text")) for block in content]
            said = "\n".join(texts) if all(one["type"] == "text" for one in content) else content
            failed = "".join(texts).startswith(_FAILED)
            results.append(tool_result(call["id"], said, is_error=failed))
        else:
            rest += [{"type": "text", "text": f"[{name}] Result:"}] * bool(name) + content
    answer[:] = [*results, *rest]


def _parts(answer: list[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the results in the texts of an answer by the name of the tool; the rest without one."""
    name, content, is_open = "", list[Record](), False
    for block in answer:
        text = word(block.get("text"))
        if header := _RESULT.match(text):
            yield name, content
            below = text[header.end() :] if header[1] else text
            name, content = header[1] or header[2], [{"type": "text", "text": below}] * bool(below)
        elif block["type"] == "image" or (is_open and text and not text.startswith(_DETAILS)):
            content.append(block)
        elif block["type"] != "tool_result":
            yield name, content
            name, content = "", [block]
        is_open = header is not None and not content
    yield name, content


def _written(reply: list[Record], name: str, call_id: str) -> Record | None:
    """Take the call of a tool out of the text of a reply, None if it is not there."""
    for position, block in enumerate(reply):
        before, _, rest = word(block.get("text")).partition(f"<{name}>")
        inner, end, after = rest.partition(f"</{name}>")
        if end:
            found = _LEAF.findall(inner) if inner.lstrip().startswith("<args>") else _fields(inner)
            text = f"{before}{after}".strip()
            reply[position : position + 1] = [{"type": "text", "text": text}] if text else []
            reply.append(tool_use(call_id, name, {key: value.strip() for key, value in found}))
            return reply[-1]
    return None


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is between two tags of one name, but nothing that is inside of another."""
    tags = [*_TAG.finditer(text)]
    closed = {tag[2]: tag.start() for tag in tags if tag[1]}
    end = 0
    for tag in tags:
        if not tag[1] and end <= tag.start() < closed.get(tag[2], -1):
            end = text.index(f"</{tag[2]}>", tag.end())
            yield tag[2], text[tag.end() : end]
