"""What connections need beyond aiohttp: large heads, clients that ended, stale pools, odd bytes.

aiohttp bounds each header, but not a head. And HTTP allows three things that aiohttp loses: a
client may end its side of a connection and still wait for its answer, an upstream may close a
connection that is about to be used again, and headers may have bytes that are not UTF-8.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
from aiohttp import http_writer
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict

from policyctx.definitions.items import HostObject
from policyctx.proxy.limits import ProxyLimits

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.connector import Connection

_log = logging.getLogger(__name__)

_Parsed: TypeAlias = "tuple[list[tuple[RawRequestMessage, aiohttp.StreamReader]], bool, bytes]"

# A client that has gone resets the connection when it is sent one of these. It takes an interim
# response before its answer, whether it expects it or not (RFC 9110, 15.2), and zeros before the
# size of a chunk (RFC 9112, 7.1).
_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ZERO = b"0"
_LOOK_SECONDS = 0.1
# For a client that has gone without a word: the system asks it so often whether it is there.
_ASK_SECONDS = 5
# In `aiohttp.http_writer`; not public.
_WRITER = "_serialize_headers"
_TRIED = ("GET / HTTP/1.1", CIMultiDict({"A": "b"}))
# What would begin another header for some readers. Other control characters pass, as they do
# between a client and its upstream.
_ENDING = re.compile(r"[\x00\r\n]")
# Of the head of an answer, which is billed however long it is.
_FIELD_BYTES, _FIELDS = 2**20, 10_000
# What follows in an error of aiohttp may have bytes of the message.
_QUOTED = re.compile(r":?\n|: (?:b|'|\")|(?<=line) ['\"]")


@dataclass(slots=True)
class AnswerProgress:
    """How far the answer to a request has come."""

    probe: bytes = _INTERIM
    """What a client of HTTP/1.1 may be sent now, and which changes nothing of its answer."""


class HeadParser(HttpRequestParser):
    """Reads requests; raises `HttpProcessingError` with status 431 for a head that is too large.

    So it does for trailers, and for what is around the chunks of a body. aiohttp bounds each header
    and their number alone, and one head may have 8 MB.
    """

    def __init__(self, most: int, *of_request: HostObject, **options: HostObject) -> None:
        super().__init__(*of_request, **options)
        self._most, self._newest = most, EMPTY_PAYLOAD
        self.held = 0
        """The bytes since those with which a head or a part of a body came."""

    def feed_data(self, data: bytes, *_: object, **__: object) -> _Parsed:
        """Return the requests whose heads are complete now, and what aiohttp returns with them."""
        if self.held > self._most:
            return [], False, b""
        body = self._newest
        before = body.total_bytes, body.is_eof()
        found = super().feed_data(data)
        is_body = (body.total_bytes, body.is_eof()) != before
        self.held = 0 if found[0] or is_body else self.held + len(data)
        largest = max((_size(head) for head, _ in found[0]), default=self.held)
        if largest > self._most:
            self.held = largest
            text = f"Got more than {self._most} bytes in a head"
            error = HttpProcessingError(code=431, message=text)
            if not body.is_eof():  # whoever reads it would wait for its end
                body.set_exception(error)
            raise error
        if found[0]:
            self._newest = found[0][-1][1]
        return found


def _size(head: RawRequestMessage) -> int:
    return len(head.path) + sum(len(name) + len(value) + 4 for name, value in head.raw_headers)


class Client(asyncio.Protocol):
    """A connection of a client, which hands all that happens to `handler`, the server's protocol.

    A client that ends its own side gets the answers to what it has sent. One that has gone looks
    the same, and is noticed by what is sent to it: a part of its answer, a probe before that, or
    the system's question whether it is there.
    """

    def __init__(
        self,
        handler: asyncio.Protocol,
        parser: HeadParser,
        limits: ProxyLimits,
        lost: Callable[[], object],
    ) -> None:
        self._handler, self._parser, self._limits, self._lost = handler, parser, limits, lost
        self._transport: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None
        self._looks = 0
        self.request: web.Request | None = None
        """The request that is answered."""
        self.progress = AnswerProgress()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and close the connection if the head of its first request is slow to come."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP server
        self._transport = transport
        self._handler.connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Hand on what came, and close the connection if the rest of a head is slow to come."""
        self._handler.data_received(data)
        if self._parser.held:
            if self._late is None:
                self._wait_for_head()
        elif self._late is not None:
            self._late.cancel()
            self._late = None

    def pause_writing(self) -> None:
        """Hand on that the client reads slowly."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the client reads again."""
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on that the connection has ended."""
        self._transport = None
        if self._late is not None:
            self._late.cancel()
        self._handler.connection_lost(exc)
        self._lost()

    def eof_received(self) -> bool:
        """Keep the connection open until its requests are answered."""
        if self._transport is None:
            return False
        found = self._transport.get_extra_info("socket")
        for name, value in (("IDLE", _ASK_SECONDS), ("INTVL", _ASK_SECONDS), ("CNT", 3)):
            if option := getattr(socket, f"TCP_KEEP{name}", None):
                found.setsockopt(socket.IPPROTO_TCP, option, value)
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
        return True

    def _wait_for_head(self) -> None:
        self._late = asyncio.get_running_loop().call_later(self._limits.header_seconds, self._end)

    def _end(self) -> None:
        if self.request is not None:
            self._wait_for_head()  # until the request before is answered
        elif self._transport is not None:
            self._transport.abort()

    def _look(self) -> None:
        """Close a connection on which nothing comes any more, when nobody waits for an answer."""
        if (transport := self._transport) is None:
            return
        request, progress = self.request, self.progress
        found = transport.get_extra_info("socket")
        if found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            transport.abort()
            return
        if request is None or not request.content.is_eof():
            # It has no request, or only the beginning of one. The next one may be about to start.
            self._looks += 1
            if self._looks > 1:
                transport.close()
                return
        else:
            self._looks = 0
            if request.version >= HttpVersion11 and progress.probe:
                transport.write(progress.probe)
                progress.probe = b""
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)


def wrong_with(error: Exception) -> str:
    """Return what is wrong with the HTTP of a message, without any of its bytes."""
    cause = error if isinstance(error, HttpProcessingError) else error.__cause__
    if not isinstance(cause, HttpProcessingError) or isinstance(cause, InvalidURLError):
        return type(cause or error).__name__
    return _QUOTED.split(cause.message)[0].rstrip(".")


class UpstreamLeftError(aiohttp.ClientConnectionError):
    """An upstream has closed a connection before the head of its answer was complete."""


class StaleError(UpstreamLeftError):
    """The connection had been used before, and nothing of an answer has come."""


def no_answer(error: aiohttp.ClientError) -> str:
    """Return why an upstream gave no answer, without any text of the error."""
    if isinstance(error, UpstreamLeftError):
        return "the upstream has closed the connection before it answered"
    if isinstance(error, TimeoutError):
        return "the upstream cannot be reached: no connection was made in time"
    match getattr(error, "os_error", None):
        case socket.gaierror(errno=socket.EAI_NONAME):
            why = "its host is not known"
        case socket.gaierror(strerror=str(text)):
            why = text
        case ssl.SSLError(reason=reason):
            why = f"TLS failed: {reason}"
        case OSError(errno=int(number)):
            why = os.strerror(number)
        case _:
            why = type(error).__name__
    return f"the upstream cannot be reached: {why}"


class _Upstream(asyncio.Protocol):
    """A connection to an upstream, which knows whether it was used and answered."""

    def __init__(self, handler: ResponseHandler) -> None:
        self._handler = handler
        self.requests = 0
        self.has_answered = False
        self.content: aiohttp.StreamReader | None = None
        """The body of the answer, once its head is there."""

    def data_received(self, data: bytes) -> None:
        """Hand on a part of an answer."""
        self.has_answered = True
        self._handler.data_received(data)
        self.end_what_is_wrong()

    def end_what_is_wrong(self) -> None:
        """End a body whose chunks are wrong; aiohttp would wait for ever for its rest."""
        content, error = self.content, self._handler.exception()
        if content is not None and not content.is_eof() and isinstance(error, HttpProcessingError):
            wrong = aiohttp.ClientPayloadError()
            wrong.__cause__ = error
            content.set_exception(wrong)

    def pause_writing(self) -> None:
        """Hand on that the upstream reads slowly."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the upstream reads again."""
        self._handler.resume_writing()

    def eof_received(self) -> None:
        """Hand on that the upstream has ended its side."""
        self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on that the connection has ended."""
        self._handler.connection_lost(exc)


_asked: ContextVar[_Upstream | None] = ContextVar("asked", default=None)
"""The connection on which the request of this task goes out."""


class _Connector(aiohttp.TCPConnector):
    async def connect(self, *given: HostObject, **options: HostObject) -> Connection:
        """Return a connection whose protocol is an `_Upstream`."""
        connection = await super().connect(*given, **options)
        _asked.set(None)
        if (transport := connection.transport) is not None:
            found = transport.get_protocol()
            if not isinstance(found, _Upstream):
                assert isinstance(found, ResponseHandler)  # noqa: S101 - of a client
                found = _Upstream(found)
                transport.set_protocol(found)
            found.requests += 1
            found.has_answered, found.content = False, None
            _asked.set(found)
        return connection


class _Answer(aiohttp.ClientResponse):
    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head of the answer; raises `StaleError` if the request may be sent again.

        It raises nothing for which aiohttp would send a request again, perhaps on a connection that
        is stale as well.
        """
        asked = _asked.get()
        try:
            started = await super().start(connection)
        except TimeoutError:
            raise
        except (aiohttp.ClientConnectionError, OSError) as error:
            is_stale = asked is not None and asked.requests > 1 and not asked.has_answered
            kind = StaleError if is_stale else UpstreamLeftError
            raise kind(type(error).__name__) from error
        if asked is not None:
            asked.content = self.content
            asked.end_what_is_wrong()
        return started


