"""Many clients at once. `POLICYCTX_STREAMS` and `POLICYCTX_SESSIONS` ask for more of them."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from itertools import cycle
from pathlib import Path

import aiohttp
import pytest

from tests.drawing import IS_LONG
from tests.proxy.blackbox.checks import lost_texts, placeholder_paths, prefixes
from tests.proxy.blackbox.proxies import EAGER, NOTHING, Proxy, proxied
from tests.proxy.blackbox.scripts import DONE, Reply, always, task
from tests.proxy.blackbox.sessions import LightAgent
from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow
STREAMS = int(os.environ.get("POLICYCTX_STREAMS", "1000" if IS_LONG else "50"))
SESSIONS = int(os.environ.get("POLICYCTX_SESSIONS", "200" if IS_LONG else "10"))
MEGABYTES = int(os.environ.get("POLICYCTX_BODY_MB", "50"))


@pytest.fixture(autouse=True, scope="module")
def _many_files() -> None:
    """Each stream takes two connections of the proxy and two of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * STREAMS + 1_000
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_many_streams_at_once_each_come_whole(own_provider: Upstream, tmp_path: Path) -> None:
    # All are open before the first one ends.
    own_provider.script = always(Reply("word " * 80, pause=0.02 * STREAMS / 10))

    async def stream(client: aiohttp.ClientSession, url: str, number: int) -> bytes:
        messages = [{"role": "user", "content": f"Say it, {number}."}]
        body = {"model": "m", "max_tokens": 9, "messages": messages, "stream": True}
        headers = {"x-api-key": f"k{number}", "anthropic-version": "2023-06-01"}
        async with client.post(f"{url}/v1/messages", json=body, headers=headers) as answer:
            assert answer.status == 200
            return await answer.read()

    async def all_of_them(url: str) -> list[bytes]:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=300)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as client:
            return await asyncio.gather(*(stream(client, url, i) for i in range(STREAMS)))

    with proxied(own_provider.url, tmp_path / "proxy", policy=NOTHING) as proxy:
        answers = asyncio.run(all_of_them(proxy.url))
        assert proxy.process.poll() is None
    assert own_provider.most_open > STREAMS * 0.9
    assert {answer.count(b"word ") for answer in answers} == {80}
    assert all(b"message_stop" in answer for answer in answers)
    assert "Traceback" not in proxy.logged


def test_many_sessions_at_once_each_keep_their_own(own_provider: Upstream, tmp_path: Path) -> None:
    own_provider.window, own_provider.script = None, task(5)

    async def all_of_them(agents: list[LightAgent]) -> None:
        timeout = aiohttp.ClientTimeout(total=300)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as client:
            await asyncio.gather(*(agent.run(client) for agent in agents))

    with proxied(own_provider.url, tmp_path / "proxy", policy=EAGER) as proxy:
        agents = [
            LightAgent(proxy.url, f"agent-{i}", key=f"k{i % 7}", session=f"s{i}")
            for i in range(SESSIONS)
        ]
        asyncio.run(all_of_them(agents))
    assert own_provider.refused == []
    for agent in agents:
        own = [
            r for r in own_provider.requests if r.header("x-scripted-conversation") == agent.name
        ]
        assert len(own) == 6
        assert prefixes(own).wrong == ()
        assert prefixes(own).offloads == 4
        assert lost_texts(proxy.root, placeholder_paths(own), set(agent.outputs)) == []


def test_policies_are_read_again_under_load(own_provider: Upstream, tmp_path: Path) -> None:
    """Good and wrong policies take turns while agents run; none of them notices."""
    own_provider.window, own_provider.script = None, task(12)

    async def all_of_them(proxy: Proxy, agents: list[LightAgent]) -> None:
        timeout = aiohttp.ClientTimeout(total=300)
        async with aiohttp.ClientSession(timeout=timeout) as client:
            running = asyncio.gather(*(agent.run(client) for agent in agents))
            texts = cycle(["name: wrong\n", EAGER.replace("min_tokens: 20", "min_tokens: 30")])
            while not running.done():
                (tmp_path / "proxy" / "policy.yaml").write_text(next(texts))
                proxy.process.send_signal(signal.SIGHUP)
                await asyncio.sleep(0.1)
            await running

    with proxied(own_provider.url, tmp_path / "proxy", policy=EAGER) as proxy:
        agents = [LightAgent(proxy.url, f"agent-{i}", session=f"s{i}") for i in range(8)]
        asyncio.run(all_of_them(proxy, agents))
        assert proxy.process.poll() is None
    assert own_provider.refused == []
    for agent in agents:
        own = [
            r for r in own_provider.requests if r.header("x-scripted-conversation") == agent.name
        ]
        assert len(own) == 13
        assert prefixes(own).wrong == ()
        assert prefixes(own).offloads == 11


def test_a_large_body_goes_through(own_provider: Upstream, tmp_path: Path) -> None:
    """A request of 50 MB, twice: new, and with a message more."""
    own_provider.window = None
    text = "a line of a large log, which no model could read\n" * (MEGABYTES * 2**20 // 49)
    own_provider.script = task(2)

    async def ask(agent: LightAgent) -> None:
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(timeout=timeout) as client:
            await agent.turn(client)
            agent.messages[-1]["content"][0]["content"] = text
            agent.outputs[-1] = text
            await agent.turn(client)
            await agent.turn(client)

    with proxied(own_provider.url, tmp_path / "proxy", policy=EAGER) as proxy:
        agent = LightAgent(proxy.url, "large", session="s")
        asyncio.run(ask(agent))
        assert proxy.process.poll() is None
    assert own_provider.refused == []
    sizes = [len(request.raw) for request in own_provider.requests]
    assert sizes[1] > MEGABYTES * 2**20
    assert sizes[2] < 2**20
    assert lost_texts(proxy.root, placeholder_paths(own_provider.requests), {text}) == []


def test_slow_clients_do_not_keep_others_waiting(own_provider: Upstream, tmp_path: Path) -> None:
    """Clients that send a byte of a header now and then; some stop in the middle of a body."""
    own_provider.script = always(DONE)

    async def slow(port: int, half: bytes, hold: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(half)
        await writer.drain()
        await hold.wait()
        writer.close()
        assert reader is not None

    async def all_of_them(url: str, port: int) -> None:
        hold = asyncio.Event()
        head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        halves = [head + b"X-Slow: a", head + b"Content-Length: 1000\r\n\r\n{"]
        waiting = [asyncio.create_task(slow(port, halves[i % 2], hold)) for i in range(STREAMS)]
        await asyncio.sleep(0.2)
        async with aiohttp.ClientSession() as client:
            agent = LightAgent(url, "quick")
            await asyncio.wait_for(agent.turn(client), 10)
        hold.set()
        await asyncio.gather(*waiting)

    with proxied(own_provider.url, tmp_path / "proxy", policy=NOTHING) as proxy:
        asyncio.run(all_of_them(proxy.url, proxy.port))
    assert len(own_provider.requests) == 1
    assert json.loads(own_provider.requests[0].raw)["model"] == "m"
