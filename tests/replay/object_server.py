"""A scripted server with the part of S3's API that reads: lists, sizes, and ranges of bytes."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.serving import Answer, Server

_LISTED = (
    "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>x</ETag><Size>{}</Size></Contents>"
)
_WHEN = "2026-01-01T00:00:00.000Z"


class ObjectServer(Server):
    """Serves the files of a folder as the objects of any bucket."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_Answer)
        self.folder = folder
        self.requests: list[str] = []
        """The methods and paths that were asked for, with the range."""


class _Answer(Answer):
    server: ObjectServer

    def do_GET(self) -> None:  # noqa: N802 - the name of the method
        asked = urlsplit(self.path)
        query = parse_qs(asked.query)
        range_ = self.headers.get("range", "")
        self.server.requests.append(f"{self.command} {asked.path} {range_}".strip())
        if "list-type" in query:
            self._list(query.get("prefix", [""])[0])
            return
        path = self.server.folder / unquote(asked.path).split("/", 2)[2]
        if not path.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        raw = path.read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", range_)
        if found is None:
            self._send(200, raw)
            return
        start, end = int(found[1]), min(int(found[2]), len(raw) - 1)
        self._send(206, raw[start : end + 1], f"bytes {start}-{end}/{len(raw)}")

    do_HEAD = do_GET  # noqa: N815 - the name of the method

    def _list(self, prefix: str) -> None:
        folder = self.server.folder
        keys = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
        listed = [
            _LISTED.format(key, _WHEN, path.stat().st_size)
            for key, path in keys.items()
            if path.is_file() and key.startswith(prefix)
        ]
        text = f"<Name>b</Name><IsTruncated>false</IsTruncated>{''.join(listed)}"
        self._send(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    def _send(self, status: int, raw: bytes, range_: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.send_header("etag", '"x"')
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if range_:
            self.send_header("content-range", range_)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(raw)
