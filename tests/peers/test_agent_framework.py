"""The policies of Agent Framework's strategies against the strategies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_framework import SelectiveToolCallCompactionStrategy as Selective
from agent_framework import SlidingWindowStrategy

from policyctx.integrations.agent_framework import AgentFrameworkShape
from tests.peers import framework_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.framework_side import Compacting
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import conversations

SETTINGS = [
    *settings(
        "agent-framework-selective-tool-call",
        "keep_last_tool_call_groups",
        lambda kept: Compacting(Selective(keep_last_tool_call_groups=kept)),
        lambda kept: {"replies: 1": f"replies: {kept}"},
        (0, 3, 8),
    ),
    *settings(
        "agent-framework-sliding-window",
        "keep_last_groups",
        lambda kept: Compacting(SlidingWindowStrategy(keep_last_groups=kept)),
        lambda kept: {"replies: 9": f"replies: {kept - 1}"},
        (4, 10, 25),
    ),
]


@pytest.mark.parametrize(
    ("name", "strategy", "equal"),
    [
        ("selective-tool-call", Selective, 1904),
        ("sliding-window", lambda: SlidingWindowStrategy(keep_last_groups=10), 294),
    ],
)
def test_as_many_calls_are_equal_as_the_page_says(
    name: str, strategy: Any, equal: int, tmp_path: Path
) -> None:
    policy = changed(f"peers/agent-framework-{name}", {})
    found = tally(
        conversations(),
        framework_messages,
        lambda: Compacting(strategy()),
        lambda number: Ours(policy, tmp_path / str(number), shape=AgentFrameworkShape()),
    )
    assert found.edited > found.calls / 2
    assert found.equal == equal, found.first


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    shape = AgentFrameworkShape()
    assert_equal_as_the_page_says(setting, framework_messages, tmp_path, shape=shape)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)
