"""A server on the loopback address that answers as Anthropic's count-tokens endpoint does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.serving import Answer, Server, serving

# What the endpoint adds to the text of a message.
AROUND = 7


class CountingServer(Server):
    """Counts a token for every character, unless `statuses` holds another answer for a request."""

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.requests: list[dict[str, Any]] = []
        self.statuses: list[int] = []

    @property
    def texts(self) -> list[object]:
        """What the first message of each request says."""
        return [request["messages"][0]["content"] for request in self.requests]


class _Answer(Answer):
    server: CountingServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.received())
        self.server.requests.append({**body, "path": self.path})
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        answer: dict[str, Any] = {"input_tokens": AROUND + len(str(body["messages"][0]["content"]))}
        if status != 200:
            answer = {"type": "error", "error": {"type": "api_error", "message": "scripted"}}
        raw = json.dumps(answer).encode()
        self.send_json(status, raw)


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    """Serve in a thread until the block ends."""
    with serving(CountingServer()) as server:
        yield server
