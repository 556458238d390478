"""The policy of Strands' sliding window against its conversation manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.integrations.strands import BedrockShape
from tests.peers import converse_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import conversations
from tests.peers.strands_side import Sliding

POLICY = "strands-sliding-window"
SETTINGS = [
    *settings(
        POLICY,
        "window_size",
        lambda size: Sliding(window_size=size),
        lambda size: {
            'when: {messages: {over: 40}}\n    select: {types: ["*"], unit: turn, until:'
            " {messages: {under: 41}}}": f"when: {{messages: {{over: {size}}}}}\n    select:"
            f' {{types: ["*"], unit: turn, until: {{messages: {{under: {size + 1}}}}}}}',
            'when: {messages: {over: 40}}\n    select: {types: ["*"], unit: group, keep_recent:'
            " {messages: 40}}": f"when: {{messages: {{over: {size}}}}}\n    select:"
            f' {{types: ["*"], unit: group, keep_recent: {{messages: {size}}}}}',
        },
        (10, 24, 60),
    ),
    *settings(
        POLICY,
        "pin_first",
        lambda pinned: Sliding(window_size=40, pin_first=pinned),
        lambda pinned: {
            "unit: turn, until: {messages: {under: 41": f"unit: turn, keep_first: {{messages:"
            f" {pinned}}}, until: {{messages: {{under: {41 + pinned}",
            "unit: group,": f"unit: group, keep_first: {{messages: {pinned}}},",
        },
        (1, 2, 5),
    ),
]


def test_as_many_calls_are_equal_as_the_page_says(tmp_path: Path) -> None:
    policy = changed(f"peers/{POLICY}", {})
    found = tally(
        conversations(),
        converse_messages,
        Sliding,
        lambda number: Ours(policy, tmp_path / str(number), shape=BedrockShape()),
    )
    assert found.edited > found.calls / 2
    assert found.equal == 1399, found.first


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    assert_equal_as_the_page_says(setting, converse_messages, tmp_path, shape=BedrockShape())


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)
