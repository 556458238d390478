"""A compaction that the server made stays as it is, beside the summary of what came after it."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx import Session
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

BLOCK = {"type": "compaction", "content": "Port 8081 is used.", "signature": "sig"}
SEALED = {"type": "compaction", "content": None, "encrypted_content": "gAAA"}
EMPTY = {"type": "compaction", "content": None}
LARGE = {"role": "assistant", "content": "word " * 900}
RULES = """\
compaction: {keep_recent: {messages: 1}, min_new: 0, restore: {max_files: 0}}
steps: [{name: s, do: compact, when: {tokens: {over: 500}}}]
"""


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def sent(*messages: Any) -> list[Any]:
    session = Session(policy(RULES), session_id="s", store=MemoryStore())
    return list(session.apply(messages).messages)


@pytest.mark.parametrize("block", [BLOCK, SEALED])
@pytest.mark.parametrize("before", [[], [said("Mend the pump.")]])
def test_the_block_of_a_server_survives_a_compaction(block: Any, before: list[Any]) -> None:
    kept = {"role": "assistant", "content": [block]}
    last = said("And the valve.")
    left = sent(*before, kept, said("Go on."), LARGE, last)
    assert left[0] is kept
    assert "Go on." in left[1]["content"]
    assert left[-1] is last
    assert LARGE not in left


def test_a_block_of_a_compaction_that_failed_leaves_in_the_next_one() -> None:
    failed = {"role": "assistant", "content": [EMPTY, {"type": "text", "text": "Well."}]}
    left = sent(said("Mend the pump."), failed, said("Go on."), LARGE, said("And the valve."))
    assert failed not in left
