"""The policy of Strands' sliding window against its conversation manager."""

from __future__ import annotations

from pathlib import Path

from policyctx.integrations.strands import BedrockShape
from tests.peers import converse_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.said import conversations
from tests.peers.strands_side import Sliding


def test_as_many_calls_are_equal_as_the_page_says(tmp_path: Path) -> None:
    policy = changed("peers/strands-sliding-window", {})
    found = tally(
        conversations(),
        converse_messages,
        Sliding,
        lambda number: Ours(policy, tmp_path / str(number), shape=BedrockShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 1339, found.first
