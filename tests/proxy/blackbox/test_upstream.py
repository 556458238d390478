"""The scripted provider and the clients, without a proxy between them.

What fails here is a fault of the tests, not of the proxy.
"""

from __future__ import annotations

import json

import pytest

from tests.proxy.blackbox.agents import AGENTS, Agent, ClaudeCodeLike
from tests.proxy.blackbox.checks import prefixes
from tests.proxy.blackbox.recorded import elements, list_text
from tests.proxy.blackbox.scripts import task
from tests.proxy.blackbox.upstream import Upstream


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_does_its_task_with_valid_requests(
    kind: type[Agent], own_provider: Upstream
) -> None:
    own_provider.window = None
    own_provider.script = task(3, tokens=200)
    agent = kind(own_provider.url)
    assert agent.run() == "The task is done."
    agent.close()
    assert own_provider.refused == []
    assert len(agent.outputs) == 3
    seen = prefixes(own_provider.of(agent.path), moves_markers=kind is ClaudeCodeLike)
    assert (seen.wrong, seen.offloads, seen.summaries) == ((), 0, 0)


def test_a_prompt_over_the_window_is_refused(own_provider: Upstream) -> None:
    own_provider.script = task(9, tokens=6_000)
    agent = AGENTS[0](own_provider.url)
    with pytest.raises(Exception, match="prompt is too long"):
        agent.run()
    agent.close()
    assert len(own_provider.prompts) == 4


def test_a_changed_message_is_noticed(own_provider: Upstream) -> None:
    own_provider.script = task(2, tokens=200)
    agent = AGENTS[0](own_provider.url)
    agent.run(answers=1)
    agent.messages[0]["content"] += " Please."
    agent.run()
    agent.close()
    (wrong,) = prefixes(own_provider.of(agent.path)).wrong
    assert wrong.startswith("request 1, message 0")


def test_the_bytes_of_a_list_are_those_that_were_sent() -> None:
    text = '{ "a": [1, 2], "messages" : [ {"x":1} ,{"y": "ü\\u00fc"}], "b": "messages"}'
    assert elements(text, "messages") == ['{"x":1}', '{"y": "ü\\u00fc"}']
    assert list_text(text, "messages") == '[ {"x":1} ,{"y": "ü\\u00fc"}'
    assert json.loads(list_text(text, "messages") + "]") == [{"x": 1}, {"y": "üü"}]
