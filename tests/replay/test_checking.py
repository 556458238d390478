from __future__ import annotations

import pytest

from policyctx.replay.accuracy import Check, Checks, checked, checks_of
from policyctx.replay.cost import billed_calls
from policyctx.replay.simulation import simulated
from policyctx.tokens.usage import Usage
from tests.conversations import session_of
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

LONG = "one more line of some output\n" * 400
KEEPS_ALL = policy("model: {name: claude-sonnet-4-5}")
MESSAGES = session_of(*[LONG] * 5)
SIZES = [call.unedited.tokens for call in simulated(turn_by_turn(MESSAGES), KEEPS_ALL).calls]
BILLS = [20_000 + size for size in SIZES]
GROWN = [0, *BILLS[:-1]]
# $ a token more for one that is written than for one that is read.
WRITE_NOT_READ = (3.75 - 0.30) / 1_000_000
CLOSE: list[float | None] = [0, 60, 120, 180, 240]


def check(usages: list[Usage | None], times: list[float | None]) -> Check | None:
    recorded = turn_by_turn(MESSAGES, usages=usages, times=times)
    return checked(billed_calls(simulated(recorded, KEEPS_ALL)))


def as_cached(reads: list[int]) -> list[Usage | None]:
    """The usages of the calls when so much of each was read from the cache."""
    return [Usage(0, read, bill - read) for read, bill in zip(reads, BILLS, strict=True)]


def test_a_predicted_cache_has_no_error() -> None:
    found = check(as_cached(GROWN), CLOSE)
    assert found is not None
    assert (found.calls, found.error, found.off, found.unknown, found.causes) == (5, 0, 0, 0, ())
    assert found.tokens == sum(BILLS)


def test_a_call_without_usage_does_not_drop_its_session() -> None:
    found = check([*as_cached(GROWN)[:-1], None], CLOSE)
    assert found is not None
    assert (found.calls, found.error) == (4, 0)


def test_usage_without_cache_figures_is_not_checked() -> None:
    assert check([Usage(bill) for bill in BILLS], CLOSE) is None


def test_a_cache_lost_before_the_ttl_is_named() -> None:
    found = check(as_cached([*GROWN[:3], 0, GROWN[4]]), CLOSE)
    assert found is not None
    assert found.causes == (("missed", GROWN[3]),)
    assert found.billed_off == pytest.approx(WRITE_NOT_READ * GROWN[3])
    assert found.bias == pytest.approx(0, abs=0.01)  # the costs believe the bill


def test_a_cache_present_after_the_ttl_is_named() -> None:
    found = check(as_cached(GROWN), [0, 60, 120, 600, 660])
    assert found is not None
    # What another session may have kept warm, tools and system prompt, is unknown.
    assert dict(found.causes) == {"kept longer": GROWN[3] - 20_000, "cached before": 20_000}


def test_a_cache_present_before_the_session_is_unknown_and_no_error() -> None:
    found = check(as_cached([18_000, *GROWN[1:]]), CLOSE)
    assert found is not None
    assert found.causes == (("cached before", 18_000),)
    assert (found.error, found.off, found.unknown) == (0, 0, 18_000)
    assert found.billed_unknown == pytest.approx(WRITE_NOT_READ * 18_000)


def test_without_time_stamps_a_miss_may_be_a_pause() -> None:
    found = check(as_cached([*GROWN[:3], 0, GROWN[4]]), [])
    assert found is not None
    assert found.causes == (("no times", GROWN[3]),)


def test_errors_in_both_directions_do_not_cancel() -> None:
    missed = check(as_cached([*GROWN[:3], 0, GROWN[4]]), CLOSE)
    kept = check(as_cached(GROWN), [0, 60, 120, 600, 660])
    assert missed is not None
    assert kept is not None
    assert (missed + kept).billed_off == missed.billed_off + kept.billed_off
    assert (missed + kept).off == missed.off + kept.off
    assert (missed + kept).calls == 10


def test_the_own_reads_of_a_call_do_not_change_what_is_foreseen() -> None:
    seen = turn_by_turn(MESSAGES, usages=as_cached(GROWN), times=CLOSE)
    unseen = turn_by_turn(MESSAGES, usages=[Usage(bill) for bill in BILLS], times=CLOSE)
    one, other = (billed_calls(simulated(recorded, KEEPS_ALL)) for recorded in (seen, unseen))
    assert [call.costs for call in one] == [call.costs for call in other]


def test_checks_are_kept_apart_by_format() -> None:
    far, near = (Check(1, 100, off, 0, 100.0, float(off)) for off in (30, 10))
    checks = checks_of([Checks({"a": (far,)}), Checks({"a": (near,), "b": (near,)})])
    assert checks.sessions == 3
    assert checks.together("a").error == pytest.approx(0.2)
    assert checks.median("a") == pytest.approx(0.2)
    assert checks.median("b") == pytest.approx(0.1)


def test_without_prices_there_is_no_error_in_dollars() -> None:
    recorded = turn_by_turn(MESSAGES, usages=as_cached(GROWN), times=CLOSE)
    unknown = policy("model: {name: a-model-without-a-row, cache: {min_tokens: 1024}}")
    found = checked(billed_calls(simulated(recorded, unknown)))
    assert found is not None
    assert (found.error, found.off) == (None, 0)
    assert Checks({"a": (found,)}).median("a") is None
