"""Agents over the providers' own libraries, through the proxy, under a window of 20,000 tokens.

Each runs 30 commands that print 6,000 tokens each: nine windows in all.
"""

from __future__ import annotations

import pytest

from tests.proxy.blackbox.agents import AGENTS, Agent, AnthropicAgent, ClaudeCodeLike
from tests.proxy.blackbox.checks import lost_texts, placeholder_paths, prefixes
from tests.proxy.blackbox.proxies import POLICY, WINDOW, Proxy
from tests.proxy.blackbox.scripts import task
from tests.proxy.blackbox.upstream import Upstream

TURNS = 30
MODULE_POLICY = POLICY
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", AGENTS)
def test_a_long_task_stays_in_a_small_window(
    kind: type[Agent], provider: Upstream, proxy: Proxy
) -> None:
    provider.window, provider.script = WINDOW, task(TURNS)
    agent = kind(proxy.url)
    said = agent.run()
    agent.close()
    requests = provider.of(agent.path)
    assert provider.refused == []
    assert said == "The task is done."
    assert len(requests) == len(provider.prompts) == TURNS + 1
    assert max(provider.prompts) <= WINDOW
    seen = prefixes(requests, moves_markers=kind is ClaudeCodeLike)
    assert seen.wrong == ()
    assert seen.offloads >= 5
    assert seen.summaries >= 1
    named = placeholder_paths(requests)
    assert len(named) >= TURNS - 10
    assert lost_texts(proxy.root, named, set(agent.outputs)) == []
    assert "compiled in 12 ms" not in proxy.logged
    assert agent.key not in proxy.logged
    held = [path for path in proxy.root.rglob("*") if path.is_file()]
    assert not [path for path in held if agent.key.encode() in path.read_bytes()]


def test_headers_come_to_the_provider_as_they_were_sent(provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(1, tokens=200)
    own = {"Host", "Connection", "Content-Length", "Accept-Encoding", "Transfer-Encoding"}
    own.add("traceparent")  # of each request another, once a program traces its requests
    direct = ClaudeCodeLike(provider.url)
    direct.run()
    provider.forget()
    through = ClaudeCodeLike(proxy.url, headers=dict(direct.headers), session=direct.session)
    through.run()
    for agent in (direct, through):
        agent.close()
    before, after = provider.requests[:2], provider.requests[2:]
    assert [request.target for request in after] == ["/v1/messages?beta=true"] * 2
    for one, other in zip(before, after, strict=True):
        sent, came = (
            sorted((name.lower(), value) for name, value in request.headers if name not in own)
            for request in (one, other)
        )
        assert came == sent
        assert other.raw == one.raw


def test_a_sub_agent_is_a_session_of_its_own(provider: Upstream, proxy: Proxy) -> None:
    """A parent and two sub-agents share a session id, and take turns."""
    provider.script = task(8, tokens=3_000)
    parent = ClaudeCodeLike(proxy.url, task="You are the parent.")
    agents = [parent]
    agents += [
        ClaudeCodeLike(proxy.url, task="Same words.", session=parent.session, agent=f"a{i}")
        for i in range(2)
    ]
    for _ in range(9):
        for agent in agents:
            agent.run(answers=1)
    for agent in agents:
        agent.close()
    assert provider.refused == []
    for agent in agents:
        name = agent.headers["x-scripted-conversation"]
        own = [r for r in provider.requests if r.header("x-scripted-conversation") == name]
        assert len(own) == 9
        assert prefixes(own, moves_markers=True).wrong == ()
        assert prefixes(own, moves_markers=True).offloads > 0
    for agent in agents:
        assert len(agent.outputs) == 8


def test_counting_tokens_counts_what_would_be_sent(provider: Upstream, proxy: Proxy) -> None:
    provider.script = task(6)
    # Two equal conversations without an id are one to the proxy, and another test has this one too.
    agent = AnthropicAgent(proxy.url, task="Count what you send.")
    agent.run(answers=6)
    counted = agent._client.messages.count_tokens(
        model="claude-some",
        messages=agent.messages,
        tools=[{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}],
    )
    agent.run()
    agent.close()
    (count,) = provider.of("/v1/messages/count_tokens")
    assert counted.input_tokens <= WINDOW
    last = provider.of("/v1/messages")[-1]
    assert len(count.raw) < 2 * len(last.raw)
    assert prefixes(provider.of("/v1/messages")).wrong == ()
