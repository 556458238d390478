"""What connections need beyond aiohttp: clients that have ended their side, stale pools, odd bytes.

Three things that HTTP allows and aiohttp loses: a client may end its side of a connection and still
wait for its answer, an upstream may close a connection that is about to be used again, and headers
may have bytes that are not UTF-8.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import http_writer
from aiohttp.http import HttpVersion11
from multidict import CIMultiDict

from policyctx.definitions.items import HostObject
from policyctx.proxy.limits import ProxyLimits

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.connector import Connection

_log = logging.getLogger(__name__)

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
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(slots=True)
class AnswerProgress:
    """How far the answer to a request has come."""

    probe: bytes = _INTERIM
    """What a client of HTTP/1.1 may be sent now, and which changes nothing of its answer."""


class Client(asyncio.Protocol):
    """A connection of a client, which hands all that happens to `handler`, the server's protocol.

    A client that ends its own side gets the answers to what it has sent. One that has gone looks
    the same, and is noticed by what is sent to it: a part of its answer, a probe before that, or
    the system's question whether it is there.
    """

    def __init__(
        self, handler: asyncio.Protocol, limits: ProxyLimits, lost: Callable[[], object]
    ) -> None:
        self._handler, self._limits, self._lost = handler, limits, lost
        self._transport: asyncio.Transport | None = None
        self._looks = 0
        self.has_asked = False
        """Whether a request has come."""
        self.request: web.Request | None = None
        """The request that is answered."""
        self.progress = AnswerProgress()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and close the connection if its first request is slow to come."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP server
        self._transport = transport
        self._handler.connection_made(transport)
        loop = asyncio.get_running_loop()
        loop.call_later(self._limits.header_seconds, self._close_unless_begun)

    def data_received(self, data: bytes) -> None:
        """Hand on what came."""
        self._handler.data_received(data)

    def pause_writing(self) -> None:
        """Hand on that the client reads slowly."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the client reads again."""
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on that the connection has ended."""
        self._transport = None
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

    def _close_unless_begun(self) -> None:
        if not self.has_asked and self._transport is not None:
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


class UpstreamLeftError(aiohttp.ClientConnectionError):
    """An upstream has closed a connection before the head of its answer was complete."""


class StaleError(UpstreamLeftError):
    """The connection had been used before, and nothing of an answer has come."""


class _Upstream(asyncio.Protocol):
    """A connection to an upstream, which knows whether it was used and answered."""

    def __init__(self, handler: asyncio.Protocol) -> None:
        self._handler = handler
        self.requests = 0
        self.has_answered = False

    def data_received(self, data: bytes) -> None:
        """Hand on a part of an answer."""
        self.has_answered = True
        self._handler.data_received(data)

    def pause_writing(self) -> None:
        """Hand on that the upstream reads slowly."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that the upstream reads again."""
        self._handler.resume_writing()

    def eof_received(self) -> bool | None:
        """Hand on that the upstream has ended its side."""
        return self._handler.eof_received()

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
                assert isinstance(found, asyncio.Protocol)  # noqa: S101 - of a TCP connection
                found = _Upstream(found)
                transport.set_protocol(found)
            found.requests += 1
            found.has_answered = False
            _asked.set(found)
        return connection


class _Answer(aiohttp.ClientResponse):
    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head of the answer; raises `StaleError` if the request may be sent again.

        It raises nothing for which aiohttp would send a request again, perhaps on a connection that
        is stale as well.
        """
        try:
            return await super().start(connection)
        except TimeoutError:
            raise
        except (aiohttp.ClientConnectionError, OSError) as error:
            asked = _asked.get()
            is_stale = asked is not None and asked.requests > 1 and not asked.has_answered
            kind = StaleError if is_stale else UpstreamLeftError
            raise kind(type(error).__name__) from error


def client_session(limits: ProxyLimits, *, fresh: bool = False) -> aiohttp.ClientSession:
    """Return a session whose requests may raise `StaleError`.

    Without a limit to connections: a stream may take long, and every client waits for its own. If
    it is `fresh`, each request has a new connection.
    """
    return aiohttp.ClientSession(
        auto_decompress=False,
        connector=_Connector(limit=0, force_close=fresh),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_field_size=2**16,
        max_line_size=2**16,
        read_bufsize=2**18,
        response_class=_Answer,
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_seconds),
    )


def _head(first_line: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a message with the bytes that its text was decoded from."""
    parts = [first_line, *(part for pair in headers.items() for part in pair)]
    if any(map(_CONTROL.search, parts)):
        raise ValueError("a control character in a header")
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
