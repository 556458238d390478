from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.history import History
from policyctx.policy.models.compaction import CompactionWording, Summary
from policyctx.tokens.counter import counter_for
from tests.compaction.extractive.facts import JOURNEY, MIGRATION, PIPELINE
from tests.compaction.extractive.sessions import turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.compaction.extractive.sessions import Fact, Message

ROUNDS = 5
COUNTER = counter_for("o200k_base")
WORDING = CompactionWording()

each_session = pytest.mark.parametrize(
    "facts", [MIGRATION, PIPELINE, JOURNEY], ids=["migration", "pipeline", "journey"]
)


def tokens(value: object) -> int:
    return COUNTER.count(json.dumps(value, ensure_ascii=False))


def after(summary: str, new: Sequence[Message]) -> History:
    """What is there to be compacted next: a summary in its wording, the reply, new turns."""
    told = {"role": "user", "content": WORDING.summary.format(summary=summary)}
    reply = {"role": "assistant", "content": WORDING.summary_reply}
    return History([told, reply, *new], {0: summary}, frozenset((1,)))


def rounds(first: Sequence[Message], settings: Summary) -> Iterator[str]:
    """Yield the summary of each round of compaction, with new turns in between."""
    summary = extractive_summary(History(first), settings)
    yield summary
    for seed in range(1, ROUNDS):
        new = list(turns((), count=4, seed=seed))
        summary = extractive_summary(after(summary, new), settings)
        yield summary


def missing(facts: Sequence[Fact], summary: str) -> list[str]:
    """The parts of facts that a summary lacks, without those that were taken back."""
    gone = {part for fact in facts for part in fact.lost}
    return [
        part for fact in facts for part in fact.kept if part not in summary and part not in gone
    ]


@each_session
def test_nothing_that_matters_is_lost_in_five_rounds(facts: Sequence[Fact]) -> None:
    first = list(turns(facts, count=12, seed=0))
    for summary in rounds(first, Summary()):
        assert missing(facts, summary) == []


@each_session
def test_what_was_taken_back_does_not_come_back(facts: Sequence[Fact]) -> None:
    first = list(turns(facts, count=12, seed=0))
    gone = [part for fact in facts for part in fact.lost]
    assert gone
    for summary in rounds(first, Summary()):
        assert [part for part in gone if part in summary] == []


@each_session
def test_no_summary_is_more_than_a_fifth_of_the_first_history(facts: Sequence[Fact]) -> None:
    first = list(turns(facts, count=12, seed=0, chars=2_000))
    most = tokens(first) / 5
    for summary in rounds(first, Summary()):
        assert COUNTER.count(summary) <= most
