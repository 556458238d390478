from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["text", "envelope"])
def form(request: pytest.FixtureRequest) -> Format:
    found: Format = request.param
    return found


@pytest.fixture
def any_store(tmp_path: Path, clock: Clock, form: Format) -> ContextFileSystem:
    return ContextFileSystem(tmp_path / "root", sync="never", clock=clock, format=form)
