"""`Body`: a request body as bytes, with the place of each message in them.

Most turns send the body of the turn before with a few more messages. `read_body` with that earlier
body compares bytes, and decodes only what differs; the known messages are the same objects again.
`spliced` writes only what changed as JSON, and of a list that begins as the last one did only its
end: the unchanged messages keep their bytes.

A body that would not survive a change of some of its messages raises `UntouchableError`, and is
sent as it is: JSON that orjson refuses, integers of more than 64 bits, names that occur twice.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from operator import is_not
from typing import Any, NamedTuple

import orjson

from policyctx.definitions.items import Message
from policyctx.messages.sources import Sources
from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.scanning import Member, Scanner, Span, UntouchableError, written

_SPACE = b" \t\r\n"
# The name under which the end of a list is read; a body with such a field is not touched.
_REST = "the rest of the list"
# Each value follows one of these signs, but the first. A string may lack its end.
_SIGNS = (b",", b"[", b"{")
_SIGN_OR_STRING = re.compile(rb'[,\[{]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# An escape beyond U+00FF.
_WIDE_ESCAPE = re.compile(rb"\\u(?!00)")
_QUOTE = ord('"')
# Of a character in memory, in a text that has others than ASCII.
_BYTES_OF_CHAR = 4
_LIMITS = ProxyLimits()
REMOVED: Any = object()
"""In place of the value of a field: the field is removed."""


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON object with a list of messages in one of its fields."""

    raw: bytes
    list_key: str
    fields: Mapping[str, Any]
    """The values of the other fields."""
    members: Mapping[str, Member]
    """The places of the other fields."""
    messages: list[Message]
    list_span: Span
    """From behind the list's opening bracket to its closing one."""
    spans: list[Span]
    """The place of each message, from the start of the list on."""
    ends: list[int]
    """Where each message ends, from the start of the list on."""
    values: int = 0
    """How many JSON values the body has at most."""
    known: int = 0
    """How many messages at the beginning are the objects of the earlier body."""
    text_bytes: int = 0
    """How many bytes the text of the decoded body takes at most."""

    def bytes_of(self, message: int) -> memoryview:
        """Return the bytes of a message."""
        start, (first, end) = self.list_span.start, self.spans[message]
        return memoryview(self.raw)[start + first : start + end]

    def with_gap(self, message: int) -> memoryview:
        """Return the bytes of a message with what is between it and the one before."""
        start = self.list_span.start
        return memoryview(self.raw)[start + self.ends[message - 1] : start + self.ends[message]]

    def changed(self, raw: bytes) -> bytes | None:
        """Return the bytes to send in its place, None if they are those that came."""
        return None if raw is self.raw or raw == self.raw else raw


def read_body(
    raw: bytes, list_key: str, earlier: Body | None = None, limits: ProxyLimits = _LIMITS
) -> Body:
    """Read a body whose messages are in the field `list_key`; raises `UntouchableError`.

    Messages that begin the list of an `earlier` body with the same bytes are its objects. A body
    above the limits is not decoded.
    """
    if len(raw) * _BYTES_OF_CHAR > limits.body_bytes < _text_bytes(raw):
        raise UntouchableError("the text of the body takes too much memory")
    if earlier is None or earlier.list_key != list_key:
        body = _read_whole(raw, list_key, limits)
    elif _begins_as(raw, earlier):
        body = _continued(raw, earlier, limits)
    else:
        body = _with_known(_read_whole(raw, list_key, limits), earlier)
    _check_counts(body.fields, body.messages, limits)
    if body.values > limits.message_values:
        for first, end in body.spans[body.known :]:
            start = body.list_span.start
            values_from(raw, start + first, limits.message_values, start + end)
    return body


def _text_bytes(raw: bytes) -> int:
    """Return how many bytes the text of some JSON takes at most when it is decoded.

    One character beyond U+00FF, also an escaped one, can make all others of its string wider.
    """
    is_narrow = raw.isascii() and _WIDE_ESCAPE.search(raw) is None
    return len(raw) * (1 if is_narrow else _BYTES_OF_CHAR)


