"""The policies of Pydantic AI's harness against its capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai_harness.compaction import ClampOversizedMessages, ClearToolResults

from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.peers import pydantic_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.pydantic_side import InAgent
from tests.peers.said import SHELLS, conversations

if TYPE_CHECKING:
    from pathlib import Path

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
