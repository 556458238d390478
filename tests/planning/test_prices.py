from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from policyctx import Session
from policyctx.planning.prices import calls_to_pay_back
from policyctx.policy.models import Model
from tests.conversations import session_of, user
from tests.planning.plans import FACTS, planner
from tests.policies import policy

if TYPE_CHECKING:
    from pathlib import Path

    from policyctx.planning.gates import GateVerdict
    from tests.conversations import Message

PRICE = {"input": 3.0, "cache_write": 3.75, "cache_read": 0.3, "output": 15.0}
MODEL = Model.model_validate({"price": PRICE})
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
    assert calls_to_pay_back(rewritten=rewritten, freed=freed, model=MODEL) == calls


@pytest.mark.parametrize("freed", [0, -7])
def test_a_change_that_frees_nothing_never_pays_back(freed: int) -> None:
    assert calls_to_pay_back(rewritten=10, freed=freed, model=MODEL) == float("inf")


def test_a_free_cache_read_never_pays_back() -> None:
    free = Model.model_validate({"price": {**PRICE, "cache_read": 0.0}})
    assert calls_to_pay_back(rewritten=10, freed=10, model=free) == float("inf")
    assert calls_to_pay_back(rewritten=0, freed=10, model=free) == 0


def verdict(messages: list[Message], *, sent: int, idle: float | None = 0) -> GateVerdict:
    facts = replace(FACTS, idle=idle)
    found = planner(PAYING.replace("LIMIT", "12"), messages, facts=facts)
    found.conversation.sent = sent
    [only] = found.plan(facts).gates
    return only


def test_all_behind_the_first_change_that_was_sent_is_written_anew() -> None:
    messages = session_of(LARGE, LARGE, "new")
    # Behind the first change were sent: the two results, and a call of 1 token. 1,996 of them go;
    # what is left of them is 5.
    assert verdict(messages, sent=5).number == calls_to_pay_back(
        rewritten=1000 + 1 + 1000 - 1996, freed=1996, model=MODEL
    )
    # With an older result that stays, more is behind.
    later = session_of("small", LARGE, *["y" * 4000] * 3)
    found = verdict(later, sent=len(later) - 2)
    behind = 1000 + 1 + 1000 + 1 + 1000
    assert found.number == calls_to_pay_back(rewritten=behind - 2994, freed=2994, model=MODEL)


def test_unsent_removed_items_do_not_reduce_the_rewritten_tokens() -> None:
    messages = session_of(LARGE, "y" * 8000, "z" * 400, LARGE, "new")
    # Sent were the first three results, and behind the first change are all of them.
    behind = 1000 + 1 + 2000 + 1 + 100
    freed_of_sent = 998 + 1998 + 98
    found = verdict(messages, sent=7)
    assert found.number == calls_to_pay_back(
        rewritten=behind - freed_of_sent, freed=freed_of_sent + 998, model=MODEL
    )
    assert found.number == 1


def test_unsent_items_are_not_counted_as_rewritten() -> None:
    assert verdict(session_of(LARGE, LARGE, "new"), sent=1).number == 0
    assert verdict(session_of(LARGE, LARGE, "new"), sent=0).number == 0


def test_a_list_below_the_cache_minimum_is_not_cached() -> None:
    short = session_of("x" * 400, "x" * 400, "new")
    assert verdict(short, sent=7).number == 0


@pytest.mark.parametrize(("idle", "cached"), [(None, False), (300, True), (301, False)])
def test_the_cache_lasts_for_its_time(idle: float | None, cached: bool) -> None:
    messages = session_of("small", LARGE, "z" * 4000, "new")
    assert (verdict(messages, sent=len(messages), idle=idle).number != 0) == cached


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

    def test_a_list_without_the_beginning_was_not_sent(self, tmp_path: Path) -> None:
        session = self.session(tmp_path)
        session.apply(self.MESSAGES[:-4])
        assert self.gate(session, [user("new"), *self.MESSAGES[1:]]) == 0
