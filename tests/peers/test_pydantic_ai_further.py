"""Further policies of Pydantic AI's harness against its capabilities."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    DeduplicateFileReads,
    SummarizingCompaction,
    TieredCompaction,
)
from pydantic_ai_harness.tool_output_limits import (
    Band,
    Spill,
    ToolOutputLimits,
    Truncate,
    TruncationStrategy,
)

from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.peers import pydantic_messages
from tests.peers.comparing import Ours, Side, changed, tally
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.pydantic_side import SUMMARISER, SUMMARY, InAgent, RunningTools
from tests.peers.said import Plain, conversations

READS, LIMITS = "pydantic-ai-deduplicate-file-reads", "pydantic-ai-tool-output-limits"
TIERED = "pydantic-ai-tiered"
EDITS = frozenset({"Read", "Edit", "Write"})


class Handles:
    """A store of `ToolOutputLimits` whose handles do not name the run."""

    async def write(self, key: str, data: bytes) -> str:  # noqa: ARG002 - the store's protocol
        return f"tool_outputs/{key.split('/')[1].rpartition('.')[0]}"

    async def read(self, handle: str) -> bytes:
        raise FileNotFoundError(handle)


class WithoutSeparators:
    """The form of messages, in which a number has no thousands separators."""

    written = staticmethod(pydantic_messages.written)

    @staticmethod
    def plain(messages: Sequence[Any]) -> list[Plain]:
        """Return messages as they are compared."""
        found = pydantic_messages.plain(messages)
        return [
            (role, tuple((*block[:-1], _SEPARATOR.sub("", block[-1])) for block in blocks))
            for role, blocks in found
        ]


_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3})")


def path_of(call: ToolCallPart, tools: frozenset[str] = frozenset({"Read"})) -> str | None:
    return call.args_as_dict().get("file_path") if call.tool_name in tools else None


def lines_of(call: ToolCallPart) -> str | None:
    path, given = path_of(call), call.args_as_dict()
    return path and f"{path} {given.get('offset')} {given.get('limit')}"


KEYS: Mapping[str, Callable[[ToolCallPart], str | None]] = {
    "path": path_of,
    "path and lines": lines_of,
    "path of reads and edits": lambda call: path_of(call, EDITS),
}


def limits(*bands: Band) -> RunningTools:
    return RunningTools(ToolOutputLimits(bands=bands, store=Handles()))


def spilled(over: int, preview: int = 1_000) -> RunningTools:
    return limits(Band(over, Spill(preview)), Band(2_000, Truncate(TruncationStrategy.tail, 1_500)))


def tiered(target: int, kept: int = 20) -> InAgent:
    tiers = [
        ClearToolResults(max_tokens=1),
        SummarizingCompaction(model=SUMMARISER, max_messages=1, keep_messages=kept),
    ]
    return InAgent(TieredCompaction(tiers=tiers, target_tokens=target))


def cut(most: int) -> dict[str, str]:
    left = most - len(f"[... output truncated, showing last {most} chars]\n")
    return {
        "min_chars: 20000": "min_chars: 20000000",
        "min_chars: 5000": "min_chars: 2000",
        "last 3952 chars": f"last {left} chars",
        "tail: {chars: 3952}": f"tail: {{chars: {left}}}",
    }


def over(target: int) -> dict[str, str]:
    steps = "do: clear\n    when: {tokens: ", "do: compact\n    when: {tokens: "
    return {f"{step}{{over: 100000}}": f"{step}{{over: {target}}}" for step in steps}


SETTINGS = [
    *settings(
        READS,
        "file_key",
        lambda key: InAgent(DeduplicateFileReads(file_key=KEYS[key])),
        lambda _: {},
        [*KEYS],
    ),
    *settings(
        READS,
        "max_tokens",
        lambda tokens: InAgent(DeduplicateFileReads(file_key=lines_of, max_tokens=tokens)),
        lambda tokens: {"do: clear": f"do: clear\n    when: {{tokens: {{over: {tokens}}}}}"},
        (5_000, 20_000, 45_000),
    ),
    *settings(
        LIMITS,
        "over",
        spilled,
        lambda least: cut(1_500) | {"min_chars: 20000": f"min_chars: {least}"},
        (3_000, 10_000, 30_000),
    ),
    *settings(
        LIMITS,
        "preview_chars",
        lambda preview: spilled(4_000, preview),
        lambda preview: (
            cut(1_500)
            | {
                "min_chars: 20000": "min_chars: 4000",
                "head: {chars: 500}": f"head: {{chars: {preview // 2}}}",
                "tail: {chars: 500}": f"tail: {{chars: {preview - preview // 2}}}",
            }
        ),
        (100, 777, 2_500),
    ),
    *settings(
        LIMITS,
        "max_chars",
        lambda most: limits(Band(2_000, Truncate(TruncationStrategy.tail, most))),
        cut,
        (500, 1_500, 1_900),
    ),
    *settings(
        TIERED,
        "target_tokens",
        tiered,
        over,
        (5_000, 20_000, 45_000),
    ),
    *settings(
        TIERED,
        "keep_messages",
        lambda kept: tiered(20_000, kept),
        lambda kept: over(20_000) | {"{messages: 20}": f"{{messages: {kept}}}"},
        (4, 10, 25),
    ),
]


def form_of(policy: str) -> Any:
    return WithoutSeparators() if policy == LIMITS else pydantic_messages


def own() -> dict[str, Any]:
    return {"shape": PydanticAIShape(), "summarizer": lambda _: SUMMARY}


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    assert_equal_as_the_page_says(setting, form_of(setting.policy), tmp_path, **own())


@pytest.mark.parametrize(
    ("name", "library", "passages", "different"),
    [
        (READS, lambda: InAgent(DeduplicateFileReads(file_key=path_of)), {}, 259),
        (
            LIMITS,
            lambda: limits(Band(20_000, Spill()), Band(5_000, Truncate(TruncationStrategy.tail))),
            {},
            0,
        ),
        (TIERED, lambda: tiered(20_000), over(20_000), 354),
    ],
    ids=["reads", "bands", "tiers"],
)
def test_all_conversations_are_equal_as_the_page_says(
    name: str,
    library: Callable[[], Side],
    passages: dict[str, str],
    different: int,
    tmp_path: Path,
) -> None:
    policy = changed(f"peers/{name}", passages)
    found = tally(
        conversations(),
        form_of(name),
        library,
        lambda number: Ours(policy, tmp_path / str(number), **own()),
    )
    assert found.edited > found.calls / 10
    assert found.different == different, found.first


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)
