"""The policy of OpenAI Agents' trimmer against the trimmer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents.extensions import ToolOutputTrimmer
from agents.run import CallModelData, ModelInputData

from tests.peers.comparing import Ours, changed, tally
from tests.peers.openai_items import plain, written
from tests.peers.said import conversations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.peers.said import Plain, Said


class Trimming:
    """The filter that a run calls with the items of each model call."""

    def __init__(self, **options: Any) -> None:
        self._trimmer = ToolOutputTrimmer(**options)
        self._items: list[Any] = []

    def sent(self, new: Sequence[Said]) -> list[Plain]:
        self._items += written(new)
        data: Any = CallModelData(ModelInputData(list(self._items), None), None, None)  # type: ignore[arg-type]
        return plain(self._trimmer(data).input)


SHELLS = ["Bash", "exec_command", "bash"]


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({}, {}),
        ({"recent_turns": 1}, {"turns: 2": "turns: 1"}),
        (
            {"max_output_chars": 2000, "preview_chars": 50, "trimmable_tools": SHELLS},
            {
                "min_chars: 501": f"min_chars: 2001, tools: [{', '.join(SHELLS)}]",
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
        lambda: Trimming(**options),
        lambda number: Ours(policy, tmp_path / str(number), written, plain),
        lambda said: plain(written(said)),
    )
    assert found.edited > found.calls / 8
    assert (found.different, found.first) == (0, "")
