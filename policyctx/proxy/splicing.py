"""`spliced`: a request body with other messages, in which the unchanged messages keep their bytes.

Only what changed is written as JSON, and of a list that begins as the last one did only its end.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policyctx.definitions.items import Message
from policyctx.proxy.bodies import Body, same_beginning
from policyctx.proxy.scanning import written
from policyctx.turns.sources import Sources

REMOVED: Any = object()
"""In place of the value of a field: the field is removed."""


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
