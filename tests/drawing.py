"""What CI draws of cases that the long profile, `HYPOTHESIS_PROFILE=long`, runs in full."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import product
from typing import Any, TypeVar

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
T = TypeVar("T")


def in_profile(of_ci: T, of_long: T) -> T:
    """Return the number, or the values, of the profile that runs."""
    return of_long if IS_LONG else of_ci


def rotated(*axes: Iterable[Any], one_in: int) -> list[tuple[Any, ...]]:
    """Combine the values of axes: the long profile has every combination, CI one in so many.

    These are those whose places add up to a multiple of that, so that the pairs go round. Each
    value is in one of them as long as another axis has so many values, and each pair of values as
    long as a third axis has.
    """
    places = product(*(enumerate(axis) for axis in axes))
    return [
        tuple(value for _, value in case)
        for case in places
        if IS_LONG or sum(place for place, _ in case) % one_in == 0
    ]
