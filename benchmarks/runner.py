"""The runner: two sides timed in turns, and the ratio of their times.

The turns are ours, baseline, ours, baseline, …, so what slows the machine for a while slows both
sides, and the ratio holds where the seconds do not.
"""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import Any, TypeAlias

Side: TypeAlias = Callable[[], object]
# Nanoseconds since any moment.
Clock: TypeAlias = Callable[[], int]

# One timing lasts at least this, so that the clock's own cost and grain do not count.
TIMING_NS = 5_000_000

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_COLUMNS = ("module", "measured", "ours", "baseline", "ratio", "lowest - highest", "bound")
_NUMERIC = range(2, 6)
# Numbers are shown with three significant digits, and from here on with all their whole ones.
_WHOLE_FROM = 100


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure: the time of one call of `ours`, divided by the time of one call of `baseline`."""

    name: str
    """What is measured, against what; unique in its module."""
    ours: Side
    baseline: Side
    bound: float | None = None
    """The figure to reach: the ratio is to be at most this. None while there is no such goal."""
    setup: Callable[[], AbstractContextManager[object]] | None = None
    """Entered, untimed, around each timing when a call uses up what it works on, such as an empty
    folder; a timing is then one call, which should last some milliseconds by itself."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a ratio came to: the times of both sides, in seconds a call, one of each a round."""

    ratio: Ratio
    ours: tuple[float, ...]
    baseline: tuple[float, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The ratio of each round, from the two timings that were neighbours."""
        pairs = zip(self.ours, self.baseline, strict=True)
        return tuple(ours / baseline for ours, baseline in pairs)

    @property
    def value(self) -> float:
        """The median of the rounds' ratios."""
        return median(self.values)

    @property
    def holds(self) -> bool | None:
        """Is the bound kept; None when there is none."""
        return None if self.ratio.bound is None else self.value <= self.ratio.bound


def measured(
    ratio: Ratio,
    *,
    rounds: int,
    clock: Clock = perf_counter_ns,
    after_round: Callable[[], object] = lambda: None,
) -> Measurement:
    """Time both sides in turns, `rounds` times (1 or more), after an untimed call of each.

    `after_round` is called between timings, never during one.
    """
    ours = _Timer(ratio.ours, ratio.setup, clock)
    baseline = _Timer(ratio.baseline, ratio.setup, clock)
    pairs = []
    for _ in range(rounds):
        pairs.append((ours.seconds(), baseline.seconds()))
        after_round()
    return Measurement(ratio, *zip(*pairs, strict=True))


class _Timer:
    """Times one side; finds out when it is made how many calls a timing takes."""

    def __init__(
        self,
        side: Side,
        setup: Callable[[], AbstractContextManager[object]] | None,
        clock: Clock,
    ) -> None:
        self._side, self._setup, self._clock = side, setup or nullcontext, clock
        self._calls = 1
        self._elapsed()
        while setup is None and self._elapsed() < TIMING_NS:
            self._calls *= 2

    def seconds(self) -> float:
        """Return the time of one call, from one timing."""
        return self._elapsed() / self._calls / 1e9

    def _elapsed(self) -> int:
        side, clock = self._side, self._clock
        with self._setup(), _no_collections():
            started = clock()
            for _ in repeat(None, self._calls):
                side()
            return clock() - started


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the garbage collector, which runs when it likes, out of a timing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def markdown(results: Mapping[str, Sequence[Measurement]]) -> str:
    """Return the results, by module, as a Markdown table."""
    rows = [_row(module, one) for module, all_of_it in results.items() for one in all_of_it]
    return markdown_table(_COLUMNS, rows, numeric=_NUMERIC)


def markdown_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Container[int]
) -> str:
    """Return a Markdown table, lined up for a terminal; `numeric` columns are flush right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    rule = ["-" * (width - 1) + (":" if i in numeric else "-") for i, width in enumerate(widths)]
    return "\n".join(_line(cells, widths, numeric) for cells in (columns, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Container[int]) -> str:
    padded = (
        cell.rjust(width) if i in numeric else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"


def _row(module: str, one: Measurement) -> tuple[str, ...]:
    verdict = {None: "", True: ", kept", False: ", **missed**"}[one.holds]
    return (
        module,
        one.ratio.name,
        _duration(median(one.ours)),
        _duration(median(one.baseline)),
        _number(one.value),
        f"{_number(min(one.values))} - {_number(max(one.values))}",
        "none" if one.ratio.bound is None else f"at most {_number(one.ratio.bound)}{verdict}",
    )


def _duration(seconds: float) -> str:
    unit, scale = next((u for u in _UNITS if seconds >= u[1]), _UNITS[-1])
    return f"{_number(seconds / scale)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.3g}"


def report(results: Mapping[str, Sequence[Measurement]]) -> dict[str, Any]:
    """Return the results, by module, as plain values for JSON; times are seconds a call."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
        "measurements": [
            {
                "module": module,
                "name": one.ratio.name,
                "rounds": len(one.values),
                "ours_seconds": median(one.ours),
                "baseline_seconds": median(one.baseline),
                "ratio": one.value,
                "lowest": min(one.values),
                "highest": max(one.values),
                "bound": one.ratio.bound,
                "holds": one.holds,
            }
            for module, all_of_it in results.items()
            for one in all_of_it
        ],
    }
