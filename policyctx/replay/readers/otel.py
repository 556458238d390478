"""Traces of model calls, with the attributes of OpenTelemetry GenAI or of OpenInference.

Spans are read as OTLP has them in JSON, or as its SDKs print them. A span of a model call holds its
whole prompt. Two spans of one call, as of a framework and of an SDK, are one. Calls with one
conversation id are a conversation; without such an id, those of a trace whose first user message is
the same, and those of later traces that continue their list.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, chain
from typing import NamedTuple

from policyctx.definitions.items import Message, PlainValue
from policyctx.messages.shapes.built_in import RESPONSES
from policyctx.replay.readers.building import function_call, tool_message
from policyctx.replay.readers.chat import is_said
from policyctx.replay.readers.request_log import Exchange, Thread, digest, exchange_of
from policyctx.replay.readers.source import Source, parsed
from policyctx.replay.readers.values import Record, as_text, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

_DIGITS = 21
_PROMPTS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUTS = (
    "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
)  # fmt: skip
_READ = (
    "llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
)  # fmt: skip
_WRITTEN = (
    "llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
)  # fmt: skip


class TraceSpan(NamedTuple):
    """A span, or an event of one."""

    id: str
    parent: str
    trace: str
    at: float | None
    """When it ended, in seconds since 1970."""
    is_failed: bool
    attributes: Record
    record: Record

    def first(self, names: Iterable[str]) -> PlainValue:
        """Return the first of these attributes that says something."""
        return next((self.attributes[name] for name in names if self.attributes.get(name)), None)

    def parsed(self, name: str) -> PlainValue:
        """Return what an attribute holds, which may be JSON text; None for a text that is none."""
        return parsed(self.attributes.get(name))

    def nested(self, prefix: str) -> list[Record]:
        """Return a list that is flattened into attributes; nothing if a part of it was dropped."""
        tree: Record = {}
        for key, value in self.attributes.items():
            if key.startswith(prefix):
                at = tree
                *steps, last = key.removeprefix(prefix).removeprefix(".").split(".")
                for step in steps:
                    at = mapping(at.setdefault(step, {}))
                at[last] = value
        return numbered(tree)

    def usage(self) -> Usage | None:
        """Return what was billed; in most clients the prompt has the cache's tokens in it."""
        names = (_PROMPTS, _READ, _WRITTEN, _OUTPUTS)
        prompt, read, written, output = map(number, map(self.first, names))
        if prompt >= read + written:
            prompt -= read + written
        return Usage(prompt, read, written, output) if prompt + read + written else None


def spans_in(source: Source) -> Iterator[TraceSpan]:
    """Yield the spans of a file; other records are counted."""
    found = False
    for resource in source.elements("resourceSpans"):
        found = True
        yield from _inside(resource)
    for record in () if found else source.objects():
        if "resourceSpans" in record:
            for resource in objects(record["resourceSpans"]):
                yield from _inside(resource)
        elif "attributes" in record and "context" in record:
            yield span_of(record)
        else:
            source.pass_over("record that is not a span", record)


def _inside(resource: PlainValue) -> Iterator[TraceSpan]:
    for scope in objects(mapping(resource).get("scopeSpans")):
        yield from map(span_of, objects(scope.get("spans")))


def span_of(record: object) -> TraceSpan:
    """Return a record as a span, of either form."""
    fields = mapping(record)
    context, end = mapping(fields.get("context")), _whole(fields.get("endTimeUnixNano"))
    attributes = fields.get("attributes")
    if not isinstance(attributes, dict):
        attributes = _values(attributes)
    return TraceSpan(
        word(fields.get("spanId") or context.get("span_id")),
        word(fields.get("parentSpanId") or fields.get("parent_id")),
        word(fields.get("traceId") or context.get("trace_id")),
        end / 1e9 if end else seconds(fields.get("end_time")),
        "ERROR" in str(mapping(fields.get("status"))),
        attributes,
        fields,
    )


def _values(pairs: PlainValue) -> Record:
    return {word(one.get("key")): _value(one.get("value")) for one in objects(pairs)}


def _value(value: PlainValue) -> PlainValue:
    kind, inner = next(iter(mapping(value).items()), ("", None))
    if kind == "intValue":
        return _whole(inner)
    values = mapping(inner).get("values")
    if kind == "kvlistValue":
        return _values(values)
    return [*map(_value, objects(values))] if kind == "arrayValue" else inner


def _whole(value: PlainValue) -> int:
    """Return a number of 64 bits, which OTLP's JSON has as text or as it is; 0 for another."""
    is_text = isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS
    found = int(value) if is_text else value
    return found if type(found) is int and 0 < found < 2**64 else 0


