"""Bills that a recording has of several calls together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policyctx.policy.models import Model
from policyctx.replay.cost import billed_calls, shares_of
from policyctx.replay.recording import Recording, SummedBill
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of
from policyctx.tokens.usage import Usage
from tests.conversations import session_of
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

LONG = "one more line of some output\n" * 20
KEEPS = "items: {tool_result: {offload: true}}\nstore: {root: %s}"


@pytest.fixture
def recorded() -> Recording:
    return turn_by_turn(session_of(*[f"{LONG}{i}" for i in range(6)]))


@pytest.fixture
def keeps(tmp_path: Path) -> str:
    return KEEPS % (tmp_path / "root")


def model(text: str) -> Model:
    return policy(text).policy.model


@pytest.mark.parametrize(("counted", "bill", "expected"), [
    ([100, 200, 300], SummedBill(Usage(1_200), 3), [200, 400, 600]),
    ([100, 200, 300], SummedBill(Usage(1_200), 3, beside=100), [250, 400, 550]),
    ([100, 200, 300], SummedBill(Usage(600), 2), [200, 400, 600]),
    ([100, 200], SummedBill(Usage(0), 2, beside=50), [150, 250]),
    ([100, 200], SummedBill(Usage(150), 2, beside=90), [50, 100]),
    ([0, 0], SummedBill(Usage(90), 2), [1, 1]),
    ([], SummedBill(Usage(90), 0), []),
])  # fmt: skip
def test_a_sum_is_divided_in_proportion_to_the_counts(
    counted: list[int], bill: SummedBill, expected: list[int]
) -> None:
    assert [share.prompt for share in shares_of(counted, bill)] == expected


def test_shares_add_up_to_the_sum() -> None:
    bill = SummedBill(Usage(10_007, output=13), 7)
    shares = shares_of([3, 33, 101, 233, 479, 977, 1_999], bill)
    assert sum(share.prompt for share in shares) == 10_007
    assert sum(share.output for share in shares) == 13


def test_the_sent_tokens_of_a_session_equal_its_billed_sum(recorded: Recording, keeps: str) -> None:
    bill = SummedBill(Usage(77_777, output=60), len(recorded.calls))
    found = simulated(replace(recorded, bill=bill), policy(keeps))
    figures = figures_of(found)
    assert figures.unedited.tokens == 77_777
    assert (figures.billed, figures.summed) == (0, len(recorded.calls))
    assert figures.costs.unedited.output == 60


def test_a_sum_is_not_checked_because_errors_would_cancel(recorded: Recording, keeps: str) -> None:
    bill = SummedBill(Usage(7_777, 70_000), len(recorded.calls))
    found = simulated(replace(recorded, bill=bill), policy(keeps))
    assert figures_of(found).checks.formats == {}


def test_a_gate_opens_at_the_size_that_a_sum_shows(recorded: Recording, keeps: str) -> None:
    counted = [call.unedited.tokens for call in simulated(recorded, policy(keeps)).calls]
    limit = counted[-1] + 100
    gated = policy(f"""
        {keeps.replace("store", "        store")}
        steps:
          - name: clear
            do: clear
            select: {{types: [tool_result], keep_recent: 1}}
            when: {{tokens: {{at_least: {limit}}}}}
        placeholder: "[gone]"
    """)
    assert simulated(recorded, gated).removals == ()
    bill = SummedBill(Usage(2 * sum(counted)), len(recorded.calls))
    found = simulated(replace(recorded, bill=bill), gated)
    first = found.removals[0].call
    sizes = [one.unedited for one in billed_calls(found)]
    # A session knows the bill of the call before: it is late by one call at the most.
    assert sizes[first - 1] >= limit > sizes[first - 3]
