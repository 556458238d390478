"""The bound on growth notices work that grows faster."""

from collections.abc import Callable

import pytest

from tests.growing import grows_at_most


def loops(power: int) -> Callable[[int], Callable[[], object]]:
    return lambda size: lambda: sum(range(size**power))


@pytest.mark.parametrize(("power", "allowed"), [(1, 1), (2, 2)])
def test_work_of_the_allowed_growth_passes(power: int, allowed: int) -> None:
    assert grows_at_most(loops(power), 400, times=4, power=allowed)


def test_quadratic_work_is_noticed() -> None:
    assert not grows_at_most(loops(2), 1_000)
