"""The policy of OpenAI Agents' trimmer against the trimmer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.peers import openai_items
from tests.peers.comparing import Ours, changed, tally
from tests.peers.openai_side import Trimming
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import SHELLS, conversations

POLICY = "openai-agents-trimmer"
SETTINGS = [
    *settings(
        POLICY,
        "recent_turns",
        lambda turns: Trimming(recent_turns=turns),
        lambda turns: {"turns: 2": f"turns: {turns}"},
        (1, 3, 5),
    ),
    *settings(
        POLICY,
        "max_output_chars",
        lambda most: Trimming(max_output_chars=most),
        lambda most: {"min_chars: 501": f"min_chars: {most + 1}"},
        (300, 1500, 8000),
    ),
    *settings(
        POLICY,
        "preview_chars",
        lambda shown: Trimming(preview_chars=shown),
        lambda shown: {
            "{chars: 200}": f"{{chars: {shown}}}",
            "200 char preview": f"{shown} char preview",
        },
        (20, 333, 480),
    ),
    *settings(
        POLICY,
        "trimmable_tools",
        lambda tool: Trimming(trimmable_tools=[tool]),
        lambda tool: {"min_chars: 501": f"min_chars: 501, tools: [{tool}]"},
        ("Bash", "Read", "Edit"),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    assert_equal_as_the_page_says(setting, openai_items, tmp_path)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


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
