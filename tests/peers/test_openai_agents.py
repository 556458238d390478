"""The policy of OpenAI Agents' trimmer against the trimmer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.peers import openai_items
from tests.peers.comparing import Ours, changed, tally
from tests.peers.openai_side import Trimming
from tests.peers.said import SHELLS, conversations


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({}, {}),
        ({"recent_turns": 1}, {"turns: 2": "turns: 1"}),
        (
            {"max_output_chars": 2000, "preview_chars": 50, "trimmable_tools": SHELLS},
            {
                "min_chars: 501": f"min_chars: 2001, tools: {SHELLS}",
                "{chars: 200}": "{chars: 50}",
                "200 char preview": "50 char preview",
            },
        ),
    ],
    ids=["defaults", "one turn", "some tools"],
)
def test_trimming_is_equal_at_every_call(
    options: dict[str, Any], passages: dict[str, str], tmp_path: Path
) -> None:
    policy = changed("peers/openai-agents-trimmer", passages)
    found = tally(
        conversations(),
        openai_items,
        lambda: Trimming(**options),
        lambda number: Ours(policy, tmp_path / str(number)),
    )
    assert found.edited > found.calls / 8
    assert (found.different, found.first) == (0, "")
