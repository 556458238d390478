from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator

# `HYPOTHESIS_PROFILE=long` is the profile for a night; the default is CI's.
settings.register_profile("ci", max_examples=100, deadline=None)
settings.register_profile("long", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail where recordings are required what skips for want of them."""
    report = yield
    required = "POLICYCTX_REQUIRE_TRACES" in os.environ
    if required and report.skipped and item.get_closest_marker("traces"):
        report.outcome = "failed"
    return report
