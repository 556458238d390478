from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import Request, Session
from policyctx.messages.reading import Reading
from policyctx.planning.gates import GateVerdict
from policyctx.policy.models import Prices
from policyctx.pricing.dollars import payback, prices_of
from tests.conversations import Message, calls, results, session_of, user
from tests.planning.plans import FACTS, planner
from tests.policies import policy

PRICE = {"input": 3.0, "cache_write": 3.75, "cache_read": 0.3, "output": 15.0}
RATES = prices_of(Prices.model_validate(PRICE)).base
# 1,000 tokens.
LARGE = "x" * 4000

PAYING = """\
    model: {price: {input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}
    items: {tool_result: {offload: true}}
    placeholder: "12345678"
    store: {sync: never}
    steps:
      - name: s
        do: offload
        select: {types: [tool_result], keep_recent: 1}
        when: {pays_back: {at_most: LIMIT}}
    """


@pytest.mark.parametrize(
    ("rewritten", "freed", "calls"),
    [
        # Writing 1,000 tokens instead of reading them costs 3.45 of a thousandth of a dollar, and
        # not reading 998 saves 0.2994: 11.52… calls.
        (1000, 998, 12),
        (0, 998, 0),
        (-5, 998, 0),
        (1, 1_000_000, 1),
        (2, 23, 1),
        (200, 2300, 1),
        (201, 2300, 2),
    ],
)
def test_the_calls_are_those_after_which_the_saving_has_paid(
    rewritten: int, freed: int, calls: int
) -> None:
    assert payback(rewritten=rewritten, freed=freed, rates=RATES, ttl=300).calls == calls


@pytest.mark.parametrize("freed", [0, -7])
def test_a_change_that_frees_nothing_never_pays_back(freed: int) -> None:
    assert calls_to_pay_back(rewritten=10, freed=freed) == float("inf")


def test_a_free_cache_read_never_pays_back() -> None:
    free = RATES._replace(read=0.0)
    assert payback(rewritten=10, freed=10, rates=free, ttl=300).calls == float("inf")
    assert payback(rewritten=0, freed=10, rates=free, ttl=300).calls == 0


def test_a_write_for_an_hour_has_its_own_price() -> None:
    rates = RATES._replace(write_1h=6.0)
    assert payback(rewritten=1000, freed=1000, rates=rates, ttl=300).calls == 12
    assert payback(rewritten=1000, freed=1000, rates=rates, ttl=3600).calls == 19


def calls_to_pay_back(rewritten: int, freed: int) -> float:
    return payback(rewritten=rewritten, freed=freed, rates=RATES, ttl=300).calls


def verdict(
    messages: list[Message],
    *,
    sent: int,
    idle: float | None = 0,
    cache_ttl: int | None = None,
    text: str = PAYING,
) -> GateVerdict:
    facts = replace(FACTS, idle=idle, cache_ttl=cache_ttl)
    found = planner(text.replace("LIMIT", "12"), messages, facts=facts)
    found.conversation.sent = sent
    [only] = found.plan(facts).gates
    return only


def test_all_behind_the_first_change_that_was_sent_is_written_anew() -> None:
    messages = session_of(LARGE, LARGE, "new")
    # Behind the first change were sent: the two results, and a call of 1 token. 1,996 of them go;
    # what is left of them is 5.
    assert verdict(messages, sent=5).number == calls_to_pay_back(
        rewritten=1000 + 1 + 1000 - 1996, freed=1996
    )
    # With an older result that stays, more is behind.
    later = session_of("small", LARGE, *["y" * 4000] * 3)
    found = verdict(later, sent=len(later) - 2)
    behind = 1000 + 1 + 1000 + 1 + 1000
    assert found.number == calls_to_pay_back(rewritten=behind - 2994, freed=2994)


def test_unsent_removed_items_do_not_reduce_the_rewritten_tokens() -> None:
    messages = session_of(LARGE, "y" * 8000, "z" * 400, LARGE, "new")
    # Sent were the first three results, and behind the first change are all of them.
    behind = 1000 + 1 + 2000 + 1 + 100
    freed_of_sent = 998 + 1998 + 98
    found = verdict(messages, sent=7)
    assert found.number == calls_to_pay_back(
        rewritten=behind - freed_of_sent, freed=freed_of_sent + 998
    )
    assert found.number == 1


def test_unsent_items_are_not_counted_as_rewritten() -> None:
    assert verdict(session_of(LARGE, LARGE, "new"), sent=1).number == 0
    assert verdict(session_of(LARGE, LARGE, "new"), sent=0).number == 0


def test_a_list_below_the_cache_minimum_is_not_cached() -> None:
    short = session_of("x" * 400, "x" * 400, "new")
    assert verdict(short, sent=7).number == 0


