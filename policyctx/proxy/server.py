"""`Proxy`: the server. It checks a request, has its body turned, and forwards it."""

import asyncio
import hmac
import json
import logging
import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from multidict import CIMultiDict

from policyctx.errors import present
from policyctx.messages.asked import Api, api_of, upstream_of
from policyctx.proxy import connections
from policyctx.proxy.bodies import values_from
from policyctx.proxy.clients import Endpoint, OwnTexts, address_of, is_loopback
from policyctx.proxy.conversations import credential_of, scope_of
from policyctx.proxy.encodings import BodyTooLargeError, decoded
from policyctx.proxy.failures import at
from policyctx.proxy.forwarding import Forwarder, Outgoing, keep_headers, pieces_in_time
from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.page import Pages
from policyctx.proxy.scanning import UntouchableError
from policyctx.proxy.turning import LARGE, ListRequest, Turned, Turning
from policyctx.turns.driving import Steps, finished

_log = logging.getLogger(__name__)

T = TypeVar("T")

OWN_PAGES = "/_policyctx"
# Below them, where clients read what was offloaded.
READING = "/mcp"
_WITH_TOKEN = OWN_PAGES + "/token/"
TOKEN_HEADER = "X-Policyctx-Token"  # noqa: S105 - the name of a header
_WELL_KNOWN = "/.well-known/"
_SWEEP_SECONDS = 30
# What aiohttp says of a head with more headers than it reads.
_TOO_MANY = "Too many headers received"
_BACKLOG = 1024
_READ_BYTES = 2**18
# Requests that a client may send before the one before them is answered.
_WAITING = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the proxy listens, and to whom it forwards."""

    upstreams: Mapping[str, str]
    """The URL of each upstream by its name."""
    root: Path
    key: bytes
    host: str = "127.0.0.1"
    port: int = 8377
    token: str = ""
    """Without it everybody who reaches the address may use the proxy."""
    is_elsewhere: bool = False
    """Whether clients run on another machine, and its files are not theirs."""
    limits: ProxyLimits = field(default_factory=ProxyLimits)


class RefusedError(Exception):
    """The proxy answers a request itself, by an error that the clients of both APIs read."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        self._status, self._kind, self._text = status, kind, text
        super().__init__(text)

    def response(self) -> web.Response:
        """Return the answer."""
        text = f"policyctx proxy: {self._text}"
        error = {"type": self._kind, "message": text, "code": self._kind}
        body = json.dumps({"type": "error", "error": error})
        return web.Response(status=self._status, text=body, content_type="application/json")


