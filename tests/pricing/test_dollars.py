"""The dollars of one call."""

from __future__ import annotations

from functools import reduce
from operator import add

import pytest

from policyctx.policy.models import Prices
from policyctx.pricing.dollars import CallPrices, Dollars, Rates, dollars, prices_of
from policyctx.tokens.usage import Usage

RATES = Rates(input=3, write_5m=3.75, write_1h=6, read=0.3, output=15)
LARGE = Rates(input=6, write_5m=7.5, write_1h=12, read=0.6, output=22.5)
PRICES = CallPrices(RATES, ((200_000, LARGE),))
M = 1_000_000


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(10, 20, 30, 40, 20)
    cost = dollars(usage, CallPrices(RATES))
    assert cost.input * M == pytest.approx(30)
    assert cost.cache_read * M == pytest.approx(6)
    assert cost.cache_write * M == pytest.approx(10 * 3.75 + 20 * 6)
    assert cost.output * M == pytest.approx(600)
    assert cost.prompt * M == pytest.approx(30 + 6 + 157.5)
    assert cost.total == pytest.approx(cost.prompt + cost.output)


def test_a_write_without_a_known_time_is_one_for_five_minutes() -> None:
    usage = Usage(0, 0, 100)
    assert dollars(usage, PRICES) == dollars(Usage(0, 0, 100, 0, 0), PRICES)


@pytest.mark.parametrize(("prompt", "rates"), [(200_000, RATES), (200_001, LARGE)])
def test_a_large_prompt_has_other_prices_for_the_whole_call(prompt: int, rates: Rates) -> None:
    usage = Usage(1, prompt - 1, 0, 1000)
    assert dollars(usage, PRICES) == dollars(usage, CallPrices(rates))


def test_the_highest_size_that_is_passed_decides() -> None:
    high = Rates(9, 9, 9, 9, 9)
    prices = CallPrices(RATES, ((100, LARGE), (200, high)))
    assert [prices.rates(n) for n in (100, 101, 200, 201)] == [RATES, LARGE, LARGE, high]


def test_dollars_add_up() -> None:
    assert Dollars(1, 2, 3, 4) + Dollars(4, 3, 2, 1) == Dollars(5, 5, 5, 5)


def test_the_prices_of_a_policy_may_have_an_hour_and_sizes() -> None:
    small = {"input": 3, "cache_write": 3.75, "cache_read": 0.3, "output": 15}
    assert prices_of(Prices.model_validate(small)).base == Rates(3, 3.75, 3.75, 0.3, 15)
    large = {**small, "cache_write_1h": 12, "tokens": 200_000}
    larger = {**small, "tokens": 100_000}
    written = {**small, "cache_write_1h": 6, "above": [large, larger]}
    found = prices_of(Prices.model_validate(written))
    assert found.base.write_1h == 6
    assert [(tokens, rates.write_1h) for tokens, rates in found.above] == [
        (100_000, 3.75),
        (200_000, 12),
    ]


def test_a_sum_of_many_is_that_of_one_after_the_other() -> None:
    many = [Dollars(0.1, cache_read=0.7)] * 10
    assert Dollars.sum_of(many) == reduce(add, many)
