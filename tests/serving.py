"""What the scripted servers on the loopback address have in common."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class Answer(BaseHTTPRequestHandler):
    """Answers in JSON, and quietly."""

    def send_json(self, status: int, raw: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread until the block ends."""
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