def _check_counts(fields: Mapping[str, Any], messages: list[Message], limits: ProxyLimits) -> None:
    if len(messages) > limits.messages:
        raise UntouchableError("the list has too many messages")
    if len(fields) > limits.fields + 1:
        raise UntouchableError("the body has too many fields")


def values_from(raw: bytes, start: int, most: int, end: int = sys.maxsize) -> int:
    """Return how many JSON values are between two places between values, or a few more.

    Raises `UntouchableError` if they are more than `most`. Decoded they take a hundred times their
    bytes, so they are counted first.
    """
    found = 1 + sum(raw.count(sign, start, end) for sign in _SIGNS)
    if found <= most:
        return found
    # Those in strings are counted too.
    found = 1
    for number, sign in enumerate(_SIGN_OR_STRING.finditer(raw, start, end)):
        found += raw[sign.start()] != _QUOTE
        if found > most or number > 3 * most:
            raise UntouchableError("the body has too many values")
    return found


def shared_messages(raw: bytes, earlier: Body) -> int:
    """Return how many messages of an earlier body this text begins with; 0 for another head."""
    return bisect_right(earlier.ends, shared_bytes(raw, earlier) - earlier.list_span.start)


def shared_bytes(raw: bytes, earlier: Body | None) -> int:
    """Return how many bytes of a text are not new after an earlier body; 0 for another head."""
    if earlier is None or not _begins_as(raw, earlier):
        return 0
    start, end = earlier.list_span
    return start + common_beginning(raw, start, earlier.raw, start, end - start)


def common_beginning(one: bytes, start: int, other: bytes, other_start: int, most: int) -> int:
    """Return how many bytes of two texts are the same from these places on, `most` at most.

    Costs about one comparison of what is the same.
    """
    low, high, view = 0, min(most, len(one) - start, len(other) - other_start), memoryview(other)
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(view[other_start + low : other_start + middle], start + low):
            low = middle
        else:
            high = middle - 1
    return low


def same_beginning(some: Sequence[object], others: Sequence[object]) -> int:
    """Return how many objects at the beginning of two lists are the same."""
    return next(compress(count(), map(is_not, some, others)), min(len(some), len(others)))


def _begins_as(raw: bytes, earlier: Body) -> bool:
    return raw.startswith(memoryview(earlier.raw)[: earlier.list_span.start])


def _continued(raw: bytes, earlier: Body, limits: ProxyLimits) -> Body:
    """Return the body of a text that is as an earlier one up to its list."""
    start, earlier_end = earlier.list_span
    known = shared_messages(raw, earlier)
    at = start + (earlier.ends[known - 1] if known else 0)
    values = earlier.values + values_from(raw, at, limits.values)
    if values > limits.values:  # some of them may be gone
        values = values_from(raw, 0, limits.values)
    scanner = Scanner(raw, at)
    messages, spans, ends = _known_again(raw, earlier, known, scanner)
    at = start + ends[-1] if ends else start
    at = scanner.skip(at)
    is_over = scanner.sign(at) == b"]"
    if messages and not is_over:
        if scanner.sign(at) != b",":
            raise UntouchableError("the body is not JSON")
        at = scanner.skip(at + 1)
        if scanner.sign(at) == b"]":
            raise UntouchableError("the body is not JSON")
    found: object = _list_before(raw, at, memoryview(earlier.raw)[earlier_end:])
    behind: dict[str, Any] | None = None
    if found is None:
        behind = _loads(b'{"%b":[%b' % (_REST.encode(), raw[at:]))
        found = behind.pop(_REST, None)
    new = _messages(found)
    for span in scanner.elements(at, new):
        spans.append(span.moved(-start))
        ends.append(span.end - start)
        at = span.end
    end = scanner.skip(at)
    members = {k: m for k, m in earlier.members.items() if m.whole.start < start}
    fields = {k: earlier.fields[k] for k in members}
    if behind is None:
        moved = {
            k: m.moved(end - earlier_end)
            for k, m in earlier.members.items()
            if m.whole.start > start
        }
        members |= moved
        fields |= {k: earlier.fields[k] for k in moved}
    else:
        if scanner.sign(end) != b"]":
            raise UntouchableError("the list of messages does not end where it should")
        seen = {*members, earlier.list_key}
        for name, member in scanner.members(end + 1, behind, seen):
            members[name], fields[name] = member, behind[name]
    return Body(
        raw,
        earlier.list_key,
        fields,
        members,
        messages + new,
        Span(start, end),
        spans,
        ends,
        values,
        known,
        _text_bytes(raw),
    )


