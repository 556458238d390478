"""Each line of the net cost, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.cost import billed_calls, scales_of
from policyctx.replay.running import SUMMARISE_ONLY, summarise_only
from policyctx.replay.simulated import Need, Regret, SimulatedSession, SummaryCall
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import Net, figures_of, net_of, total, used_ranges
from policyctx.tokens.usage import Usage
from tests.conversations import call, results, session_of, user
from tests.policies import policy
from tests.replay.sessions import recording, turn_by_turn

PRICE = "price: {input: 3, cache_write: 4, cache_write_1h: 6, cache_read: 0.5, output: 20}"
MODEL = f"model: {{context_window: 100000, cache: {{min_tokens: 1}}, {PRICE}}}\n"
KEEPS_ALL = policy(MODEL)
CLEARS_ALL_BUT_ONE = policy(
    MODEL
    + dedent("""
        items: {tool_result: {offload: true}}
        steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
        placeholder: "[gone]"
    """)
)
WORDS = "nothing much to see in these few words " * 20
MILLION = 1_000_000


def talk(*texts: str, end: str = "done") -> list[dict[str, Any]]:
    """A task, then a call with its result for each text, and an answer; ids are r0, r1, …"""
    messages = [user("the task")]
    for i, text in enumerate(texts):
        messages += [call(f"r{i}", "look", {"at": str(i)}), results((f"r{i}", text))]
    return [*messages, {"role": "assistant", "content": end}]


def used(under: OffloadPolicy = CLEARS_ALL_BUT_ONE) -> SimulatedSession:
    """The reply to the third of five calls uses what the first result held."""
    needs = {"role": "assistant", "content": "see QX-48213-B"}
    told = talk(f"{WORDS}\nticket QX-48213-B\n{WORDS}", WORDS)[:-1]
    told += [needs, user(), {"role": "assistant", "content": "well"}, user()]
    told += [{"role": "assistant", "content": "done"}]
    return simulated(turn_by_turn(told), under)


def net(session: SimulatedSession) -> Net:
    return net_of(session, billed_calls(session))


def test_the_net_is_the_cost_with_the_policy_less_the_one_without() -> None:
    session = simulated(turn_by_turn(session_of(*[WORDS] * 6)), CLEARS_ALL_BUT_ONE)
    found = net(session)
    costs = figures_of(session).costs
    assert session.regrets == ()
    assert found.without.dollars.total == pytest.approx(costs.unedited.dollars.prompt)
    assert found.edited.dollars.total == pytest.approx(costs.edited.dollars.prompt)
    saved = costs.unedited.dollars.prompt - costs.edited.dollars.prompt
    assert found.dollars == pytest.approx(-saved)
    assert found.tokens == costs.edited.prompt - costs.unedited.prompt < 0


def test_output_that_the_recording_has_is_not_in_the_net() -> None:
    usages = [Usage(500, output=10_000)] * 6
    session = simulated(turn_by_turn(session_of(*[WORDS] * 6), usages=usages), KEEPS_ALL)
    found = net(session)
    assert found.without.dollars.output == found.without.output == 0
    assert (found.dollars, found.output_dollars) == (0, 0)


def test_a_range_that_was_used_is_read_again_once() -> None:
    session = used()
    [regret] = session.regrets
    [need] = regret.needs
    calls = billed_calls(session)
    found = net(session).re_reads
    assert (need.kind, need.call, len(calls)) == ("used", 3, 5)
    tokens, prompt, output = need.tokens, calls[2].edited, session.tool_call_output
    assert tokens > 0
    assert output > 0
    # An extra call reads its prompt; the range is written once, and read by two later calls.
    assert found.number == 1
    assert found.dollars.cache_read * MILLION == pytest.approx(0.5 * (prompt + 2 * tokens))
    assert found.dollars.cache_write * MILLION == pytest.approx(4 * tokens)
    assert found.dollars.output * MILLION == pytest.approx(20 * output)
    assert (found.tokens, found.output) == (prompt + 3 * tokens, output)


def test_all_that_one_reply_needs_is_read_again_in_one_call() -> None:
    signs = ("QX-48213-B", "RM-77120-C", "KD-90341-A")
    first = f"{WORDS}\nticket {signs[0]}\n{WORDS}\nroom {signs[1]}\n{WORDS}"
    told = talk(first, f"{WORDS}\nkey {signs[2]}\n{WORDS}", WORDS)[:-1]
    for said in (" ".join(f"see {sign}" for sign in signs), "well", "done"):
        told += [{"role": "assistant", "content": said}, user()]
    session = simulated(turn_by_turn(told[:-1]), CLEARS_ALL_BUT_ONE)
    needs = [need for regret in session.regrets for need in regret.needs]
    assert (len(session.regrets), [need.call for need in needs]) == (2, [4, 4])
    tokens, prompt = sum(need.tokens for need in needs), billed_calls(session)[3].edited
    found = net(session).re_reads
    # One extra call reads its prompt; all ranges are written once, and read by two later calls.
    assert (found.number, found.output) == (1, session.tool_call_output)
    assert found.tokens == prompt + 3 * tokens
    assert found.dollars.cache_read * MILLION == pytest.approx(0.5 * (prompt + 2 * tokens))
    assert found.dollars.cache_write * MILLION == pytest.approx(4 * tokens)


def test_each_reply_that_needs_something_has_a_call_of_its_own() -> None:
    told = talk(f"{WORDS}\nticket QX-48213-B\n{WORDS}\nroom RM-77120-C\n{WORDS}", WORDS)[:-1]
    for said in ("see QX-48213-B", "and RM-77120-C"):
        told += [{"role": "assistant", "content": said}, user()]
    session = simulated(turn_by_turn(told[:-1]), CLEARS_ALL_BUT_ONE)
    [regret] = session.regrets
    assert [need.call for need in regret.needs] == [3, 4]
    assert net(session).re_reads.number == 2


def test_a_range_is_written_for_as_long_as_the_call_writes() -> None:
    hour = policy(MODEL.replace("min_tokens: 1", "min_tokens: 1, ttl: 1h"))
    document = CLEARS_ALL_BUT_ONE.policy.model_copy(update={"model": hour.policy.model})
    session = used(type(hour)(document))
    [regret] = session.regrets
    written = net(session).re_reads.dollars.cache_write
    assert written * MILLION == pytest.approx(6 * regret.needs[0].tokens)


def test_what_is_asked_again_costs_nothing_extra() -> None:
    told = talk(WORDS, "something else", WORDS)
    told[5]["content"][0]["input"] = told[1]["content"][0]["input"]
    session = simulated(turn_by_turn(told), CLEARS_ALL_BUT_ONE)
    assert {need.kind for regret in session.regrets for need in regret.needs} == {"asked again"}
    assert net(session).re_reads.number == 0


def test_ranges_of_an_item_are_charged_no_more_than_the_item_took() -> None:
    [regret] = used().regrets
    need = regret.needs[0]
    whole = regret.removal.tokens
    needs = (
        replace(need, tokens=whole - 5),
        replace(need, tokens=9, call=4),
        replace(need, tokens=7, call=5),
    )
    assert list(used_ranges(Regret(regret.removal, needs))) == [(3, whole - 5), (4, 5)]


def test_a_range_that_was_asked_for_before_it_was_used_is_not_charged() -> None:
    [regret] = used().regrets
    asked = Need("asked again", 2, "r1", ("x",), tokens=regret.removal.tokens)
    assert list(used_ranges(Regret(regret.removal, (asked, *regret.needs)))) == []


def test_the_output_of_a_re_read_is_that_of_the_median_call_of_a_tool() -> None:
    told = session_of(*[WORDS] * 3)
    usages = [Usage(500, output=n) for n in (10, 70, 30, 900)]
    told += [{"role": "assistant", "content": "done"}]
    # The last reply calls no tool.
    assert simulated(turn_by_turn(told, usages=usages), KEEPS_ALL).tool_call_output == 30


def test_a_reply_has_no_less_output_than_what_it_says() -> None:
    told = talk(*[WORDS] * 3)
    unbilled = simulated(turn_by_turn(told), KEEPS_ALL).tool_call_output
    pieces = simulated(turn_by_turn(told, usages=[Usage(500, output=1)] * 3), KEEPS_ALL)
    assert pieces.tool_call_output == unbilled > 1


SUMMARISES = """
    steps: [{name: sum-up, do: compact, when: {tokens: {at_least: 600}}}]
    compaction: {keep_recent: {messages: 1}, summary: SUMMARY}
