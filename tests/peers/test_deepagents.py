"""The policy of Deep Agents' eviction of large results against its middleware."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

import pytest

from policyctx.integrations.langchain import LangChainShape
from tests.peers import langchain_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.deepagents_side import Evicting
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import conversations

SETTINGS = settings(
    "deepagents",
    "tool_token_limit_before_evict",
    lambda limit: Evicting(Path(tempfile.mkdtemp()), limit),
    lambda limit: {"min_chars: 80001": f"min_chars: {4 * limit + 1}"},
    (250, 1000, 5000),
)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "theirs"))
    shape = LangChainShape()
    assert_equal_as_the_page_says(setting, langchain_messages, tmp_path, shape=shape)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


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
    assert found.different == 185, found.first
