"""The figures in the descriptions of the presets: what a replay of the recordings comes to."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.presets import TRACES, Measured, measured, stated
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.running import SUMMARISE_ONLY, summarise_only

needs_recordings = [
    pytest.mark.traces,
    pytest.mark.slow,
    pytest.mark.skipif(not TRACES.is_dir(), reason="no recordings in shared/traces"),
]
OWN = ("coding-agent", "few-re-reads", "small-context")


@cache
def found() -> dict[str, Measured]:
    policies = {name: OffloadPolicy.load(name) for name in OWN}
    return measured(policies | {SUMMARISE_ONLY: summarise_only(policies["coding-agent"])})


def test_each_preset_of_the_library_states_its_figures() -> None:
    assert tuple(stated()) == OWN


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_recordings) for n in OWN])
def test_a_preset_comes_to_what_its_description_states(name: str) -> None:
    sums = found()[name].sums
    assert stated()[name].agrees(sums), sums


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_recordings) for n in OWN if n != "few-re-reads"]
)
def test_a_preset_costs_less_than_its_summaries_alone_beyond_the_interval(name: str) -> None:
    interval = found()[name].against(found()[SUMMARISE_ONLY].outcomes)
    assert interval is not None
    assert interval.high < 0


@pytest.mark.parametrize("name", [pytest.param("few-re-reads", marks=needs_recordings)])
def test_few_re_reads_saves_more_than_its_summaries_and_needs_the_fewest_tokens_again(
    name: str,
) -> None:
    few, *others = (found()[other].sums for other in (name, *(o for o in found() if o != name)))
    assert few.net < found()[SUMMARISE_ONLY].sums.net
    assert all(few.regret_tokens < other.regret_tokens for other in others)


@pytest.mark.parametrize("name", [pytest.param("coding-agent", marks=needs_recordings)])
def test_the_default_makes_no_session_dearer_and_is_beaten_by_no_other_preset(name: str) -> None:
    default = found()[name].sums
    assert default.dearer == 0
    for other in OWN:
        sums = found()[other].sums
        is_as_good = sums.net <= default.net and sums.regret_tokens <= default.regret_tokens
        assert other == name or not is_as_good
