"""The policies of Pydantic AI's harness against its capabilities, in an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import ClampOversizedMessages, ClearToolResults

from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.peers.comparing import Ours, changed, tally
from tests.peers.pydantic_messages import plain, written
from tests.peers.said import conversations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.peers.said import Plain, Said


class InAgent:
    """A capability in an agent, whose history goes on from call to call."""

    def __init__(self, capability: Any) -> None:
        self._agent = Agent(FunctionModel(self._answered), capabilities=[capability])
        self._history: list[Any] = []
        self._asked: list[Any] = []

    def _answered(self, messages: list[Any], _: object) -> ModelResponse:
        self._asked = messages
        return ModelResponse([TextPart("unused")])

    def sent(self, new: Sequence[Said]) -> list[Plain]:
        run = self._agent.run_sync(message_history=[*self._history, *written(new)])
        self._history = run.all_messages()[:-1]
        return plain(self._asked)


ALWAYS = "{tokens: {over: 100000}}", "{tokens: {over: 0}}"
SHELLS = ["Bash", "exec_command", "bash"]
EXCLUDED = "batches: split}}", f"batches: split}}, except_tools: [{', '.join(SHELLS)}]}}"
INPUTS = "batches: split}}", 'batches: split}, with_input: {tools: "*", leave: empty}}'


@pytest.mark.parametrize(
    ("name", "capability", "passages"),
    [
        ("clear-tool-results", lambda: ClearToolResults(max_tokens=1), dict([ALWAYS])),
        (
            "clear-tool-results",
            lambda: ClearToolResults(
                max_tokens=1, keep_pairs=1, exclude_tools=frozenset(SHELLS), clear_tool_inputs=True
            ),
            dict([ALWAYS, ("items: 3", "items: 1"), (EXCLUDED[0], f"{EXCLUDED[1][:-1]}, {INPUTS[1][16:]}")]),
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
    ids=["always", "keep one, exclude tools, clear inputs", "clamp"],
)
def test_what_is_sent_is_equal_at_every_call(
    name: str, capability: Any, passages: dict[str, str], tmp_path: Path
) -> None:
    policy = changed(f"peers/pydantic-ai-{name}", passages)
    found = tally(
        conversations(),
        lambda: InAgent(capability()),
        lambda number: Ours(
            policy, tmp_path / str(number), written, plain, shape=PydanticAIShape()
        ),
        lambda said: plain(written(said)),
    )
    assert found.edited > found.calls / 8
    assert (found.different, found.first) == (0, "")
