"""The policy of Haystack's compactor against the compactor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from haystack.hooks.compaction import ToolResultOffloadCompactor

from tests.peers import chat_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.haystack_side import ByChars, Compacting, Results
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import conversations

POLICY = "haystack-tool-result-offload"


def offloading(window: int = 20_000, to: float = 0.4, counter: Any = ..., **options: Any) -> Any:
    results = Results()
    compactor = ToolResultOffloadCompactor(results, **options)
    own = ByChars() if counter is ... else counter
    return Compacting(compactor, results, own, context_window=window, compact_to=to)


def within(window: int = 20_000, to: float = 0.4) -> dict[str, str]:
    return {
        "context_window: 400000": f"context_window: {window}",
        "under: 160001": f"under: {int(window * to) + 1}",
    }


SETTINGS = [
    *settings(POLICY, "context_window", offloading, within, (10_000, 30_000, 60_000)),
    *settings(
        POLICY,
        "compact_to",
        lambda to: offloading(to=to),
        lambda to: within(to=to),
        (0.1, 0.25, 0.6),
    ),
    *settings(
        POLICY,
        "min_keep_steps",
        lambda kept: offloading(min_keep_steps=kept),
        lambda kept: within() | {"replies: 1": f"replies: {kept}"},
        (2, 4, 8),
    ),
    *settings(
        POLICY,
        "min_tokens",
        lambda least: offloading(min_tokens=least),
        lambda least: within() | {"min_tokens: 201": f"min_tokens: {least + 1}"},
        (60, 500, 2_000),
    ),
    *settings(
        POLICY,
        "preview_chars",
        lambda chars: offloading(preview_chars=chars),
        lambda chars: within() | {"chars: 200": f"chars: {chars}"},
        (10, 100, 400),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    assert_equal_as_the_page_says(setting, chat_messages, tmp_path)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


@pytest.mark.parametrize(
    ("counter", "different"),
    [(ByChars(), 0), (None, 282)],
    ids=["the counter of the policy", "Haystack's own"],
)
def test_all_conversations_are_equal_as_the_page_says(
    counter: Any, different: int, tmp_path: Path
) -> None:
    policy = changed(f"peers/{POLICY}", within())
    found = tally(
        conversations(),
        chat_messages,
        lambda: offloading(counter=counter),
        lambda number: Ours(policy, tmp_path / str(number)),
    )
    assert found.edited > found.calls / 10
    assert found.different == different, found.first