def _known_again(
    raw: bytes, earlier: Body, known: int, scanner: Scanner
) -> tuple[list[Message], list[Span], list[int]]:
    """Return the messages up to the last one that is in an earlier list, with spans and ends.

    The first `known` are the same, and messages may have changed between others that are.
    """
    start, count = earlier.list_span.start, known
    messages = earlier.messages[:count]
    spans, ends = earlier.spans[:count], earlier.ends[:count]
    at = start + ends[-1] if ends else start
    while (again := _same_again(raw, at, earlier, count)) is not None:
        for span in scanner.elements(at, again.changed):
            spans.append(span.moved(-start))
            ends.append(span.end - start)
        same = slice(count + 1, again.end)
        by = again.at - start - earlier.ends[count]
        messages += again.changed + earlier.messages[same]
        spans += [span.moved(by) for span in earlier.spans[same]]
        ends += [end + by for end in earlier.ends[same]]
        count, at = again.end, start + ends[-1]
    return messages, spans, ends


class _Again(NamedTuple):
    """Where a list goes on as an earlier one, behind messages that have changed."""

    changed: list[Message]
    at: int
    """Where the changed messages end."""
    end: int
    """The number of the first message of the earlier list that is different again."""


def _same_again(raw: bytes, at: int, earlier: Body, count: int) -> _Again | None:
    """Return what is in place of message `count` of an earlier list, if the next one follows.

    `at` is where the message before it ends. Returns None if that cannot be told.
    """
    if count + 1 >= len(earlier.messages):
        return None
    found = raw.find(earlier.with_gap(count + 1), at)
    if found < 0:
        return None
    piece = raw[at:found].strip(_SPACE)
    if count and piece:
        if not piece.startswith(b","):
            return None
        piece = piece[1:]
    try:
        # If this is a list, then the text behind it is not part of a string or of an object.
        changed = orjson.loads(b"[%b]" % piece)
    except ValueError:
        return None
    if not (changed or count) or not all(type(message) is dict for message in changed):
        return None
    start, end = earlier.list_span
    before = earlier.ends[count]
    same = common_beginning(raw, found, earlier.raw, start + before, end - start - before)
    return _Again(changed, found, bisect_right(earlier.ends, before + same))


def _list_before(raw: bytes, at: int, tail: memoryview) -> list[Any] | None:
    """Return the values between a place in a list and its end, if what follows is this tail.

    The tail begins with the bracket that ends the list.
    """
    end = len(raw) - len(tail)
    if end < at or not raw.endswith(tail):
        return None
    try:
        found = orjson.loads(b"[%b]" % raw[at:end])
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _read_whole(raw: bytes, list_key: str, limits: ProxyLimits) -> Body:
    """Read a body of which nothing is known."""
    count = values_from(raw, 0, limits.values)
    values = _loads(raw)
    messages = _messages(values.get(list_key))
    _check_counts(values, messages, limits)
    scanner = Scanner(raw, 0)
    found: list[Span] = []
    at = scanner.skip(0) + 1
    members = dict(scanner.members(at, values, set(), list_name=list_key, elements=found))
    del values[list_key]
    span = members.pop(list_key).value
    start = span.start + 1
    spans = [one.moved(-start) for one in found]
    return Body(
        raw,
        list_key,
        values,
        members,
        messages,
        Span(start, span.end - 1),
        spans,
        [one.end for one in spans],
        count,
        text_bytes=_text_bytes(raw),
    )


