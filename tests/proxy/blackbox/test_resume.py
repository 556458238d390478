"""The proxy is killed between two turns, and started again on the same folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.proxy.blackbox.agents import AGENTS, Agent, ClaudeCodeLike
from tests.proxy.blackbox.checks import lost_texts, placeholder_paths, prefixes
from tests.proxy.blackbox.proxies import EAGER, WINDOW, proxied
from tests.proxy.blackbox.scripts import task
from tests.proxy.blackbox.sessions import LightAgent
from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", AGENTS)
def test_a_killed_proxy_goes_on_with_the_same_bytes(
    kind: type[Agent], own_provider: Upstream, tmp_path: Path
) -> None:
    own_provider.script = task(12)
    folder = tmp_path / "proxy"
    with proxied(own_provider.url, folder) as proxy:
        agent = kind(proxy.url)
        agent.run(answers=6)
        proxy.kill()
    with proxied(own_provider.url, folder, "--port", str(proxy.port)) as again:
        assert again.url == proxy.url
        assert agent.run() == "The task is done."
    agent.close()
    requests = own_provider.of(agent.path)
    assert own_provider.refused == []
    assert len(requests) == 13
    assert max(own_provider.prompts) <= WINDOW
    seen = prefixes(requests, moves_markers=kind is ClaudeCodeLike)
    assert seen.wrong == ()
    assert seen.offloads + seen.summaries >= 3
    named = placeholder_paths(requests)
    assert lost_texts(proxy.root, named, set(agent.outputs)) == []


def test_a_stopped_proxy_goes_on_with_the_same_bytes(
    own_provider: Upstream, tmp_path: Path
) -> None:
    own_provider.script = task(10)
    folder = tmp_path / "proxy"
    with proxied(own_provider.url, folder) as proxy:
        agent = ClaudeCodeLike(proxy.url)
        agent.run(answers=5)
        assert proxy.stop() == 0
    with proxied(own_provider.url, folder, "--port", str(proxy.port)):
        agent.run()
    agent.close()
    assert own_provider.refused == []
    assert prefixes(own_provider.of(agent.path), moves_markers=True).wrong == ()


def test_a_killed_proxy_and_a_client_that_asks_again(
    own_provider: Upstream, tmp_path: Path
) -> None:
    """The client repeats its last request, as its library does after a lost connection."""
    own_provider.script = task(8)
    folder = tmp_path / "proxy"
    with proxied(own_provider.url, folder) as proxy:
        agent = ClaudeCodeLike(proxy.url)
        agent.run(answers=4)
        kept = list(agent.messages)
        agent.run(answers=1)
        proxy.kill()
    agent.messages[:] = kept
    own_provider.forget(answers=4)
    with proxied(own_provider.url, folder, "--port", str(proxy.port)):
        agent.run()
    agent.close()
    requests = own_provider.of(agent.path)
    assert own_provider.refused == []
    assert requests[5].elements == requests[4].elements
    assert prefixes(requests[:5], moves_markers=True).wrong == ()
    assert prefixes(requests[5:], moves_markers=True).wrong == ()


def test_after_a_restart_one_of_two_equal_conversations_goes_on_with_bytes_that_were_sent(
    own_provider: Upstream, tmp_path: Path
) -> None:
    own_provider.script = task(6)
    folder = tmp_path / "proxy"

    async def run(*agents: LightAgent) -> None:
        async with aiohttp.ClientSession() as client:
            for agent in agents:
                await agent.run(client)

    with proxied(own_provider.url, folder, policy=EAGER) as proxy:
        first, second = (LightAgent(proxy.url, name, alike=6) for name in ("first", "second"))
        asyncio.run(run(first, second))
        assert len(list(proxy.root.glob("beginning-*"))) == 2
        proxy.kill()
    sent = own_provider.requests[-1]
    second.messages.append({"role": "user", "content": "Go on."})
    with proxied(own_provider.url, folder, "--port", str(proxy.port), policy=EAGER):
        asyncio.run(run(second))
    ends = [one for one in own_provider.requests if len(one.elements) == len(sent.elements)]
    last = own_provider.requests[-1]
    assert any(prefixes([end, last]).wrong == () for end in ends)
