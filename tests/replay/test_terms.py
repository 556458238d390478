"""The terms of recorded calls: prices, windows and times of writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from policyctx.policy.models import Model
from policyctx.pricing.rows import row_of
from policyctx.replay.recording import Recording
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import contradicting, figures_of, total
from policyctx.replay.terms import UNNAMED, contradictions, terms_of
from policyctx.tokens.usage import Usage
from tests.conversations import chat_calls, chat_result, session_of, user
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

OPUS, SONNET = "claude-opus-4-8", "claude-sonnet-4-5-20250929"
HOUR, MINUTES = Usage(1, 0, 100, 0, 100), Usage(1, 0, 100, 0, 0)
UNTOLD, NOTHING = Usage(1, 0, 100), Usage(1, 100, 0, 0, 0)
PRICE = {"input": 5, "cache_write": 6.25, "cache_read": 0.5, "output": 25}


def calls(
    *usages: Usage | None, names: tuple[str | None, ...] = (OPUS,), at: float | None = None
) -> Recording:
    """A recording whose calls go to these models in turn."""
    made = turn_by_turn(session_of(*["x" * 400] * len(usages)), usages=usages)
    named = (
        replace(call, language_model=names[i % len(names)], at=at)
        for i, call in enumerate(made.calls)
    )
    return replace(made, calls=tuple(named)[: len(usages)])


def ttls(*usages: Usage | None, model: Model | None = None) -> list[tuple[int, bool]]:
    terms = terms_of(calls(*usages).calls, model or Model())
    return [(one.ttl, one.ttl_is_assumed) for one in terms]


def test_the_time_belongs_to_each_write() -> None:
    assert ttls(HOUR, MINUTES, HOUR) == [(3600, False), (300, False), (3600, False)]


def test_a_call_that_does_not_say_has_the_last_known_time_and_else_five_minutes() -> None:
    assert ttls(UNTOLD, HOUR, UNTOLD, None) == [
        (300, True),
        (3600, False),
        (3600, True),
        (3600, True),
    ]


def test_a_call_that_wrote_nothing_assumes_nothing() -> None:
    assert ttls(HOUR, NOTHING) == [(3600, False), (3600, False)]


def test_nothing_is_assumed_of_the_cache_of_an_unknown_model_that_wrote_nothing() -> None:
    recorded = calls(Usage(100), None, UNTOLD, names=("unheard-of",))
    assert [one.ttl_is_assumed for one in terms_of(recorded.calls, Model())] == [
        False,
        False,
        True,
    ]


def test_the_last_known_time_is_that_of_the_same_model() -> None:
    recorded = calls(HOUR, UNTOLD, UNTOLD, names=(OPUS, SONNET))
    assert [one.ttl for one in terms_of(recorded.calls, Model())] == [3600, 300, 3600]


def test_a_time_that_the_policy_sets_wins() -> None:
    five = Model.model_validate({"cache": {"ttl": "5m"}})
    assert ttls(HOUR, UNTOLD, model=five) == [(300, False)] * 2


def test_the_window_is_that_of_each_calls_model_unless_the_policy_sets_it() -> None:
    recorded = calls(HOUR, HOUR, HOUR, names=(OPUS, SONNET, "unheard-of")).calls
    assert [one.window for one in terms_of(recorded, Model())] == [1_000_000, 200_000, 200_000]
    own = Model.model_validate({"context_window": 200_000})
    assert {one.window for one in terms_of(recorded, own)} == {200_000}


def test_the_minimum_of_the_cache_is_that_of_the_model_unless_the_policy_sets_it() -> None:
    recorded = calls(HOUR, HOUR, names=("claude-opus-4-6", "unheard-of")).calls
    found = [one.cache.min_tokens if one.cache else 0 for one in terms_of(recorded, Model())]
    assert found == [4096, 1024]
    own = Model.model_validate({"cache": {"min_tokens": 7}})
    found = [one.cache.min_tokens if one.cache else 0 for one in terms_of(recorded, own)]
    assert found == [7, 7]


@pytest.mark.parametrize(("reads", "step"), [(9, 512), (8, 128)])
def test_a_prefix_is_found_in_the_steps_that_enough_reads_have(reads: int, step: int) -> None:
    usages = [Usage(600, 512 * (4 + 7 * i % 9) - 128) for i in range(reads)]
    [found] = {one.cache for one in terms_of(calls(*usages, names=("gpt-5.5",)).calls, Model())}
    assert found is not None
    assert found.step == step


def test_prices_are_those_of_the_day_or_of_today() -> None:
    march = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    recorded = calls(HOUR, names=("claude-opus-4-6",), at=march).calls
    [then], [now] = terms_of(recorded, Model()), terms_of(recorded, Model(), "today")
    assert then.prices is not None
    assert now.prices is not None
    assert (len(then.prices.above), len(now.prices.above)) == (1, 0)


def test_the_prices_of_the_policy_win() -> None:
    own = Model.model_validate({"price": {**PRICE, "input": 1}})
    [terms] = terms_of(calls(HOUR, names=("unheard-of",)).calls, own)
    assert terms.prices is not None
    assert terms.prices.base.input == 1


def test_a_call_without_a_name_is_to_the_model_of_the_policy() -> None:
    recorded = calls(HOUR, names=(None,)).calls
    [named] = terms_of(recorded, Model.model_validate({"name": OPUS}))
    assert named.prices is not None
    [unnamed] = terms_of(recorded, Model())
    assert (unnamed.prices, unnamed.language_model) == (None, UNNAMED)


KEEPS_ALL = policy("")
AUTO = policy("model: {cache: {breakpoints: auto}}")


def test_the_recorded_bill_is_that_of_each_call_at_its_own_price() -> None:
    usages = [Usage(10, 20_000, 3_000, 500, 3_000), Usage(10, 23_000, 1_000, 100, 0)]
    figures = figures_of(simulated(calls(*usages, names=(OPUS, SONNET)), KEEPS_ALL))
    opus = 10 * 5 + 20_000 * 0.5 + 3_000 * 10 + 500 * 25
    sonnet = 10 * 3 + 23_000 * 0.3 + 1_000 * 3.75 + 100 * 15
    assert figures.bill.total == pytest.approx((opus + sonnet) / 1e6)
    assert (figures.priced, figures.unpriced) == (1, {})
    assert figures.costs.unedited.dollars == figures.costs.edited.dollars


def test_untold_writes_are_billed_for_the_assumed_time() -> None:
    figures = figures_of(simulated(calls(HOUR, UNTOLD), KEEPS_ALL))
    assert figures.bill.cache_write == pytest.approx(200 * 10 / 1e6)
    assert figures.ttl_assumed == 1


def test_a_session_with_an_unknown_model_has_no_dollars_and_names_it() -> None:
    recorded = calls(HOUR, HOUR, HOUR, names=(OPUS, "unheard-of"))
    figures = figures_of(simulated(recorded, KEEPS_ALL))
    assert (figures.priced, figures.unpriced) == (0, {"unheard-of": 1})
    assert figures.costs.unedited.dollars.total == figures.bill.total == 0
    both = total([figures, figures_of(simulated(calls(HOUR), KEEPS_ALL))])
    assert (both.priced, both.sessions) == (1, 2)
    assert both.bill.total > 0


def test_a_large_prompt_is_billed_at_its_own_prices() -> None:
    row = row_of("claude-sonnet-4-5")
    assert row is not None
    usages = Usage(0, 0, 200_000, 0, 0), Usage(0, 0, 200_001, 0, 0)
    small, large = (
        figures_of(simulated(calls(usage, names=(SONNET,)), KEEPS_ALL)).bill.total
        for usage in usages
    )
    assert small == pytest.approx(200_000 * 3.75 / 1e6)
    assert large == pytest.approx(200_001 * 7.5 / 1e6)


def test_calls_over_the_window_are_those_over_the_window_of_their_model() -> None:
    usages = [Usage(300_000), Usage(300_000)]
    figures = figures_of(simulated(calls(*usages, names=(OPUS, SONNET)), KEEPS_ALL))
    assert figures.unedited.over_window == 1
    assert figures.windows == (200_000, 1_000_000)


def test_what_the_policy_sets_otherwise_is_named() -> None:
    wrong = policy(
        "model: {context_window: 200000, cache: {ttl: 5m},"
        " price: {input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}"
    )
    recorded = calls(HOUR, HOUR, MINUTES, UNTOLD)
    assert contradicting(figures_of(simulated(recorded, wrong))) == [
        "model.cache.ttl is 5m; 2 of 3 writes were for 1h",
        "model.context_window is 200,000; 4 of 4 calls were to claude-opus-4-8, which has"
        " 1,000,000",
        "model.price has input $3; 4 of 4 calls were to claude-opus-4-8, whose input costs $5",
        "model.price has no cache_write_1h; 2 of 3 writes were for 1h, and cost cache_write",
    ]
    assert contradicting(figures_of(simulated(recorded, KEEPS_ALL))) == []


GATED = """
items: {tool_result: {offload: true, min_tokens: 0}}
steps: [{name: s, do: clear, select: {types: [tool_result]}, when: {GATE}}]
"""


def removed(recorded: Recording, gate: str, model: str = "") -> int:
    text = model + GATED.replace("{GATE}", f"{{{gate}}}")
    return figures_of(simulated(recorded, policy(text))).removed


def test_gates_see_the_window_of_the_recorded_model() -> None:
    usages = [Usage(170_000)] * 4
    gate = "tokens: {at_least: 80%}"
    assert removed(calls(*usages, names=(SONNET,)), gate) > 0
    assert removed(calls(*usages, names=(OPUS,)), gate) == 0
    assert removed(calls(*usages, names=(OPUS,)), gate, "model: {context_window: 200000}") > 0


def test_rules_for_items_see_the_window_of_the_recorded_model() -> None:
    text = "items: {tool_result: {offload: true, min_tokens: 1%}}\n"
    text += "steps: [{name: s, do: clear, select: {types: [tool_result]}}]"
    made = turn_by_turn(session_of(*["x" * 24_000] * 4))  # 3,000 tokens, above 1 % of 200,000
    small, large = (
        replace(made, calls=tuple(replace(call, language_model=name) for call in made.calls))
        for name in (SONNET, OPUS)
    )
    assert figures_of(simulated(small, policy(text))).removed > 0
    assert figures_of(simulated(large, policy(text))).removed == 0


def test_gates_see_the_time_of_the_last_write() -> None:
    gate = "idle: {over: cache_ttl}"
    times = [0.0, 600.0, 1200.0, 1800.0]

    def at_times(usage: Usage) -> Recording:
        recorded = calls(*[usage] * 4)
        timed = (replace(c, at=at) for c, at in zip(recorded.calls, times, strict=True))
        return replace(recorded, calls=tuple(timed))

    assert removed(at_times(MINUTES), gate) > 0
    assert removed(at_times(HOUR), gate) == 0
    assert removed(at_times(HOUR), gate, "model: {cache: {ttl: 5m}}") > 0


def test_the_window_that_the_recording_tells_comes_before_the_table() -> None:
    told = replace(calls(None).calls[0], window=258_400)
    unknown = replace(told, language_model="unheard-of")
    for call in (told, unknown):
        [terms] = terms_of([call], Model())
        assert (terms.window, terms.window_is_assumed) == (258_400, False)
    written = Model(context_window=100_000)
    [terms] = terms_of([told], written)
    assert terms.window == 100_000
    [found] = contradictions([unknown], terms_of([unknown], written), written)
    assert found.sentence(1, 1) == (
        "model.context_window is 100,000; 1 of 1 calls were to unheard-of, which has 258,400"
    )


def test_calls_to_a_model_of_no_known_window_are_counted() -> None:
    recorded = calls(None, None, None, names=("unheard-of", OPUS))
    assert figures_of(simulated(recorded, KEEPS_ALL)).assumed_windows == {"unheard-of": 2}
    written = policy("model: {context_window: 9000}")
    assert not figures_of(simulated(recorded, written)).assumed_windows


SHOWS_NOTHING = "and nothing in the request shows that its API takes them"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ((OPUS,), {}),
        ((OPUS, "gpt-5.1"), {"the API of gpt-5.1 takes none": 1}),
        # From the second call on the blocks of the list are of an API that takes markers.
        (("new",), {f"the model new is not in the table of models, {SHOWS_NOTHING}": 1}),
    ],
)
def test_calls_that_would_get_no_cache_markers_are_counted_with_the_reason(
    names: tuple[str, ...], why: dict[str, int]
) -> None:
    recorded = calls(None, None, None, names=names)
    assert figures_of(simulated(recorded, AUTO)).unmarked == why
    assert not figures_of(simulated(recorded, KEEPS_ALL)).unmarked


def test_calls_with_messages_of_openai_would_get_no_cache_markers() -> None:
    messages = [user("go"), chat_calls(("c", "Bash", "{}")), chat_result("c", "done")]
    recorded = turn_by_turn([*messages, {"role": "assistant", "content": "done"}])
    assert figures_of(simulated(recorded, AUTO)).unmarked == {
        f"no model is named, {SHOWS_NOTHING}": 1,
        "a message is of an API that takes none": 1,
    }
