"""`Forwarder`: sends requests to an upstream, and its responses back byte for byte as they come."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import error as ZlibError  # noqa: N812 - an exception's name

import aiohttp
import zstandard
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from policyctx.proxy.connections import ZERO, AnswerProgress, StaleError, client_session, wrong_with
from policyctx.proxy.encodings import decoder, readable
from policyctx.proxy.limits import ProxyLimits
from policyctx.tokens.usage import BodyUsage

_log = logging.getLogger(__name__)

# RFC 9110, 7.6.1, and what is about this connection alone.
_HOP_BY_HOP = frozenset(
    {
        "connection", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
# Headers for the proxy itself.
OWN = "x-policyctx-"
_PIECE = 2**18
# The statuses of a request that is wrong in itself, and how much of the error is read.
_REFUSING = (400, 413)
_MOST_REFUSAL = 2**16
# The size of a chunk that does not come.
_MISSING = b"1\r\n"
# aiohttp would add these to a response that lacks them.
_ADDED = ("Content-Type", "Date", "Server")


class _OfUpstream:
    """What is known of a response of an upstream."""

    given: Mapping[str, str]
    """Its headers as they came."""
    was_cut = False
    """Whether the upstream ended in the middle of it."""


class _Whole(_OfUpstream, web.Response):
    """A response whose body had come to its end when its headers were read."""


class _Streamed(_OfUpstream, web.StreamResponse):
    """A response whose pieces are sent as they come."""


@dataclass(slots=True)
class Outgoing:
    """A request for an upstream."""

    url: str
    body: bytes | None
    """The body; None to stream the body of the request that came."""
    begun: Sequence[bytes] = ()
    """What of a streamed body was read already."""
    is_decoded: bool = False
    """Whether the body has no content encoding any more."""
    observe: Callable[[object], None] | None = None
    """Called with the usage in the response; None if nobody wants it."""
    again: Callable[[bytes], Awaitable[bytes | None]] | None = None
    """Called with the body of a refusal; returns the body to send once more, None to pass it."""
    sent: Callable[[], None] | None = None
    """Called when the response begins, and the body is not needed any more."""


class Forwarder:
    """Forwards requests over one pool of connections."""

    def __init__(self, limits: ProxyLimits) -> None:
        self._limits = limits
        self._pooled, self._fresh = client_session(limits), client_session(limits, fresh=True)

    async def close(self) -> None:
        """Close all connections."""
        await self._pooled.close()
        await self._fresh.close()

    async def forward(
        self, request: web.Request, outgoing: Outgoing, progress: AnswerProgress
    ) -> _Whole | _Streamed:
        """Send a request and stream the response to its client.

        Raises `aiohttp.ClientError` and `TimeoutError` as long as the response has not begun. When
        this is cancelled, since the client has gone, the request to the upstream is too.
        """
        upstream = await self._sent(request, outgoing)
        if outgoing.again is None or upstream.status not in _REFUSING:
            async with upstream:
                return await _answered(request, upstream, outgoing.observe, progress)
        async with upstream:
            refusal = await _refusal(upstream.content)
            outgoing.body = await outgoing.again(_decoded(refusal, upstream))
            if outgoing.body is None:
                return await _answered(request, upstream, outgoing.observe, progress, begun=refusal)
        outgoing.is_decoded = True
        async with await self._sent(request, outgoing) as upstream:
            return await _answered(request, upstream, outgoing.observe, progress)

    async def _sent(self, request: web.Request, outgoing: Outgoing) -> aiohttp.ClientResponse:
        """Send a request, and return the response when its headers are there."""
        headers = _headers(request, outgoing)
        body = outgoing.body
        if body is None and not outgoing.begun and request.content.is_eof():  # all of it is here
            body = await request.content.read()

        url = URL(outgoing.url, encoded=True)

        async def sent(session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
            data: AsyncIterator[bytes] | AsyncIterator[memoryview] | bytes | None
            if body is None:
                data = _begun(outgoing.begun, pieces_in_time(request.content, self._limits))
            else:
                data = _pieces(body) if len(body) > _PIECE else body or None
            return await session.request(
                request.method, url, headers=headers, data=data, allow_redirects=False
            )

        try:
            # A body that cannot be sent twice never goes over a connection that may be stale.
            upstream = await sent(self._fresh if body is None else self._pooled)
        except (StaleError, aiohttp.ClientConnectionResetError) as error:
            if body is None:
                raise
            _log.debug("a connection was stale, and its request is sent again: %s", error)
            upstream = await sent(self._fresh)
        body = outgoing.body = None
        if outgoing.sent is not None:
            outgoing.sent()
        return upstream


def _headers(request: web.Request, outgoing: Outgoing) -> CIMultiDict[str]:
    headers = _forwarded(request.headers)
    if outgoing.is_decoded:
        headers.popall("Content-Encoding", None)
    if outgoing.observe is not None and (accepted := headers.get("Accept-Encoding")):
        headers["Accept-Encoding"] = readable(accepted)
    if outgoing.body is not None:
        headers["Content-Length"] = str(len(outgoing.body))
    return headers


async def keep_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Remove the headers that aiohttp adds to a response of an upstream."""
    if isinstance(response, _OfUpstream):
        for name in _ADDED:
            if name not in response.given:
                response.headers.popall(name, None)


