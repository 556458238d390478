"""A proxy before an object store that is slow, fails, ignores conditions or loses its answers."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

_NOT_PASSED_ON = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Faults:
    """What goes wrong; requests are counted, the first one is 1."""

    port: int
    """Of the object store."""
    delay: float = 0.0
    """Seconds that each request takes longer."""
    fails_every: int = 0
    """Each of so many requests gets the status 503 and does not reach the object store."""
    loses_every: int = 0
    """Each of so many requests that write is carried out, and answered by the status 500."""
    ignores_conditions: bool = False
    """Whether `If-None-Match` is not passed on."""
    hides: str = ""
    """A listing leaves out keys that contain this text, as one that comes late does."""
    is_away: bool = False
    """Whether each request gets the status 503."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """The method and the path of each request."""
    lock: Lock = field(default_factory=Lock)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Faults

    def _answer(self) -> None:
        faults = self.faults
        with faults.lock:
            faults.seen.append((self.command, self.path))
            number = len(faults.seen)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        time.sleep(faults.delay)
        if faults.is_away or (faults.fails_every and number % faults.fails_every == 0):
            self._send(503, [], b"slow down")
            return
        status, headers, raw = self._passed_on(body)
        if faults.loses_every and self.command == "PUT" and number % faults.loses_every == 0:
            status, raw = 500, b"lost"
        if faults.hides and "list-type=2" in urlsplit(self.path).query:
            raw = _without(raw, faults.hides)
        self._send(status, headers, raw)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - the base's names

    def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        skipped = {"if-none-match"} if self.faults.ignores_conditions else set()
        connection = http.client.HTTPConnection("127.0.0.1", self.faults.port, timeout=30)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in skipped}
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _send(self, status: int, headers: list[tuple[str, str]], raw: bytes) -> None:
        length = str(len(raw))
        self.send_response(status)
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in _NOT_PASSED_ON:
                self.send_header(name, value)
        self.send_header("content-length", length)
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):
                self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _without(listing: bytes, text: str) -> bytes:
    for part in (b"Contents", b"CommonPrefixes"):
        first, *found = listing.split(b"<%b>" % part)
        kept = [first]
        for one in found:
            entry, end, rest = one.partition(b"</%b>" % part)
            kept.append(rest if text.encode() in entry else b"<%b>" % part + entry + end + rest)
        listing = b"".join(kept)
    return listing


@contextmanager
def faulty(port: int) -> Iterator[tuple[str, Faults]]:
    """Provide the endpoint of a proxy before the object store at a port, and what goes wrong."""
    faults = Faults(port)
    handler = type("Handler", (_Handler,), {"faults": faults})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
