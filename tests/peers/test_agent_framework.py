"""The policies of Agent Framework's strategies against the strategies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_framework import SelectiveToolCallCompactionStrategy, SlidingWindowStrategy

from policyctx.integrations.agent_framework import AgentFrameworkShape
from tests.peers import framework_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.framework_side import Compacting
from tests.peers.said import conversations


@pytest.mark.parametrize(
    ("name", "strategy", "different"),
    [
        ("selective-tool-call", SelectiveToolCallCompactionStrategy, 0),
        ("sliding-window", lambda: SlidingWindowStrategy(keep_last_groups=10), 1656),
    ],
)
def test_as_many_calls_are_equal_as_the_page_says(
    name: str, strategy: Any, different: int, tmp_path: Path
) -> None:
    policy = changed(f"peers/agent-framework-{name}", {})
    found = tally(
        conversations(),
        framework_messages,
        lambda: Compacting(strategy()),
        lambda number: Ours(policy, tmp_path / str(number), shape=AgentFrameworkShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == different, found.first
