from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _only_the_plugins_needed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have a pytest that a test runs load no other plugin; they take longer than the scenarios."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # it removes the options
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest-bdd -p policyctx")
