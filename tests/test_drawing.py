from __future__ import annotations

from itertools import combinations, product

import pytest

from tests import drawing
from tests.drawing import in_profile, rotated

AXES = ([1, 2, 3], ["x", "y", "z", "w"], ["a", "b", "c"])


def test_each_value_and_each_pair_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "IS_LONG", False)
    found = rotated(*AXES, one_in=3)
    assert 3 * len(found) == len([*product(*AXES)])
    for one, other in combinations(range(3), 2):
        drawn = {(case[one], case[other]) for case in found}
        assert drawn == set(product(AXES[one], AXES[other]))


def test_each_value_of_two_axes_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "IS_LONG", False)
    assert rotated("ab", "xyz", one_in=2) == [("a", "x"), ("a", "z"), ("b", "y")]


def test_the_long_profile_has_every_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "IS_LONG", True)
    assert rotated(*AXES, one_in=3) == [*product(*AXES)]
    assert in_profile(1, 2) == 2