class _RequestReader(web.RequestHandler):
    """Reads requests, and refuses one that is not HTTP in the same way as any other."""

    __slots__ = ("heads",)

    def __init__(self, server: web.Server, limits: ProxyLimits) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=limits.waiting_seconds,
            lingering_time=limits.refused_seconds,
            read_bufsize=_READ_BYTES,
        )
        self._max_msg_queue_size, self._msg_queue_resume_size = _WAITING, 1
        self._parser = self.heads = connections.HeadParser(
            limits.head_bytes,
            self,
            loop,
            _READ_BYTES,
            max_line_size=2**16,
            max_field_size=2**16,
            payload_exception=web.RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=_WAITING,
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that cannot be read."""
        super().handle_error(request, status, exc, message)  # raises if an answer has begun
        text = "an internal error"
        if isinstance(exc, HttpProcessingError):
            text = f"the request cannot be read: {connections.wrong_with(exc)}"
            is_large = isinstance(exc, LineTooLong) or exc.message == _TOO_MANY
            status = 431 if is_large else exc.code or status
        _log.warning(text)
        response = RefusedError(status, "invalid_request_error", text).response()
        response.force_close()
        return response


class Proxy:
    """The proxy of one address; `run` serves until it is stopped.

    `endpoint` answers clients that read their offloaded texts; without it nobody can.
    """

    def __init__(
        self,
        settings: Settings,
        turning: Turning,
        pages: Pages,
        *,
        endpoint: Endpoint | None = None,
    ) -> None:
        self._settings, self._turning, self._endpoint = settings, turning, endpoint
        self._pages = pages
        self._threads = ThreadPoolExecutor(settings.limits.threads, "policyctx-proxy")
        self._few = ThreadPoolExecutor(settings.limits.large_at_once, "policyctx-large")
        self._room = Room(settings.limits.bodies_bytes)
        self._tasks: set[asyncio.Future[None]] = set()
        self._clients: dict[asyncio.BaseProtocol, connections.Client] = {}
        """The connections, by the server's protocol of each."""
        self._forwarder: Forwarder | None = None
        self._port = settings.port
        self._has_warned = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT; `ready` is called with the URL once it listens."""
        limits = self._settings.limits
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(
            signal.SIGHUP, loop.run_in_executor, self._threads, self._turning.policies.reload
        )
        app = web.Application(client_max_size=limits.body_bytes)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_response_prepare.append(keep_headers)
        runner = web.AppRunner(
            app,
            handle_signals=False,
            handler_cancellation=True,
            # aiohttp waits for it twice: until a request ends, and until its handler has gone.
            shutdown_timeout=limits.stopping_seconds / 2,
        )
        connections.keep_header_bytes()
        self._forwarder = Forwarder(limits)
        await runner.setup()
        # Before the first client comes: many at once may leave no file to load a module from.
        await loop.run_in_executor(self._threads, self._turning.warm_up)
        server = await loop.create_server(
            partial(self._connection, runner),
            self._settings.host,
            self._settings.port,
            backlog=_BACKLOG,
        )
        others = AsyncExitStack()
        try:
            if self._endpoint is not None:
                await others.enter_async_context(self._endpoint.running())
            self._port = server.sockets[0].getsockname()[1]
            host = self._settings.host
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{self._port}")
            while not stop.is_set():
                try:
                    async with asyncio.timeout(_SWEEP_SECONDS):
                        await stop.wait()
                except TimeoutError:
                    await loop.run_in_executor(self._threads, self._turning.registry.forget_idle)
        finally:
            server.close()
            await self._stopped(runner)
            await others.aclose()

    async def _stopped(self, runner: web.AppRunner) -> None:
        await runner.cleanup()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.limits.stopping_seconds)
        if self._forwarder is not None:
            await self._forwarder.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self._turning.registry.close)
        for threads in (self._threads, self._few):
            threads.shutdown(wait=False, cancel_futures=True)

    def _connection(self, runner: web.AppRunner) -> asyncio.Protocol:
        limits = self._settings.limits
        made = _RequestReader(present(runner.server), limits)
        lost = partial(self._clients.pop, made, None)
        client = self._clients[made] = connections.Client(made, made.heads, limits, lost)
        return client

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        client = self._clients.get(request.protocol)
        if client is not None:
            client.request, client.progress = request, connections.AnswerProgress()
        try:
            path = self._checked_path(request)
            if path.startswith(OWN_PAGES):
                return await self._own_page(request, path)
            return await self._forwarded(request, path)
        except Exception as error:  # noqa: BLE001 - each kind has its answer
            return self._refusal(error).response()
        finally:
            if client is not None:
                client.request = None

    def _refusal(self, error: Exception) -> RefusedError:
        if isinstance(error, HttpProcessingError):  # in its body
            text = f"the request cannot be read: {connections.wrong_with(error)}"
            _log.warning(text)
            error = RefusedError(error.code, "invalid_request_error", text)
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, BodyTooLargeError):
            text = f"the body is larger than {self._settings.limits.body_bytes:,} bytes"
            return RefusedError(413, "request_too_large", text)
        # The text of an error may have a part of the request.
        if isinstance(error, aiohttp.ClientResponseError):
            text = f"the answer of the upstream cannot be read: {connections.wrong_with(error)}"
            _log.warning(text)
            return RefusedError(502, "api_error", text)
        if isinstance(error, aiohttp.ClientError):
            text = connections.no_answer(error)
            _log.warning(text)
            return RefusedError(504 if isinstance(error, TimeoutError) else 502, "api_error", text)
        if isinstance(error, TimeoutError):
            return RefusedError(408, "timeout_error", "the request took too long")
        _log.error("a request failed: %s", at(error))
        return RefusedError(500, "api_error", "an internal error")

    def _checked_path(self, request: web.Request) -> str:
        """Return the path and query of a request without its token; raises `RefusedError`."""
        path = request.raw_path
        if not path.startswith("/") or request.method == "CONNECT":
            raise RefusedError(400, "invalid_request_error", "the target has to be a path")
        token = request.headers.get(TOKEN_HEADER, "")
        if path.startswith(_WITH_TOKEN):
            token, _, rest = path.removeprefix(_WITH_TOKEN).partition("/")
            path = "/" + rest
        wanted = self._settings.token
        if wanted and not hmac.compare_digest(_bytes(token), _bytes(wanted)):
            raise RefusedError(401, "authentication_error", "the token is missing or wrong")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            # 426 tells clients that can do so to send the request without a WebSocket.
            text = "the proxy takes no WebSocket; send the request over HTTP"
            raise RefusedError(426, "invalid_request_error", text)
        if self._endpoint is not None and path.startswith(_WELL_KNOWN):
            # A client of the MCP server looks there for a login, and would find the provider's.
            raise RefusedError(404, "not_found_error", "no login is needed")
        return path

    async def _forwarded(self, request: web.Request, path: str) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        plain_path = path.partition("?")[0]
        api = api_of(plain_path) if request.method == "POST" else None
        upstream = api.upstream if api else upstream_of(plain_path, headers)
        base = self._settings.upstreams[upstream].rstrip("/")
        if base.endswith("/v1") and path.startswith("/v1/"):
            path = path.removeprefix("/v1")
        if api is None:
            if request.method == "POST":
                self._turning.warn_of_unread(f"to {plain_path}")
            return await self._counted(request, Outgoing(base + path, None), upstream)
        self._look_at_peer(request)
        with RoomShare(self._room) as share:
            outgoing = Outgoing(base + path, None, sent=share.release)
            received = await _body(request, self._settings.limits, share)
            if isinstance(received, bytes):
                outgoing.body = received
                await self._turned(api, upstream, headers, outgoing, share)
            else:
                self._turning.left_alone(UntouchableError("too many bodies at once"))
                outgoing.begun = received
            del received
            return await self._counted(request, outgoing, upstream)

    async def _counted(
        self, request: web.Request, outgoing: Outgoing, upstream: str
    ) -> web.StreamResponse:
        counts = self._turning.counts
        client = self._clients.get(request.protocol)
        progress = connections.AnswerProgress() if client is None else client.progress
        try:
            response = await present(self._forwarder).forward(request, outgoing, progress)
        except (aiohttp.ClientError, TimeoutError) as error:
            counts.response(upstream, type(error).__name__)
            raise
        counts.response(upstream, "cut" if response.was_cut else str(response.status))
        return response

    def _look_at_peer(self, request: web.Request) -> None:
        """Warn once of a client that cannot read this machine's files though it should."""
        if self._settings.is_elsewhere or self._has_warned or request.transport is None:
            return
        peer, own = (request.transport.get_extra_info(name) for name in ("peername", "sockname"))
        if peer and own and peer[0] != own[0] and not is_loopback(peer[0]):
            self._has_warned = True
            _log.warning(
                "a client is on another machine, and may not have the files that placeholders"
                " name; say --client other if it does not"
            )

    async def _taken(self, steps: Steps[T]) -> T:
        """Take a first step in the event loop, and those that are left in a thread.

        Most turns end with the first one. A thread would cost more than they do.
        """
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        return await asyncio.get_running_loop().run_in_executor(self._threads, finished, steps)

    async def _in_time(self, work: Callable[[], T]) -> T:
        """Work long in one of a few threads; raises `UntouchableError` if none is free in time."""
        working = self._few.submit(work)
        try:
            waiting = asyncio.wrap_future(working)
            await asyncio.wait([waiting], timeout=self._settings.limits.large_seconds)
            if not waiting.done() and working.cancel():
                raise UntouchableError("too many large bodies at once")
            return await waiting
        finally:
            working.cancel()

    async def _turned(
        self,
        api: Api,
        upstream: str,
        headers: Mapping[str, str],
        outgoing: Outgoing,
        share: "RoomShare",
    ) -> None:
        """Put into a request what is to be sent for its body; raises `BodyTooLargeError`."""
        settings, limits = self._settings, self._settings.limits
        raw = outgoing.body or b""
        encoding = headers.get("content-encoding", "")
        try:
            if encoding:
                most, ratio = limits.body_bytes, limits.decoded_ratio
                raw = await self._in_time(partial(decoded, raw, encoding, most, ratio))
                share.take_all(len(raw))
            scope = scope_of(settings.key, settings.upstreams[upstream], credential_of(headers))
            steps = self._turning.in_steps(ListRequest(api, scope, headers, raw))
            if len(raw) > LARGE:
                turned = await self._in_time(partial(finished, steps))
            else:
                turned = await self._taken(steps)
        except UntouchableError as error:
            turned = self._turning.left_alone(error)
        if turned.raw is not None:
            outgoing.body, outgoing.is_decoded = turned.raw, True
            share.add(len(turned.raw))
        if turned.conversation is not None:
            turned = replace(turned, raw=None)
            outgoing.observe = partial(self._observe, turned)
            outgoing.again = partial(self._again, turned, api)

    async def _again(self, turned: Turned, api: Api, error: bytes) -> bytes | None:
        return await self._taken(self._turning.again_in_steps(turned, api, error))

    def _observe(self, turned: Turned, usage: object) -> None:
        steps = self._turning.observe_in_steps(turned, usage)
        if next(steps, steps) is steps:
            return
        task = asyncio.get_running_loop().run_in_executor(self._threads, finished, steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _own_page(self, request: web.Request, path: str) -> web.Response:
        """Answer a request to the proxy itself, if it was made to this very address."""
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        plain, _, query = path.removeprefix(OWN_PAGES).partition("?")
        is_reading = plain == READING and self._endpoint is not None
        # A program on another machine may know this one by a name. It sends no origin, as each page
        # does, but it does send the token.
        may_be_named = is_reading and bool(self._settings.token) and origin is None
        is_own = may_be_named or self._is_own(host)
        if not is_own or (origin is not None and not self._is_own_origin(origin)):
            raise RefusedError(403, "permission_error", "not the address of the proxy")
        if is_reading and self._endpoint is not None:
            return await self._read_back(request, self._endpoint)
        answer = None
        if request.method in {"GET", "HEAD"}:
            if not plain:
                # Relative, so that a token in the address stays in it.
                location = OWN_PAGES.removeprefix("/") + "/"
                return web.Response(status=308, headers={"Location": location})
            if plain.startswith("/"):
                answer = await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._pages.answer, plain.removeprefix("/"), query
                )
        if answer is None:
            raise RefusedError(404, "not_found_error", "no such page")
        headers = {**answer.headers, "Content-Type": answer.content_type}
        return web.Response(status=answer.status, body=answer.body, headers=headers)

    async def _read_back(self, request: web.Request, endpoint: Endpoint) -> web.Response:
        """Let a client read what was offloaded for the credential that it sends."""
        if request.method != "POST":
            # There is no stream to open, and no session to end.
            return web.Response(status=405, headers={"Allow": "POST"})
        settings = self._settings
        credential = credential_of({name.lower(): value for name, value in request.headers.items()})
        if not any(value.removeprefix("Bearer").strip() for _, value in credential):
            # After a 401 a client would look for a server to log in to, at the provider.
            text = "send the credential that the agent sends to the model, in the same header"
            raise RefusedError(403, "permission_error", text)
        scopes = {scope_of(settings.key, url, credential) for url in settings.upstreams.values()}
        most = settings.limits.question_bytes
        try:
            with RoomShare(self._room) as share:
                body = await _body(request, replace(settings.limits, body_bytes=most), share)
        except BodyTooLargeError as error:
            text = f"the body is larger than {most:,} bytes"
            raise RefusedError(413, "request_too_large", text) from error
        if not isinstance(body, bytes):
            raise RefusedError(503, "overloaded_error", "too many bodies at once")
        try:
            values_from(body, 0, settings.limits.question_values)
        except UntouchableError as error:
            raise RefusedError(413, "request_too_large", str(error)) from error
        texts = OwnTexts(settings.root, scopes)
        status, answered, content = await endpoint.answer(request.raw_headers, body, texts)
        return web.Response(status=status, body=content, headers=CIMultiDict(_decoded(answered)))

    def _is_own(self, host: str) -> bool:
        """Whether a `Host` names the address on which the proxy listens, not another name of it."""
        name, _, port = host.rpartition(":")
        if port != str(self._port):
            return False
        if name.strip("[]") == self._settings.host or is_loopback(name):
            return True
        # A page of another site can only come by a name that it has made to mean this machine.
        return bool(self._settings.token) and address_of(name) is not None

    def _is_own_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme == "http" and self._is_own(host)


def _bytes(header: str) -> bytes:
    """Return the bytes that a header was decoded from."""
    return header.encode("utf-8", "surrogateescape")


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


class Room:
    """How many bytes of bodies there may be at once."""

    def __init__(self, size: int) -> None:
        self.left = size


class RoomShare:
    """What one request has taken of a room; released at the end of a block at the latest."""

    def __init__(self, room: Room) -> None:
        self._room, self._size = room, 0

    def take(self, size: int) -> bool:
        """Take so many bytes if there are as many."""
        if size > self._room.left:
            return False
        self.add(size)
        return True

    def take_all(self, size: int) -> None:
        """Take so many bytes; raises `UntouchableError` if there are not as many."""
        if not self.take(size):
            raise UntouchableError("too many bodies at once")

    def add(self, size: int) -> None:
        """Take so many bytes, which there are already."""
        self._room.left -= size
        self._size += size

    def release(self) -> None:
        """Give back all that was taken."""
        self._room.left += self._size
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


async def _body(request: web.Request, limits: ProxyLimits, share: RoomShare) -> bytes | list[bytes]:
    """Return the body as it came, or the pieces of its beginning if there is no room for more.

    Raises `BodyTooLargeError`, and `TimeoutError` if it does not end.
    """
    if (request.content_length or 0) > limits.body_bytes:
        raise BodyTooLargeError
    pieces: list[bytes] = []
    size = 0
    async for piece in pieces_in_time(request.content, limits):
        size += len(piece)
        if size > limits.body_bytes:
            raise BodyTooLargeError
        pieces.append(piece)
        if not share.take(len(piece)):
            return pieces
    return b"".join(pieces)
