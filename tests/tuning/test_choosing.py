from __future__ import annotations

import pytest

from policyctx.tuning.outcomes import SessionOutcome, sums
from policyctx.tuning.search import (
    Candidate,
    Constraints,
    by_project,
    chosen,
    front,
    is_beyond_one_error,
    promoted,
    violated,
)
from policyctx.tuning.settings import Setting
from tests.tuning.landscapes import WITHOUT, outcome

PROJECTS = ["a", "b", "c", "d"]


def candidate(*nets: float, regret: int = 0, **values: str | int) -> Candidate:
    """Return a candidate with one session in each project."""
    return Candidate(Setting.of(values), tuple(outcome(net, regret) for net in nets))


def test_the_cheapest_is_chosen_beyond_one_error() -> None:
    incumbent = candidate(-1, -1, -1, -1)
    best = candidate(-2, -2.1, -1.9, -2, min_tokens=1)
    assert chosen([incumbent, best], PROJECTS) is best


def test_the_incumbent_is_chosen_within_one_error() -> None:
    incumbent = candidate(-1, -1, -1, -1)
    best = candidate(-9, 1, 1, 1, min_tokens=1)
    assert chosen([incumbent, best], PROJECTS) is incumbent


def test_of_settings_within_one_error_the_one_with_fewer_changes_is_chosen() -> None:
    incumbent = candidate(5, 5, 5, 5)
    near = candidate(-2, -2, -2, -2, min_tokens=1)
    best = candidate(-5, -1, -1, -1.5, regret=1, min_tokens=1, keep_recent=2)
    assert chosen([incumbent, best, near], PROJECTS) is near


def test_no_setting_of_the_front_beats_the_choice() -> None:
    incumbent = candidate(5, 5, 5, 5)
    near = candidate(-2, -2, -2, -2, regret=9, min_tokens=1)
    cheapest = candidate(-5, -1, -1, -1.5, regret=8, min_tokens=1, keep_recent=2, gate="none")
    calm = candidate(-4, -1, -1, -2.2, regret=1, min_tokens=1, keep_recent=2)
    assert chosen([incumbent, near, cheapest, calm], PROJECTS) is calm


def test_the_error_is_that_of_projects_and_not_of_sessions() -> None:
    other = (outcome(0),) * 8
    one = tuple(outcome(net) for net in (-4, -4, -4, -4, 1, 1, 1, 1))
    of_two_projects = ["a"] * 4 + ["b"] * 4
    assert is_beyond_one_error(one, other, [str(i) for i in range(8)])
    assert not is_beyond_one_error(one, other, of_two_projects)


@pytest.mark.parametrize("home", ["/Users/ann", "/home/ann", "/z"])
def test_the_names_of_projects_do_not_change_their_order(home: str) -> None:
    projects = ["/testbed", f"{home}/sessions", "/app", f"{home}/sessions"]
    assert by_project([1, 2, 3, 4], projects) == [1, 6, 3]


def test_the_front_has_the_nearest_of_equal_settings() -> None:
    far = candidate(-1, -1, min_tokens=1, keep_recent=2)
    near = candidate(-1, -1, min_tokens=2)
    worse = candidate(-1, 0, regret=5)
    assert front([far, near, worse]) == [near]


def test_the_front_is_promoted_before_cheaper_settings_behind_it() -> None:
    cheap = candidate(-3, regret=9, min_tokens=1)
    behind = candidate(-2, regret=10, min_tokens=2)
    calm = candidate(-1, regret=0, min_tokens=3)
    assert promoted([behind, calm, cheap], 2) == [cheap, calm]


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (Constraints(), ()),
        (Constraints(never_dearer=True), ("dearer",)),
        (Constraints(max_regret=1.5), ("regret",)),
        (Constraints(max_regret=2), ()),
    ],
)
def test_constraints(constraints: Constraints, words: tuple[str, ...]) -> None:
    incumbent, one = candidate(-1, -1, regret=10), candidate(-9, 1, regret=20)
    assert violated(one, incumbent, constraints) == words


def test_calls_over_the_window_may_not_rise_whatever_the_incumbent_does() -> None:
    over = Candidate(Setting(), (outcome(-9, over_window=1),))
    assert violated(over, over, Constraints()) == ("over the window",)


@pytest.mark.parametrize(
    ("without", "net", "is_dearer"),
    [(0.5, 0.01, False), (0.5, 0.011, True), (10, 0.1, False), (10, 0.11, True), (10, -5, False)],
)
def test_a_session_is_dearer_beyond_a_cent_and_one_per_cent(
    without: float, net: float, is_dearer: bool
) -> None:
    assert SessionOutcome(without, net, 0, 0, 0, acted=True, calls=1).is_dearer == is_dearer


def test_sums_of_two_sessions() -> None:
    found = sums([outcome(-3, 7), outcome(1, 2, over_window=1)])
    assert (found.net, found.without, found.regret_tokens) == (-2, 2 * WITHOUT, 9)
    assert (found.dearer, found.over_window, found.idle) == (1, 1, 0)
    assert found.saved == pytest.approx(0.1)
