"""Two users of one proxy never share a session, whatever they have in common."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.proxy.blackbox.checks import lost_texts, placeholder_paths, prefixes
from tests.proxy.blackbox.proxies import EAGER, Proxy
from tests.proxy.blackbox.scripts import task
from tests.proxy.blackbox.sessions import LightAgent
from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow
MODULE_POLICY = EAGER


def run_in_turns(*agents: LightAgent) -> None:
    """Let each agent ask once, then each again, until none has anything to run."""

    async def all_of_them() -> None:
        async with aiohttp.ClientSession() as client:
            going = list(agents)
            while going:
                going = [agent for agent in going if await agent.turn(client)]

    asyncio.run(all_of_them())


def check_apart(provider: Upstream, proxy: Proxy, *agents: LightAgent) -> None:
    """Check that each agent's placeholders name files with its own outputs alone."""
    assert provider.refused == []
    seen: set[Path] = set()
    for agent in agents:
        own = [r for r in provider.requests if r.header("x-scripted-conversation") == agent.name]
        assert prefixes(own).wrong == ()
        named = placeholder_paths(own)
        assert len(named) == len(agent.outputs) - 1
        assert lost_texts(proxy.root, named, set(agent.outputs)) == []
        assert not named & seen
        seen |= named


def test_two_keys_with_one_session_id_share_nothing(provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(6)
    agents = [
        LightAgent(proxy.url, name, key=f"sk-{name}-secret", session="one-id")
        for name in ("first", "second")
    ]
    run_in_turns(*agents)
    check_apart(provider, proxy, *agents)


def test_two_keys_with_one_beginning_share_nothing(provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(6)
    agents = [LightAgent(proxy.url, name, key=f"sk-{name}-secret") for name in ("first", "second")]
    run_in_turns(*agents)
    check_apart(provider, proxy, *agents)


def test_two_keys_with_equal_lists_share_no_file(provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(6)
    first = LightAgent(proxy.url, "same", key="sk-first")
    run_in_turns(first)
    count = len(provider.requests)
    provider.forget()
    second = LightAgent(proxy.url, "same", key="sk-second")
    run_in_turns(second)
    assert first.outputs == second.outputs
    one, other = provider.requests[:count], provider.requests[count:]
    assert placeholder_paths(one)
    assert placeholder_paths(other)
    assert not placeholder_paths(one) & placeholder_paths(other)


def test_one_user_with_two_sessions_of_one_beginning_keeps_them_apart(
    provider: Upstream, proxy: Proxy
) -> None:
    """No id tells them apart: the fingerprint has to, from the first output on."""
    provider.script = task(6)
    agents = [LightAgent(proxy.url, name) for name in ("first", "second")]
    run_in_turns(*agents)
    assert provider.refused == []
    for agent in agents:
        own = [r for r in provider.requests if r.header("x-scripted-conversation") == agent.name]
        assert prefixes(own).wrong == ()
        assert lost_texts(proxy.root, placeholder_paths(own), set(agent.outputs)) == []


@pytest.mark.parametrize("key", ["sk-first-secret", "Bearer sk-second-secret"])
def test_no_key_is_written_anywhere(key: str, provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(3)
    run_in_turns(LightAgent(proxy.url, "a", key=key, session="s"))
    written = [path for path in proxy.root.parent.rglob("*") if path.is_file()]
    assert len(written) > 3
    secret = key.removeprefix("Bearer ").encode()
    assert [path for path in written if secret in path.read_bytes()] == []
    readable = [path for path in proxy.root.rglob("*") if path.stat().st_mode & 0o077]
    assert readable == []
