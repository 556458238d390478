"""Clients that send a few bytes now and then: each of their connections is closed in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.server import Proxy, Settings
from tests.proxy.test_pages import pages_of
from tests.proxy.test_turning import Proxied

pytestmark = pytest.mark.slow
SHORT = ProxyLimits(
    header_seconds=0.2, body_seconds=0.2, body_piece=8, refused_seconds=0.2, waiting_seconds=0.2
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HOST = b"Host: h\r\n"


async def answer_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while first := await reader.readline():
            while (await reader.readline()).strip():
                pass
            if b"/late" in first:
                await asyncio.sleep(0.7)
            writer.write(ANSWER)
            await writer.drain()
    await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@asynccontextmanager
async def running(folder: Path, limits: ProxyLimits) -> AsyncIterator[int]:
    """Serve in front of an upstream that answers as soon as it has read the headers."""
    upstream = await asyncio.start_server(answer_at_once, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}"
    proxied = Proxied(folder)
    settings = Settings(
        {"anthropic": url, "openai": url}, proxied.root, b"k", port=0, limits=limits
    )
    proxy = Proxy(settings, proxied.turning, pages_of(proxied))
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(proxy.run(ready.set_result))
    try:
        yield int((await ready).rpartition(":")[2])
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        upstream.close()
        if connections := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(connections)


async def sent_slowly(port: int, begin: bytes, answers: int = 0) -> bytes:
    """Send a beginning, then a byte now and then until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(begin)
    got = b"".join([await reader.readexactly(len(ANSWER)) for _ in range(answers)])
    with suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(b"a")
            await writer.drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    got += await reader.read(4096)
    await closed(writer)
    return got


def body_to(path: bytes) -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"Content-Length: 999999\r\n\r\n{"


@pytest.mark.parametrize(
    ("begin", "answers", "status"),
    [
        (b"GET /v1/models HTTP/1.1\r\n" + HOST + b"X-A: ", 0, b""),
        (b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\nGET /", 1, ANSWER),
        (body_to(b"/v1/messages"), 0, b"HTTP/1.1 408"),
        (body_to(b"/v1/files"), 0, b"HTTP/1.1 "),
    ],
    ids=["the headers", "the headers of a second request", "the body", "a body passed on"],
)
def test_a_connection_that_sends_a_byte_now_and_then_is_closed(
    tmp_path: Path, begin: bytes, answers: int, status: bytes
) -> None:
    async def sent() -> bytes:
        async with running(tmp_path, SHORT) as port:
            return await sent_slowly(port, begin, answers)

    assert asyncio.run(sent()).startswith(status)


def test_a_second_head_ends_as_early_as_a_first_one(tmp_path: Path) -> None:
    """A connection without any byte of a next request stays as long as `waiting_seconds`."""
    begin = b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\n"

    async def sent() -> bytes:
        async with running(tmp_path, replace(SHORT, waiting_seconds=60)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(2):
                writer.write(begin)
                assert await reader.readexactly(len(ANSWER)) == ANSWER
                await asyncio.sleep(0.5)
            await closed(writer)
            async with asyncio.timeout(5):
                return await sent_slowly(port, begin + b"GET /", answers=1)

    assert asyncio.run(sent()) == ANSWER


def test_a_second_head_that_has_begun_does_not_end_the_answer_to_the_first(tmp_path: Path) -> None:
    begin = b"GET /late HTTP/1.1\r\n" + HOST + b"\r\n"

    async def sent() -> bytes:
        async with running(tmp_path, replace(SHORT, waiting_seconds=60)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begin)
            await asyncio.sleep(0.1)
            writer.write(b"GET /")
            async with asyncio.timeout(5):
                got = await reader.read()
            await closed(writer)
            return got

    assert asyncio.run(sent()) == ANSWER