def _with_known(body: Body, earlier: Body) -> Body:
    """Return a body with the objects of an earlier one, as far as both lists have equal bytes."""
    (start, end), (own, own_end) = earlier.list_span, body.list_span
    same = common_beginning(body.raw, own, earlier.raw, start, min(end - start, own_end - own))
    known = min(bisect_right(earlier.ends, same), bisect_right(body.ends, same))
    messages = earlier.messages[:known] + body.messages[known:]
    return replace(body, messages=messages, known=known)


def _messages(value: object) -> list[Message]:
    if not isinstance(value, list):
        raise UntouchableError("the body has no list of messages")
    if not all(type(message) is dict for message in value):
        raise UntouchableError("a message is not an object")
    return value


def _loads(raw: bytes) -> dict[str, Any]:
    try:
        values = orjson.loads(raw)
    except ValueError:
        raise UntouchableError("the body is not JSON that can be read exactly") from None
    if not isinstance(values, dict):
        raise UntouchableError("the body is not an object")
    return values


class ListWriter:
    """Writes the lists of one conversation.

    The text of a list depends on its messages and on the body alone, not on the lists before.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._sources: list[int | None] = []
        """Where each message is in the body with the same bytes; None for one that changed."""
        self._ends: list[int] = []
        self._text = b""

    def text(self, body: Body, messages: Sequence[Message], sources: Sources) -> bytes:
        """Return the messages as JSON with what is between them, without brackets.

        They come from the list of the body as `sources` say. Objects of the last list have the
        bytes that they had in it.
        """
        same = same_beginning(messages, self._messages)
        del self._messages[same:], self._sources[same:], self._ends[same:]
        self._messages += messages[same:]
        size = self._ends[-1] if same else 0
        parts: list[bytes | memoryview] = [memoryview(self._text)[:size]]
        for message, source in zip(messages[same:], _indices(sources, same), strict=True):
            is_given = source is not None and message is body.messages[source]
            before = self._sources[-1] if self._sources else None
            if is_given and source is not None:
                follows = before is not None and source == before + 1
                piece = body.with_gap(source) if follows else body.bytes_of(source)
            else:
                piece, follows = memoryview(written(message)), False
            if self._sources and not follows:
                parts.append(b",")
                size += 1
            parts.append(piece)
            size += len(piece)
            self._ends.append(size)
            self._sources.append(source if is_given else None)
        self._text = b"".join(parts)
        return self._text


def spliced(
    body: Body,
    messages: Sequence[Message],
    sources: Sources,
    *,
    fields: Mapping[str, object],
    writer: ListWriter,
) -> bytes:
    """Return a body with these messages, which come from its list as `sources` say.

    `fields` are new values by name, `REMOVED` for one of them at most; a name without a field in
    the body is left out. The body is returned as it is if it already has all of them.
    """
    changed = {
        name: value for name, value in fields.items() if body.fields.get(name, REMOVED) is not value
    }
    is_same = len(messages) == len(body.messages) == same_beginning(messages, body.messages)
    if is_same and not changed:
        return body.raw
    edits = [] if is_same else [(*body.list_span, writer.text(body, messages, sources))]
    edits += _changed_fields(body, changed)
    view, at = memoryview(body.raw), 0
    parts: list[bytes | memoryview] = []
    for start, end, new in sorted(edits):
        parts += [view[at:start], new]
        at = end
    return b"".join([*parts, view[at:]])


def _indices(sources: Sources, first: int) -> Iterator[int | None]:
    """Yield the source of each message from a position on."""
    at = 0
    for one in sources:
        size = 1 if one is None else len(one)
        if one is None:
            if at >= first:
                yield None
        else:
            yield from one[max(0, first - at) :]
        at += size


def _changed_fields(body: Body, fields: Mapping[str, object]) -> Iterator[tuple[int, int, bytes]]:
    for name, value in fields.items():
        if (member := body.members.get(name)) is None:
            continue
        if value is REMOVED:
            yield (*_with_comma(body.raw, *member.whole), b"")
        else:
            yield (*member.value, written(value))


def _with_comma(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the span of a field with the comma that goes with it."""
    after = len(raw) - len(raw[end:].lstrip())
    if raw[after : after + 1] == b",":
        return start, after + 1
    before = raw[:start].rstrip()
    return (len(before) - 1 if before.endswith(b",") else start), end