def numbered(tree: PlainValue) -> list[Record]:
    """Return what is at the keys 0, 1 and so on; nothing if one of them is missing."""
    found = [mapping(mapping(tree).get(str(place))) for place in range(len(mapping(tree)))]
    return found if all(found) else []


FORMAT = "otel"

_CONVERSATIONS = (
    "gen_ai.conversation.id", "session.id", "langfuse.session.id", "langsmith.trace.session_id",
)  # fmt: skip
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_ROLES = frozenset({"system", "developer", "user", "assistant"})
_SYSTEM = "gen_ai.system_instructions"
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})
_KINDS = {
    "openinference.span.kind": "LLM",
    "langfuse.observation.type": "generation",
    "llm.request.type": "chat",
}
# What holds a body of a request, and what one of its response.
_REQUESTS = ("input.value", "langfuse.observation.input", "gen_ai.prompt")
_RESPONSES = ("output.value", "langfuse.observation.output", "gen_ai.completion")


def recognises(record: object) -> bool:
    """Is this an export of spans, or a span of a model call."""
    return "resourceSpans" in mapping(record) or _is_call(span_of(record))


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the conversations, in the order in which they began."""
    calls, others = dict[tuple[str, str], _Call](), 0
    kept: dict[str, Message] = {}
    for span in spans_in(source):
        if not _is_call(span):
            others += 1
            continue
        call = _call(span)
        if call.exchange is not None:  # a message that many prompts have is kept once
            pairs = zip(call.exchange.prints, call.exchange.messages, strict=True)
            messages = [kept.setdefault(print_, message) for print_, message in pairs]
            call = call._replace(exchange=replace(call.exchange, messages=messages))
        # No span that has an id has these.
        calls.setdefault((span.trace, span.id) if span.id else ("", str(len(calls))), call)
    names, different = source.names(), _threads(_once(source, calls))
    for _ in range(0 if different else others):
        source.pass_over("span of another kind")
    for position, thread in enumerate(different, 1):
        thread.end()
        if position == 1 and others:
            thread.builder.records += others
            thread.builder.not_prompt["span of another kind"] = others
        name = names.of(position) if len(different) > 1 else source.name
        yield thread.builder.recording(name, FORMAT)


def _threads(exchanges: Iterable[tuple[Exchange, bool]]) -> list[Thread]:
    """Return the conversations of calls, which come with whether they name theirs."""
    threads: dict[tuple[str, str], Thread] = {}
    # By the first user message and the whole of the newest list.
    by_list = defaultdict[tuple[str, str], dict[Thread, None]](dict)
    newest: dict[Thread, tuple[str, str]] = {}
    for exchange, has_id in exchanges:
        first = exchange.beginning[1]
        lists = [(first, one) for one in accumulate(exchange.prints, lambda a, b: digest(a + b))]
        thread = threads.get(exchange.beginning)
        if thread is None and not has_id:
            # A program may begin a trace with each turn of its user.
            known = (one for key in reversed(lists[:-1]) for one in by_list.get(key, ()))
            thread = next(known, None)
        threads[exchange.beginning] = thread = thread or Thread()
        thread.read(exchange)
        by_list[newest.get(thread, lists[-1])].pop(thread, None)
        newest[thread] = lists[-1]
        by_list[lists[-1]][thread] = None
    return list(newest)


class _Call(NamedTuple):
    """A span of a model call."""

    span: TraceSpan
    response: tuple[str, str, int]
    """The id of the response, with trace and tokens of the prompt: some servers have only one."""
    exchange: Exchange | None
    has_id: bool
    """Whether it names its conversation."""


def _once(source: Source, calls: dict[tuple[str, str], _Call]) -> Iterator[tuple[Exchange, bool]]:
    """Yield each call once, in order."""
    shown = {call.response for call in calls.values() if call.exchange and call.response[0]}
    parents = {(call.span.trace, call.span.parent) for call in calls.values()}
    for key, call in sorted(calls.items(), key=lambda pair: pair[1].span.at or 0):
        above = calls.get((call.span.trace, call.span.parent)) if call.span.parent else None
        if above is not None and above.exchange is not None:
            continue
        if call.exchange is None:
            is_told = call.response in shown or key in parents
            if not (is_told or call.span.is_failed):
                source.pass_over("call without its messages", call.span.record)
        elif not call.response[0] or call.response in shown:
            shown.discard(call.response)
            yield call.exchange, call.has_id


def _is_call(span: TraceSpan) -> bool:
    if (operation := span.attributes.get("gen_ai.operation.name")) is not None:
        return word(operation) in _OPERATIONS
    return any(span.attributes.get(name) == kind for name, kind in _KINDS.items())


def _call(span: TraceSpan) -> _Call:
    exchange, usage, named = _exchange(span), span.usage(), word(span.first(_CONVERSATIONS))
    response = word(span.attributes.get("gen_ai.response.id")) or (exchange.id if exchange else "")
    if exchange is not None:
        exchange = replace(
            exchange,
            usage=usage or exchange.usage,
            language_model=word(span.first(_MODELS)) or exchange.language_model,
            at=span.at,
            beginning=(named or span.trace, exchange.beginning[1]),
            id=span.trace + span.id if span.id else "",
        )
    prompt = usage.prompt if usage else 0
    return _Call(span, (response, span.trace, prompt), exchange, bool(named))


def _exchange(span: TraceSpan) -> Exchange | None:
    """Return the request that is in the attributes; None where it is not, or is cut off."""
    told = span.parsed("gen_ai.tool.definitions")
    schemas = [mapping(one.get("tool")).get("json_schema") for one in span.nested("llm.tools")]
    tools = told or [*map(parsed, schemas)] or span.nested("llm.request.functions") or None
    beside = {"model": span.first(_MODELS) or "", "tools": tools}
    for name, answer in zip(_REQUESTS, _RESPONSES, strict=True):
        body = span.parsed(name)
        request = {"messages": body} if isinstance(body, list) else mapping(body)
        response = mapping(span.parsed(answer))
        found = exchange_of({"request": {**beside, **request}, "response": response})
        first = found.messages[0] if found else {}
        if is_said(first) or RESPONSES.recognises(first):
            return found
    ways = ("input", "prompt"), ("output", "completion")
    given, said = (list(chain.from_iterable(map(_messages, _told(span, *way)))) for way in ways)
    given = given or list(chain.from_iterable(map(_messages, _events(span))))
    system = [_part(part).get("text", "") for part in objects(span.parsed(_SYSTEM))]
    request = {**beside, "messages": given, "system": "\n".join(system) or None}
    choices = [{"message": message} for message in said[:1]]
    return exchange_of({"request": request, "response": {"choices": choices}})


def _told(span: TraceSpan, way: str, old: str) -> Iterator[Record]:
    """Yield messages with parts, from an attribute of their own or from flattened ones."""
    if (name := f"gen_ai.{way}.messages") in span.attributes:
        yield from objects(span.parsed(name))
        return
    for one in span.nested(f"llm.{way}_messages") or span.nested(f"gen_ai.{old}"):
        yield _with_parts(mapping(one.get("message")) or one)


def _events(span: TraceSpan) -> Iterator[Record]:
    """Yield the messages of events, one for each, as older versions have them."""
    for event in objects(span.record.get("events")):
        if found := _EVENT.fullmatch(word(event.get("name"))):
            fields = span_of(event).attributes
            fields |= mapping(parsed(fields.get("gen_ai.event.content")))
            yield _with_parts({"role": found[1], "tool_call_id": fields.get("id"), **fields})


def _with_parts(fields: Record) -> Record:
    """Return a message of flattened attributes, or of an event, in the form of newer versions."""
    role, content, calls = (fields.get(name) for name in ("role", "content", "tool_calls"))
    if role == "tool":
        result = {"type": "tool_call_response", "id": fields.get("tool_call_id")}
        return {"role": role, "parts": [{**result, "response": content}]}
    parts: list[Record] = [{"type": "text", "content": content}] if content else []
    for one in numbered(fields.get("contents")) if not parts else ():
        part = mapping(one.get("message_content"))
        image = mapping(mapping(part.get("image")).get("image"))
        if part.get("type") != "tool_use":
            parts.append({"type": "text", "content": part.get("text"), "uri": image.get("url")})
    for one in numbered(calls) or objects(parsed(calls)):
        call = mapping(one.get("tool_call")) or one
        parts.append({**call, **mapping(call.get("function")), "type": "tool_call"})
    return {"role": role, "parts": parts}


def _messages(record: Record) -> Iterator[Message]:
    """Yield the messages of OpenAI's chats that a message with parts is: results come first."""
    content, calls = list[Record](), list[Record]()
    for part in objects(record.get("parts")):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(function_call(part.get("id"), part.get("name"), part.get("arguments")))
        elif kind == "tool_call_response":
            shown = as_text(part.get("response", part.get("result")))
            yield tool_message(part.get("id"), shown)
        elif kind != "reasoning":
            content.append(_part(part))
    role = "assistant" if record.get("role") == "model" else record.get("role")
    text = content[0].get("text") if len(content) == 1 else None
    said = {"role": role if role in _ROLES else "user", "content": text or content or None}
    if content or calls:
        yield said | ({"tool_calls": calls} if calls else {})


def _part(part: Record) -> Record:
    url = word(part.get("uri"))
    if part.get("type") == "blob":
        url = f"data:{word(part.get('mime_type'))};base64,{word(part.get('content'))}"
    if url:
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": as_text(part.get("content", part))}
