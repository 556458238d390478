"""Leaves out the comparisons with other libraries, which `scripts/test-peers` runs."""

from __future__ import annotations

import os

if "POLICYCTX_PEERS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
