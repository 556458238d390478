"""The exponents of growth that `benchmarks/growth.py` prints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import growth


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_exponent_is_that_of_the_power(power: float) -> None:
    sizes = (10, 20, 40)
    assert growth.exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)


def test_work_that_grows_too_fast_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]

    def squared(size: int) -> Callable[[], None]:
        def work() -> None:
            clock[0] += size**2

        return work

    found = [growth.Growth("squares", (10, 20), squared)]
    monkeypatch.setattr(growth, "growths", lambda: found)
    monkeypatch.setattr(growth, "process_time", lambda: clock[0])
    assert growth.main(["--rounds", "1"]) == 1
    assert "| squares | 10, 20 | 100 s, 400 s | 2.00 |" in capsys.readouterr().out


@pytest.mark.parametrize("one", growth.growths(), ids=lambda one: one.name)
def test_each_quantity_can_be_measured(one: growth.Growth) -> None:
    one.prepared(2)()
