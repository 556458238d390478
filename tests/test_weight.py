"""`scripts/weight.py` weighs a package and its tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "scripts" / "weight.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package, tests = tmp_path / "project" / "package", tmp_path / "project" / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "one.py").write_text('"""One."""\n\nimport os  # noqa: F401\n\nONE = 1\n')
    (package / "two.py").write_text("from package import three\n\n\nclass A:\n    b = three\n")
    (package / "three.py").write_text("from package import two\n\n\nclass A:\n    b = two\n")
    cases = '@pytest.mark.parametrize("a", [1, 2])\ndef test_a(a: int) -> None:\n    assert a\n'
    (tests / "test_a.py").write_text(f"import pytest\n\n\n{cases}")
    return package


def weighed(package: Path, *options: str) -> dict[str, float]:
    command = [sys.executable, str(SCRIPT), str(package), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_modules_heads_suppressions_circles_and_names_are_counted(project: Path) -> None:
    found = weighed(project)
    assert (found["modules"], found["lines"], found["lines of tests"]) == (3, 15, 6)
    assert found["head lines, % of lines"] == pytest.approx(33.3)
    assert (found["noqa"], found["noqa per 1,000 lines"]) == (1, 66.7)
    assert (found["circles at run time"], found["circles with types"]) == (1, 1)
    assert found["class names used twice"] == 1
    assert "tests" not in found


def test_tests_and_the_time_of_ci_are_figures_when_they_are_asked_for(project: Path) -> None:
    found = weighed(project, "--tests", "--ci-minutes", "14.5")
    assert (found["tests"], found["minutes of CI"]) == (2, 14.5)


def test_tests_that_cannot_be_collected_are_an_error(project: Path) -> None:
    (project.parent / "tests" / "test_b.py").write_text("import nowhere_at_all\n")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        weighed(project, "--tests")
    assert "nowhere_at_all" in caught.value.stderr
