"""What the scripted servers on the loopback address have in common."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class Answer(BaseHTTPRequestHandler):
    """Answers in JSON, and quietly."""

    def send_json(
        self, status: int, raw: bytes, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        # `send_response` adds the date of this machine.
        (self.send_response_only if "date" in headers else self.send_response)(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread until the block ends.

    Every client of the providers' libraries reads all certificates of the system, which takes
    longer than most tests, and no certificate matters here. So they find a folder without any.
    """
    with server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
        patch.delenv("SSL_CERT_FILE", raising=False)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
