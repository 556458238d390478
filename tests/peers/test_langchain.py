"""The policies of LangChain's middleware against the middleware."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.integrations.langchain import LangChainShape
from tests.peers import langchain_messages
from tests.peers.comparing import Ours, Tally, changed, tally
from tests.peers.langchain_side import SUMMARY, Clearing, Summarising, by_chars
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import FOLDERS, SHELLS, conversations

ALWAYS = {"tokens: {over: 100000}": "tokens: {over: 0}"}
SELECT = "batches: split}}"
CLEARING, SUMMARISING = "langchain-clear-tool-uses", "langchain-summarization"
BY_TOKENS, LAST = "tokens: {at_least: 80%}", "{messages: 20}"
SETTINGS = [
    *settings(
        CLEARING,
        "trigger",
        lambda tokens: Clearing(trigger=tokens),
        lambda tokens: {"over: 100000": f"over: {tokens}"},
        (5_000, 20_000, 45_000),
    ),
    *settings(
        CLEARING,
        "keep",
        lambda kept: Clearing(trigger=0, keep=kept),
        lambda kept: ALWAYS | {"items: 3": f"items: {kept}"},
        (1, 4, 9),
    ),
    *settings(
        CLEARING,
        "exclude_tools",
        lambda tool: Clearing(trigger=0, exclude_tools=[tool]),
        lambda tool: ALWAYS | {SELECT: f"batches: split}}, except_tools: [{tool}]}}"},
        ("Bash", "Read", "Edit"),
    ),
    *settings(
        CLEARING,
        "clear_tool_inputs",
        lambda kept: Clearing(trigger=0, keep=kept, clear_tool_inputs=True),
        lambda kept: (
            ALWAYS
            | {
                "items: 3": f"items: {kept}",
                SELECT: 'batches: split}, with_input: {tools: "*", leave: empty}}',
            }
        ),
        (1, 4, 9),
    ),
    *settings(
        SUMMARISING,
        "trigger",
        lambda tokens: Summarising(trigger=("tokens", tokens), keep=("messages", 20)),
        lambda tokens: {"80%": f"{tokens}"},
        (8_000, 20_000, 45_000),
    ),
    *settings(
        SUMMARISING,
        "keep",
        lambda kept: Summarising(trigger=("messages", 41), keep=("messages", kept)),
        lambda kept: {BY_TOKENS: "messages: {at_least: 41}", LAST: f"{{messages: {kept}}}"},
        (3, 8, 25),
    ),
    *settings(
        SUMMARISING,
        "keep_tokens",
        lambda kept: Summarising(
            trigger=("messages", 41), keep=("tokens", kept), token_counter=by_chars
        ),
        lambda kept: {BY_TOKENS: "messages: {at_least: 41}", LAST: f"{{max_tokens: {kept}}}"},
        (1_000, 3_000, 9_000),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    own: dict[str, Any] = {"shape": LangChainShape()}
    if setting.policy == SUMMARISING:
        own["summarizer"] = lambda _: SUMMARY
    assert_equal_as_the_page_says(setting, langchain_messages, tmp_path, **own)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


def compared(library: Any, name: str, passages: dict[str, str], root: Path, *folders: str) -> Tally:
    policy = changed(f"peers/langchain-{name}", passages)

    def ours(number: int) -> Ours:
        own = root / str(number)
        return Ours(policy, own, shape=LangChainShape(), summarizer=lambda _: SUMMARY)

    return tally(conversations(folders or FOLDERS), langchain_messages, library, ours)


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({}, {}),
        ({"keep": 0}, {"items: 3": "items: 0"}),
        ({"exclude_tools": SHELLS}, {SELECT: f"batches: split}}, except_tools: {SHELLS}}}"}),
        (
            {"clear_tool_inputs": True},
            {SELECT: 'batches: split}, with_input: {tools: "*", leave: empty}}'},
        ),
    ],
    ids=["keep three", "keep nothing", "exclude tools", "clear inputs"],
)
def test_clearing_is_equal_at_every_call(
    options: dict[str, Any], passages: dict[str, str], tmp_path: Path
) -> None:
    found = compared(
        lambda: Clearing(trigger=0, **options), "clear-tool-uses", ALWAYS | passages, tmp_path
    )
    assert found.edited > found.calls / 2
    assert (found.different, found.first) == (0, "")


@pytest.mark.parametrize(
    ("counter", "different"),
    [(by_chars, 0), (None, 22)],
    ids=["the counter of the policy", "LangChain's own"],
)
def test_the_trigger_of_clearing_is_a_number_of_tokens(
    counter: Any, different: int, tmp_path: Path
) -> None:
    found = compared(
        lambda: Clearing(token_counter=counter, trigger=20_000),
        "clear-tool-uses",
        {"over: 100000": "over: 20000"},
        tmp_path,
    )
    assert found.edited > found.calls / 2
    assert found.different == different, found.first


def test_clearing_until_enough_is_freed_is_equal_at_every_call(tmp_path: Path) -> None:
    # LangChain counts the whole list after each result that it clears, so this takes long.
    found = compared(
        lambda: Clearing(token_counter=by_chars, trigger=20_000, clear_at_least=5_000),
        "clear-tool-uses",
        {
            "over: 100000": "over: 20000",
            SELECT: "batches: split}, until: {frees: {at_least: 5000}}}",
        },
        tmp_path,
        "claude-code",
    )
    assert found.edited > found.calls / 2
    assert (found.different, found.first) == (0, "")


@pytest.mark.parametrize(
    ("counter", "different"),
    [({"token_counter": by_chars}, 0), ({}, 846)],
    ids=["the counter of the policy", "LangChain's own"],
)
def test_the_trigger_of_a_summary_is_a_number_of_tokens(
    counter: dict[str, Any], different: int, tmp_path: Path
) -> None:
    found = compared(
        lambda: Summarising(trigger=("tokens", 30_000), keep=("messages", 20), **counter),
        "summarization",
        {"80%": "30000"},
        tmp_path,
    )
    assert found.edited > found.calls / 2
    assert found.different == different, found.first


@pytest.mark.parametrize(("trigger", "keep"), [(50, 20), (30, 1)])
def test_summarisation_by_messages_is_equal_at_every_call(
    trigger: int, keep: int, tmp_path: Path
) -> None:
    found = compared(
        lambda: Summarising(trigger=("messages", trigger), keep=("messages", keep)),
        "summarization",
        {
            "tokens: {at_least: 80%}": f"messages: {{at_least: {trigger}}}",
            "messages: 20": f"messages: {keep}",
        },
        tmp_path,
    )
    assert found.edited > found.calls / 2
    assert (found.different, found.first) == (0, "")
