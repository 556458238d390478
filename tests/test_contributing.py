"""The worked diffs of CONTRIBUTING.md apply to the project, and what they add works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"^```diff\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
NAMES = ("gate", "action")
MOST_FILES = {"gate": 3, "action": 4}


def files_of(diff: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)


def copy_of_project(folder: Path) -> Path:
    for part in ("policyctx", "policies", "tests"):
        # Compiled modules are copied too: they fit, as a copy has the time of its original.
        ignored = shutil.ignore_patterns("*.tiktoken.gz")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    vocabularies = Path("policyctx/tokens/vocabularies")
    for file in (ROOT / vocabularies).glob("*.gz"):
        (folder / vocabularies / file.name).symlink_to(file)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def applied(diff: str, folder: Path, *only: str) -> None:
    command = ["git", "apply", "--whitespace=error", *(f"--include={file}" for file in only), "-"]
    run = subprocess.run(
        command, cwd=folder, input=diff, text=True, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr


def run_tests(folder: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)


def test_there_is_a_worked_diff_of_a_gate_and_of_an_action() -> None:
    assert len(DIFFS) == len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "diff"), [*zip(NAMES, DIFFS, strict=True)], ids=NAMES)
def test_a_worked_diff_applies_and_its_test_passes(name: str, diff: str, tmp_path: Path) -> None:
    project, files = copy_of_project(tmp_path), files_of(diff)
    own_tests = [file for file in files if file.startswith("tests/")]
    assert len(files) <= MOST_FILES[name]
    assert own_tests
    applied(diff, project, *own_tests)
    assert run_tests(project, *own_tests).returncode != 0
    applied(diff, project, *(file for file in files if file not in own_tests))
    run = run_tests(project, *own_tests, "tests/definitions")
    assert run.returncode == 0, run.stdout
