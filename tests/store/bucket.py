"""A service with the part of S3's API that a store uses, in this process; it can be away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import pytest

BUCKET = "bucket"
_KEY = re.compile("<Key>([^<]*)</Key>")
_TIME = "2026-01-01T00:00:00.000Z"
_HTTP_TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


@dataclass
class Bucket:
    """The objects of the one bucket, by their keys."""

    objects: dict[str, bytes] = field(default_factory=dict)
    is_away: bool = False
    """Whether each request gets the status 503."""
    away_after: int | None = None
    """So many requests are still answered; then the service is away."""
    refuses_after: int | None = None
    """So many requests are still answered; then each gets the status 403, which no retry cures."""
    loses_answers: bool = False
    """Whether requests that write are carried out and answered by the status 503."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """The method and the key of each request."""
    connections: int = 0
    """How many are open."""
    lock: Lock = field(default_factory=Lock)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def setup(self) -> None:
        super().setup()
        with self.bucket.lock:
            self.bucket.connections += 1

    def finish(self) -> None:
        super().finish()
        with self.bucket.lock:
            self.bucket.connections -= 1

    def _answer(self) -> None:
        url = urlsplit(self.path)
        key = unquote(url.path).removeprefix(f"/{BUCKET}").removeprefix("/")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        bucket = self.bucket
        with bucket.lock:
            bucket.seen.append((self.command, key))
            status = self._refusal()
            if status:
                self._send(status, b"")
            else:
                self._carry_out(key, parse_qs(url.query), body)

    def _refusal(self) -> int:
        """Return the status of a request that is not carried out; 0 for none."""
        bucket = self.bucket
        if bucket.away_after is not None:
            bucket.away_after -= 1
            bucket.is_away = bucket.away_after < 0
        if bucket.refuses_after is not None:
            bucket.refuses_after -= 1
        if bucket.is_away:
            return 503
        return 403 if bucket.refuses_after is not None and bucket.refuses_after < 0 else 0

    def _carry_out(self, key: str, query: dict[str, list[str]], body: bytes) -> None:
        bucket = self.bucket
        if self.command == "PUT":
            is_taken = key in bucket.objects and self.headers.get("if-none-match") == "*"
            if not is_taken:
                bucket.objects[key] = body
            self._send(412 if is_taken else 503 if bucket.loses_answers else 200, b"")
        elif self.command == "POST":  # to delete several
            keys = [unescape(found) for found in _KEY.findall(body.decode())]
            for one in keys:
                bucket.objects.pop(one, None)
            inner = "".join(f"<Deleted><Key>{escape(one)}</Key></Deleted>" for one in keys)
            self._send(200, f"<DeleteResult>{inner}</DeleteResult>".encode())
        elif "list-type" in query:
            self._send(200, self._listing(query))
        elif key in bucket.objects:
            self._send(200, bucket.objects[key])
        else:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - the base's names

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        prefix, ends = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        keys, below = [], set()
        for key in sorted(self.bucket.objects):
            if key.startswith(prefix):
                name, end, _ = key[len(prefix) :].partition(ends) if ends else (key, "", "")
                if end:
                    below.add(f"{prefix}{name}{end}")
                else:
                    keys.append(key)
        found = [
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_TIME}</LastModified>"
            f'<ETag>"e"</ETag><Size>{len(self.bucket.objects[key])}</Size></Contents>'
            for key in keys
        ]
        found += [
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
            for one in sorted(below)
        ]
        inner = "".join(found)
        return (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{inner}</ListBucketResult>".encode()
        )

    def _send(self, status: int, raw: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.send_header("last-modified", _HTTP_TIME)
        self.send_header("etag", '"e"')
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # whoever asked was killed
                self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[tuple[dict[str, str], Bucket]]:
    """Provide the variables by which S3's clients find the service, and its bucket."""
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield (
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
                "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": "id",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
            },
            bucket,
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving() -> Iterator[Bucket]:
    """Provide the bucket, with the variables set in this process and those that it starts."""
    with served() as (variables, bucket), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield bucket
