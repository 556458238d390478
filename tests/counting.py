"""How many functions some work calls: a cost that no load of the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable


def functions_called(work: Callable[[], object]) -> int:
    """Return how often the work enters a function, and resumes or calls one made in C."""
    called = 0

    def count_call(*_: object) -> None:
        nonlocal called
        called += 1

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(before)
    return called
