"""The recorded sessions beside the checkout: read from there, never copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drawing import IS_LONG

TRACES = Path(__file__).parents[2] / "shared" / "traces"


def each_recording(*folders: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for the `path` of each recording; skipped, and counted, without them.

    In CI every second recording of a folder, the first or the second by the name of the test.
    """
    each = [sorted((TRACES / folder).glob("*")) for folder in folders]
    missing = pytest.mark.skip(reason=f"no recordings in {'/'.join(TRACES.parts[-2:])}")

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        first = len(test.__name__) % 2
        found = [of if IS_LONG or len(of) == 1 else of[first::2] for of in each]
        paths = [pytest.param(path, id=path.stem[:40]) for of in found for path in of]
        cases = paths or [pytest.param(None, id="none", marks=missing)]
        marked: Callable[..., None] = pytest.mark.parametrize("path", cases)(test)
        needing: Callable[..., None] = pytest.mark.traces(marked)
        return needing

    return mark
