from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from policyctx.messages.markers import MarkedBlock
from policyctx.planning.compiled import OffloadPolicy
from policyctx.pricing.rows import CacheRules
from policyctx.replay import cache
from policyctx.replay.cache import LAYOUTS
from policyctx.replay.cost import LAYOUT_MEANINGS, BilledCall, Cost, Ttls, billed_calls, costs_of
from policyctx.replay.recording import ClientLayout, MarkedPlace, Recording
from policyctx.replay.simulation import simulated
from policyctx.tokens.usage import Usage
from tests.conversations import session_of, user
from tests.policies import policy
from tests.replay.sessions import recording, turn_by_turn

LONG = "one more line of some output\n" * 400
CACHE = "model: {name: claude-sonnet-4-5, cache: {min_tokens: 1}}\n"
KEEPS_ALL = policy(CACHE)
EACH = """
        items: {tool_result: {offload: true}}
        steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
"""
CLEARS_EACH = policy(CACHE + dedent(EACH))


def billed(recorded: Recording, under: OffloadPolicy = KEEPS_ALL) -> tuple[BilledCall, ...]:
    return billed_calls(simulated(recorded, under))


def of_input(call: BilledCall) -> Cost:
    """Return the cost of a call whose whole prompt is plain input."""
    return Cost(input=call.unedited, dollars=call.costs.unedited.dollars)


def reads(recorded: Recording) -> list[int]:
    return [call.costs.unedited.cache_read for call in billed(recorded)]


def test_what_the_call_before_was_sent_is_read_and_the_rest_written() -> None:
    calls = billed(turn_by_turn(session_of(*[LONG] * 3)))
    assert [call.costs.unedited.cache_read for call in calls[1:]] == [
        before.unedited for before in calls[:-1]
    ]
    assert all(call.costs.unedited.prompt == call.unedited for call in calls)


@pytest.mark.parametrize(("idle", "is_read"), [(300.0, True), (300.5, False), (None, True)])
def test_nothing_is_read_after_the_ttl(idle: float | None, is_read: bool) -> None:
    times = [0, idle] if idle is not None else []
    _, second = billed(recording(session_of(LONG), session_of(LONG)[1:], times=times))
    assert (second.costs.unedited.cache_read > 0) == is_read


def test_a_ttl_belongs_to_each_write() -> None:
    messages = session_of(*[LONG] * 3)
    usages = [Usage(0, 0, 9_000, cache_write_1h=9_000), Usage(0, 9_000, 3_000, cache_write_1h=0)]
    groups = messages[:3], messages[3:5], messages[5:]
    first, second, third = billed(recording(*groups, usages=usages, times=[0, 3_000, 3_400]))
    assert [call.ttls.rest for call in (first, second, third)] == [3_600, 300, 300]
    assert first.costs.unedited.cache_write_1h == first.costs.unedited.cache_write
    assert second.costs.unedited.cache_read == first.unedited
    assert second.costs.unedited.cache_write_1h == 0
    # Five minutes later the hour's entry is still there.
    assert third.costs.unedited.cache_read == first.unedited


def test_a_call_that_does_not_say_its_ttl_has_the_last_known_one() -> None:
    messages = session_of(*[LONG] * 2)
    usages = [None, Usage(0, 0, 9_000, cache_write_1h=9_000), None]
    calls = billed(recording(messages[:1], messages[1:3], messages[3:], usages=usages))
    assert [call.ttls for call in calls] == [
        Ttls(300, 300, is_assumed=True),
        Ttls(3_600, 3_600),
        Ttls(3_600, 3_600, is_assumed=True),
    ]


@pytest.mark.parametrize(
    ("name", "second", "is_billed"),
    [
        ("gpt-5.6-sol", Usage(2_000, 3_000, cache_write_1h=0), False),
        ("gpt-5.6-sol", Usage(2_000, 3_000), True),  # which does not speak of writes
        ("gpt-5.6-sol", Usage(1_000, 3_000, 1_000), True),
        ("claude-sonnet-4-5", Usage(2_000, 3_000, cache_write_1h=0), True),
    ],
)
def test_writes_cost_the_price_of_input_where_the_bills_read_what_none_says_was_written(
    name: str, second: Usage, is_billed: bool
) -> None:
    groups = session_of(LONG)[:1], session_of(LONG)[1:]
    recorded = recording(*groups, usages=[Usage(4_000, cache_write_1h=0), second])
    calls = tuple(replace(call, language_model=name) for call in recorded.calls)
    found = costs_of(billed(replace(recorded, calls=calls)))
    assert (found.unedited.cache_write > 0) == is_billed
    assert found.unedited.prompt == 9_000


