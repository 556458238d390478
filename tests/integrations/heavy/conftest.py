"""Leaves out the tests of hosts that are not installed; pytest's header names them."""

from __future__ import annotations

from pathlib import Path

from tests.integrations.heavy.environments import left_out

collect_ignore = [Path(test).name for each in left_out() for test in each.tests]
