"""A server on the loopback address that answers as Anthropic's messages endpoint does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import repeat, takewhile
from threading import Event
from time import monotonic
from types import MappingProxyType
from typing import Any

from tests.serving import Answer, Server, serving

# What a request that hangs is left waiting for, at most, in seconds.
_LONGEST_WAIT = 30
_DRIP = 0.1


@dataclass(frozen=True, slots=True)
class Scripted:
    """One answer: a status, a body and headers.

    With `hangs` there is none until the server ends, with `drips` one character of it at a time.
    """

    body: str = ""
    status: int = 200
    hangs: bool = False
    drips: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def saying(
    *texts: str,
    stop_reason: str = "end_turn",
    usage: Mapping[str, int] = MappingProxyType({}),
    blocks: Sequence[Mapping[str, Any]] = (),
) -> Scripted:
    """Return an answer with a message of these text blocks, then of these other blocks."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-some",
        "content": [*({"type": "text", "text": text} for text in texts), *blocks],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1, **usage},
    }
    return Scripted(json.dumps(message))


def failing(
    status: int,
    kind: str = "api_error",
    said: str = "scripted",
    headers: Mapping[str, str] | None = None,
) -> Scripted:
    """Return an answer with an error."""
    error = {"type": "error", "error": {"type": kind, "message": said}}
    return Scripted(json.dumps(error), status, headers=headers or {})


class MessagesServer(Server):
    """Gives the answers of `script` in order, then `Summary.` for ever."""

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.script: list[Scripted] = []
        self.ended = Event()


class _Answer(Answer):
    server: MessagesServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.received())
        self.server.requests.append({**body, "path": self.path})
        self.server.headers.append({name.lower(): text for name, text in self.headers.items()})
        self.server.times.append(monotonic())
        answer = self.server.script.pop(0) if self.server.script else saying("Summary.")
        if answer.hangs:
            self.server.ended.wait(_LONGEST_WAIT)
            return
        raw = answer.body.encode()
        if answer.drips:
            with suppress(OSError):  # the client has gone
                ended = self.server.ended
                self.send_events(takewhile(lambda _: not ended.wait(_DRIP), repeat(" ")))
            return
        self.send_json(answer.status, raw, answer.headers)


@contextmanager
def messages_server() -> Iterator[MessagesServer]:
    """Serve in a thread until the block ends."""
    with serving(MessagesServer()) as server:
        try:
            yield server
        finally:
            server.ended.set()
