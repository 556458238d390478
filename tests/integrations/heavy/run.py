"""Run the tests of each host in an environment of its own; see `scripts/test-integrations`."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.integrations.heavy.environments import FILE, ROOT, Environment, environments

# What the tests themselves need.
EXTRAS = ("anthropic", "bdd", "hypothesis", "openai")
TESTS = f".[{','.join(EXTRAS)}]", "pytest-timeout"
VERSIONS = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tests of one host, in one environment. `seconds` include making the environment."""

    host: str
    versions: str
    passed: int
    others: int
    """The tests that failed or were skipped."""
    seconds: float
    code: int

    @property
    def is_good(self) -> bool:
        """Return whether each test passed."""
        return self.code == 0 and self.passed > 0 and self.others == 0


def installed_project() -> str:
    """Return what an environment takes from `pyproject.toml`: all but the extras of other hosts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.pop("optional-dependencies")
    return repr((project, [extras[name] for name in EXTRAS]))


def environment(requirements: tuple[str, ...], cache: Path, *, layered: bool) -> Path:
    """Return the interpreter of an environment with the checkout and these requirements.

    An environment is made once for the same requirements, interpreter and installed project. With
    `layered` it shares the packages of this process's environment, so that few are installed.
    """
    base = sysconfig.get_path("purelib") if layered else ""
    made_of = [str(ROOT), sys.version, base, installed_project(), *TESTS, *requirements]
    folder = cache / hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    python, done = folder / "bin" / "python", folder / "complete"
    if not done.exists():
        venv = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)]
        subprocess.run(venv, check=True)
        if layered:
            [packages] = folder.glob("lib/python*/site-packages")
            line = f"import site; site.addsitedir({base!r})\n"
            (packages / "base.pth").write_text(line, encoding="utf-8")
        tests: list[str] = [] if layered else ["--editable", *TESTS]
        install(python, [*tests, *requirements])
        done.touch()
    return python


def install(python: Path, wanted: list[str]) -> None:
    """Install with uv where it is, which takes a thirtieth of the time, or else with pip."""
    if shutil.which("uv"):
        uv = ["uv", "pip", "install", "--quiet", "--python", str(python), *wanted]
        if subprocess.run(uv, cwd=ROOT, check=False).returncode == 0:
            return
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet"]
    options = ["--disable-pip-version-check", "install", *wanted]
    subprocess.run([*pip, *options], cwd=ROOT, check=True)


def outcome(host: Environment, requirements: tuple[str, ...], cache: Path) -> Outcome:
    """Run the tests of a host and return what came of them."""
    began = time.monotonic()
    python = environment(requirements, cache, layered=host.ci)
    versions = subprocess.run(
        [python, "-c", VERSIONS, *host.packages], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    shown = ", ".join(f"{name} {v}" for name, v in zip(host.packages, versions, strict=True))
    print(f"{host.host}: {shown}", flush=True)  # noqa: T201 - a program
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["--quiet", "--timeout", "300", "-Wdefault", f"--junitxml={report}"]
        code = subprocess.run(
            [python, "-m", "pytest", *options, *host.tests], cwd=ROOT, check=False
        ).returncode
        suite = ET.parse(report).getroot().find("testsuite") if report.exists() else None  # noqa: S314 - of our own pytest
    counts = {} if suite is None else {name: int(n) for name, n in suite.items() if n.isdigit()}
    others = sum(counts.get(name, 0) for name in ("failures", "errors", "skipped"))
    passed = counts.get("tests", 0) - others
    return Outcome(host.host, shown, passed, others, time.monotonic() - began, code)


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a table."""
    rows = [("host", "version", "passed", "seconds")]
    rows += [
        (
            each.host,
            each.versions,
            f"{each.passed}" if each.is_good else f"{each.passed}, {each.others} did not",
            f"{each.seconds:.0f}",
        )
        for each in outcomes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in cells)


def main(arguments: list[str] | None = None) -> int:
    """Run the tests of the hosts, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/test-integrations", description=__doc__)
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="default: all of them")
    parser.add_argument("--oldest", action="store_true", help="the oldest supported versions")
    parser.add_argument("--ci", action="store_true", help="only the hosts that CI runs")
    parser.add_argument("--file", type=Path, default=FILE, help="the environments")
    given = parser.parse_args(arguments)
    known = environments(given.file)
    names = [each.host for each in known]
    if unknown := [name for name in given.hosts if name not in names]:
        parser.error(f"no such host: {', '.join(unknown)}; there are {', '.join(names)}")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("POLICYCTX_ENVIRONMENTS") or Path(home) / "policyctx-environments")
    wanted = [each for each in known if each.host in (given.hosts or names)]
    wanted = [each for each in wanted if each.ci or not given.ci]
    outcomes = [
        outcome(each, each.oldest if given.oldest else each.requires, cache) for each in wanted
    ]
    print(table(outcomes))  # noqa: T201 - a program
    return 0 if all(each.is_good for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
