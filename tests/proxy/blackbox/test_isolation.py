"""Two users of one proxy never share a session, whatever they have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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


def run_one_by_one(*agents: LightAgent) -> None:
    """Let each agent work to its end before the next begins."""
    for agent in agents:
        run_in_turns(agent)


def run_at_once(*agents: LightAgent) -> None:
    """Let the agents ask at the same time, again and again."""

    async def all_of_them() -> None:
        async with aiohttp.ClientSession() as client:
            while any(await asyncio.gather(*(agent.turn(client) for agent in agents))):
                pass

    asyncio.run(all_of_them())


@pytest.mark.parametrize("alike", [1, 4, 8])
@pytest.mark.parametrize("run", [run_in_turns, run_one_by_one, run_at_once])
def test_equal_conversations_of_one_user_send_no_prefix_that_is_new(
    run: Callable[..., None], alike: int, provider: Upstream, proxy: Proxy
) -> None:
    """They may take each other's session, but must not begin a new one with each request.

    A prefix that either of them has sent before is in the provider's cache. Where their outputs
    part, one of them may begin anew, once.
    """
    provider.script = task(8)
    before = set(proxy.root.iterdir())
    agents = [LightAgent(proxy.url, name, alike=alike) for name in ("first", "second", "third")]
    run(*agents)
    assert provider.refused == []
    for agent in agents:
        own = [r for r in provider.requests if r.header("x-scripted-conversation") == agent.name]
        assert lost_texts(proxy.root, placeholder_paths(own), set(agent.outputs)) == []
        assert placeholder_paths(own[-1:])
    new = [
        one
        for number, one in enumerate(provider.requests)
        if all(
            prefixes([earlier, one]).wrong
            for earlier in provider.requests[:number]
            if 0 <= len(one.elements) - len(earlier.elements) <= len(("reply", "output"))
        )
    ]
    assert len(new) <= len(agents)
    assert len(set(proxy.root.iterdir()) - before) <= 2 * len(agents)


@pytest.mark.parametrize("alike", [0, 3])
@pytest.mark.parametrize("run", [run_in_turns, run_at_once])
def test_agents_under_one_session_id_keep_their_placeholders(
    run: Callable[..., None], alike: int, provider: Upstream, proxy: Proxy
) -> None:
    """Sub-agents whose client gives them no ids of their own, with one prompt and one task."""
    provider.script = task(8)
    session = f"shared-{run.__name__}-{alike}"
    agents = [LightAgent(proxy.url, name, session=session, alike=alike) for name in "abc"]
    run(*agents)
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
