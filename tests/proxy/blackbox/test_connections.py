"""What sockets show of the connections on both sides: ends, stale connections, bytes of headers."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

import pytest

from tests.conversations import session_of
from tests.proxy.blackbox.proxies import EAGER, Proxy, proxied

pytestmark = pytest.mark.slow
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BODY = b'{"model":"m","messages":[{"role":"user","content":"Hello"}]}'
LARGE = BODY.replace(b"Hello", b"Hello " * 100_000)
CLOSE = b"Connection: close\r\n"
CLOSED = b"the upstream has closed the connection before it answered"
ENDS = b"\1\0\0\0\0\0\0\0"
"""Of SO_LINGER: a connection that is closed is reset."""
KINDS = [
    ("messages", b"POST", b"/v1/messages", BODY),
    ("count", b"POST", b"/v1/messages/count_tokens", BODY),
    ("large", b"POST", b"/v1/chat/completions", LARGE),
    ("another path", b"POST", b"/v1/embeddings", b'{"input":"a"}'),
    ("upload", b"POST", b"/v1/files", b"x" * 1_000_000),
    ("get", b"GET", b"/v1/models", b""),
    ("delete", b"DELETE", b"/v1/files/f", b""),
]
REQUESTS = [pytest.param(*one, id=name) for name, *one in KINDS]


class RawUpstream:
    """Reads requests from sockets, and answers with what `answer` sends.

    `answer` gets the socket and the number of the request on its connection, from 1 on; the
    connection is closed unless it returns True.
    """

    def __init__(self) -> None:
        self.answer: Callable[[socket.socket, int], bool] = late
        self.open: set[socket.socket] = set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.seen: list[tuple[int, bytes, bytes]] = []
        """The number of the request on its connection, its head and its body."""
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        number, stays = 0, True
        self.open.add(connection)
        with connection, suppress(OSError), connection.makefile("rb") as reader:
            while stays and (head := _head(reader)):
                number += 1
                self.seen.append((number, head, _body(reader, head)))
                stays = self.answer(connection, number)
        self.open.discard(connection)

    def begin(self, answer: Callable[[socket.socket, int], bool]) -> None:
        """Forget what has come, end all connections, and answer by this from now on."""
        for connection in [*self.open]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        time.sleep(0.2)
        self.answer = answer
        self.seen.clear()


def _head(reader: BinaryIO) -> bytes:
    head = b""
    while (line := reader.readline()).strip():
        head += line
    return head


def _body(reader: BinaryIO, head: bytes) -> bytes:
    if length := re.search(rb"(?i)content-length: (\d+)", head):
        return reader.read(int(length[1]))
    found = b""
    if b"chunked" in head.lower():
        while size := int(reader.readline(), 16):
            found += reader.read(size)
            reader.readline()
        reader.readline()
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawUpstream, Proxy]]:
    made = RawUpstream()
    with proxied(made.url, tmp_path_factory.mktemp("raw"), policy=EAGER) as running:
        yield made, running
    made.listening.shutdown(socket.SHUT_RDWR)
    made.listening.close()


@pytest.fixture
def api(pair: tuple[RawUpstream, Proxy]) -> RawUpstream:
    return pair[0]


@pytest.fixture
def proxy(pair: tuple[RawUpstream, Proxy]) -> Proxy:
    return pair[1]


def request(method: bytes, path: bytes, body: bytes = b"", headers: bytes = CLOSE) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%b %b HTTP/1.1\r\nHost: h\r\n%b%b\r\n%b" % (method, path, length, headers, body)


def answered(port: int, raw: bytes, *, ends: bool = False) -> bytes:
    """Send bytes, end the own side of the connection if so, and return all that comes.

    An interim response may come before an answer to a client that has ended its side.
    """
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(raw)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                got += piece
    return got


def statuses(raw: bytes) -> list[int]:
    """Return the statuses of the answers, without those of interim responses."""
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([2-5]\d\d) ", raw)]


# Upstreams that close a connection without a word


def closing_after_the_answer(connection: socket.socket, _: int) -> bool:
    connection.sendall(OK)
    return False


def closing_at_the_second_request(connection: socket.socket, number: int) -> bool:
    if number == 1:
        connection.sendall(OK)
    return number == 1


def resetting_at_the_second_request(connection: socket.socket, number: int) -> bool:
    if number > 1:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ENDS)
    return closing_at_the_second_request(connection, number)


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
@pytest.mark.parametrize(
    "closing",
    [
        closing_after_the_answer,
        closing_at_the_second_request,
        resetting_at_the_second_request,
    ],
)
def test_a_request_on_a_connection_that_the_upstream_has_closed_is_sent_again(
    pair: tuple[RawUpstream, Proxy],
    closing: Callable[[socket.socket, int], bool],
    method: bytes,
    path: bytes,
    body: bytes,
) -> None:
    api, proxy = pair
    api.begin(closing)
    got = [answered(proxy.port, request(method, path, body)) for _ in range(10)]
    assert [statuses(one) for one in got] == [[200]] * 10
    assert {sent for _, _, sent in api.seen} == {body}
    assert len([number for number, _, _ in api.seen if number == 1]) >= 10 / 2


@pytest.mark.parametrize("begun", [b"HTTP/1.1 2", b"HTTP/1.1 100 Continue\r\n\r\n", OK[:-1]])
def test_a_request_of_which_a_part_was_answered_is_not_sent_again(
    api: RawUpstream, proxy: Proxy, begun: bytes
) -> None:
    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(OK if number == 1 else begun)
        return number == 1

    api.begin(answer)
    for _ in range(2):
        got = answered(proxy.port, request(b"POST", b"/v1/messages", BODY))
    assert [number for number, _, _ in api.seen] == [1, 2]
    assert (CLOSED in got) == (begun != OK[:-1])


def test_a_request_on_a_new_connection_is_sent_once(api: RawUpstream, proxy: Proxy) -> None:
    api.begin(lambda _, __: False)
    got = answered(proxy.port, request(b"GET", b"/v1/models"))
    assert (statuses(got), CLOSED in got) == ([502], True)
    assert len(api.seen) == 1
    assert CLOSED.decode() in proxy.logged


def test_an_edited_request_is_sent_again_as_it_was_edited(api: RawUpstream, proxy: Proxy) -> None:
    texts = [f"line {i}\n" * 40 for i in range(4)]
    api.begin(closing_at_the_second_request)
    for n in (2, 3, 4):
        raw = json.dumps({"model": "m", "messages": session_of(*texts[:n])}).encode()
        assert statuses(answered(proxy.port, request(b"POST", b"/v1/messages", raw))) == [200]
    again = [body for number, _, body in api.seen if number == 2]
    assert again
    bodies = [body for number, _, body in api.seen if number == 1]
    assert set(again) <= set(bodies)
    assert all(b"line 0" not in body for body in bodies)


# Clients that end their side


def late(connection: socket.socket, _: int) -> bool:
    time.sleep(0.5)
    connection.sendall(OK)
    return True


def in_pieces(connection: socket.socket, _: int) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(4):
        time.sleep(0.2)
        connection.sendall(b"3\r\nok \r\n")
    connection.sendall(b"0\r\n\r\n")
    return True


@pytest.mark.parametrize("answer", [late, in_pieces])
def test_a_client_that_has_ended_its_side_gets_its_answers(
    api: RawUpstream, proxy: Proxy, answer: Callable[[socket.socket, int], bool]
) -> None:
    kept = request(b"POST", b"/v1/messages", BODY, b"")
    chunked = b"Transfer-Encoding: chunked\r\n"
    piece = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    asked = {
        kept: 1,
        request(b"POST", b"/v1/messages", BODY): 1,
        request(b"POST", b"/v1/responses", b"", chunked) + piece: 1,
        request(b"POST", b"/v1/embeddings", BODY, b""): 1,
        request(b"GET", b"/v1/models"): 1,
        kept + kept + request(b"GET", b"/v1/models", headers=b""): 3,
        kept.replace(b"HTTP/1.1", b"HTTP/1.0"): 1,
    }
    api.begin(answer)
    for raw, count in asked.items():
        got = answered(proxy.port, raw, ends=True)
        assert statuses(got) == [200] * count, raw[:60]
        assert len(re.findall(b"ok", got)) == count * (1 if answer is late else 4)


@pytest.mark.parametrize("raw", [b"", b"GET / HT", request(b"POST", b"/v1/messages", BODY)[:-5]])
def test_a_connection_that_ends_in_the_middle_of_a_request_is_closed(
    api: RawUpstream, proxy: Proxy, raw: bytes
) -> None:
    api.begin(late)
    begun = time.monotonic()
    assert answered(proxy.port, raw, ends=True) == b""
    assert time.monotonic() - begun < 5
    assert api.seen == []


def test_a_client_that_ends_its_side_while_it_is_answered_gets_the_rest(
    api: RawUpstream, proxy: Proxy
) -> None:
    api.begin(in_pieces)
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection,
    ):
        connection.sendall(request(b"POST", b"/v1/messages", BODY))
        got = connection.recv(1)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65_536):
            got += piece
    assert got.count(b"ok ") == 4
    assert got.endswith(b"0\r\n\r\n")


def after_a_pause(connection: socket.socket, number: int) -> bool:
    """Answer in pieces, of the first request one of them late; that request has no length."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok \r\n")
    time.sleep(7 if number == 1 else 0)
    connection.sendall(b"3\r\nok \r\n0\r\n\r\n")
    return True


