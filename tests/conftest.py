from __future__ import annotations

import gc
import importlib
import os
import signal
from collections.abc import Generator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.running import stop_server
from tests.drawing import IS_LONG
from tests.integrations.heavy.environments import left_out

# What is collected stays to the end, so a collection of garbage would find nothing in it.
gc.disable()

# A shell or a test runner may set it, and commands that the tests run would lay out tables for it.
os.environ.pop("COLUMNS", None)

# A shell that starts the tests in the background ignores Ctrl-C in them and in all that they start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The default and `quick` draw the same examples for the same code, on any machine; `long` draws new
# ones all night. `HYPOTHESIS_PROFILE` chooses.
SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "ci", max_examples=10, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile(
    "quick", max_examples=5, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection(session: pytest.Session) -> None:
    """Import the tests of whole folders from the end in the second of two workers.

    Both collect the same files at the same time. So each compiles one half of them, not both all.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") != "gw1":
        return
    root = session.config.rootpath
    for folder in map(root.joinpath, session.config.args):
        # A conftest.py says which modules have their assertions rewritten.
        for name in ("conftest.py", "test_*.py"):
            for file in sorted(folder.rglob(name), reverse=True):
                # What the collection leaves out may not be importable; it reports all others.
                with suppress(Exception, pytest.skip.Exception):
                    importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Look for garbage again, but not in what was collected."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """End the process that forks commands."""
    stop_server()


def pytest_report_header() -> list[str]:
    """Say which tests a run leaves out."""
    lines = []
    if hosts := ", ".join(each.host for each in left_out()):
        lines.append(f"left out: {hosts}, not installed; scripts/test-integrations runs them")
    if "POLICYCTX_CLIENTS" not in os.environ:
        lines.append("left out: Codex, Pi and other agents; scripts/test-clients runs them")
    if "POLICYCTX_PEERS" not in os.environ:
        lines.append("left out: comparisons with other libraries; scripts/test-peers runs them")
    return lines


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `scripts/test-clients` runs.

    Let what looks for something new all night have the night.
    """
    if "POLICYCTX_CLIENTS" not in os.environ:
        clients = [item for item in items if item.get_closest_marker("clients")]
        config.hook.pytest_deselected(items=clients)
        items[:] = [item for item in items if not item.get_closest_marker("clients")]
    if IS_LONG:
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what skips without recordings or of a browser, where they are required."""
    report = yield
    for marker in ("traces", "browser"):
        required = f"POLICYCTX_REQUIRE_{marker.upper()}" in os.environ
        if required and report.skipped and item.get_closest_marker(marker):
            report.outcome = "failed"
    return report
