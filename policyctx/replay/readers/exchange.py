"""`Exchange`: one request to a model, and its response, however a log wraps the two."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.messages.items import compact_json
from policyctx.replay.readers.fields import Record, mapping, objects, seconds, usage, word

if TYPE_CHECKING:
    from policyctx.messages.items import Message
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
        messages,
        prints,
        (said_id, next(users, "")),
        request.get("system"),
        request.get("tools"),
        word(response.get("model") or request.get("model")) or None,
        seconds(at),
        usage(response.get("usage")) or usage(fields.get("usage")),
        _reply(response),
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