@pytest.mark.parametrize(("idle", "cached"), [(None, True), (300, True), (301, False)])
def test_the_cache_lasts_for_its_time(idle: float | None, cached: bool) -> None:
    messages = session_of("small", LARGE, "z" * 4000, "new")
    assert (verdict(messages, sent=len(messages), idle=idle).number != 0) == cached


@pytest.mark.parametrize(("idle", "cached"), [(301, True), (3600, True), (3601, False)])
def test_the_cache_lasts_for_the_hour_of_the_last_write(idle: float, cached: bool) -> None:
    messages = session_of("small", LARGE, "z" * 4000, "new")
    found = verdict(messages, sent=len(messages), idle=idle, cache_ttl=3600)
    assert (found.number != 0) == cached
    five = PAYING.replace("model: {", "model: {cache: {ttl: 5m}, ")
    assert verdict(messages, sent=len(messages), idle=idle, cache_ttl=3600, text=five).number == 0


def test_the_price_of_a_write_is_that_of_its_time() -> None:
    messages = session_of("small", LARGE, *["y" * 4000] * 3)
    hour = PAYING.replace("keep_recent: 1", "keep_recent: 3")
    hour = hour.replace("cache_write: 3.75", "cache_write: 3.75, cache_write_1h: 6")
    short, long = (
        verdict(messages, sent=len(messages), cache_ttl=ttl, text=hour).number
        for ttl in (300, 3600)
    )
    assert isinstance(short, int)
    assert isinstance(long, int)
    assert long > short


def test_the_prices_are_those_for_the_size_that_the_edit_leaves() -> None:
    messages = session_of("small", LARGE, *["y" * 4000] * 3)
    three = PAYING.replace("keep_recent: 1", "keep_recent: 3")
    tier = "above: [{tokens: SIZE, input: 3, cache_write: 37.5, cache_read: 0.3, output: 15}]"
    tiers = three.replace("output: 15}", f"output: 15, {tier}}}")
    below, above = (
        verdict(messages, sent=len(messages), text=tiers.replace("SIZE", size)).number
        for size in ("100000", "100")
    )
    assert below == verdict(messages, sent=len(messages), text=three).number
    assert isinstance(below, int)
    assert isinstance(above, int)
    assert above > below


def test_the_gate_is_closed_if_nothing_would_be_freed() -> None:
    found = verdict([user()], sent=1)
    assert (found.opens, found.number, found.note) == (False, None, "never")
    assert found.sentence == "pays_back: nothing would be saved"


class TestSession:
    """What was sent is the list of the turn before, however the next one is told of it."""

    MESSAGES = session_of("small", LARGE, *["y" * 2000] * 12)

    def session(self, root: Path) -> Session:
        gates = "{pays_back: {at_most: 0}, messages: {at_least: 29}}"
        compiled = policy(PAYING.replace("{pays_back: {at_most: LIMIT}}", gates))
        return Session(compiled, root=root, session_id="s", clock=lambda: 0.0)

    def gate(self, session: Session, messages: list[Message], *, changed: bool = False) -> object:
        found = session.apply(messages, changed=changed).plan.gates
        return next(verdict.number for verdict in found if verdict.gate == "pays_back")

    def test_a_plan_in_between_makes_no_difference(self, tmp_path: Path) -> None:
        longer = [*self.MESSAGES, user("the next")]
        session, other = self.session(tmp_path), self.session(tmp_path)
        session.apply(self.MESSAGES[:-4])
        other.apply(self.MESSAGES[:-4])
        other.plan([*self.MESSAGES, user("another")])
        expected = self.gate(session, longer)
        assert expected != 0
        assert self.gate(other, longer) == expected

    def test_a_list_that_is_read_again_still_counts_as_sent(self, tmp_path: Path) -> None:
        session, other = self.session(tmp_path), self.session(tmp_path)
        session.apply(self.MESSAGES[:-4])
        other.apply(self.MESSAGES[:-4])
        expected = self.gate(session, self.MESSAGES)
        assert expected != 0
        assert self.gate(other, self.MESSAGES, changed=True) == expected

    def test_after_a_restart_what_is_before_the_newest_reply_was_sent(self, tmp_path: Path) -> None:
        session = self.session(tmp_path)
        session.apply(self.MESSAGES[:-2])
        expected = self.gate(session, self.MESSAGES)
        assert expected != 0
        assert self.gate(self.session(tmp_path), self.MESSAGES) == expected

    def test_a_list_without_the_beginning_was_not_sent(self, tmp_path: Path) -> None:
        session = self.session(tmp_path)
        session.apply(self.MESSAGES[:-4])
        assert self.gate(session, [user("new"), *self.MESSAGES[1:]]) == 0


