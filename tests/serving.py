"""What the scripted servers on the loopback address have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import TypeVar

import pytest

# What a stream that is held waits for, at most, in seconds.
_LONGEST_WAIT = 30
Served = TypeVar("Served", bound=ThreadingHTTPServer)


class Answer(BaseHTTPRequestHandler):
    """Answers in JSON, and quietly."""

    def received(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers["content-length"]))

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

    def send_events(
        self, frames: Iterable[str], *, cut_after: int | None = None, holds: Event | None = None
    ) -> None:
        """Send server-sent events in chunks, so that the client notices a cut.

        With `cut_after` the connection ends after so many; the second one waits for `holds`.
        """
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for number, frame in enumerate(frames):
            if number == cut_after:
                return
            raw = frame.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
            if number == 0 and holds is not None:
                holds.wait(_LONGEST_WAIT)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


class Server(ThreadingHTTPServer):
    """Answers at `url`, a free port of the loopback address."""

    def __init__(self, answer: type[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), answer)
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(server: Served) -> Iterator[Served]:
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
