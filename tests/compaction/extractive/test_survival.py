from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import CompactionWording, Summary
from policyctx.tokens.counter import counter_for
from tests.compaction.extractive.sessions import facts_of, turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.compaction.extractive.sessions import Fact, Message

ROUNDS = 5
COUNTER = counter_for("o200k_base")
WORDING = CompactionWording()
SESSIONS = ("migration", "pipeline", "journey", "checkout", "errands", "novel")

each_session = pytest.mark.parametrize("facts", [facts_of(name) for name in SESSIONS], ids=SESSIONS)


def tokens(value: object) -> int:
    return COUNTER.count(json.dumps(value, ensure_ascii=False))


def after(summary: str, new: Sequence[Message]) -> History:
    """What is there to be compacted next: a summary in its wording, the reply, new turns."""
    told = {"role": "user", "content": WORDING.summary.format(summary=summary)}
    reply = {"role": "assistant", "content": WORDING.summary_reply}
    return History([told, reply, *new], {0: summary}, frozenset((1,)))


@cache
def session(facts: tuple[Fact, ...]) -> list[Message]:
    return list(turns(facts, count=12, seed=0, chars=500))


@cache
def rounds(facts: tuple[Fact, ...]) -> list[str]:
    """Return the summary of each round of compaction, with new turns in between."""
    summaries = [extractive_summary(History(session(facts)), Summary())]
    for seed in range(1, ROUNDS):
        new = list(turns((), count=12, seed=seed, chars=500))
        summaries.append(extractive_summary(after(summaries[-1], new), Summary()))
    return summaries


def missing(facts: Sequence[Fact], summary: str) -> list[str]:
    """The parts of facts that a summary lacks, without those that were taken back."""
    gone = {part for fact in facts for part in fact.lost}
    return [
        part for fact in facts for part in fact.kept if part not in summary and part not in gone
    ]


@each_session
def test_nothing_that_matters_is_lost_in_five_rounds(facts: tuple[Fact, ...]) -> None:
    for summary in rounds(facts):
        assert missing(facts, summary) == []


@each_session
def test_revised_facts_do_not_reappear(facts: tuple[Fact, ...]) -> None:
    gone = [part for fact in facts for part in fact.lost]
    assert gone
    for summary in rounds(facts):
        assert [part for part in gone if part in summary] == []


@each_session
def test_no_summary_is_more_than_a_fifth_of_the_first_history(facts: tuple[Fact, ...]) -> None:
    most = tokens(session(facts)) / 5
    for summary in rounds(facts):
        assert COUNTER.count(summary) <= most
