"""How soon the page of a replay is there in a browser: a table, a line for each way to open it.

    python -m benchmarks.report [FOLDER]

FOLDER holds recordings; by default it is `../shared/traces` beside the checkout. They are replayed,
and repeated until there are fifty sessions. Each round opens the page in a browser that was just
started. Exits with 1 when the goal is missed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from benchmarks.browser import chromium, emulated
from benchmarks.runner import markdown_table
from policyctx.replay.places import files
from policyctx.replay.recording import Recording
from policyctx.replay.report.page import page, write_page
from policyctx.replay.running import Done, FailedRecording, PartlyRead, PassedOver, replayed, worked
from policyctx.replay.simulated import SimulatedSession

TRACES = Path(__file__).parents[2] / "shared" / "traces"
POLICY, EXCERPT = "coding-agent", 4_000
SESSIONS, ROUNDS = 50, 5
# The goal: seconds until the page is whole, its charts drawn.
WHOLE = 3.0
# Milliseconds since the page was asked for.
_TIMES = """
const [opened] = performance.getEntriesByType("navigation");
const [painted] = performance.getEntriesByName("first-contentful-paint");
return [painted ? painted.startTime : opened.domInteractive, opened.loadEventEnd];
"""
# At the end of an option: `… (184 calls, −12 %)`.
_CALLS = re.compile(r"\(([\d,]+) calls?, [^()]*\)$")
COLUMNS = ("opened", "something seen", "whole", "a session picked", "goal")


@dataclass(frozen=True, slots=True)
class Opening:
    """One opening of a page, in seconds."""

    seen: float
    whole: float
    picked: float
    """From picking the session with the most calls to its drawn charts."""


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit code."""
    folder = Path(arguments[0]) if arguments else TRACES
    sessions = list(islice(cycle(_replayed(folder)), SESSIONS))
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "out.html"
        size = write_page(path, page(POLICY, sessions))
        print(f"{len(sessions)} sessions, {sum(len(s.calls) for s in sessions):,} calls,"
              f" {size:,} bytes; medians of {ROUNDS} rounds")  # fmt: skip
        ways = {"on a desk": 1280, "on a phone": 390}
        found = {
            name: [_opening(path, width) for _ in range(ROUNDS)] for name, width in ways.items()
        }
    print(
        markdown_table(
            COLUMNS, [_row(name, those) for name, those in found.items()], numeric=range(1, 4)
        )
    )
    return int(any(median(one.whole for one in those) > WHOLE for those in found.values()))


def _replayed(folder: Path) -> list[SimulatedSession]:
    def work(recording: Recording, path: str) -> SimulatedSession:
        return replayed(POLICY, recording, path, excerpt=EXCERPT)

    outcomes = worked(files([folder]), work)
    others = Done | FailedRecording | PassedOver | PartlyRead
    found = [one for one in outcomes if not isinstance(one, others)]
    if not found:
        raise SystemExit(f"{folder}: no recording could be replayed")
    return found


def _opening(page: Path, width: int) -> Opening:
    with chromium() as browser:
        emulated(browser, width=width)
        browser.get(page.as_uri())
        seen, whole = browser.execute_script(_TIMES)
        choice = Select(browser.find_element(By.ID, "session"))
        calls = [
            int(number.replace(",", ""))
            for option in choice.options[1:]
            for number in _CALLS.findall(option.text)[-1:]
        ]
        began = perf_counter()
        choice.select_by_index(1 + calls.index(max(calls)))
        return Opening(seen / 1_000, whole / 1_000, perf_counter() - began)


def _row(name: str, those: Sequence[Opening]) -> tuple[str, ...]:
    seen, whole, picked = (
        median(times) for times in zip(*((o.seen, o.whole, o.picked) for o in those), strict=True)
    )
    reached = "reached" if whole <= WHOLE else "missed"
    return name, f"{seen:.2f} s", f"{whole:.2f} s", f"{picked:.2f} s", f"{WHOLE:.0f} s: {reached}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
