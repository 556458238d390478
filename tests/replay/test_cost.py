from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from policyctx.pricing.cache_rules import CacheRules
from policyctx.replay.cost import Cost, PromptSize, billed_calls, cost_of, costs_of
from policyctx.replay.simulation import simulated
from policyctx.replay.terms import CallTerms
from policyctx.tokens.usage import Usage
from tests.conversations import session_of, user
from tests.policies import policy
from tests.replay.sessions import recording, turn_by_turn

if TYPE_CHECKING:
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.replay.cost import BilledCall
    from policyctx.replay.recording import Recording

LONG = "one more line of some output\n" * 400
CACHE = "model: {cache: {ttl: 5m, min_tokens: 1024}}\n"
KEEPS_ALL = policy(CACHE)
CLEARS_EACH = policy(f"""{CACHE}
items: {{tool_result: {{offload: true}}}}
steps: [{{name: clear, do: clear, select: {{types: [tool_result], keep_recent: 1}}}}]
""")


TERMS = CallTerms("m", 200_000, CacheRules("prefix", 1024), ttl=300)


def test_a_write_for_an_hour_is_counted_apart_and_lasts_for_it() -> None:
    hour = replace(TERMS, ttl=3600)
    found = cost_of(PromptSize(5_000, 4_000), 3600.0, hour)
    assert found == Cost(cache_read=4_000, cache_write=1_000, cache_write_1h=1_000)
    assert cost_of(PromptSize(5_000, 4_000), 3601.0, hour).cache_read == 0


def test_a_provider_that_takes_nothing_for_writes_bills_input() -> None:
    free = replace(TERMS, cache=CacheRules("prefix", 1024, bills_writes=False))
    assert cost_of(PromptSize(5_000, 4_000), 1.0, free) == Cost(cache_read=4_000, input=1_000)
    assert cost_of(PromptSize(5_000, 4_000), 1.0, replace(TERMS, cache=None)) == Cost(input=5_000)


def billed(recorded: Recording, under: OffloadPolicy = KEEPS_ALL) -> tuple[BilledCall, ...]:
    return billed_calls(simulated(recorded, under).calls)


def test_the_prefix_of_the_previous_call_is_read_and_the_rest_written() -> None:
    assert cost_of(PromptSize(5_000, 4_000), 10.0, TERMS) == Cost(
        cache_read=4_000, cache_write=1_000
    )


@pytest.mark.parametrize(("idle", "read"), [(300.0, 4_000), (300.5, 0), (None, 4_000)])
def test_nothing_is_read_after_the_ttl(idle: float | None, read: int) -> None:
    found = cost_of(PromptSize(5_000, 4_000), idle, TERMS)
    assert found == Cost(cache_read=read, cache_write=5_000 - read)


@pytest.mark.parametrize(("shared", "read"), [(1_023, 0), (1_024, 1_024)])
def test_a_beginning_below_the_minimum_was_not_cached(shared: int, read: int) -> None:
    assert cost_of(PromptSize(2_000, shared), 1.0, TERMS).cache_read == read


def test_a_prompt_below_the_minimum_costs_the_price_of_input() -> None:
    assert cost_of(PromptSize(1_023, 900), 1.0, TERMS) == Cost(input=1_023)


def test_a_session_that_only_grows_writes_each_token_once() -> None:
    recorded = turn_by_turn(session_of(*[LONG] * 5))
    calls = billed(recorded)
    costs = costs_of(calls)
    assert costs.unedited == costs.edited
    assert costs.unedited.cache_write == calls[-1].unedited.tokens


def test_a_policy_that_keeps_rewriting_sent_messages_writes_more() -> None:
    recorded = turn_by_turn(session_of(*[LONG] * 30))
    costs = costs_of(billed(recorded, CLEARS_EACH))
    assert costs.edited.prompt < costs.unedited.prompt
    assert costs.edited.uncached > costs.unedited.uncached


def test_saved_tokens_are_subtracted_at_the_providers_scale() -> None:
    messages = session_of(*[LONG] * 6)
    sizes = [call.unedited.tokens for call in simulated(turn_by_turn(messages), KEEPS_ALL).calls]
    usages = [Usage(round(1.5 * size) + 20_000) for size in sizes]
    calls = billed(turn_by_turn(messages, usages=usages), CLEARS_EACH)
    last = calls[-1]
    spared = last.call.unedited.tokens - last.call.edited.tokens
    assert last.unedited.tokens == usages[-1].prompt
    assert last.unedited.tokens - last.edited.tokens == pytest.approx(1.5 * spared, rel=0.05)


def test_unexplained_tokens_are_counted_at_the_beginning_and_shared() -> None:
    first, again = session_of(LONG), [user("something else"), *session_of(LONG)[1:]]
    sizes = [c.unedited.tokens for c in simulated(recording(first, again), KEEPS_ALL).calls]
    usages = [Usage(size + 20_000) for size in sizes]
    calls = billed(recording(first, again, anew=[1], usages=usages))
    assert calls[0].unedited.shared == 0
    assert calls[1].unedited.shared == 20_000


def test_each_language_model_has_a_cache_of_its_own() -> None:
    recorded = turn_by_turn(session_of(LONG, LONG, LONG))
    named = zip(recorded.calls, ("small", "large", "small"), strict=True)
    calls = tuple(replace(call, language_model=model) for call, model in named)
    found = simulated(replace(recorded, calls=calls), KEEPS_ALL).calls
    assert [call.unedited.shared_messages for call in found] == [0, 0, 1]


def test_another_system_prompt_shares_nothing() -> None:
    recorded = turn_by_turn(session_of(LONG, LONG, LONG))
    named = zip(recorded.calls, ("be brief", "be brief", "be kind"), strict=True)
    calls = tuple(replace(call, system=system) for call, system in named)
    found = simulated(replace(recorded, calls=calls), KEEPS_ALL).calls
    assert [call.unedited.shared > 0 for call in found] == [False, True, False]
