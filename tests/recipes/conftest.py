from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _default_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLOAD_RATIO_THRESHOLD", raising=False)