"""
ASKED_PRICE = "price: {input: 1, cache_write: 2, cache_read: 0.1, output: 5}"


def summarising(summary: str, model: str = MODEL) -> SimulatedSession:
    under = policy(model + dedent(SUMMARISES).replace("SUMMARY", summary))
    session = simulated(turn_by_turn(session_of(*[WORDS] * 12)), under)
    assert session.compactions > 0
    return session


def test_a_summary_of_the_text_alone_costs_nothing() -> None:
    session = summarising("{by: extractive}")
    assert net(session).summaries.number == 0


def test_the_summary_of_a_model_costs_its_prompt_as_input_and_its_output() -> None:
    session = summarising(f"{{by: anthropic, {ASKED_PRICE}}}")
    found = net(session).summaries
    assert found.number == session.compactions
    assert found.tokens == sum(one.prompt for one in session.summaries) > 600
    assert found.output == sum(one.output for one in session.summaries) > 0
    assert found.dollars.input * MILLION == pytest.approx(1 * found.tokens)
    assert found.dollars.output * MILLION == pytest.approx(5 * found.output)
    assert found.dollars.cache_read == found.dollars.cache_write == 0


def test_without_a_price_of_its_own_a_summary_costs_what_the_policy_says_of_the_model() -> None:
    found = net(summarising("{by: anthropic}")).summaries
    assert found.dollars.input * MILLION == pytest.approx(3 * found.tokens)


def test_without_any_price_of_the_policy_a_summary_costs_what_its_model_does() -> None:
    named = "model: {name: claude-sonnet-4-5, context_window: 100000}\n"
    found = net(summarising("{by: anthropic, model: claude-haiku-4-5}", named)).summaries
    assert found.dollars.input * MILLION == pytest.approx(1 * found.tokens)
    assert found.dollars.output * MILLION == pytest.approx(5 * found.output)


IN_PLACE = "{by: anthropic, reuse_cache: true, model: claude-sonnet-4-5}"


def test_a_summary_that_reuses_the_cache_reads_what_the_last_call_was_sent() -> None:
    session = summarising(IN_PLACE)
    found = net(session).summaries
    read = sum(one.read for one in session.summaries)
    assert found.tokens == sum(one.prompt for one in session.summaries) > read > 0
    assert found.dollars.cache_read * MILLION == pytest.approx(0.5 * read)
    assert found.dollars.input * MILLION == pytest.approx(3 * (found.tokens - read))


def test_a_summary_writes_what_has_expired_to_the_cache() -> None:
    under = policy(MODEL + dedent(SUMMARISES).replace("SUMMARY", IN_PLACE))
    told = session_of(*[WORDS] * 12)
    slow = simulated(turn_by_turn(told, times=[1_000.0 * i for i in range(13)]), under)
    written = sum(one.written for one in slow.summaries)
    found = net(slow).summaries
    assert [one.read for one in slow.summaries] == [0] * slow.compactions
    assert written > 0
    assert found.dollars.cache_write * MILLION == pytest.approx(4 * written)
    assert found.dollars.cache_read == 0


def test_a_registered_summarizer_costs_what_the_recorded_model_does() -> None:
    named = "model: {name: claude-sonnet-4-5, context_window: 100000}\n"
    found = net(summarising("{by: ours}", named)).summaries
    assert found.dollars.input * MILLION == pytest.approx(3 * found.tokens)


def test_a_summary_is_billed_at_the_scale_of_the_session() -> None:
    told = session_of(*[WORDS] * 30)
    plain = simulated(turn_by_turn(told), KEEPS_ALL)
    usages = [Usage(2 * one.unedited.tokens) for one in plain.calls]
    doubled = simulated(turn_by_turn(told, usages=usages), KEEPS_ALL)
    factor = scales_of(doubled.calls)[2].factor
    asked = net(replace(doubled, summaries=(SummaryCall(3, 1_000, 100),)))
    assert factor > 1.1
    assert asked.summaries.tokens == round(1_000 * factor)
    assert asked.summaries.output == round(100 * factor)


@pytest.mark.parametrize(
    ("more", "is_dearer"), [(0.009, False), (0.011, True), (0.0, False), (-1.0, False)]
)
def test_a_session_is_dearer_by_more_than_a_cent(more: float, *, is_dearer: bool) -> None:
    assert priced(without=0.5, more=more).is_dearer == is_dearer


@pytest.mark.parametrize(("more", "is_dearer"), [(0.99, False), (1.01, True)])
def test_a_session_is_dearer_by_more_than_a_hundredth(more: float, *, is_dearer: bool) -> None:
    assert priced(without=100.0, more=more).is_dearer == is_dearer


def priced(without: float, more: float) -> Net:
    empty = Net()
    dollars = empty.without.dollars
    return Net(
        replace(empty.without, dollars=replace(dollars, input=without)),
        replace(empty.edited, dollars=replace(dollars, input=without + more)),
    )


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.sampled_from(["", "system"]))
def test_the_net_of_a_policy_that_does_nothing_is_zero(sizes: list[int], extra: str) -> None:
    told = session_of(*["word " * size + extra for size in sizes])
    found = net(simulated(turn_by_turn(told), KEEPS_ALL))
    assert (found.dollars, found.tokens, found.output) == (0, 0, 0)
    assert not found.is_dearer


def test_the_net_of_sessions_is_the_sum_of_theirs() -> None:
    sessions = [
        used(),
        simulated(turn_by_turn(session_of(*[WORDS] * 6)), CLEARS_ALL_BUT_ONE),
        summarising("{by: anthropic}"),
    ]
    nets = [net(session) for session in sessions]
    together = total(map(figures_of, sessions)).net
    assert together.dollars == pytest.approx(sum(one.dollars for one in nets))
    assert together.tokens == sum(one.tokens for one in nets)
    assert together.output_dollars == pytest.approx(sum(one.output_dollars for one in nets))


def test_a_session_without_prices_has_tokens_and_no_dollars() -> None:
    session = used(policy(dedent(STEPS_ALONE)))
    found = net(session)
    assert found.re_reads.tokens > 0
    assert found.tokens != 0
    assert found.dollars == found.output_dollars == 0
    figures = figures_of(session)
    assert (figures.priced, figures.dearer, figures.idle, figures.worst) == (0, 0, 0, None)


STEPS_ALONE = """
    items: {tool_result: {offload: true}}
    steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
    placeholder: "[gone]"
