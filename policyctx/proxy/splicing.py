"""`spliced`: a request body with other messages, in which the unchanged messages keep their bytes.

Only what changed is written as JSON. What was written for a message is kept for as long as the
session returns the same object, so that it has the same bytes in the next turn.
"""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.definitions.items import Message
    from policyctx.proxy.bodies import Body
    from policyctx.turns.sources import Sources

REMOVED: Any = object()
"""In place of the value of a field: the field is removed."""


class Written:
    """The bytes of the messages that a session changed, for the list that was sent last."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Message, bytes]] = {}
        self._new: dict[int, tuple[Message, bytes]] = {}

    def __call__(self, message: Message) -> bytes:
        """Return a message as JSON."""
        key = id(message)
        # The object is kept, so no other one has its id.
        found = self._new.get(key) or self._last.get(key) or (message, orjson.dumps(message))
        self._new[key] = found
        return found[1]

    def finish(self) -> None:
        """Forget the messages that were not written since the last time."""
        self._last, self._new = self._new, {}


def is_unchanged(body: Body, messages: Sequence[Message], fields: Mapping[str, object]) -> bool:
    """Return whether a body already has these messages and fields, by their objects."""
    return (messages is body.messages or _are_same(messages, body.messages)) and all(
        body.fields.get(name, REMOVED) is value for name, value in fields.items()
    )


def spliced(
    body: Body,
    messages: Sequence[Message],
    sources: Sources,
    *,
    fields: Mapping[str, object],
    written: Written,
) -> bytes:
    """Return a body with these messages, which come from its list as `sources` say.

    `fields` are new values by name, `REMOVED` for one of them at most; a name without a field in
    the body is left out. The body is returned as it is if it already has them.
    """
    if is_unchanged(body, messages, fields):
        return body.raw
    edits = [(*body.list_span, b",".join(_listed(body, messages, sources, written)))]
    edits += _changed_fields(body, fields)
    view, at = memoryview(body.raw), 0
    parts: list[bytes | memoryview] = []
    for start, end, new in sorted(edits):
        parts += [view[at:start], new]
        at = end
    return b"".join([*parts, view[at:]])


def _are_same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return len(some) == len(others) and not any(map(is_not, some, others))


def _listed(
    body: Body, messages: Sequence[Message], sources: Sources, written: Written
) -> Iterator[bytes | memoryview]:
    """Yield the messages as JSON, those that follow each other unchanged in one piece."""
    given = body.messages
    at = 0
    for one in sources:
        if one is None:
            yield written(messages[at])
            at += 1
            continue
        first = one.start
        for source in _changed_in(given, messages, one, at):
            if first < source:
                yield body.run(first, source)
            yield written(messages[at + source - one.start])
            first = source + 1
        if first < one.stop:
            yield body.run(first, one.stop)
        at += len(one)
    written.finish()


def _changed_in(
    given: Sequence[Message], messages: Sequence[Message], one: range, at: int
) -> Iterable[int]:
    some, others = given[one.start : one.stop], messages[at : at + len(one)]
    return (
        source for source, is_other in zip(one, map(is_not, some, others), strict=True) if is_other
    )


def _changed_fields(body: Body, fields: Mapping[str, object]) -> Iterator[tuple[int, int, bytes]]:
    for name, value in fields.items():
        member = body.members.get(name)
        if member is None or body.fields[name] is value:
            continue
        if value is REMOVED:
            yield (*_with_comma(body.raw, *member.whole), b"")
        else:
            yield (*member.value, orjson.dumps(value))


def _with_comma(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the span of a field with the comma that goes with it."""
    after = len(raw) - len(raw[end:].lstrip())
    if raw[after : after + 1] == b",":
        return start, after + 1
    before = raw[:start].rstrip()
    return (len(before) - 1 if before.endswith(b",") else start), end
