from __future__ import annotations

import json
from functools import cache

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from tests.compaction.extractive.sessions import Fact, Message, facts_of, turns
from tests.compaction.extractive.summaries import after

ROUNDS = 5
# The agent's words are kept as far as there is room.
LEAST_OF_AGENT = 0.6
COUNTER = counter_for("o200k_base")
SESSIONS = ("migration", "pipeline", "journey", "checkout", "errands", "novel")

each_session = pytest.mark.parametrize("facts", [facts_of(name) for name in SESSIONS], ids=SESSIONS)


def tokens(value: object) -> int:
    return COUNTER.count(json.dumps(value, ensure_ascii=False))


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


@each_session
def test_what_user_said_stays_in_five_rounds_and_most_of_the_rest(facts: tuple[Fact, ...]) -> None:
    taken_back = {part for fact in facts for part in fact.lost}
    for summary in rounds(facts):
        said = [part for fact in facts if fact.by == "user" for part in fact.kept]
        assert [part for part in said if part not in summary and part not in taken_back] == []
        other = [part for fact in facts if fact.by == "assistant" for part in fact.kept]
        assert sum(part in summary for part in other) >= LEAST_OF_AGENT * len(other)


@each_session
def test_no_summary_is_more_than_a_fifth_of_the_first_history(facts: tuple[Fact, ...]) -> None:
    most = tokens(session(facts)) / 5
    for summary in rounds(facts):
        assert COUNTER.count(summary) <= most
