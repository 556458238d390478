from __future__ import annotations

import pytest

from policyctx.replay.accuracy import Check, checked
from policyctx.replay.cost import billed_calls
from policyctx.replay.simulation import simulated
from policyctx.tokens.usage import Usage
from tests.conversations import session_of
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

LONG = "one more line of some output\n" * 400
KEEPS_ALL = policy("model: {cache: {ttl: 5m}}")
MESSAGES = session_of(*[LONG] * 5)
SIZES = [call.unedited.tokens for call in simulated(turn_by_turn(MESSAGES), KEEPS_ALL).calls]


def check(usages: list[Usage | None], times: list[float | None]) -> Check | None:
    recorded = turn_by_turn(MESSAGES, usages=usages, times=times)
    return checked(billed_calls(simulated(recorded, KEEPS_ALL).calls))


def as_cached(reads: list[int]) -> list[Usage | None]:
    """The usages of the calls when so much of each was read from the cache."""
    bills = [20_000 + size for size in SIZES]
    return [Usage(0, read, bill - read) for read, bill in zip(reads, bills, strict=True)]


GROWN = [0, *(20_000 + size for size in SIZES[:-1])]
CLOSE: list[float | None] = [0, 60, 120, 180, 240]


def test_a_predicted_cache_has_no_error() -> None:
    found = check(as_cached(GROWN), CLOSE)
    assert found is not None
    assert (found.cached_error, found.uncached_error, found.causes) == (0, 0, ())
    assert found.is_near


def test_a_session_without_all_of_its_usage_is_not_checked() -> None:
    assert check([*as_cached(GROWN)[:-1], None], CLOSE) is None


def test_usage_without_cache_figures_is_not_checked() -> None:
    assert check([Usage(20_000 + size) for size in SIZES], CLOSE) is None


def test_a_cache_lost_before_the_ttl_is_named() -> None:
    found = check(as_cached([*GROWN[:3], 0, GROWN[4]]), CLOSE)
    assert found is not None
    assert found.causes == (("missed", GROWN[3]),)
    assert not found.is_near


def test_a_cache_present_after_the_ttl_is_named() -> None:
    found = check(as_cached(GROWN), [0, 60, 120, 600, 660])
    assert found is not None
    assert found.causes == (("kept longer", GROWN[3]),)


def test_a_cache_present_before_the_session_is_named() -> None:
    found = check(as_cached([18_000, *GROWN[1:]]), CLOSE)
    assert found is not None
    assert found.causes == (("cached before", 18_000),)


def test_without_time_stamps_a_miss_may_be_a_pause() -> None:
    found = check(as_cached([*GROWN[:3], 0, GROWN[4]]), [])
    assert found is not None
    assert found.causes == (("no times", GROWN[3]),)


def test_sums_include_the_causes_of_all_sessions() -> None:
    one, other = check(as_cached([*GROWN[:3], 0, GROWN[4]]), CLOSE), check(as_cached(GROWN), CLOSE)
    assert one is not None
    assert other is not None
    assert (one + other).calls == 10
    assert (one + other).causes == one.causes
    assert (one + other).cached_error == pytest.approx(one.cached_error / 2, rel=0.3)
