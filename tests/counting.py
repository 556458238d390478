"""How many functions and lines some work runs: costs that no load of the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


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


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of the package the work runs, each time that it runs one."""
    count = 0

    def of_frame(frame: FrameType, *_: object) -> Callable[..., Any] | None:
        return of_line if "policyctx" in Path(frame.f_code.co_filename).parts else None

    def of_line(_: FrameType, event: str, __: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return of_line

    before = sys.gettrace()
    sys.settrace(of_frame)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
