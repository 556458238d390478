from __future__ import annotations

from policyctx.replay.simulation import simulated
from policyctx.replay.summing import Figures, figures_of, total
from policyctx.tokens.usage import Usage
from tests.conversations import session_of
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

LONG = "one more line of some output\n" * 20
CLEARS = policy("""
    model: {context_window: 500}
    items: {tool_result: {offload: true}}
    steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 2}}]
""")


def figures(results: int, *, billed: int = 0) -> Figures:
    usages = [Usage(1_000 * (i + 1)) for i in range(billed)]
    recorded = turn_by_turn(session_of(*[LONG] * results), usages=usages)
    return figures_of(simulated(recorded, CLEARS))


def test_calls_over_the_window_are_counted_without_and_with_the_policy() -> None:
    found = figures(6)
    assert (found.unedited.over_window, found.edited.over_window) == (2, 0)
    assert found.edited.largest <= 500 < found.unedited.largest


def test_billed_sizes_take_precedence() -> None:
    found = figures(6, billed=6)
    assert found.billed == 6
    assert found.unedited.tokens == 1_000 + 2_000 + 3_000 + 4_000 + 5_000 + 6_000
    assert found.unedited.largest == 6_000


def test_the_saved_share_is_relative_to_sent_tokens() -> None:
    found = figures(6)
    spared = found.unedited.tokens - found.edited.tokens
    assert found.saved == spared / found.unedited.tokens
    assert Figures().saved == 0


def test_all_figures_are_summed_except_the_largest() -> None:
    few, many = figures(4), figures(8)
    both = total([few, many])
    assert both.sessions == 2
    assert both.calls == 12
    assert both.removed == few.removed + many.removed
    assert both.steps["clear"].items == few.steps["clear"].items + many.steps["clear"].items
    assert both.types["tool_result"].items == 12
    assert both.unedited.tokens == few.unedited.tokens + many.unedited.tokens
    assert both.unedited.largest == many.unedited.largest


def test_an_item_is_removed_once_though_two_steps_take_it() -> None:
    twice = policy("""
        items: {tool_result: {offload: true}}
        steps:
          - {name: clear, do: clear, select: {types: [tool_result], keep_recent: 2}}
          - {name: drop, do: drop, select: {types: [tool_result], keep_recent: 4}}
    """)
    recorded = turn_by_turn(session_of(*[LONG] * 8))
    session = simulated(recorded, twice)
    found = figures_of(session)
    results = {r.position for r in session.removals if r.item_type == "tool_result"}
    calls = {r.position for r in session.removals if r.item_type == "tool_call"}
    assert len(results) < len([r for r in session.removals if r.item_type == "tool_result"])
    assert found.removed == len(results | calls)
