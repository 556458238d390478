"""Logs of requests: bodies with `messages`, or `input` as in the Responses API, and the responses.

A request repeats its whole prompt. Requests that share a first user message, and an id where
the log has ids, are one conversation; messages that differ only in cache marks are one object, and
each call has its own marks.
A line of `Session(record=…)` says how many messages of an earlier line it begins with. A request
with a `previous_response_id` sends only what is new; the log shows what came before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from policyctx.definitions.items import Message
from policyctx.messages import markers
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import is_message, user_message
from policyctx.messages.shapes.built_in import RESPONSES
from policyctx.replay.readers.building import RecordingBuilder, usage
from policyctx.replay.readers.chat import is_said
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, seconds, word
from policyctx.replay.recording import MarkedPlace, Recording
from policyctx.tokens.usage import Usage

_REQUESTS = ("request", "body", "kwargs", "request_body", "input", "params")
_RESPONSES = ("response", "response_body", "output", "completion")
_TIMES = ("timestamp", "created_at", "start_time", "startTime", "time", "ts", "created")
# What a request to the Responses API has beside its `input`, which other APIs have as well.
_BESIDE_INPUT = frozenset({
    "include", "instructions", "max_output_tokens", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "reasoning", "store", "tools",
})  # fmt: skip
_CONVERSATIONS = ("conversation_id", "session_id", "thread_id", "trace_id")
FORMAT = "request-log"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request's fields, and what its response gave."""

    messages: list[Message]
    prints: list[str]
    """A digest of each message, the same for two that differ in cache marks alone."""
    beginning: tuple[str, str]
    """What conversations are told apart by: an id in the log, and the first user message."""
    system: object
    tools: object
    language_model: str | None
    at: float | None
    usage: Usage | None
    reply: list[Message]
    marks: tuple[MarkedPlace, ...] = ()
    """Where the request has `cache_control` markers."""
    id: str = ""
    """The response's."""
    previous_id: str = ""
    """That of the response whose history the provider put before the messages."""

    kept: int | None = None
    """How many messages of the call before it begins with, in a line of `Session(record=…)`."""

    def continued(self, before: Exchange) -> Exchange:
        """Return the exchange with the history that another one left at the provider."""
        history = [*before.messages, *before.reply]
        return self._after(history, [*before.prints, *map(print_of, before.reply)], before)

    def completed(self, before: Exchange, record: Record) -> Exchange:
        """Return the exchange of a line with what it does not repeat of the line before."""
        whole = self._after(before.messages[: self.kept], before.prints[: self.kept], before)
        kept = [m for m in before.marks if m.message is not None and m.message < (self.kept or 0)]
        if "system" not in record:
            kept += (mark for mark in before.marks if mark.message is None)
            whole = replace(whole, system=before.system, tools=before.tools)
        return replace(whole, marks=(*kept, *whole.marks))

    def _after(self, history: list[Message], prints: list[str], before: Exchange) -> Exchange:
        marks = (
            mark if mark.message is None else mark._replace(message=mark.message + len(history))
            for mark in self.marks
        )
        return replace(
            self,
            marks=tuple(marks),
            messages=[*history, *self.messages],
            prints=[*prints, *self.prints],
            beginning=before.beginning,
        )


def exchange_of(record: object) -> Exchange | None:
    """Return the exchange that a record is; None for one without a request."""
    fields = mapping(record)
    response = _response(fields)
    request = _request(fields, response)
    messages = _messages(request)
    kept = fields.get("kept") if request is fields else None
    kept = kept if type(kept) is int and kept >= 0 else None
    if not (messages or kept) or not all(isinstance(one, dict) for one in messages):
        return None
    prints = [print_of(message) for message in messages]
    users = (print_ for m, print_ in zip(messages, prints, strict=True) if m.get("role") == "user")
    said_id = next((word(fields.get(key)) for key in _CONVERSATIONS if fields.get(key)), "")
    at = next((fields[key] for key in _TIMES if key in fields), None)
    if at is None:
        at = response.get("created", response.get("created_at"))
    return Exchange(
        messages=messages,
        prints=prints,
        beginning=(said_id, next(users, "") if kept is None else ""),
        system=request.get("system", request.get("instructions")),
        tools=request.get("tools"),
        language_model=word(response.get("model") or request.get("model")) or None,
        at=seconds(at),
        usage=usage(response.get("usage")) or usage(fields.get("usage")),
        reply=_reply(response),
        marks=tuple(_marks(request, messages)),
        id=word(response.get("id") if kept is None else fields.get("id")),
        previous_id=word(request.get("previous_response_id" if kept is None else "previous_id")),
        kept=kept,
    )


def _marks(request: Record, messages: list[Message]) -> Iterator[MarkedPlace]:
    """Yield the markers of a request; one on the request itself is on its last block."""
    before = 0
    for part in (request.get("tools"), request.get("system")):
        for mark in markers.marked_beside(part):
            yield MarkedPlace(None, mark._replace(block=before + mark.block))
        before += len(markers.blocks_beside(part or None))
    for i, message in enumerate(messages):
        for mark in markers.marked_blocks(message):
            yield MarkedPlace(i, mark)
    if markers.marker_of(request) is not None:
        last = len(markers.cache_blocks(messages[-1])) - 1
        yield MarkedPlace(len(messages) - 1, markers.MarkedBlock(last))


