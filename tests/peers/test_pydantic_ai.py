"""The policies of Pydantic AI's harness against its capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai_harness.compaction import (
    ClampOversizedMessages,
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
)

from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.peers import pydantic_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.pydantic_side import SUMMARISER, SUMMARY, InAgent
from tests.peers.said import SHELLS, conversations

ALWAYS = {"tokens: {over: 100000}": "tokens: {over: 0}"}
SELECT = "batches: split}}"


@pytest.mark.parametrize(
    ("name", "capability", "passages"),
    [
        ("clear-tool-results", lambda: ClearToolResults(max_tokens=1), ALWAYS),
        (
            "clear-tool-results",
            lambda: ClearToolResults(
                max_tokens=1, keep_pairs=1, exclude_tools=frozenset(SHELLS), clear_tool_inputs=True
            ),
            ALWAYS
            | {
                "items: 3": "items: 1",
                SELECT: f"batches: split}}, except_tools: {SHELLS},"
                ' with_input: {tools: "*", leave: empty}}',
            },
        ),
        (
            "clamp",
            lambda: ClampOversizedMessages(
                max_part_chars=1000,
                keep_head_chars=300,
                keep_tail_chars=300,
                clamp_tool_call_args=False,
            ),
            {
                "min_chars: 50001": "min_chars: 1001",
                "head: {chars: 2000}": "head: {chars: 300}",
                "tail: {chars: 2000}": "tail: {chars: 300}",
            },
        ),
    ],
    ids=["keep three", "keep one, exclude tools, clear inputs", "clamp"],
)
def test_what_is_sent_is_equal_at_every_call(
    name: str, capability: Any, passages: dict[str, str], tmp_path: Path
) -> None:
    policy = changed(f"peers/pydantic-ai-{name}", passages)
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(capability()),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > 100
    assert (found.different, found.first) == (0, "")


def test_the_trigger_is_a_number_of_tokens_that_the_harness_counts_otherwise(
    tmp_path: Path,
) -> None:
    policy = changed("peers/pydantic-ai-clear-tool-results", {"over: 100000": "over: 20000"})
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(ClearToolResults(max_tokens=20_000)),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 107, found.first


@pytest.mark.parametrize(("most", "different"), [(30, 0), (31, 1188)])
def test_a_summary_is_equal_where_the_number_of_messages_is_even(
    most: int, different: int, tmp_path: Path
) -> None:
    # The harness counts the first message and the summary as one, so an odd number differs.
    policy = changed(
        "peers/pydantic-ai-summarizing-compaction",
        {"over: 60": f"over: {most}", "{messages: 20}": "{messages: 10}"},
    )
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(
            SummarizingCompaction(model=SUMMARISER, max_messages=most, keep_messages=10)
        ),
        lambda number: Ours(
            policy,
            tmp_path / str(number),
            shape=PydanticAIShape(),
            summarizer=lambda _: SUMMARY,
        ),
    )
    assert found.edited > found.calls / 2
    assert found.different == different, found.first


def test_a_window_is_equal_where_the_user_spoke_once(tmp_path: Path) -> None:
    policy = changed(
        "peers/pydantic-ai-sliding-window",
        {"{over: 80}": "{over: 30}", "{messages: 40}": "{messages: 10}"},
    )
    sessions = conversations()
    found = tally(
        sessions,
        pydantic_messages,
        lambda: InAgent(SlidingWindowCompaction(max_messages=30, keep_messages=10)),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 942, found.first
    once = {each.name for each in sessions if [m.role for m in each.messages].count("user") == 1}
    assert once
    assert not once & found.by_conversation.keys()
