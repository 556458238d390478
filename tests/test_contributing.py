"""The worked diffs of CONTRIBUTING.md apply to the project, and what they add works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.drawing import in_profile

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"^```diff\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
MOST_FILES = {"gate": 4, "action": 4, "fact": 6, "shape": 3, "host": 8, "command": 3, "reader": 4}
NAMES = tuple(MOST_FILES)
OF_A_HOST = {
    "docs/murmur.md",
    "policyctx/integrations/murmur.py",
    "tests/hosts/murmur.py",
    "tests/integrations/test_murmur.py",
}


CATALOGUE = "docs/zh/policy-reference.yaml"
OLDEST = "scripts/test-oldest"
# What has to pass beside the tests of a diff and those of the definitions.
ALSO = {
    "gate": ["tests/policy/test_diagnostics.py"],
    "host": ["tests/hosts/test_host_shapes.py", "tests/integrations/test_missing_packages.py"],
    "reader": ["tests/replay/test_registered.py"],
}
# The tests that are chosen from those, beside the own ones of the diffs and the definitions.
CHOSEN = {"host": ["murmur"], "reader": ["table", "lyre", "session"]}
# The long profile applies each diff to a copy of its own. CI applies to one copy those whose tests
# run without a choice and whose reference is translated, and the others to another.
APART = [(name,) for name in NAMES]
TOGETHER = [("gate", "fact", "shape", "command"), ("action", "host", "reader")]
# A run of pytest loads the plugins that the tests use, not every installed one.
PLUGINS = "-p pytest_bdd.plugin -p policyctx.testing.plugin -p pytest_timeout -p xdist.plugin"
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": PLUGINS}


def files_of(diff: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)


def own_tests(diff: str) -> list[str]:
    return [file for file in files_of(diff) if re.fullmatch(r"tests/.*\.py", file)]


def copy_of_project(folder: Path, files: list[str], run: Iterable[str]) -> Path:
    # Of a text of the reference also what `scripts/docs` reads.
    derived = ("scripts", "benchmarks", "docs") if CATALOGUE in files else ()
    for part in ("policyctx", "policies", *derived):
        # Compiled modules are copied too: they fit, as a copy has the time of its original.
        ignored = shutil.ignore_patterns("*.tiktoken.gz")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    changed = {Path(file).parts[1] for file in (*files, *run) if file.startswith("tests/")}
    (folder / "tests").mkdir()
    for entry in (ROOT / "tests").iterdir():
        copy = folder / "tests" / entry.name
        if entry.is_file():
            shutil.copy2(entry, copy)
        elif entry.name in changed:
            shutil.copytree(entry, copy)
        elif entry.name != "__pycache__":
            copy.symlink_to(entry)
    vocabularies = Path("policyctx/tokens/vocabularies")
    for file in (ROOT / vocabularies).glob("*.gz"):
        (folder / vocabularies / file.name).symlink_to(file)
    for name in {"pyproject.toml", "README.md", "README.zh.md", OLDEST, *files}:
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def applied(diff: str, folder: Path, *only: str) -> None:
    """Apply the parts of a diff about these files, wherever the lines around a change are now."""
    for part in re.split(r"^(?=--- )", diff, flags=re.MULTILINE)[1:]:
        [name] = files_of(part)
        if name not in only:
            continue
        file = folder / name
        text = "" if part.startswith("--- /dev/null") else file.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        hunks = re.split(r"^@@ .*?\+(\d+).*\n", part, flags=re.MULTILINE)[1:]
        for start, hunk in zip(hunks[::2], hunks[1::2], strict=True):
            change(lines, int(start) - 1, hunk.splitlines(keepends=True))
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(lines), encoding="utf-8")


def change(lines: list[str], start: int, hunk: list[str]) -> None:
    """Apply a hunk where its lines are; of lines that are only added, one next to them will do."""
    old, new = ([line[1:] for line in hunk if line[0] != sign] for sign in "+-")
    added = [i for i, line in enumerate(hunk) if line[0] == "+"]
    places = [i for i in range(len(lines) + 1) if lines[i : i + len(old)] == old]
    if not places and len(new) - len(old) == len(added):
        before, after = hunk[added[0] - 1][1:], hunk[added[-1] + 1][1:]
        old, new = [], [hunk[i][1:] for i in added]
        places = [i + 1 for i, line in enumerate(lines) if line == before]
        places = places or [i for i, line in enumerate(lines) if line == after]
    assert places, f"none of the lines around this is there:\n{''.join(hunk)}"
    place = min(places, key=lambda i: abs(i - start))
    lines[place : place + len(old)] = new


def run_tests(folder: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    env = os.environ | FEW_PLUGINS
    return subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The tests of the diffs that fail where only they are applied; one run of pytest for all."""
    tests = [file for diff in DIFFS for file in own_tests(diff)]
    project = copy_of_project(tmp_path_factory.mktemp("without"), tests, ())
    for diff in DIFFS:
        applied(diff, project, *own_tests(diff))
    run = run_tests(project, "-rfE", "--continue-on-collection-errors", *tests)
    return set(re.findall(r"^(?:FAILED|ERROR) ([\w/]+\.py)", run.stdout, re.MULTILINE))