def client_session(limits: ProxyLimits, *, fresh: bool = False) -> aiohttp.ClientSession:
    """Return a session whose requests may raise `StaleError`.

    Without a limit to connections: a stream may take long, and every client waits for its own. If
    it is `fresh`, each request has a new connection.
    """
    options: dict[str, Any] = {"max_headers": _FIELDS}
    if not signature(aiohttp.ClientSession).parameters.keys() >= options.keys():
        options = {}  # before 3.14 there is no bound
    return aiohttp.ClientSession(
        **options,
        auto_decompress=False,
        connector=_Connector(limit=0, force_close=fresh),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_field_size=_FIELD_BYTES,
        max_line_size=_FIELD_BYTES,
        read_bufsize=2**18,
        response_class=_Answer,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_seconds),
    )


def _head(first_line: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a message with the bytes that its text was decoded from."""
    parts = [first_line, *(part for pair in headers.items() for part in pair)]
    if any(map(_ENDING.search, parts)):
        raise ValueError("the end of a line in a header")
    lines = [first_line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def keep_header_bytes() -> None:
    """Let heads be written with the bytes that they were read with.

    aiohttp decodes what is not UTF-8 to surrogates, and leaves these out when it writes a head. It
    has no public way to write them. Where its own way is another one than expected, it stays.
    """
    try:
        is_known = getattr(http_writer, _WRITER)(*_TRIED) == _head(*_TRIED)
    except (AttributeError, TypeError, ValueError):
        is_known = False
    if is_known:
        setattr(http_writer, _WRITER, _head)
    else:
        text = (
            "bytes of headers that are not UTF-8 are lost: aiohttp %s has another way to write them"
        )
        _log.warning(text, aiohttp.__version__)
