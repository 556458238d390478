"""Logs of requests to either API: bodies with their `messages`, beside the responses.

Every request repeats its whole prompt. Requests that share a first user message, and an id where
the log has ids, are one conversation; messages that differ only in cache marks are one object.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.messages.json_text import compact_json
from policyctx.replay.readers.building import RecordingBuilder, RecordingNames
from policyctx.replay.readers.chat import is_chat_message
from policyctx.replay.readers.fields import Record, mapping, objects, seconds, usage, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.definitions.items import Message
    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording
    from policyctx.tokens.usage import Usage

_REQUESTS = ("request", "body", "kwargs", "request_body", "input", "params")
_RESPONSES = ("response", "response_body", "output", "completion")
_TIMES = ("timestamp", "created_at", "start_time", "startTime", "time", "ts", "created")
_CONVERSATIONS = ("conversation_id", "session_id", "thread_id", "trace_id")


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
    reply: Message | None


def exchange_of(record: object) -> Exchange | None:
    """Return the exchange that a record is; None for one without a request."""
    fields = mapping(record)
    request = _request(fields)
    found = request.get("messages")
    messages: list[Any] = found if isinstance(found, list) else []
    if not messages or not all(isinstance(one, dict) for one in messages):
        return None
    response = _response(fields)
    prints = [_print(message) for message in messages]
    users = (print_ for m, print_ in zip(messages, prints, strict=True) if m.get("role") == "user")
    said_id = next((word(fields.get(key)) for key in _CONVERSATIONS if fields.get(key)), "")
    at = next((fields[key] for key in _TIMES if key in fields), response.get("created"))
    return Exchange(
        messages=messages,
        prints=prints,
        beginning=(said_id, next(users, "")),
        system=request.get("system"),
        tools=request.get("tools"),
        language_model=word(response.get("model") or request.get("model")) or None,
        at=seconds(at),
        usage=usage(response.get("usage")) or usage(fields.get("usage")),
        reply=_reply(response),
    )


def _request(fields: Record) -> Record:
    """Return the request's body: the record itself, or what it is wrapped in."""
    if "messages" in fields:
        # What has nothing of a request but messages is a message list.
        beside = fields.keys() & {"model", "response", "usage", "system", "tools", "max_tokens"}
        return fields if beside else {}
    inner = next((found for key in _REQUESTS if (found := mapping(fields.get(key)))), {})
    return inner if not inner or "messages" in inner else _request_inside(inner)


def _request_inside(fields: Record) -> Record:
    found = (mapping(fields.get(key)) for key in _REQUESTS)
    return next((inner for inner in found if "messages" in inner), {})


def _response(fields: Record) -> Record:
    response = next((found for key in _RESPONSES if (found := mapping(fields.get(key)))), {})
    return mapping(response.get("body")) or response


def _reply(response: Record) -> Message | None:
    """Return the message of a response of either API."""
    choices = objects(response.get("choices"))
    if choices:
        message = mapping(choices[0].get("message"))
        kept = ("role", "content", "tool_calls", "function_call", "refusal")
        return {k: message[k] for k in kept if message.get(k) is not None} if message else None
    if response.get("role") == "assistant" and response.get("content"):
        return {"role": "assistant", "content": response["content"]}
    return None


def _print(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        content = [_without_mark(block) for block in content]
    said = {key: message[key] for key in ("role", "tool_calls", "tool_call_id") if key in message}
    text = compact_json([said, content])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _without_mark(block: object) -> object:
    if not isinstance(block, dict) or "cache_control" not in block:
        return block
    return {key: value for key, value in block.items() if key != "cache_control"}


class Thread:
    """A conversation that is being read from its requests."""

    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._prints: list[str] = []
        self._messages: list[Message] = []
        self._reply: Message | None = None

    def _shared_with(self, exchange: Exchange) -> int:
        """Return how many messages at the beginning are the same."""
        pairs = zip(self._prints, exchange.prints, strict=False)
        shorter = min(len(self._prints), len(exchange.prints))
        return next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)

    def read(self, exchange: Exchange) -> None:
        """Take a request: what is new in it joins the context, what differs begins it anew."""
        self.builder.records += 1
        shared = self._shared_with(exchange)
        new = exchange.messages[shared:]
        if shared < len(self._prints):
            self.builder.begin_anew([*self._messages[:shared], *new])
        else:
            for message in new:
                self.builder.add(message)
        self.builder.called(
            exchange.usage,
            exchange.language_model,
            exchange.at,
            exchange.system,
            exchange.tools,
        )
        self._prints = exchange.prints
        self._messages = [*self._messages[:shared], *new]
        self._reply = exchange.reply

    def end(self) -> None:
        """Add the last reply; those before it stand in the requests that followed."""
        if self._reply is not None:
            self.builder.add(self._reply)


FORMAT = "request-log"


def recognises(record: object) -> bool:
    """Is this a request: messages beside a model's name, or inside a record of a request."""
    exchange = exchange_of(record)
    return exchange is not None and is_chat_message(exchange.messages[0])


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the conversations, in the order in which they began."""
    threads: dict[tuple[str, str], Thread] = {}
    for record in source.records():
        exchange = exchange_of(record)
        if exchange is None:
            source.not_understood["record that is no request"] += 1
        else:
            threads.setdefault(exchange.beginning, Thread()).read(exchange)
    names = RecordingNames(source.name)
    for position, thread in enumerate(threads.values(), 1):
        thread.end()
        name = names.of(position) if len(threads) > 1 else source.name
        yield thread.builder.recording(name, FORMAT)
