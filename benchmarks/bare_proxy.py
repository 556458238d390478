"""What the proxy is measured against: a pass-through of a few lines on the same web library.

    python -m benchmarks.bare_proxy URL     forwards each request to the server at URL
    python -m benchmarks.bare_proxy         is that server: reads a body, and answers

Each prints its own URL when it listens, and ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

_LARGEST = 256 * 2**20
# What a server drops that passes a message on.
_OF_A_CONNECTION = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}
_USAGE = '"usage":{"input_tokens":10,"output_tokens":1}'
_MESSAGE = (
    '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text",'
    '"text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,' + _USAGE + "}"
)
_START = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message",'
    '"role":"assistant","model":"m","content":[],"stop_reason":null,' + _USAGE + "}}\n\n"
)
_DELTA = (
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
    '{"type":"text_delta","text":"some forty characters of a text, so many "}}\n\n'
)


def upstream() -> web.Application:
    """Return a server that reads a body, and answers with a message or with a stream.

    A stream has one event, and those that the header `x-events` asks for.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        events = request.headers.get("x-events")
        if events is None:
            return web.Response(text=_MESSAGE, content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(_START.encode())
        # Some servers send several events at once; this one sends ten.
        ten = (_DELTA * 10).encode()
        for _ in range(int(events) // 10):
            await response.write(ten)
        await response.write_eof()
        return response

    app = web.Application(client_max_size=_LARGEST)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def pass_through(target: str) -> web.Application:
    """Return a server that sends each request on, and each part of an answer when it comes."""

    async def client(app: web.Application) -> None:
        connector = TCPConnector(limit=0)
        app["client"] = ClientSession(
            connector=connector, auto_decompress=False, timeout=ClientTimeout(total=None)
        )

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        session: ClientSession = request.app["client"]
        async with session.request(
            request.method,
            target + request.path_qs,
            data=body,
            headers=_kept(request.headers.items()),
        ) as answer:
            response = web.StreamResponse(
                status=answer.status, headers=_kept(answer.headers.items())
            )
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=_LARGEST)
    app.on_startup.append(client)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


def _kept(headers: object) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = list(headers)  # type: ignore[call-overload]
    return [(name, value) for name, value in pairs if name.lower() not in _OF_A_CONNECTION]


async def serve(app: web.Application) -> None:
    """Serve on a free port of the loopback address until the process is asked to end."""
    runner = web.AppRunner(app, access_log=None, auto_decompress=False, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    if "client" in app:
        await app["client"].close()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(pass_through(sys.argv[1]) if len(sys.argv) > 1 else upstream()))
