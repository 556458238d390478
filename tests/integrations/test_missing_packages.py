"""The package of an integration that is missing or too old is reported, with the command for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from policyctx.errors import install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def only(pattern: str, source: str) -> tuple[str, ...]:
    """Return the groups of the first match, which there must be."""
    found = re.search(pattern, source, re.MULTILINE)
    assert found is not None
    return found.groups("")


SOURCES = {
    file.stem: source
    for file in sorted((ROOT / "policyctx" / "integrations").glob("*.py"))
    if "raise InstallationError(" in (source := file.read_text(encoding="utf-8"))
}
# Each integration and the package that it imports.
PACKAGES = {
    name: ".".join(filter(None, only(r"^try:\n    (?:from (\S+) )?import (\w+)", source)))
    for name, source in SOURCES.items()
}
NEEDS = {name: only(r"needs ([\w-]+)>=([\d.]+)", source) for name, source in SOURCES.items()}
EXTRAS = {name: only(r'extra="([\w-]+)"', source)[0] for name, source in SOURCES.items()}


# Each import has a fork of one interpreter that has imported what the integrations share.
IMPORTING = """
import importlib, json, os, sys
import policyctx.session
for integration, folder in json.load(sys.stdin):
    if os.fork() == 0:
        os.dup2(os.open(folder + "/stderr", os.O_WRONLY | os.O_CREAT), 2)
        sys.path.insert(0, folder)
        importlib.import_module("policyctx.integrations." + integration)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Import each integration with its package too old or missing; return what is on stderr."""
    asked = {}
    code_of = {"old": "__version__ = '0.0.1'", "missing": "raise ImportError('not there')"}
    for integration, package in PACKAGES.items():
        for case, code in code_of.items():
            folder = asked[integration, case] = tmp_path_factory.mktemp(case)
            place = folder / package.replace(".", "/")
            place.mkdir(parents=True)
            (place / "__init__.py").write_text(code)
    run = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        input=json.dumps(
            [(integration, str(asked[integration, case])) for integration, case in asked]
        ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["1"] * len(asked)
    return {key: (folder / "stderr").read_text() for key, folder in asked.items()}


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_too_old_is_reported(
    errors: dict[tuple[str, str], str], integration: str
) -> None:
    package, least = NEEDS[integration]
    assert f"needs {package}>={least}" in errors[integration, "old"]
    is_named = "is installed" in SOURCES[integration]
    assert ("0.0.1 is installed" in errors[integration, "old"]) is is_named


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_missing_is_reported(
    errors: dict[tuple[str, str], str], integration: str
) -> None:
    assert install_command(EXTRAS[integration]) in errors[integration, "missing"]


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_is_an_extra_and_is_kept_out_of_the_core(integration: str) -> None:
    [wanted] = PROJECT["project"]["optional-dependencies"][EXTRAS[integration]]
    package, least = NEEDS[integration]
    needed = re.sub(r"\[.*?\]", "", wanted)
    assert needed.startswith(f"{package}>=")
    assert needed.startswith(f"{package}>={least},") or integration == "anthropic"
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    [heavy] = [one for one in contracts if "openai" in one.get("forbidden_modules", ())]
    assert PACKAGES[integration].partition(".")[0] in heavy["forbidden_modules"]


@pytest.mark.parametrize("integration", PACKAGES)
def test_the_oldest_version_is_tested_and_in_the_table_of_hosts(integration: str) -> None:
    package, least = NEEDS[integration]
    files = ("tests/integrations/heavy/environments.toml", "scripts/test-oldest")
    tested = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    assert re.search(rf"['\"]{package}(\[\w+\])?=={re.escape(least)}(\.\*)?['\"]", tested)
    assert f"`{package}` {least}" in (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")


def test_each_integration_of_a_package_is_found() -> None:
    assert len(PACKAGES) >= 11


def test_importing_the_integrations_imports_no_package() -> None:
    packages = list(PACKAGES.values())
    script = (
        f"import policyctx.integrations, sys; print(sorted(set({packages}) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
