"""The recorded sessions beside the checkout: read from there, never copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

TRACES = Path(__file__).parents[2] / "shared" / "traces"


def each_recording(*folders: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for the `path` of each recording; skipped, and counted, without them."""
    found = [path for folder in folders for path in sorted((TRACES / folder).glob("*"))]
    missing = pytest.mark.skip(reason=f"no recordings in {'/'.join(TRACES.parts[-2:])}")
    paths = [pytest.param(path, id=path.stem[:40]) for path in found]

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        cases = paths or [pytest.param(None, id="none", marks=missing)]
        marked: Callable[..., None] = pytest.mark.parametrize("path", cases)(test)
        needing: Callable[..., None] = pytest.mark.traces(marked)
        return needing

    return mark
