"""`Recording`: a transcript of a real session, read by whichever reader knows its format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from policyctx.errors import MessagesError
from policyctx.replay import claude_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.messages.items import Message
    from policyctx.replay.model_call import ModelCall

Record: TypeAlias = dict[str, Any]


class Reader(Protocol):
    """Knows one format of JSON lines; a module with these functions is one."""

    def recognises(self, record: Record) -> bool:
        """Is this one record enough to know the format by."""
        ...

    def context_of(self, records: Sequence[Record]) -> list[Message]:
        """Return the messages that were in the context at the end of the recording."""
        ...

    def calls_of(self, records: Sequence[Record]) -> Iterator[ModelCall]:
        """Yield the calls of a model whose usage is recorded."""
        ...


READERS: tuple[Reader, ...] = (claude_code,)


@dataclass(frozen=True, slots=True)
class Recording:
    """The context at the end of a recorded session.

    `records` counts the lines of the file; `unreadable` those that are no JSON object, such as the
    last line of a session that was killed while writing. `calls` are those of a model, with their
    usage, where they were asked for.
    """

    messages: list[Message]
    records: int
    unreadable: int
    calls: tuple[ModelCall, ...] = ()


def read_recording(lines: Iterable[str], *, with_calls: bool = False) -> Recording | None:
    """Read JSON lines; None when no reader knows the format.

    `with_calls` also reads the calls of a model, each with its context, which takes longer. Raises
    `MessagesError` when the format is known but no message is in it.
    """
    records: list[Record] = []
    unreadable = 0
    for line in lines:
        if line.strip():
            record = _record(line)
            if record is None:
                unreadable += 1
            else:
                records.append(record)
    reader = next((r for r in READERS if any(map(r.recognises, records))), None)
    if reader is None:
        return None
    messages = reader.context_of(records)
    if not messages:
        raise MessagesError("the recording holds no message")
    calls = tuple(reader.calls_of(records)) if with_calls else ()
    return Recording(messages, len(records) + unreadable, unreadable, calls)


def _record(line: str) -> Record | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
