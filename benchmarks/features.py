"""Collecting and running feature files, against pytest-bdd's own `scenarios()`.

Both sides run the same 1,000 scenarios of five steps with the same step definitions, each side in
a pytest process of its own. Ours also checks each file for what would let it pass wrongly; the
baseline does not, and needs a Python file that names the features.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import weakref
from contextlib import nullcontext
from pathlib import Path
from tempfile import mkdtemp
from textwrap import indent

from benchmarks.runner import Ratio

SCENARIOS = 1_000
SCENARIOS_OF_A_FILE = 50
AT_MOST = 1.1

_STEPS = """\
Given the policy "context-offload"
And a result "call_{n}" of {size} characters from Bash
When the policy is applied
Then 1 result is offloaded
And the result "call_{n}" reads "[Content offloaded to: ./tool-result-call_{n}.md]"
"""
_PLUGINS = """\
from policyctx.testing.steps import MODULES
pytest_plugins = ["policyctx.testing.reporting"]
pytest_plugins += [f"policyctx.testing.steps.{name}" for name in MODULES]
"""


def ratios() -> list[Ratio]:
    """The figures of this module; one call runs 1,000 scenarios."""
    folders = Folders(SCENARIOS)
    return [
        Ratio(
            "collect and run 1,000 scenarios / plain scenarios()",
            ours=lambda: run_pytest(folders.ours),
            baseline=lambda: run_pytest(folders.plain),
            bound=AT_MOST,
            setup=nullcontext,  # one call is long enough, and a timing
        )
    ]


class Folders:
    """A folder for each side, with the same features; removed when nothing refers to them."""

    def __init__(self, scenarios: int) -> None:
        root = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        self.ours, self.plain = root / "ours", root / "plain"
        for folder in (self.ours, self.plain):
            write_features(folder, scenarios)
        (self.ours / "pytest.ini").write_text("[pytest]\npolicyctx_features = .\n")
        (self.plain / "pytest.ini").write_text("[pytest]\n")
        (self.plain / "conftest.py").write_text(_PLUGINS)
        plain = 'from pytest_bdd import scenarios\nscenarios(".")\n'
        (self.plain / "test_features.py").write_text(plain)


def write_features(folder: Path, scenarios: int) -> None:
    """Write so many scenarios, no two alike, into files of 50."""
    folder.mkdir()
    for start in range(0, scenarios, SCENARIOS_OF_A_FILE):
        numbers = range(start, min(start + SCENARIOS_OF_A_FILE, scenarios))
        text = "\n".join(map(_scenario, numbers))
        head = f"Feature: Results {start}\n\n"
        (folder / f"results_{start:04}.feature").write_text(head + text, encoding="utf-8")


def _scenario(number: int) -> str:
    steps = _STEPS.format(n=number, size=100 + number)
    return f"  Scenario: Result {number} leaves\n{indent(steps, '    ')}"


def run_pytest(folder: Path) -> None:
    """Run the folder's tests in a process of their own; all of them pass."""
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)  # noqa: S603 - no shell
