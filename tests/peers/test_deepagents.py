"""The policy of Deep Agents' eviction of large results against its middleware."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from policyctx.integrations.langchain import LangChainShape
from tests.peers import langchain_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.deepagents_side import Evicting
from tests.peers.said import conversations


def test_only_previews_with_another_note_or_gutter_differ(tmp_path: Path) -> None:
    policy = changed("peers/deepagents", {"min_chars: 80001": "min_chars: 8001"})
    theirs = count()
    found = tally(
        conversations(),
        langchain_messages,
        lambda: Evicting(tmp_path / f"theirs-{next(theirs)}", limit=2000),
        lambda number: Ours(policy, tmp_path / str(number), shape=LangChainShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 769, found.first