UNPRICED = PAYING.replace(
    "    model: {price: {input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}\n", ""
)
# Five results of 1,000 tokens, of which the first may go.
OLD_AND_NEW = session_of(LARGE, *["y" * 4000] * 4)
KEEPING = UNPRICED.replace("keep_recent: 1", "keep_recent: 4")


def verdict_for(
    model: str | None, *, cache_ttl: int | None = None, text: str = KEEPING, limit: str = "12"
) -> GateVerdict:
    facts = replace(FACTS, idle=0, cache_ttl=cache_ttl, called_model=model)
    found = planner(text.replace("LIMIT", limit), OLD_AND_NEW, facts=facts)
    found.conversation.sent = len(OLD_AND_NEW)
    [only] = found.plan(facts).gates
    return only


@pytest.mark.parametrize(
    ("model", "cache_ttl", "ratio"),
    [
        ("claude-opus-4-8", None, 11.5),
        ("claude-opus-4-8", 300, 11.5),
        ("claude-opus-4-8", 3600, 19),
        ("gpt-5.5", None, 9),  # no writes are billed: what is not read is input
        ("a-model-of-ours", None, 11.5),
        ("a-model-of-ours", 3600, 19),
        (None, None, 11.5),
    ],
)
def test_the_prices_are_those_of_the_called_model_and_of_its_writes(
    model: str | None, cache_ttl: int | None, ratio: float
) -> None:
    # 998 of 1,000 tokens go, and 5 calls and 4 results stay behind the change.
    rewritten = 4 * 1000 + 4 + 1000 - 998
    found = verdict_for(model, cache_ttl=cache_ttl)
    assert found.number == -(-Fraction(str(ratio)) * rewritten // 998)


def test_a_model_without_a_cache_has_nothing_to_write_anew() -> None:
    assert verdict_for("codestral").number == 0


def test_the_prices_of_the_policy_come_before_those_of_the_called_model() -> None:
    own = PAYING.replace("keep_recent: 1", "keep_recent: 4").replace("3.75", "0.6")
    assert verdict_for("claude-opus-4-8", text=own).number == 5


@pytest.mark.parametrize(("share", "limit"), [("20%", 1), ("100%", 5), ("50%", Fraction(5, 2))])
def test_a_share_is_of_the_calls_that_were_made(share: str, limit: float) -> None:
    found = verdict_for("claude-opus-4-8", limit=share)
    assert (found.limit, found.opens) == (limit, False)
    assert f"< {float(limit):g} " not in found.sentence
    assert f"> {float(limit):g} (" in found.sentence


def test_both_sides_are_shown_in_dollars_where_there_are_prices() -> None:
    # $5 for a million tokens of input, 6.25 to write them, 0.5 to read them.
    sides = "(costs $0.0230, saves $0.0005 a call)"
    assert verdict_for("claude-opus-4-8").sentence == f"pays_back: 47 > 12 {sides}"
    assert "times the price of a million tokens of input" in verdict_for(None).sentence


def test_a_live_session_knows_the_model_of_its_request(tmp_path: Path) -> None:
    live = Session(policy(KEEPING.replace("LIMIT", "12")), root=tmp_path, session_id="s")
    for model, sign in (("claude-opus-4-8", "$"), ("a-model-of-ours", "input)")):
        [found] = live.plan(OLD_AND_NEW, request=Request(model=model)).gates
        assert sign in found.sentence


def replies_in(lists: Sequence[Sequence[Message]]) -> int:
    reading = Reading()
    for messages in lists:
        reading.extend(messages)
    return len(reading.reply_starts)


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 12))
def test_replies_are_counted_alike_however_the_list_grows(said: list[bool], cut: int) -> None:
    one, other = calls(("t", "Bash")), results(("t", "done"))
    messages = [one if by_model else other for by_model in said]
    begun = sum(now and not before for before, now in zip([False, *said], said, strict=False))
    assert replies_in([messages]) == replies_in([messages[:cut], messages[cut:]]) == begun


def test_a_restarted_session_knows_what_the_cache_may_still_hold(tmp_path: Path) -> None:
    first = "steps:\n      - {name: f, do: offload, select: {types: [tool_result], tools: [First]}}"
    text = PAYING.replace("keep_recent: 1", "keep_recent: 3").replace("LIMIT", "1")
    rules = policy(text.replace("steps:", first))
    full = [*session_of(LARGE, tool="First"), *session_of("", *["y" * 4000] * 4)[3:]]
    found = []
    for restarts in (False, True):
        root = tmp_path / str(restarts)
        loop = Session(rules, root=root, session_id="s", clock=lambda: 0.0)
        for end in (3, 5, 7, 9, 11):
            if restarts:
                loop = Session(rules, root=root, session_id="s", clock=lambda: 0.0)
            gates = loop.apply(full[:end]).plan.gates
        found.append(gates)
    assert found[0] == found[1]
    assert found[0][0].number
