from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache

import yaml

from benchmarks.inputs import tool_outputs
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.sessions import FACTS, Message
from tests.compaction.extractive.summaries import after
from tests.conversations import chat_calls, chat_result, user

TOOLS = ("search", "read_file", "run")
ROUNDS = yaml.safe_load((FACTS / "rounds.yaml").read_text(encoding="utf-8"))


def chat_turns(told: Sequence[str], *, seed: int) -> Iterator[Message]:
    """A turn for each sentence, in the chat shape; the ids of calls are used again and again."""
    outputs = iter(tool_outputs([3_000] * len(told) * len(TOOLS), seed=seed))
    for i, text in enumerate(told):
        yield user(text)
        for tool in TOOLS:
            arguments = json.dumps({"path": f"app/{seed}/{i}.py", "q": "x"})
            yield chat_calls((f"call_{tool}", tool, arguments))
            yield chat_result(f"call_{tool}", next(outputs))
        yield {"role": "assistant", "content": "Noted and applied; all 12 checks pass."}


@cache
def last_summary() -> str:
    summary = ""
    for seed, told in enumerate(ROUNDS["told"]):
        new = list(chat_turns(told, seed=seed))
        history = after(summary, new) if summary else History(new)
        summary = extractive_summary(history, Summary())
    return summary


def test_statements_of_every_round_are_in_the_last_summary() -> None:
    assert [part for part in ROUNDS["held"] if part not in last_summary()] == []


def test_a_statement_in_other_words_stands_behind_the_one_that_it_revises() -> None:
    summary = last_summary()
    assert summary.index("Deadline: 2026-08-31.") < summary.index("2026-09-15")
