"""The policy of Anthropic's server-side clearing against what its documentation says.

The server cannot be installed, so the reference below is written from the documentation of
`clear_tool_uses_20250919`. What it does not say is chosen as follows:

- The wording of what is cleared: that of the policy.
- `keep` counts each use of a tool by itself, parallel ones too, and also those of excluded tools.
- A request is edited by itself: what is cleared does not depend on the requests before it.
- Once the trigger is passed, everything older than `keep` is cleared, not only enough.
- The input of a cleared call is empty.
- A trigger of input tokens is compared with the prompt before clearing, all of it included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.peers import anthropic_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.said import SHELLS, conversations

CLEARED = "[Old tool result cleared; make the call again if you need it]"


@dataclass(slots=True)
class Server:
    """What the documentation says of `clear_tool_uses_20250919`, with a trigger of tool uses."""

    trigger: int
    keep: int = 3
    exclude_tools: Sequence[str] = ()
    clear_tool_inputs: bool = False
    _messages: list[Any] = field(default_factory=list)

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += new
        blocks = [block for message in self._messages for block in message["content"]]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if len(uses) <= self.trigger:
            return self._messages
        old = uses[: max(0, len(uses) - self.keep)]
        cleared = {use["id"] for use in old if use["name"] not in self.exclude_tools}
        return [self._edited(message, cleared) for message in self._messages]

    def _edited(self, message: dict[str, Any], cleared: set[str]) -> dict[str, Any]:
        blocks = []
        for block in message["content"]:
            if block.get("tool_use_id") in cleared:
                blocks.append({**block, "content": CLEARED})
            elif self.clear_tool_inputs and block.get("id") in cleared:
                blocks.append({**block, "input": {}})
            else:
                blocks.append(block)
        return {**message, "content": blocks}


USES = "tokens: {over: 100000}", "items: {types: [tool_call], over: 10}"
INPUTS = "batches: split}}", 'batches: split}, with_input: {tools: "*", leave: empty}}'
EXCLUDED = "batches: split}}", f"batches: split}}, except_tools: {SHELLS}}}"
POLICY = "anthropic-context-management"
SETTINGS = [
    *settings(
        POLICY,
        "trigger",
        lambda uses: Server(trigger=uses),
        lambda uses: {USES[0]: f"items: {{types: [tool_call], over: {uses}}}"},
        (4, 17, 40),
    ),
    *settings(
        POLICY,
        "keep",
        lambda kept: Server(trigger=10, keep=kept),
        lambda kept: dict([USES, ("items: 3", f"items: {kept}")]),
        (0, 2, 9),
    ),
    *settings(
        POLICY,
        "exclude_tools",
        lambda tool: Server(trigger=10, exclude_tools=[tool]),
        lambda tool: dict([USES, (EXCLUDED[0], f"batches: split}}, except_tools: [{tool}]}}")]),
        ("Bash", "Read", "Edit"),
    ),
    *settings(
        POLICY,
        "clear_tool_inputs",
        lambda kept: Server(trigger=10, keep=kept, clear_tool_inputs=True),
        lambda kept: dict([USES, INPUTS, ("items: 3", f"items: {kept}")]),
        (0, 3, 9),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    assert_equal_as_the_page_says(setting, anthropic_messages, tmp_path)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({"trigger": 10}, dict([USES])),
        ({"trigger": 10, "keep": 1}, dict([USES, ("items: 3", "items: 1")])),
        ({"trigger": 10, "exclude_tools": SHELLS}, dict([USES, EXCLUDED])),
        ({"trigger": 10, "clear_tool_inputs": True}, dict([USES, INPUTS])),
    ],
    ids=["tool uses", "keep one", "exclude tools", "clear inputs"],
)
def test_clearing_is_equal_to_the_documentation_at_every_call(
    options: dict[str, Any], passages: dict[str, str], tmp_path: Path
) -> None:
    policy = changed("peers/anthropic-context-management", passages)
    found = tally(
        conversations(),
        anthropic_messages,
        lambda: Server(**options),
        lambda number: Ours(policy, tmp_path / str(number)),
    )
    assert found.edited > found.calls / 2
    assert (found.different, found.first) == (0, "")
