from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.proxy.blackbox.proxies import WINDOW
from tests.proxy.blackbox.upstream import Upstream, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def provider() -> Iterator[Upstream]:
    """The scripted provider, whose models have a small window."""
    with upstream(WINDOW) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this machine sets for providers and proxies out of the clients."""
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    # Reading all certificates of the system takes longer than most tests, and none is needed.
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
