"""The answer, and the advice, of sessions whose figures are known by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from policyctx.definitions.actions import Action
from policyctx.pricing.dollars import Dollars
from policyctx.replay.answer import ReplayAnswer, advice, answer_of, day_of, titles
from policyctx.replay.cost import Cost, CostPair, Costs
from policyctx.replay.running import SUMMARISE_ONLY
from policyctx.replay.simulated import Need, Regret, Removal, SimulatedSession
from policyctx.replay.summing import Charge, Figures, Net, SentTokens, figures_of, total
from tests.policies import policy
from tests.replay.report.sessions import replayed


def charged(dollars: float) -> Charge:
    return Charge(1, 1_000, 0, Dollars(input=dollars))


def figures(without: float, edited: float, *, re_reads: float = 0.0, calls: int = 10) -> Figures:
    """Priced figures of one session in which the policy acted; $ of prompts."""
    net = Net(charged(without), charged(edited), Charge(), charged(re_reads))
    return Figures(sessions=1, calls=calls, priced=1, net=net, dearer=int(net.is_dearer), removed=1)


def removal(position: int, *, step: str = "retire", tool: str = "Read", call: int = 4) -> Removal:
    return Removal(
        call=call,
        part=0,
        position=position,
        message=position,
        item_id=f"c{position}",
        item_type="tool_result",
        tool=tool,
        action=Action.OFFLOAD,
        step=step,
        code="old",
        reason="old",
        rule="",
        place="",
        tokens=1_000,
        freed=900,
    )


def regret(position: int, tokens: int, *, call: int = 6, found: str = "line 7") -> Regret:
    need = Need("used", call, "reply", (found,), tokens=tokens)
    return Regret(removal(position), (need,))


def with_regrets(*regrets: Regret) -> SimulatedSession:
    return replace(replayed(1), regrets=regrets)


def answered(sessions: Sequence[SimulatedSession], of_each: Sequence[Figures]) -> ReplayAnswer:
    return answer_of(sessions, of_each, total(of_each))


def advised(*of_each: Figures, sessions: Sequence[SimulatedSession] = ()) -> dict[str, str]:
    found = advice(sessions, of_each, total(of_each))
    return {one.about: one.sentence for one in found}


def test_the_sessions_that_got_dearer_come_worst_first_with_what_of() -> None:
    of_each = [figures(1, 1.5), figures(1, 0.5), figures(1, 0.9, re_reads=2)]
    dearer = answered([replayed(1)] * 3, of_each).dearer
    assert [one.session for one in dearer] == [2, 0]
    assert [round(x, 6) for x in (dearer[0].net, dearer[0].prompts, dearer[0].re_reads)] == [
        1.9,
        -0.1,
        2.0,
    ]


def test_the_items_with_most_to_read_again_come_first_each_once() -> None:
    sessions = [
        with_regrets(regret(1, 20), regret(2, 300, found="a\n  b"), regret(2, 30)),
        with_regrets(regret(1, 100)),
    ]
    missed = answered(sessions, [figures(1, 1)] * 2).missed
    assert [(one.session, one.position, one.tokens) for one in missed] == [
        (0, 2, 300),
        (1, 1, 100),
        (0, 1, 20),
    ]
    assert (missed[0].found, missed[0].left, missed[0].needed) == ("a b", 4, 6)


def test_no_more_than_five_of_each_are_named() -> None:
    sessions = [with_regrets(*(regret(i, i + 1) for i in range(9)))] * 9
    answer = answered(sessions, [figures(1, 2)] * 9)
    assert (len(answer.dearer), len(answer.missed)) == (5, 5)


def test_nothing_is_advised_where_nothing_stands_out() -> None:
    assert advised(figures(1, 0.5), sessions=[with_regrets(regret(1, 10))]) == {}
    assert advised() == {}


def test_breakpoints_of_the_policy_are_advised_where_they_cost_less() -> None:
    def costs(auto: float) -> Costs:
        cheap, dear = (Cost(dollars=Dollars(input=x)) for x in (auto, 2.0))
        return Costs(dear, dear, {"recorded": CostPair(dear, dear), "auto": CostPair(dear, cheap)})

    one = figures(2, 2)
    assert "cost $1.50 in place of $2.00" in advised(replace(one, costs=costs(1.5)))["breakpoints"]
    assert advised(replace(one, costs=costs(1.995))) == {}
    sent = costs(1.5).of("auto").edited
    assert advised(replace(one, costs=replace(costs(1.5), edited=sent))) == {}
    assert advised(replace(one, costs=Costs(layouts={"recorded": CostPair()}))) == {}


def test_gates_are_advised_where_summaries_alone_cost_less() -> None:
    alone = {SUMMARISE_ONLY: figures(2, 1)}
    assert "cost $0.50 less" in advised(replace(figures(2, 1.5), baselines=alone))["baseline"]
    assert advised(replace(figures(2, 0.5), baselines=alone)) == {}


def test_acting_later_is_advised_where_short_sessions_lose() -> None:
    assert advised(figures(1, 2, calls=5), figures(9, 1, calls=50))["dearer"].endswith(
        "their median is 5 calls, that of the others in which it acted 50."
    )
    assert advised(figures(1, 2, calls=50), figures(9, 1, calls=5)) == {}


def test_a_tool_whose_items_are_needed_again_is_named_with_when() -> None:
    regrets = [regret(i, 50, call=4 + 2 * i) for i in range(3)]
    regretted = replace(figures(1, 0.5), regretted_tokens=150)
    sentence = advised(regretted, sessions=[with_regrets(*regrets)])["regret"]
    assert "3 items of Read were needed after step retire had offloaded them" in sentence
    assert "150 of 150 tokens to read again; half of them within 2 calls" in sentence
    assert "A trade: a larger `keep_recent` in the `select` of step retire means less" in sentence


@pytest.mark.parametrize(
    ("key", "on", "kept", "more"),
    [
        ("keep_recent", "model_call", "keep_recent: 2", "keep_recent: 20"),
        ("min_tokens", "arrival", "min_tokens: 0", "min_tokens: 5000"),
    ],
)
def test_the_key_that_is_named_lowers_regret_whatever_rules_a_tool_has(
    key: str, on: str, kept: str, more: str
) -> None:
    def sessions(select: str) -> list[SimulatedSession]:
        under = policy(f"""
            items: {{tool_result: {{offload: true}}}}
            tools: {{Read: {{min_tokens: 0, keep_recent: 1}}}}
            steps: [{{name: retire, on: {on}, do: offload, select: {{{select}}}}}]
        """)
        return [replayed(under=under, name=name) for name in ("a", "b")]

    regretted = sessions(kept)
    sentence = advised(*map(figures_of, regretted), sessions=regretted)["regret"]
    assert f"`{key}` in the `select` of step retire" in sentence
    assert "A trade: " in sentence
    assert all(one.regrets for one in regretted)
    assert not any(one.regrets for one in sessions(more))


def test_a_tool_with_few_of_the_regretted_tokens_is_not_named() -> None:
    regrets = [regret(i, 5) for i in range(3)]
    regretted = replace(figures(1, 0.5), regretted_tokens=1_000)
    assert advised(regretted, sessions=[with_regrets(*regrets)]) == {}


def test_calls_that_stay_over_the_window_are_advised_on() -> None:
    over = replace(figures(1, 0.5), edited=SentTokens(10, 10, 2))
    assert "2 calls of 10 would still be larger" in advised(over)["window"]


def test_the_reason_is_given_where_the_policy_seldom_acts() -> None:
    idle = replace(figures(1, 1), removed=0, untouched={"no step selects any item": 1})
    assert "in 2 of 3 sessions" in advised(idle, idle, figures(1, 0.5))["untouched"]
    assert advised(idle, figures(1, 0.5), figures(1, 0.5)) == {}


def test_the_advice_that_saves_most_comes_first() -> None:
    whole = replace(
        figures(2, 1.5, calls=5),
        edited=SentTokens(10, 10, 1),
        baselines={SUMMARISE_ONLY: figures(2, 1)},
    )
    found = advice([], [whole], whole)
    assert [one.about for one in found] == ["baseline", "window"]


def test_titles_are_words_or_names_and_never_the_same_on_one_day() -> None:
    one = replace(replayed(1, name="a.jsonl"), first_words="Fix it")
    other = replace(replayed(1, began=86_400.0), first_words="Fix it")
    none = replace(replayed(1, name="b.jsonl"), first_words="")
    assert titles([one, other, none, one]) == ["Fix it (1)", "Fix it", "b.jsonl", "Fix it (2)"]


def test_a_day_is_in_utc_and_unknown_where_no_calendar_has_it() -> None:
    days = [day_of(replayed(1, began=began)) for began in (None, 86_399.0, 86_400.0, 1e300)]
    assert days == [None, "1970-01-01", "1970-01-02", None]