def test_a_prompt_below_the_minimum_costs_the_price_of_input() -> None:
    short = recording([user("be brief")])
    long_enough = policy("model: {cache: {min_tokens: 1024}}")
    [call] = billed(short, long_enough)
    assert call.costs.unedited == Cost(input=call.unedited)


def test_a_session_that_only_grows_writes_each_token_once() -> None:
    recorded = turn_by_turn(session_of(*[LONG] * 5))
    calls = billed(recorded)
    costs = costs_of(calls)
    assert costs.unedited == costs.edited
    assert costs.unedited.cache_write == calls[-1].unedited


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
    assert last.unedited == usages[-1].prompt
    assert last.unedited - last.edited == pytest.approx(1.5 * spared, rel=0.05)


def test_unexplained_tokens_are_counted_at_the_beginning_and_read_again() -> None:
    first, again = session_of(LONG), [user("something else"), *session_of(LONG)[1:]]
    sizes = [c.unedited.tokens for c in simulated(recording(first, again), KEEPS_ALL).calls]
    usages = [Usage(size + 20_000) for size in sizes]
    assert reads(recording(first, again, anew=[1], usages=usages)) == [0, 20_000]


def test_each_language_model_has_a_cache_of_its_own() -> None:
    recorded = turn_by_turn(session_of(LONG, LONG, LONG))
    named = zip(recorded.calls, ("small", "large", "small"), strict=True)
    calls = tuple(replace(call, language_model=model) for call, model in named)
    found = billed(replace(recorded, calls=calls))
    assert [call.costs.unedited.cache_read for call in found] == [0, 0, found[0].unedited]
    assert [call.is_first for call in found] == [True, True, False]


def test_another_system_prompt_shares_nothing() -> None:
    recorded = turn_by_turn(session_of(LONG, LONG, LONG))
    named = zip(recorded.calls, ("be brief", "be brief", "be kind"), strict=True)
    calls = tuple(replace(call, system=system) for call, system in named)
    assert [read > 0 for read in reads(replace(recorded, calls=calls))] == [False, True, False]


def test_every_layout_has_a_cost_and_a_meaning() -> None:
    costs = costs_of(billed(turn_by_turn(session_of(*[LONG] * 12)), CLEARS_EACH))
    assert tuple(costs.layouts) == LAYOUTS == tuple(LAYOUT_MEANINGS)
    assert len({pair.edited.prompt for pair in costs.layouts.values()}) == 1
    ideal, client = costs.of("ideal").edited, costs.edited
    assert client == costs.of("recorded").edited
    assert ideal.cache_read > client.cache_read


def test_an_edit_under_the_clients_breakpoints_writes_the_whole_history_again() -> None:
    session = simulated(turn_by_turn(session_of(*[LONG] * 30)), CLEARS_EACH)
    usages = [Usage(20_000 + call.unedited.tokens) for call in session.calls]
    recorded = turn_by_turn(session_of(*[LONG] * 30), usages=usages)
    for call in billed(recorded, CLEARS_EACH)[3:]:
        assert call.costs.edited.cache_read == pytest.approx(20_000, abs=10)


def test_recorded_markers_say_where_the_breakpoints_are() -> None:
    recorded = turn_by_turn(session_of(LONG, LONG))
    marked = recorded.calls[0], replace(recorded.calls[1], marks=(marker(0),))
    first = billed(replace(recorded, calls=(replace(marked[0], marks=()), marked[1])))
    assert first[0].costs.unedited == of_input(first[0])
    assert first[1].costs.unedited.cache_write < first[1].unedited


def test_a_client_without_breakpoints_caches_nothing() -> None:
    session = simulated(turn_by_turn(session_of(LONG, LONG)), KEEPS_ALL)
    bare = replace(session, layout=ClientLayout(head=False, newest=False))
    for call in billed_calls(bare):
        assert call.costs.unedited == of_input(call)
        assert call.costs.of("last").unedited.input == 0


