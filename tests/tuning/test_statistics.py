from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tuning.outcomes import (
    Influence,
    SessionTally,
    bootstrap_interval,
    influence,
    layers,
    quantile,
    standard_error,
    tally,
)


def test_the_standard_error_of_a_sum_is_the_known_one() -> None:
    # The sample variance of 1, 2, 3, 4 is 5/3; four clusters have the variance 20/3 together.
    assert standard_error([1, 2, 3, 4]) == pytest.approx(math.sqrt(20 / 3))


def test_one_cluster_has_no_standard_error() -> None:
    assert standard_error([5]) == math.inf
    assert bootstrap_interval([5], seed=0) is None


def test_equal_clusters_have_an_interval_without_width() -> None:
    assert bootstrap_interval([2.0] * 5, seed=0) == (10, 10)


def test_the_interval_of_many_clusters_is_near_the_normal_one() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    clusters = [chance.gauss(1, 2) for _ in range(400)]
    found = bootstrap_interval(clusters, seed=7)
    assert found is not None
    half = 1.96 * standard_error(clusters)
    assert found.low == pytest.approx(sum(clusters) - half, abs=0.12 * half)
    assert found.high == pytest.approx(sum(clusters) + half, abs=0.12 * half)


def test_the_interval_depends_on_the_seed_only() -> None:
    clusters = [1.0, 5.0, -2.0, 8.0]
    assert bootstrap_interval(clusters, seed=3) == bootstrap_interval(clusters, seed=3)
    assert bootstrap_interval(clusters, seed=3) != bootstrap_interval(clusters, seed=4)


def test_quantiles_are_linear_between_two_numbers() -> None:
    assert [quantile([0, 10, 20], share) for share in (0, 0.25, 0.5, 1)] == [0, 5, 10, 20]


def test_a_difference_within_its_margin_is_a_tie() -> None:
    assert tally([-2, -1, 0, 1, 2], [1] * 5) == SessionTally(wins=1, losses=1, ties=3)


def test_influence_is_that_of_the_largest_difference_either_way() -> None:
    assert influence([1, -5, 4]) == Influence(1, 5)
    assert influence([]) is None


def test_layers_of_known_points() -> None:
    points = [(1, 4), (2, 2), (4, 1), (3, 3), (4, 4), (1, 4)]
    assert layers(points) == [0, 0, 0, 1, 2, 0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_no_point_of_the_front_is_dominated(points: list[tuple[int, int]]) -> None:
    found = layers(points)
    for point, layer in zip(points, found, strict=True):
        better = [o for o in points if o != point and o[0] <= point[0] and o[1] <= point[1]]
        assert (layer == 0) == (not better)
