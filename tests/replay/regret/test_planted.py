from __future__ import annotations

import pytest

from policyctx.replay.recording import Recording
from policyctx.replay.simulation import simulated
from tests.drawing import in_profile
from tests.replay.regret.planted import CLEARS_OLD, DECOYS, FACTS, KEEPS_ALL, Case, decoy, planted

pytestmark = pytest.mark.slow

_CASES = in_profile(100, 400)


def regretted(recording: Recording) -> set[str]:
    return {regret.removal.item_id for regret in simulated(recording, CLEARS_OLD).regrets}


@pytest.fixture(scope="module")
def judged() -> list[tuple[Case, set[str]]]:
    """Each case with what was found: as many with a need as without."""
    cases = [case for seed in range(_CASES) for case in (planted(seed), decoy(seed))]
    return [(case, regretted(case.recording)) for case in cases]


def test_the_cases_are_of_every_kind(judged: list[tuple[Case, set[str]]]) -> None:
    kinds = {case.what for case, _ in judged}
    assert kinds == {*FACTS, *DECOYS, "asked again", "other lines"}


def test_found_needs_are_planted_needs(judged: list[tuple[Case, set[str]]]) -> None:
    found = sum(len(ids) for _, ids in judged)
    right = sum(len(ids & case.needed) for case, ids in judged)
    assert right / found >= 0.95


def test_planted_needs_are_found(judged: list[tuple[Case, set[str]]]) -> None:
    """Nearly all: a sentence inside a longer line and a command of plain words are not found."""
    needed = sum(len(case.needed) for case, _ in judged)
    right = sum(len(ids & case.needed) for case, ids in judged)
    assert right / needed >= 0.93


@pytest.mark.parametrize("seed", range(5))
def test_a_policy_that_removes_nothing_is_never_regretted(seed: int) -> None:
    session = simulated(planted(seed).recording, KEEPS_ALL)
    assert session.removals == ()
    assert session.regrets == ()