def test_anchors_before_the_next_edit_spare_what_stands_before_it() -> None:
    costs = costs_of(billed(turn_by_turn(session_of(*[LONG] * 30)), CLEARS_EACH))
    auto, ideal, client = (costs.of(name).edited for name in ("auto", "ideal", "recorded"))
    assert auto.cache_read == pytest.approx(ideal.cache_read, rel=0.01)
    assert auto.cache_read > 2 * client.cache_read
    assert costs.of("auto").unedited == costs.of("recorded").unedited


def test_the_cost_of_a_policy_is_that_of_the_breakpoints_that_it_sends() -> None:
    recorded = turn_by_turn(session_of(*[LONG] * 12))
    anchored = policy(f"""
        model: {{name: claude-sonnet-4-5, cache: {{min_tokens: 1, breakpoints: auto}}}}
        {EACH}
    """)
    costs = costs_of(billed(recorded, anchored))
    assert costs.edited == costs.of("auto").edited
    assert costs.unedited == costs.of("recorded").unedited


UNNAMED = "model: {cache: {min_tokens: 1}}\n"  # a cache that finds the longest prefix


@pytest.mark.parametrize(
    ("under", "caches"),
    [
        (policy(UNNAMED), 1),
        (policy(UNNAMED + dedent(EACH)), 2),
        (KEEPS_ALL, len(LAYOUTS)),
        (CLEARS_EACH, 2 * len(LAYOUTS) - 1),
    ],
)
def test_a_list_is_priced_once_under_each_layout_that_makes_a_difference(
    under: OffloadPolicy, caches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    simulator_of = cache.simulator_of

    def counted(rules: CacheRules, layout: cache.LayoutName) -> cache.CacheSimulator:
        made.append(layout)
        return simulator_of(rules, layout)

    monkeypatch.setattr(cache, "simulator_of", counted)
    calls = billed(turn_by_turn(session_of(*[LONG] * 6)), under)
    assert len(made) == caches
    if caches < len(LAYOUTS):
        both = costs_of(calls).unedited, costs_of(calls).edited
        assert {costs_of(calls).of(layout) for layout in LAYOUTS} == {both}


def marker(message: int) -> MarkedPlace:
    return MarkedPlace(message, MarkedBlock(0))


def told(*reads: int, times: tuple[float, ...] = (0, 10, 20)) -> Recording:
    """A recording of three calls with these reads on their bills."""
    messages = session_of(*[LONG] * 3)
    groups = messages[:3], messages[3:5], messages[5:]
    sizes = 9_000, 12_000, 15_000
    usages = [
        Usage(0, read, size - read, cache_write_1h=0)
        for read, size in zip(reads, sizes, strict=True)
    ]
    return recording(*groups, usages=usages, times=times)


@pytest.mark.parametrize(
    ("billed_reads", "times"),
    [
        pytest.param((0, 9_000, 0), (0, 10, 20), id="lost"),
        pytest.param((0, 0, 12_000), (0, 10, 20), id="lost-and-written-again"),
        pytest.param((0, 4_000, 12_000), (0, 10, 20), id="a-part-was-lost"),
        pytest.param((0, 9_000, 12_000), (0, 10, 900), id="kept-longer"),
        pytest.param((0, 9_000, 10_000), (0, 10, 900), id="a-part-was-kept-longer"),
        pytest.param((7_000, 9_000, 12_000), (0, 10, 20), id="another-session-wrote-it"),
    ],
)
def test_what_a_bill_says_of_the_cache_is_believed(
    billed_reads: tuple[int, ...], times: tuple[float, ...]
) -> None:
    assert reads(told(*billed_reads, times=times)) == [*billed_reads]


def test_the_rules_alone_are_kept_beside_what_the_bill_says() -> None:
    calls = billed(told(7_000, 0, 12_000))
    assert [call.foreseen for call in calls] == [0, 9_000, 12_000]


def test_what_was_lost_is_lost_under_a_policy_too() -> None:
    lost, found = told(0, 9_000, 0), told(0, 9_000, 12_000)
    *_, last = billed(lost, CLEARS_EACH)
    assert last.edited < last.unedited
    assert last.costs.edited.cache_read == 0
    *_, last = billed(found, CLEARS_EACH)
    assert last.costs.edited.cache_read > 0


def test_a_bill_without_a_cache_says_nothing_of_it() -> None:
    messages = session_of(*[LONG] * 2)
    usages = [Usage(9_000), Usage(12_000)]
    first, second = billed(recording(messages[:3], messages[3:], usages=usages))
    assert second.costs.unedited.cache_read == first.unedited
