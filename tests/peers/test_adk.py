"""The policies of ADK's plugin and compaction against them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin

from policyctx.integrations.google_contents import GoogleShape
from tests.peers import google_messages
from tests.peers.adk_side import APPS, SUMMARY, InApp, Summariser
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import conversations

FILTER, COMPACTION = "adk-context-filter", "adk-compaction"


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while APPS:
        APPS.pop().close()


def tools() -> set[str]:
    said = (message for each in conversations() for message in each.messages)
    return {call.tool for message in said for call in message.calls}


def filtering(kept: int = 4, removed: int = 1) -> InApp:
    plugin = ContextFilterPlugin(num_invocations_to_keep=kept, remove_amount=removed)
    return InApp(tools(), plugins=[plugin])


def kept_turns(kept: int, over: int) -> dict[str, str]:
    return {"{turns: 4}": f"{{turns: {kept}}}", "over: 4": f"over: {over}"}


def compacting(interval: int = 2, overlap: int = 0, summariser: Summariser | None = None) -> InApp:
    config = EventsCompactionConfig(
        summarizer=LlmEventSummarizer(llm=summariser or Summariser()),
        compaction_interval=interval,
        overlap_size=overlap,
    )
    return InApp(tools(), events_compaction_config=config)


SETTINGS = [
    *settings(
        FILTER,
        "num_invocations_to_keep",
        filtering,
        lambda kept: kept_turns(kept, kept),
        (1, 2, 6),
    ),
    *settings(
        FILTER,
        "remove_amount",
        lambda removed: filtering(2, removed),
        lambda removed: kept_turns(2, 1 + removed),
        (1, 2, 3),
    ),
    *settings(
        COMPACTION,
        "compaction_interval",
        compacting,
        lambda interval: {"over: 2": f"over: {interval}"},
        (1, 3, 5),
    ),
    *settings(
        COMPACTION,
        "overlap_size",
        lambda overlap: compacting(overlap=overlap),
        lambda _: {},
        (0, 1, 2),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    own: dict[str, Any] = {"shape": GoogleShape(), "summarizer": lambda _: SUMMARY}
    assert_equal_as_the_page_says(setting, google_messages, tmp_path, **own)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


@pytest.mark.parametrize(("overlap", "read"), [(0, 139_490), (1, 161_162), (2, 206_604)])
def test_an_overlap_is_read_again_for_each_summary(overlap: int, read: int) -> None:
    summariser = Summariser()
    for conversation in conversations(("claude-code",)):
        app = compacting(overlap=overlap, summariser=summariser)
        for start, end in conversation.calls():
            app.sent(google_messages.written(conversation.messages[start:end]))
    assert summariser.chars // 4 == read