def with_a_length_after_a_pause(connection: socket.socket, number: int) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nok ")
    time.sleep(7 if number == 1 else 0)
    connection.sendall(b"ok ")
    return True


@pytest.mark.parametrize("answer", [after_a_pause, with_a_length_after_a_pause])
def test_a_client_that_has_ended_its_side_gets_an_answer_that_pauses(
    api: RawUpstream, proxy: Proxy, answer: Callable[[socket.socket, int], bool]
) -> None:
    kept = request(b"POST", b"/v1/messages", BODY, b"")
    asked = [
        kept,
        request(b"POST", b"/v1/embeddings", BODY),
        kept.replace(b"HTTP/1.1", b"HTTP/1.0"),
        kept + request(b"GET", b"/v1/models"),
    ]
    api.begin(answer)
    with ThreadPoolExecutor() as threads:
        for raw, got in zip(asked, threads.map(read, [proxy.port] * 4, asked), strict=True):
            assert got == [b"ok ok "] * raw.count(b"Host:"), raw


def read(port: int, raw: bytes) -> list[bytes]:
    """Send requests, end the own side, and return the bodies of the answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(raw)
        time.sleep(0.05)
        connection.shutdown(socket.SHUT_WR)
        file = connection.makefile("rb")
        return [body_read(file) for _ in range(raw.count(b"Host:"))]


def body_read(file: BinaryIO) -> bytes:
    while b" 100 " in (head := _head(file)):
        pass
    if b"Content-Length" in head or b"chunked" in head:
        return _body(file, head)
    return file.read()


def test_a_client_that_has_ended_its_side_notices_that_its_answer_is_cut(
    api: RawUpstream, proxy: Proxy
) -> None:
    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok \r\n")
        time.sleep(1)
        return False

    api.begin(answer)
    with closing(HTTPConnection("127.0.0.1", proxy.port, timeout=30)) as client:
        client.request("POST", "/v1/messages", BODY)
        client.sock.shutdown(socket.SHUT_WR)
        with client.getresponse() as response, pytest.raises((IncompleteRead, ConnectionError)):
            response.read()


# Clients that leave


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0])
@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("begins", [False, True])
def test_a_client_that_leaves_ends_its_request_to_the_upstream(
    api: RawUpstream,
    proxy: Proxy,
    begins: bool,
    resets: bool,
    kind: tuple[str, bytes, bytes, bytes],
) -> None:
    """Whatever it had asked for would be made, and billed, for nobody."""
    asked, ended = Event(), Event()

    def answer(connection: socket.socket, _: int) -> bool:
        if begins:
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        asked.set()
        connection.settimeout(30)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        ended.set()
        return False

    api.begin(answer)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection:
        connection.sendall(request(*kind[1:], headers=b""))
        assert asked.wait(10)
        if begins:
            assert connection.recv(65_536)
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ENDS)
    assert ended.wait(2)


def test_a_client_of_http_1_0_that_has_ended_its_side_gets_its_answer_alone(
    api: RawUpstream, proxy: Proxy
) -> None:
    api.begin(late)
    raw = request(b"GET", b"/v1/models").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert answered(proxy.port, raw, ends=True).count(b"HTTP/1.") == 1


# Bytes of headers


@pytest.mark.parametrize(
    "value", [b"caf\xe9", b"caf\xc3\xa9", b"\xff\xfe", b"\xed\xa0\x80", b"a\tb", b"\x80" * 300]
)
def test_the_bytes_of_a_header_pass_in_both_directions(
    api: RawUpstream, proxy: Proxy, value: bytes
) -> None:
    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 Tr\xe8s bien\r\nX-Said: %b\r\n" % value + OK[17:])
        return True

    asked = b"X-Asked: %b\r\nx-api-key: k%b\r\n%b" % (value, value, CLOSE)
    api.begin(answer)
    for method, path, body in ((b"POST", b"/v1/messages", BODY), (b"GET", b"/v1/models", b"")):
        got = answered(proxy.port, request(method, path, body, asked))
        assert got.startswith(b"HTTP/1.1 200 Tr\xe8s bien\r\n")
        assert b"\r\nX-Said: %b\r\n" % value in got
        _, head, _ = api.seen[-1]
        assert b"\r\nX-Asked: %b\r\n" % value in head
        assert b"\r\nx-api-key: k%b\r\n" % value in head
    assert "\ufffd" not in proxy.logged


# aiohttp with another way to write heads than is known, from the start of the process on.
CHANGED = """\
from aiohttp import http_writer
before = http_writer._serialize_headers
http_writer._serialize_headers = lambda line, headers: before(line + " ", headers)
"""


def test_with_an_unknown_way_to_write_headers_only_bytes_that_are_not_utf_8_are_lost(
    api: RawUpstream, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CHANGED)
    changed = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    api.begin(closing_at_the_second_request)
    with proxied(api.url, tmp_path / "proxy", policy=EAGER, environment=changed) as proxy:
        asked = b"X-Asked: caf\xc3\xa9\r\nX-Odd: caf\xe9\r\n" + CLOSE
        raw = request(b"POST", b"/v1/messages", BODY, asked)
        got = [answered(proxy.port, raw) for _ in range(4)]
        assert "headers that are not UTF-8 are lost" in proxy.logged
    assert [statuses(one) for one in got] == [[200]] * 4
    assert all(b"X-Asked: caf\xc3\xa9\r\n" in head for _, head, _ in api.seen)
    assert all(b"X-Odd: caf\r\n" in head for _, head, _ in api.seen)


def test_a_header_cannot_hold_a_second_one(api: RawUpstream, proxy: Proxy) -> None:
    """An upstream whose header has a bare line feed or a null adds no header of its own."""

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Said: a\x00b\rX-Bad: 1\r\n" + OK[17:])
        return False

    api.begin(answer)
    got = answered(proxy.port, request(b"GET", b"/v1/models"))
    assert b"X-Bad" not in got
    assert statuses(got) == [502]


# Heads and bodies that are large, odd or wrong


@pytest.mark.parametrize("path", [b"/v1/messages", b"/v1/models"])
@pytest.mark.parametrize(
    "lines",
    [
        b"X-Said: a\x01b\x1bc\x7fd\r\n",
        b"Set-Cookie: \x08=\x0b\r\n",
        b"X-Long: " + b"a" * 70_000 + b"\r\n",
        b"X-Long: " + b"a" * 900_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % i for i in range(2_000)),
        b"".join(b"X-%d: %b\r\n" % (i, b"a" * 2_000) for i in range(100)),
    ],
)
def test_the_head_of_an_answer_passes_whatever_its_size_and_characters(
    api: RawUpstream, proxy: Proxy, lines: bytes, path: bytes
) -> None:
    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 \x02K\r\n" + lines + OK[17:])
        return True

    api.begin(answer)
    got = answered(proxy.port, request(b"POST", path, BODY))
    assert got.startswith(b"HTTP/1.1 200 \x02K\r\n")
    assert lines in got


WRONG = {
    b"HTTP/1.1 200 OK\r\nX: secret\x00\r\n\r\n": "Invalid HTTP header",
    b"HTTP/1.1 200 OK\r\nsecret\r\n\r\n": "Invalid header token",
    b"HTTP/1.1 200 OK\r\nX: a\rsecret: b\r\n\r\n": "Missing expected LF after header value",
    b"HTTP/1.1 200 OK\r\nX: secret" + b"a" * 2**20: "Got more than 1048576 bytes when reading",
    b"HTTP/1.1 200 OK\r\n" + b"secret: a\r\n" * 20_000: "Too many headers received",
    b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 5\r\n\r\nsecret": "Duplicate",
    b"HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n": "Invalid character in Content-Length",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret": "Invalid character in chunk",
    b"secret\r\n\r\n": "Bad status line",
    b"HTTP/1.1 secret\r\n\r\n": "Bad status line",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_is_not_http_is_a_bad_gateway_that_says_what_is_wrong(
    api: RawUpstream, proxy: Proxy, wrong: bytes
) -> None:
    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(wrong)
        connection.recv(1)
        return False

    api.begin(answer)
    got = answered(proxy.port, request(b"POST", b"/v1/messages", BODY))
    assert statuses(got) == [502]
    said = f"the answer of the upstream cannot be read: {WRONG[wrong]}"
    assert said.encode() in got
    assert said in proxy.logged
    assert "secret" not in proxy.logged


@pytest.mark.parametrize("pause", [0, 0.3])
@pytest.mark.parametrize(
    ("rest", "what"),
    [
        (b"secret\r\n", "Invalid character in chunk size"),
        (b"2\r\noksecret", "Expected LF after chunk data"),
        (b"ffffffffffffffffffff\r\n", "Chunk size overflow"),
        (b"2\r\no", "Not enough data to satisfy transfer length header"),
    ],
)
def test_an_answer_with_wrong_chunks_is_cut_and_the_log_says_why(
    api: RawUpstream, proxy: Proxy, rest: bytes, what: str, pause: float
) -> None:
    begun = Event()

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        begun.wait(10)
        time.sleep(pause)
        connection.sendall(rest)
        if what.startswith("Not"):
            return False
        connection.recv(1)
        return True

    api.begin(answer)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
        connection.sendall(request(b"POST", b"/v1/messages", BODY, b""))
        got = connection.recv(65_536)
        begun.set()
        with suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                got += piece
    assert statuses(got) == [200]
    assert not got.endswith(b"0\r\n\r\n")
    assert f"in the middle of a response: {what}" in proxy.logged
    assert "secret" not in proxy.logged


CHUNKED_BODY = request(b"POST", b"/v1/messages", b"", b"Transfer-Encoding: chunked\r\n") + (
    b"2\r\n{}\r\n"
)
REFUSED = {
    b"POST / HTTP/1.1\r\nHost: h\r\nX: secret\x01\r\n\r\n": (400, "Invalid header value char"),
    b"POST / HTTP/1.1\r\nHost: h\r\nX: secret\n\r\n": (
        400,
        "Missing expected CR after header value",
    ),
    b"POST / HTTP/1.1\r\nHost: h\r\nX: a\r\n secret\r\n": (
        400,
        "Unexpected whitespace after header",
    ),
    b"POST /secret\x01 HTTP/1.1\r\nHost: h\r\n\r\n": (400, "InvalidURLError"),
    b"POST / HTTP/1.1\r\nX: secret\r\n\r\n": (400, "Missing 'Host' header in request"),
    b"POST / HTTP/1.1\r\nHost: h\r\nX: secret" + b"a" * 70_000: (431, "Got more than 65536 bytes"),
    b"POST /secret" + b"a" * 70_000: (431, "Got more than 65536 bytes"),
    b"POST / HTTP/1.1\r\n" + b"secret: a\r\n" * 200: (431, "Too many headers received"),
    b"POST / HTTP/1.1\r\nHost: h\r\n"
    + b"".join(b"secret-%d: %b\r\n" % (i, b"a" * 9_000) for i in range(30)): (
        431,
        "Got more than 131072 bytes",
    ),
    request(
        b"GET", b"/secret", b"", b"".join(b"A%d: %b\r\n" % (i, b"a" * 9_000) for i in range(15))
    ): (
        431,
        "Got more than 131072 bytes",
    ),
    CHUNKED_BODY + b"0\r\n" + b"".join(b"A%d: %b\r\n" % (i, b"a" * 9_000) for i in range(30)): (
        431,
        "Got more than 131072 bytes",
    ),
    # Which of the two limits is met first depends on how the bytes arrive.
    CHUNKED_BODY + b"1;secret=" + b"a" * 600_000: (431, "Got more than"),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": (
        400,
        "Received HTTPS traffic on an HTTP port",
    ),
    b"secret / HTTP/1.1\r\nHost: h\r\n\r\n": (400, "Invalid method encountered"),
}


@pytest.mark.parametrize("raw", REFUSED)
def test_a_request_that_is_not_http_is_refused_and_the_log_says_why(
    api: RawUpstream, proxy: Proxy, raw: bytes
) -> None:
    status, what = REFUSED[raw]
    api.begin(late)
    got = answered(proxy.port, raw)
    assert statuses(got) == [status]
    head, _, said = got.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert json.loads(said)["error"]["message"].startswith("policyctx proxy: the request cannot be")
    assert what in proxy.logged
    assert "secret" not in proxy.logged
    assert api.seen == []