def _request(fields: Record, response: Record) -> Record:
    """Return the request's body: the record itself, or what it is wrapped in."""
    if "messages" in fields:
        # What has nothing of a request but messages is a message list.
        beside = fields.keys() & {"model", "response", "usage", "system", "tools", "max_tokens"}
        return fields if beside else {}
    if _has_input(fields, response):
        return fields
    inner = next((found for key in _REQUESTS if (found := mapping(fields.get(key)))), {})
    # What wraps the body may be wrapped itself.
    bodies = (inner, *(mapping(inner.get(key)) for key in _REQUESTS))
    fitting = (one for one in bodies if "messages" in one or _has_input(one, response))
    return next(fitting, {})


def _has_input(fields: Record, response: Record) -> bool:
    """Return whether this is a request to the Responses API; others have an `input` as well."""
    given = fields.get("input")
    if isinstance(given, list):
        return "model" in fields and bool(given) and all(map(is_message, given))
    is_known = "model" in fields and not _BESIDE_INPUT.isdisjoint(fields)
    return isinstance(given, str) and (is_known or isinstance(response.get("output"), list))


def _messages(request: Record) -> list[Any]:
    found = request.get("messages", request.get("input"))
    if isinstance(found, str) and "messages" not in request:
        return [user_message(found)]
    return found if isinstance(found, list) else []


def _response(fields: Record) -> Record:
    response = next((found for key in _RESPONSES if (found := mapping(fields.get(key)))), {})
    return mapping(response.get("body")) or response


def _reply(response: Record) -> list[Message]:
    """Return the messages of a response: one, or the items of the Responses API."""
    if items := objects(response.get("output")):
        return [item for item in items if is_message(item)]
    if choices := objects(response.get("choices")):
        message = mapping(choices[0].get("message"))
        kept = ("role", "content", "tool_calls", "function_call", "refusal")
        said = {k: message[k] for k in kept if message.get(k) is not None}
        return [said] if said else []
    if response.get("role") == "assistant" and response.get("content"):
        return [{"role": "assistant", "content": response["content"]}]
    return []


def print_of(message: Message) -> str:
    """Return a digest of a message, the same for two that differ in cache marks alone."""
    if RESPONSES.recognises(message) and "role" not in message:
        return digest(compact_json(message))
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        content = [_without_mark(block) for block in content]
    said = {key: message[key] for key in ("role", "tool_calls", "tool_call_id") if key in message}
    return digest(compact_json([said, content]))


def digest(text: str) -> str:
    """Return a short text that is the same for the same text alone."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _without_mark(block: object) -> object:
    """Return a block as it counts for whether two lists are the same, also one inside a result."""
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    if isinstance(inner, list):
        block = {**block, "content": [_without_mark(one) for one in inner]}
    return {key: value for key, value in block.items() if key != "cache_control"}


class Thread:
    """A conversation that is being read from its requests."""

    def __init__(self) -> None:
        self.builder = RecordingBuilder(of_messages=False)
        self._prints: list[str] = []
        self._messages: list[Message] = []
        self._reply: list[Message] = []
        self._has_marks = False

    def _shared_with(self, exchange: Exchange) -> int:
        pairs = zip(self._prints, exchange.prints, strict=False)
        shorter = min(len(self._prints), len(exchange.prints))
        return next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)

    def read(self, exchange: Exchange) -> None:
        """Take a request: what is new in it joins the context, what differs begins it anew."""
        self.builder.records += 1
        shared = self._shared_with(exchange)
        new = exchange.messages[shared:]
        if shared < len(self._prints):
            self.builder.begin_anew([*self._messages[:shared], *new], why="change")
        else:
            for message in new:
                self.builder.add(message)
        self.builder.called(
            exchange.usage,
            exchange.language_model,
            exchange.at,
            exchange.system,
            exchange.tools,
            marks=exchange.marks,
            call_id=exchange.id,
        )
        self._has_marks |= bool(exchange.marks)
        self._prints = exchange.prints
        self._messages = [*self._messages[:shared], *new]
        self._reply = exchange.reply

    def end(self) -> None:
        """Add the last reply; those before it are in the requests that followed."""
        for message in self._reply:
            self.builder.add(message)
        if not self._has_marks:
            self.builder.forget_marks()


def recognises(record: object) -> bool:
    """Is this a request: messages beside a model's name, or inside a record of a request."""
    exchange = exchange_of(record)
    if exchange is None:
        return False
    if exchange.kept is not None:
        return "session_id" in mapping(record)
    first = exchange.messages[0]
    return is_said(first) or RESPONSES.recognises(first)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the conversations, in the order in which they began."""
    threads: dict[tuple[str, str], Thread] = {}
    answered: dict[str, Exchange] = {}
    for record in source.records():
        exchange = exchange_of(record)
        if exchange is None:
            source.pass_over("record that is not a request", record)
            continue
        if exchange.kept is not None and exchange.previous_id:
            # Each line is continued by one other.
            before = answered.pop(exchange.previous_id, None)
            if before is None or exchange.kept > len(before.messages):
                source.pass_over("request without the line that it continues", record)
                continue
            exchange = exchange.completed(before, mapping(record))
        elif before := answered.get(exchange.previous_id):
            exchange = exchange.continued(before)
        if exchange.id:
            answered[exchange.id] = exchange
        threads.setdefault(exchange.beginning, Thread()).read(exchange)
    names = source.names()
    for position, thread in enumerate(threads.values(), 1):
        thread.end()
        name = names.of(position) if len(threads) > 1 else source.name
        yield thread.builder.recording(name, FORMAT)
