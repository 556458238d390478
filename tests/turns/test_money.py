"""What calls were billed, and the estimate of what they would have cost without the policy."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import SummaryUsage
from policyctx.pricing.dollars import dollars
from policyctx.pricing.rows import row_of
from policyctx.tokens.usage import Usage
from policyctx.turns.money import Meter, Spent, without_policy

MODEL = "claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("usage", "spared", "held", "expected"),
    [
        # Nothing was spared, and the cache held what was read.
        (Usage(10, 900, 90, 5, 0), 0, 900, Usage(10, 900, 90, 5, 0)),
        # An edit lost the cache; without it the last prompt would have been read.
        (Usage(10, 100, 490, 5, 0), 400, 900, Usage(10, 900, 90, 5, 0)),
        (Usage(10, 100, 490, 5, 490), 400, 900, Usage(10, 900, 90, 5, 90)),
        # A provider that says nothing of writes.
        (Usage(500, 100, 0, 5), 400, 900, Usage(100, 900, 0, 5)),
        # The cache is cold: all is written again.
        (Usage(10, 0, 590, 5), 400, 0, Usage(10, 0, 990, 5)),
        # A client that has rewound cannot read more than it asks.
        (Usage(10, 100, 0, 5), 0, 5000, Usage(0, 110, 0, 5)),
    ],
)
def test_without_a_policy_the_prompt_has_all_of_it_in_an_intact_cache(
    usage: Usage, spared: int, held: int, expected: Usage
) -> None:
    assert without_policy(usage, spared, held) == expected


def price(usage: Usage) -> float:
    row = row_of(MODEL)
    assert row is not None
    return dollars(usage, row.prices).prompt


def test_the_net_is_the_bill_less_the_estimate() -> None:
    meter = Meter()
    first, second = Usage(10, 0, 1000, 5, 0), Usage(10, 0, 700, 5, 0)
    meter.observe(first, spared=0, model=MODEL, at=0.0)
    meter.observe(second, spared=400, model=MODEL, at=60.0)
    spent = meter.spent
    assert (spent.calls, spent.priced, spent.spared, spent.usage) == (2, 2, 400, first + second)
    assert spent.billed == pytest.approx(price(first) + price(second))
    assert spent.without == pytest.approx(price(first) + price(Usage(10, 1010, 90, 5, 0)))
    assert spent.net == pytest.approx(spent.billed - spent.without)
    assert spent.net > 0  # one edit that lost the cache has not paid yet


def test_after_its_ttl_a_cache_is_cold_without_the_policy_too() -> None:
    meter = Meter()
    meter.observe(Usage(0, 0, 1000, 5, 0), spared=0, model=MODEL, at=0.0)
    late = Usage(0, 0, 600, 5, 0)
    one = meter.observe(late, spared=500, model=MODEL, at=1000.0)
    assert one.without == pytest.approx(price(Usage(0, 0, 1100, 5, 0)))
    assert one.net < 0


def test_what_has_no_price_is_counted_apart() -> None:
    meter = Meter()
    meter.observe(Usage(100), spared=7, model="a-model-of-nobody", at=0.0)
    meter.observe(Usage(100), spared=7, model=None, at=0.0)
    assert meter.spent == Spent(2, Usage(200), 14)


def test_summaries_are_a_cost_of_the_policy() -> None:
    meter = Meter()
    meter.summarised(SummaryUsage(attempts=1, dollars=0.25))
    meter.summarised(SummaryUsage(attempts=1))
    assert meter.spent.net == pytest.approx(0.25)
