"""The price list is what its script writes from the pinned price data."""

from __future__ import annotations

import runpy
from pathlib import Path

from policyctx.pricing.rows import prices_date

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "prices.py"


def test_the_list_is_what_the_script_writes() -> None:
    script = runpy.run_path(str(SCRIPT))
    written = script["OUT"].read_text(encoding="utf-8")
    assert script["text"](prices_date()) == written
