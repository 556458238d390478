"""Tasks of Cline, and of Roo Code and Kilo Code, which are made of it.

`api_conversation_history.json` has the messages, and `ui_messages.json` beside it what was billed.
The model may write a call as a block or as text in angle brackets, and its result is a block, or
text below a line such as `[read_file for 'a.py'] Result:`. Blocks stand for both here. What is
deleted to save room stays in the file: Cline notes its range on the screen, the others in the
messages.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from policyctx.definitions.items import Message, written_by
from policyctx.replay.readers.building import (
    Record,
    RecordingBuilder,
    mapping,
    number,
    objects,
    seconds,
    word,
)
from policyctx.replay.readers.chat import unknown_parts
from policyctx.replay.readers.home import editor_homes
from policyctx.replay.readers.source import Source, value_of
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "cline"
_HISTORY, _SCREEN = "api_conversation_history", "ui_messages"
HOMES = tuple(
    home
    for extension, agent in (
        ("saoudrizwan.claude-dev", ""),
        ("rooveterinaryinc.roo-cline", "roo-code"),
        ("kilocode.kilo-code", "kilo-code"),
    )
    for home in editor_homes(f"globalStorage/{extension}/tasks", f"*/{_HISTORY}.json", agent=agent)
)

_DETAILS = "<environment_details>"
_TASKS = ("<task>", "<user_message>", _DETAILS)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")
_MODEL = re.compile(r"<model>([^<\n]+)</model>")
_RESULT = re.compile(r"\[(\w+)(?:\]| .*?\]) Result:\n?", re.DOTALL)
_NOT_RUN = re.compile(r"Tool \[(\w+)\] was not executed")
_FAILED = "The tool execution failed"
_FIELD = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
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
    history = list(source.objects())
    task = _Task(history, list(_requests(source.beside(_HISTORY, _SCREEN))))
    for position in range(len(history)):
        task.read(position)
    if not task.builder.is_empty:
        yield task.builder.recording(source.name, FORMAT)


class _Bill(NamedTuple):
    input: int
    cache_read: int
    cache_write: int
    output: int


class _Request(NamedTuple):
    """What the screen shows of a request."""

    at: float
    bill: _Bill
    model: str
    is_cancelled: bool
    deleted: tuple[int, int] | None
    """The first and the last message that it was sent without."""


def _requests(screen: Source | None) -> Iterator[_Request]:
    newest: _Request | None = None
    for shown in screen.objects() if screen else ():
        found = shown.get("conversationHistoryDeletedRange")
        ends = tuple(map(number, found)) if isinstance(found, list) else ()
        deleted = (ends[0], ends[1]) if len(ends) > 1 else None
        if shown.get("say") == "api_req_started":
            if newest is not None:
                yield newest
            said = _object(shown.get("text"))
            names = ("tokensIn", "cacheReads", "cacheWrites", "tokensOut")
            bill = _Bill(*(number(said.get(name)) for name in names))
            model = word(mapping(shown.get("modelInfo")).get("modelId"))
            is_cancelled = "cancelReason" in said or not any(bill)
            newest = _Request(seconds(shown.get("ts")) or 0.0, bill, model, is_cancelled, deleted)
        elif newest is not None and deleted is not None:
            newest = newest._replace(deleted=deleted)
    if newest is not None:
        yield newest


def _object(text: object) -> Record:
    try:
        return mapping(value_of(word(text)))
    except ValueError:
        return {}


class _Task:
    def __init__(self, history: list[Record], requests: list[_Request]) -> None:
        self.builder = RecordingBuilder()
        self._history = history
        self._messages: list[Message] = []
        """The message of each record, also of those that are left out."""
        self._model: str | None = None
        self._deleted: tuple[int, int] | None = None
        self._answer: list[Record] = []
        """The blocks of the message that comes next, with the results of the newest calls."""
        replies = [one for one in history if _is_reply(one)]
        self._requests = iter(_paired(replies, requests))
        bills = [one.bill for one in requests] or list(map(_own_bill, replies))
        # An input that is never less than what was cached includes it.
        self._includes_cached = all(one.input >= one.cache_read + one.cache_write for one in bills)

    def read(self, position: int) -> None:
        """Read a record."""
        self.builder.records += 1
        record = self._history[position]
        message = self._message(position)
        self._messages.append(message)
        if record.get("role") not in ("user", "assistant"):
            self.builder.pass_over(f"{record.get('role')} message", known=False, record=record)
        elif not message["content"]:
            self.builder.pass_over("empty message")
        elif record.get("isSummary") is True:
            task = [] if message["role"] == "user" else self._messages[:1]
            self.builder.begin_anew([*task, written_by("summary", message)], why="compaction")
        elif record.get("isTruncationMarker") is True:
            hidden = {
                id(one)
                for one, of in zip(self._messages, self._history, strict=False)
                if of.get("truncationParent") == record.get("truncationId")
            }
            kept = [one for one in self.builder.context if id(one) not in hidden]
            self.builder.begin_anew([*kept, message], why="compaction")
        else:
            if message["role"] == "assistant":
                self._call(record)
            self.builder.add(message)
        for what, part in unknown_parts(message):
            self.builder.miss(what, part)

    def _call(self, record: Record) -> None:
        request = next(self._requests, None)
        model = word(mapping(record.get("modelInfo")).get("modelId")) or (request and request.model)
        at = request.at if request else seconds(record.get("ts"))
        if request is not None and request.deleted != self._deleted:
            self._deleted = request.deleted
            first, last = request.deleted or (1, 0)
            sent = self._messages[:-1]
            kept = [one for i, one in enumerate(sent) if not first <= i <= last and one["content"]]
            self.builder.begin_anew(kept, why="compaction")
        usage = self._usage(request.bill if request else _own_bill(record))
        self.builder.called(usage, model or self._model, at)

    def _usage(self, bill: _Bill) -> Usage | None:
        cached = bill.cache_read + bill.cache_write if self._includes_cached else 0
        usage = Usage(bill.input - cached, bill.cache_read, bill.cache_write, bill.output)
        return usage if usage.prompt else None

    def _message(self, position: int) -> Message:
        """Return a message with calls and results as blocks; a reply takes its results along."""
        record = self._history[position]
        blocks = list(_blocks(record.get("content")))
        if record.get("role") != "assistant":
            blocks, self._answer = self._answer or blocks, []
            self._learn(blocks)
            return {"role": "user", "content": blocks}
        following = self._history[position + 1 : position + 2]
        if following and following[0].get("role") == "user":
            self._pair(blocks, list(_blocks(following[0].get("content"))), f"call_{position}")
        return {"role": "assistant", "content": blocks}

    def _pair(self, reply: list[Record], answer: list[Record], call_id: str) -> None:
        """Give the results in the answer to the calls of the reply."""
        results = [block for block in answer if block["type"] == "tool_result"]
        answered = {block["tool_use_id"] for block in results}
        calls = [one for one in reply if one["type"] == "tool_use" and one["id"] not in answered]
        rest: list[Record] = []
        for name, content in _parts(answer):
            if not name:
                rest += content
                continue
            same = (one for one in calls if one["name"] == name)
            call = next(same, calls[0] if calls else None)
            if call is not None:
                calls.remove(call)
            else:
                call = _written(reply, name, f"{call_id}_{len(results)}")
            if call is not None:
                results.append(_result(call, content))
            else:
                rest += content
        self._answer = [*results, *rest]

    def _learn(self, blocks: list[Record]) -> None:
        for block in blocks:
            if word(block.get("text")).startswith(_DETAILS):
                folder, model = _FOLDER.search(block["text"]), _MODEL.search(block["text"])
                self._model = model[1] if model else self._model
                self.builder.project = self.builder.project or (folder[1] if folder else "")


def _is_reply(record: Record) -> bool:
    is_said = bool(list(_blocks(record.get("content"))))
    return record.get("role") == "assistant" and is_said and record.get("isSummary") is not True


def _paired(replies: list[Record], requests: list[_Request]) -> Iterator[_Request | None]:
    """Yield the request of each reply, by time if replies have one, else counted from the end."""
    times = [seconds(one.get("ts")) for one in replies]
    if len(requests) != len(replies) and None not in times:
        begun = [one.at for one in requests]
        found = [bisect_right(begun, at) - 1 for at in times if at is not None]
        yield from (requests[one] if one >= 0 else None for one in found)
        return
    if len(requests) > len(replies):
        requests = [one for one in requests if not one.is_cancelled]
    missing = len(replies) - len(requests)
    yield from [None] * missing
    yield from requests[max(0, -missing) :]


def _own_bill(record: Record) -> _Bill:
    """Return what a message says it cost; written and read cache entries are one number there."""
    tokens = mapping(mapping(record.get("metrics")).get("tokens"))
    given = (number(tokens.get(name)) for name in ("prompt", "cached", "completion"))
    prompt, cached, output = given
    return _Bill(prompt, cached, 0, output)


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
            yield {"type": "thinking", "thinking": text, "signature": ""}
        elif kind == "tool_use":
            called = {"id": word(block.get("id")) or f"call_{position}"}
            called["name"] = word(block.get("name"))
            yield {"type": "tool_use", **called, "input": mapping(block.get("input"))}
        elif kind not in ("text", "thoughtSignature"):
            yield block


def _parts(answer: list[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the results in the texts of an answer by the name of the tool; the rest without one."""
    name, content, is_open = "", list[Record](), False
    for block in answer:
        text = word(block.get("text"))
        header, not_run = _RESULT.match(text), _NOT_RUN.match(text)
        if block["type"] == "tool_result":
            continue
        is_more = is_open and block["type"] == "text" and not text.startswith(_DETAILS)
        if header is None and not_run is None and name and (is_more or block["type"] == "image"):
            content.append(block)
            is_open = False
            continue
        if content or name:
            yield name, content
        name, content = "", [block]
        if header is not None:
            below = text[header.end() :]
            name, content = header[1], [{"type": "text", "text": below}] if below else []
            is_open = not below
        elif not_run is not None:
            name = not_run[1]
    if content or name:
        yield name, content


def _result(call: Record, content: list[Record]) -> Record:
    texts = [word(block.get("text")) for block in content]
    is_text = all(block["type"] == "text" for block in content)
    said = "\n".join(texts) if is_text else content
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": said}
    return {**result, "is_error": True} if texts[:1] and texts[0].startswith(_FAILED) else result


def _written(reply: list[Record], name: str, call_id: str) -> Record | None:
    """Take the call of a tool out of the text of a reply, None if it is not there."""
    for position, block in enumerate(reply):
        found = re.search(rf"<{name}>(.*?)</{name}>", word(block.get("text")), re.DOTALL)
        if found is None:
            continue
        fields = {key: value.strip() for key, value in _FIELD.findall(found[1])}
        if "args" in fields:
            fields = {key: value.strip() for key, value in _LEAF.findall(fields["args"])}
        text = f"{found.string[: found.start()]}{found.string[found.end() :]}".strip()
        reply[position : position + 1] = [{"type": "text", "text": text}] if text else []
        call: Record = {"type": "tool_use", "id": call_id, "name": name, "input": fields}
        reply.append(call)
        return call
    return None
