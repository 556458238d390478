"""Spans of OpenTelemetry, as OTLP has them in JSON or as its SDKs print them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from policyctx.definitions.items import PlainValue
from policyctx.replay.readers.source import Source, parsed
from policyctx.replay.readers.values import Record, mapping, number, objects, seconds, word
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
    """As it was read."""

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
        prompt, read, written, output = (
            number(self.first(names)) for names in (_PROMPTS, _READ, _WRITTEN, _OUTPUTS)
        )
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
    if kind in {"arrayValue", "kvlistValue"}:
        values = mapping(inner).get("values")
        return (
            _values(values) if kind == "kvlistValue" else [_value(one) for one in objects(values)]
        )
    return inner


def _whole(value: PlainValue) -> int:
    """Return a number of 64 bits, which OTLP's JSON has as text or as it is; 0 for another."""
    is_text = isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS
    found = int(value) if is_text else value
    return found if type(found) is int and 0 < found < 2**64 else 0


def numbered(tree: PlainValue) -> list[Record]:
    """Return what is at the keys 0, 1 and so on; nothing if one of them is missing."""
    found = [mapping(mapping(tree).get(str(place))) for place in range(len(mapping(tree)))]
    return found if all(found) else []