@pytest.mark.parametrize("diff", DIFFS, ids=NAMES)
def test_the_lines_around_each_change_of_a_worked_diff_are_in_the_file(diff: str) -> None:
    for part in re.split(r"^(?=--- a/)", diff, flags=re.MULTILINE)[1:]:
        [name] = files_of(part.partition("--- /dev/null")[0])
        lines = (ROOT / name).read_text(encoding="utf-8")
        for hunk in re.split(r"^@@ .*\n", part.partition("--- /dev/null")[0], flags=re.MULTILINE)[
            1:
        ]:
            around = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] != "+")
            assert around in lines, f"{name} has no such lines:\n{around}"


def test_there_is_a_worked_diff_of_each() -> None:
    assert len(DIFFS) == len(NAMES)


def test_a_host_touches_five_files_beside_its_own_with_the_changelog() -> None:
    files = {*files_of(DIFFS[NAMES.index("host")])}
    assert files > OF_A_HOST
    assert len(files - OF_A_HOST | {"CHANGELOG.md"}) == 5
    [text] = re.findall(r"\*\*A host\*\* .*?```diff", GUIDE, re.DOTALL)
    assert all(f"`{file}`" in text for file in files - OF_A_HOST)


@pytest.mark.slow
@pytest.mark.parametrize("names", in_profile(TOGETHER, APART), ids="-".join)
def test_worked_diffs_apply_and_their_tests_pass(
    names: tuple[str, ...], failing: set[str], tmp_path: Path
) -> None:
    diffs = {name: DIFFS[NAMES.index(name)] for name in names}
    files = [file for diff in diffs.values() for file in files_of(diff)]
    own = [file for diff in diffs.values() for file in own_tests(diff)]
    run_too = ["tests/definitions", *(path for name in names for path in ALSO.get(name, ()))]
    project = copy_of_project(tmp_path, files, run_too)
    for name, diff in diffs.items():
        assert len(files_of(diff)) <= MOST_FILES[name]
        assert not failing.isdisjoint(own_tests(diff))
        applied(diff, project, *files_of(diff))
    if CATALOGUE in files:
        command = [sys.executable, "-m", "scripts.generate"]
        run = subprocess.run(command, cwd=project, text=True, capture_output=True, check=False)
        why = f"scripts/docs refuses the guide's {names}; is it here already?\n{run.stderr}"
        assert (run.returncode, run.stderr) == (0, ""), why
    chosen = [word for name in names for word in CHOSEN.get(name, ())]
    if chosen:
        chosen += ["definitions", *(Path(path).stem for path in own)]
    run = run_tests(project, *dict.fromkeys((*own, *run_too)), "-k", " or ".join(chosen))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_the_worked_diffs_pass_the_linter_and_the_type_checker(tmp_path: Path) -> None:
    files = [file for diff in DIFFS for file in files_of(diff)]
    project = copy_of_project(tmp_path, files, ())
    # The type checker reads again only what the diffs change, where it has checked the project.
    if (cache := ROOT / ".mypy_cache").exists():
        shutil.copytree(cache, project / cache.name)
    for diff in DIFFS:
        applied(diff, project, *files_of(diff))
    own = sorted({file for file in files if file.endswith(".py")})
    for command in (["ruff", "format", "--check"], ["ruff", "check"], ["mypy"]):
        run = subprocess.run(
            [sys.executable, "-m", *command, *own],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