"""


def test_figures_count_dearer_and_idle_sessions_and_name_the_worst() -> None:
    kept = replace(used(KEEPS_ALL), name="kept")
    dear = used()
    prices = [call._replace(terms=replace(call.terms, prices=DEAR)) for call in dear.calls]
    found = total(map(figures_of, [kept, replace(dear, name="dear", calls=tuple(prices))]))
    assert (found.sessions, found.priced, found.dearer, found.idle) == (2, 2, 1, 1)
    assert found.worst is not None
    assert found.worst.name == "dear"
    assert found.worst.dollars == pytest.approx(found.net.dollars)


_TERMS = used().calls[0].terms.prices
assert _TERMS is not None
DEAR = _TERMS._replace(base=_TERMS.base._replace(output=10_000.0))


def test_summarise_only_has_the_compacting_step_of_the_policy_alone() -> None:
    text = MODEL + dedent("""
        items: {tool_result: {offload: true}}
        steps:
          - {name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}
          - {name: sum-up, do: compact, when: {tokens: {at_least: 30%}}}
    """)
    given_policy = policy(text)
    alone = summarise_only(given_policy)
    assert [step.name for step in alone.all_steps] == ["sum-up"]
    assert alone.all_steps[0] == given_policy.all_steps[1]
    assert alone.model == given_policy.model


def test_summarise_only_summarises_at_80_percent_where_the_policy_never_does() -> None:
    text = MODEL.replace("100000", "4000") + "compaction: {keep_recent: {messages: 3}}\n"
    alone = summarise_only(policy(text))
    session = simulated(turn_by_turn(session_of(*[WORDS] * 30)), alone)
    first = next(call for call in session.calls if call.compacted)
    assert 3_200 <= first.unedited.tokens < 3_500
    [step] = alone.all_steps
    assert alone.compaction(step).keep_recent.messages == 3
    assert {one.step for one in session.removals} == {SUMMARISE_ONLY}


def test_a_policy_that_only_summarises_is_its_own_baseline() -> None:
    own = policy(MODEL + "steps: [{name: sum-up, do: compact}]")
    assert summarise_only(own) is own


CLEARS = "items: {tool_result: {offload: true}}\nsteps: [{name: clear, do: clear, select: SELECT}]"


@pytest.mark.parametrize(
    ("text", "told", "reason"),
    [
        (
            CLEARS.replace("SELECT", "{keep_recent: 1}"),
            [],
            "no tool result is sent to a model",
        ),
        (CLEARS.replace("SELECT", "{}"), [WORDS] * 2, "every result is below min_tokens"),
        (
            CLEARS.replace("SELECT", "{keep_recent: 9}"),
            [WORDS] * 3,
            "keep_recent keeps every result",
        ),
        (MODEL, [WORDS], "the policy has no step"),
        (
            CLEARS.replace("SELECT", "{keep_recent: 1}, when: {tokens: {at_least: 90000}}"),
            [WORDS] * 3,
            "the gate of every step that selects items stayed closed",
        ),
    ],
)
def test_a_reason_says_why_nothing_was_taken(text: str, told: list[str], reason: str) -> None:
    if "min_tokens" in reason:
        text += "\nmin_tokens: 5000"
    session = simulated(
        turn_by_turn(session_of(*told)) if told else recording([user("hello")]), policy(text)
    )
    assert session.removals == ()
    assert session.untouched == reason


def test_a_session_of_which_something_was_taken_has_no_such_reason() -> None:
    assert used().untouched == ""
