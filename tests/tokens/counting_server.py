"""A server on the loopback address that answers as Anthropic's count-tokens endpoint does."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the endpoint adds to the text of a message.
AROUND = 7


class CountingServer(ThreadingHTTPServer):
    """Counts a token for every character, unless `statuses` holds another answer for a request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.requests: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def texts(self) -> list[object]:
        """What the first message of each request says."""
        return [request["messages"][0]["content"] for request in self.requests]


class _Answer(BaseHTTPRequestHandler):
    server: CountingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append({**body, "path": self.path})
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        answer: dict[str, Any] = {"input_tokens": AROUND + len(str(body["messages"][0]["content"]))}
        if status != 200:
            answer = {"type": "error", "error": {"type": "api_error", "message": "scripted"}}
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    """Serve in a thread until the block ends."""
    with CountingServer() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
