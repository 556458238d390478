"""What goes wrong on the way between a client and its provider."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import uuid4

import aiohttp
import anthropic
import openai
import pytest
import zstandard

from tests.proxy.blackbox.agents import AGENTS, Agent, AnthropicAgent
from tests.proxy.blackbox.proxies import EAGER, Proxy, proxied
from tests.proxy.blackbox.scripts import DONE, LIMITED, OVERLOADED, Reply, always, in_order
from tests.proxy.blackbox.upstream import Upstream, upstream

pytestmark = pytest.mark.slow
MODULE_POLICY = EAGER
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}


def body(text: str = "Hello", *, stream: bool = False, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"{text} {uuid4().hex}"}]
    return {"model": "m", "max_tokens": 9, "messages": messages, "stream": stream, **more}


async def posted(
    url: str, raw: bytes, headers: dict[str, str] | None = None, path: str = "/v1/messages"
) -> tuple[int, dict[str, str], bytes]:
    """Post raw bytes; return status, headers in lower case, and the bytes of the answer."""
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(
            url + path, data=BytesIO(raw), headers={**HEADERS, **(headers or {})}
        ) as answer,
    ):
        content = await answer.read()
        return answer.status, {k.lower(): v for k, v in answer.headers.items()}, content


def post(proxy: Proxy, raw: bytes, headers: dict[str, str] | None = None) -> Any:
    return asyncio.run(posted(proxy.url, raw, headers))


# Streams


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_a_stream_that_is_cut_reaches_the_client_as_far_as_it_came(
    provider: Upstream, proxy: Proxy, cut: int
) -> None:
    provider.script = always(Reply("word " * 400, cut_after=cut))

    async def received(url: str) -> tuple[bytes, bool]:
        got = b""
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(
                    f"{url}/v1/messages", json=body(stream=True), headers=HEADERS
                ) as answer:
                    assert answer.status == 200
                    async for part in answer.content.iter_any():
                        got += part
            except aiohttp.ClientError:
                return got, True
        return got, False

    direct, was_cut = asyncio.run(received(provider.url))
    through, seen_as_cut = asyncio.run(received(proxy.url))
    assert was_cut
    assert seen_as_cut, "the client took a cut answer for a whole one"
    assert _without_ids(through) == _without_ids(direct)


def _without_ids(raw: bytes) -> bytes:
    return re.sub(rb'"id": "[a-z]+_\d+"', b"", raw)


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_does_its_task_when_the_provider_is_busy(
    kind: type[Agent], provider: Upstream, proxy: Proxy
) -> None:
    provider.script = in_order(OVERLOADED, LIMITED, DONE)
    agent = kind(proxy.url)
    assert agent.run() == "The task is done."
    agent.close()
    assert len({request.raw for request in provider.of(agent.path)}) == 1
    assert len(provider.of(agent.path)) == 3


@pytest.mark.parametrize("reply", [OVERLOADED, LIMITED, Reply(status=500), Reply(status=401)])
def test_an_error_comes_with_its_status_headers_and_bytes(
    provider: Upstream, proxy: Proxy, reply: Reply
) -> None:
    provider.script = always(reply)
    raw = json.dumps(body()).encode()
    direct = asyncio.run(posted(provider.url, raw))
    through = post(proxy, raw)
    assert through[0] == direct[0] == reply.status
    assert through[2] == direct[2]
    for name, value in reply.headers.items():
        assert through[1][name] == value
    assert through[1].get("content-type") == direct[1]["content-type"]


@pytest.mark.parametrize("error", [anthropic.RateLimitError, openai.RateLimitError])
def test_an_error_reaches_the_sdk(error: Any, provider: Upstream, proxy: Proxy) -> None:
    provider.script = always(LIMITED)
    if error is anthropic.RateLimitError:
        with (
            anthropic.Anthropic(base_url=proxy.url, api_key="k", max_retries=0) as client,
            pytest.raises(error) as raised,
        ):
            client.messages.create(**body())
    else:
        with (
            openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0) as other,
            pytest.raises(error) as raised,
        ):
            other.chat.completions.create(model="m", messages=body()["messages"])
    assert raised.value.response.headers["retry-after"] == "0.01"


def test_a_stream_comes_event_by_event(provider: Upstream, proxy: Proxy) -> None:
    """The first event comes while the provider still waits to send the second."""
    provider.script = always(Reply("word " * 16, pause=0.5))

    async def first() -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{proxy.url}/v1/messages", json=body(stream=True), headers=HEADERS
            ) as answer,
        ):
            part = await asyncio.wait_for(answer.content.readany(), 10)
            assert provider.open == 1
            return part

    assert asyncio.run(first()).count(b"event:") <= 2


def test_a_client_that_goes_away_ends_the_stream_of_the_provider(
    provider: Upstream, proxy: Proxy
) -> None:
    provider.script = always(Reply("word " * 4_000, pause=0.05))

    async def leave() -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{proxy.url}/v1/messages", json=body(stream=True), headers=HEADERS
            ) as answer,
        ):
            await answer.content.readany()
            answer.close()

    asyncio.run(leave())
    assert asyncio.run(_becomes(lambda: provider.open == 0 < provider.cancelled))


async def _becomes(condition: Callable[[], bool], seconds: float = 10) -> bool:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return True
        await asyncio.sleep(0.02)
    return False


def test_a_client_that_goes_away_before_the_answer_ends_the_request(
    provider: Upstream, proxy: Proxy
) -> None:
    assert asyncio.run(_becomes(lambda: provider.open == 0))  # those of other tests
    provider.script = always(Reply("word", pause=20))

    async def leave() -> None:
        async with aiohttp.ClientSession() as session:
            call = session.post(f"{proxy.url}/v1/messages", json=body(stream=True), headers=HEADERS)
            async with call as answer:
                await answer.content.readany()
                assert provider.open == 1

    asyncio.run(leave())
    assert asyncio.run(_becomes(lambda: provider.open == 0))


def test_a_client_that_reads_slowly_gets_all_of_it(provider: Upstream, proxy: Proxy) -> None:
    provider.script = always(Reply("word " * 20_000))

    async def slowly() -> bytes:
        got = b""
        async with (
            aiohttp.ClientSession(read_bufsize=1024) as session,
            session.post(
                f"{proxy.url}/v1/messages", json=body(stream=True), headers=HEADERS
            ) as answer,
        ):
            while part := await answer.content.read(16_384):
                got += part
                await asyncio.sleep(0.005)
        return got

    got = asyncio.run(slowly())
    assert got.count(b"content_block_delta") >= 2 * 2_500
    assert b"message_stop" in got


@pytest.mark.parametrize("stream", [False, True])
def test_a_compressed_answer_comes_through(
    provider: Upstream, proxy: Proxy, *, stream: bool
) -> None:
    provider.script = always(Reply("word " * 400, gzip=True))
    raw = json.dumps(body(stream=stream)).encode()
    status, headers, content = post(proxy, raw, {"accept-encoding": "gzip"})
    assert status == 200
    if headers.get("content-encoding") == "gzip":
        content = zlib.decompress(content, wbits=31)
    assert content.count(b"word") == 400


def test_usage_in_a_compressed_stream_does_not_disturb(provider: Upstream, proxy: Proxy) -> None:
    provider.script = always(Reply("word " * 40, gzip=True))
    agent = AnthropicAgent(proxy.url)
    assert agent.run().startswith("word")
    agent.close()


# Bodies


def test_a_compressed_request_is_read(provider: Upstream, proxy: Proxy) -> None:
    raw = json.dumps(body("x" * 5_000)).encode()
    packed = {"gzip": gzip.compress(raw), "zstd": zstandard.compress(raw)}
    for encoding, content in packed.items():
        status, _, _ = post(proxy, content, {"content-encoding": encoding})
        assert status == 200
        assert provider.requests[-1].decoded == raw


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_refused(provider: Upstream, proxy: Proxy, encoding: str) -> None:
    """Half a gigabyte of blanks, in half a megabyte and less."""
    before = proxy.peak_memory()
    blanks = b" " * 2**20
    if encoding == "gzip":
        packer = zlib.compressobj(1, wbits=31)
        parts = [packer.compress(blanks) for _ in range(512)]
        raw = b"".join([*parts, packer.flush()])
    else:
        other = zstandard.ZstdCompressor().compressobj()
        raw = b"".join([other.compress(blanks) for _ in range(512)]) + other.flush()
    status, _, _ = post(proxy, raw, {"content-encoding": encoding})
    assert 400 <= status < 500
    assert provider.requests == []
    assert proxy.peak_memory() - before < 300 * 2**20


def test_a_body_that_is_not_what_it_says_is_refused(provider: Upstream, proxy: Proxy) -> None:
    status, _, _ = post(proxy, b"no gzip at all", {"content-encoding": "gzip"})
    assert 400 <= status < 500
    assert [request.raw for request in provider.requests] in ([], [b"no gzip at all"])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"model": "m", "max_tokens": 9, "messages": 5}',
        b'{"model": "m", "max_tokens": 9, "messages": [5, null, "x"]}',
        b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "m", "max_tokens": 123456789012345678901234567890, "messages": []}',
        b'{"model": "m", "max_tokens": NaN, "messages": []}',
        b'{"messages": [], "messages": [{"role": "user", "content": "twice"}]}',
        b'\xff\xfe{"model": "m"}',
        b'{"model": "m", "messages": [' + b"[" * 5_000,
    ],
)
def test_a_body_that_nobody_can_read_goes_to_the_provider_untouched(
    provider: Upstream, proxy: Proxy, raw: bytes
) -> None:
    status, _, _ = post(proxy, raw)
    assert [request.raw for request in provider.requests] == [raw]
    assert status != 502
    assert proxy.process.poll() is None


def test_what_is_not_known_is_passed_through(provider: Upstream, proxy: Proxy) -> None:
    async def asked() -> list[Any]:
        found = []
        async with aiohttp.ClientSession() as session:
            for method, path in [
                ("GET", "/v1/models?limit=5"),
                ("POST", "/v1/embeddings"),
                ("DELETE", "/v1/files/file-1"),
                ("POST", "/v1/messages/batches"),
            ]:
                data = b"\x00 bytes of any kind" if method == "POST" else None
                async with session.request(method, proxy.url + path, data=data) as answer:
                    found.append((answer.status, await answer.read()))
        return found

    answers = asyncio.run(asked())
    assert [status for status, _ in answers] == [200] * 4
    assert [(r.method, r.target) for r in provider.requests] == [
        ("GET", "/v1/models?limit=5"),
        ("POST", "/v1/embeddings"),
        ("DELETE", "/v1/files/file-1"),
        ("POST", "/v1/messages/batches"),
    ]
    assert provider.requests[1].raw == b"\x00 bytes of any kind"


def test_a_provider_that_is_not_there_is_a_bad_gateway(tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("nobody")
    with upstream() as gone:
        url = gone.url
    with proxied(url, folder) as alone:
        status, _, content = post(alone, json.dumps(body()).encode())
    assert status == 502
    assert b"Traceback" not in content
