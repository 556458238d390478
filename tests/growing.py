"""How processor time grows with the size of the work, as a ratio within one run.

A bound in seconds fails on a slow hour of the machine; a ratio does not.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

_NOISE = 2.5
_SLACK = 0.02
"""Seconds; what a single interruption costs."""


def grows_at_most(
    prepare: Callable[[int], Callable[[], object]], small: int, *, times: int = 8, power: int = 1
) -> bool:
    """Whether work `times` as large takes at most about `times ** power` as long.

    `prepare` makes the work of a size; its own time does not count.
    """

    def cost(size: int) -> float:
        work = prepare(size)
        begin = process_time()
        work()
        return process_time() - begin

    gc.collect()
    gc.disable()
    try:
        bound = min(cost(small) for _ in range(5)) * times**power * _NOISE + _SLACK
        return any(cost(small * times) < bound for _ in range(3))
    finally:
        gc.enable()
