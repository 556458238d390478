from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.blackbox.proxies import WINDOW, Proxy, proxied
from tests.proxy.blackbox.upstream import Upstream, upstream


@pytest.fixture(scope="module")
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Upstream, Proxy]]:
    """A scripted provider, and a proxy in front of it with the `MODULE_POLICY` of the module."""
    folder = tmp_path_factory.mktemp("pair")
    policy = request.module.MODULE_POLICY
    with upstream() as server, proxied(server.url, folder, policy=policy) as running:
        yield server, running


@pytest.fixture
def provider(pair: tuple[Upstream, Proxy]) -> Upstream:
    """The provider of the module, as if nothing had come yet."""
    pair[0].reset()
    return pair[0]


@pytest.fixture
def proxy(pair: tuple[Upstream, Proxy], provider: Upstream) -> Proxy:
    """The proxy of the module, which has to outlive each test."""
    assert provider is pair[0]
    assert pair[1].process.poll() is None
    return pair[1]


@pytest.fixture
def own_provider() -> Iterator[Upstream]:
    """A scripted provider for one test, whose models have a small window."""
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