def _forwarded(given: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers of a message that are for its receiver."""
    kept = CIMultiDict([pair for pair in given.items() if _is_for_receiver(pair[0])])
    if named := given.get("Connection"):
        for name in named.split(","):
            kept.popall(name.strip(), None)
    return kept


@lru_cache(maxsize=512)
def _is_for_receiver(name: str) -> bool:
    lower = name.lower()
    return lower not in _HOP_BY_HOP and not lower.startswith(OWN)


async def pieces_in_time(
    content: aiohttp.StreamReader, limits: ProxyLimits
) -> AsyncIterator[bytes]:
    """Yield the pieces of a request's body; raises `TimeoutError` if they come too slowly.

    A client that sends a few bytes now and then would hold its connections for ever.
    """
    loop = asyncio.get_running_loop()
    left, deadline = 0, 0.0
    while not content.at_eof():
        if content.is_eof():  # all of it is here
            yield await content.readany()
            continue
        if left <= 0:
            left, deadline = limits.body_piece, loop.time() + limits.body_seconds
        async with asyncio.timeout_at(deadline):
            piece = await content.readany()
        left -= len(piece)
        if piece:
            yield piece


async def _begun(first: Sequence[bytes], pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in first:
        yield piece
    async for piece in pieces:
        yield piece


async def _pieces(raw: bytes) -> AsyncIterator[memoryview]:
    view = memoryview(raw)
    for start in range(0, len(raw), _PIECE):
        yield view[start : start + _PIECE]


async def _answered(
    request: web.Request,
    upstream: aiohttp.ClientResponse,
    observe: Callable[[object], None] | None,
    progress: AnswerProgress,
    begun: bytes = b"",
) -> _Whole | _Streamed:
    """Send a response to the client; of its body `begun` was read already."""
    headers = _forwarded(upstream.headers)
    tee = None if observe is None or not upstream.ok else _Tee(upstream, observe)
    status, reason = upstream.status, upstream.reason
    progress.probe = b""
    if body := begun if upstream.content.at_eof() else b"" if begun else _whole(upstream.content):
        # Its head and its body are sent at once.
        whole = _Whole(body=body, status=status, reason=reason, headers=headers)
        whole.given = headers
        await whole.prepare(request)
        await whole.write_eof()
        if tee is not None:
            tee.take(body)
            tee.end()
        return whole
    response = _Streamed(status=status, reason=reason, headers=headers)
    response.given = headers
    await response.prepare(request)
    is_chunked = response.headers.get("Transfer-Encoding") == "chunked"
    progress.probe = ZERO if is_chunked else b""
    try:
        if begun:
            await response.write(begun)
        async for piece in upstream.content.iter_any():
            await response.write(piece)
            if tee is not None:
                tee.take(piece)
        if tee is not None:
            tee.end()
        progress.probe = b""
        await response.write_eof()
    except (aiohttp.ClientError, TimeoutError) as error:
        # The client has to notice that the upstream was cut: its own connection is cut too.
        _log.warning("an upstream ended in the middle of a response: %s", wrong_with(error))
        response.was_cut = True
        if (transport := request.transport) is not None:
            if is_chunked:  # a zero alone would look like the last chunk
                transport.write(_MISSING)
            transport.abort()
    return response


async def _refusal(content: aiohttp.StreamReader) -> bytes:
    """Return the body of a refusal, or the first part of a large one."""
    found = b""
    while len(found) < _MOST_REFUSAL and (piece := await content.read(_MOST_REFUSAL)):
        found += piece
    return found


def _decoded(body: bytes, upstream: aiohttp.ClientResponse) -> bytes:
    """Return a body without its content encoding; nothing of one that cannot be decoded."""
    decode = decoder(upstream.headers.get("Content-Encoding", ""))
    try:
        return b"" if decode is None else decode(body)
    except (ZlibError, zstandard.ZstdError):
        return b""


def _whole(content: aiohttp.StreamReader) -> bytes:
    """Return a body that has come to its end already; nothing if it has not, or is empty."""
    if not content.is_eof() or content.exception() is not None:
        return b""
    return content.read_nowait()


class _Tee:
    """Reads the usage in a response that passes by; gives up on what it cannot read."""

    def __init__(self, upstream: aiohttp.ClientResponse, observe: Callable[[object], None]) -> None:
        self._decode = decoder(upstream.headers.get("Content-Encoding", ""))
        self._usage = BodyUsage(upstream.headers.get("Content-Type", ""))
        self._observe = observe

    def take(self, piece: bytes) -> None:
        """Look at the next piece of the body."""
        if self._decode is None:
            return
        try:
            found = self._usage.after(self._decode(piece))
        except (ZlibError, zstandard.ZstdError):
            self._decode = None
            return
        self._found(found)

    def end(self) -> None:
        """Look at the end of the body."""
        if self._decode is not None:
            self._found(self._usage.at_end())

    def _found(self, usage: object) -> None:
        if usage is not None:
            self._decode = None
            self._observe(usage)
