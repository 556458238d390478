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


_REQUIRED = re.compile(
    r'with required\(\s*"[^"]+",\s+"(\S+)",'
    r'\s+needs="([\w-]+)(?:\[\w+\])?>=([\d.]+)",\s+extra="(\S+)"'
)
# Each integration: the package that it imports, the distribution and its oldest version, the extra.
REQUIRED = {
    file.stem: found.groups()
    for file in sorted((ROOT / "policyctx" / "integrations").glob("*.py"))
    if (found := _REQUIRED.search(file.read_text(encoding="utf-8")))
}
PACKAGES = {name: package for name, (package, *_) in REQUIRED.items()}


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
    _, package, least, _ = REQUIRED[integration]
    said = rf"needs {package}(\[\w+\])?>={least}, and 0\.0\.1 is installed: pip install"
    assert re.search(said, errors[integration, "old"])


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_missing_is_reported(
    errors: dict[tuple[str, str], str], integration: str
) -> None:
    assert install_command(REQUIRED[integration][3]) in errors[integration, "missing"]


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_is_an_extra_and_is_kept_out_of_the_core(integration: str) -> None:
    imported, package, least, extra = REQUIRED[integration]
    extras = PROJECT["project"]["optional-dependencies"]
    assert extra in extras, f"pyproject.toml has no extra {extra}"
    [wanted] = extras[extra]
    needed = re.sub(r"\[.*?\]", "", wanted)
    assert needed.startswith(f"{package}>=")
    assert needed.startswith(f"{package}>={least},") or integration == "anthropic"
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    [heavy] = [one for one in contracts if "openai" in one.get("forbidden_modules", ())]
    assert imported.partition(".")[0] in heavy["forbidden_modules"]


@pytest.mark.parametrize("integration", PACKAGES)
def test_the_oldest_version_is_tested_and_in_the_table_of_hosts(integration: str) -> None:
    _, package, least, _ = REQUIRED[integration]
    files = ("tests/integrations/heavy/environments.toml", "scripts/test-oldest")
    tested = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    pinned = rf"['\"]{package}(\[\w+\])?=={re.escape(least)}(\.\*)?['\"]"
    assert re.search(pinned, tested), f"{package}=={least} is in neither {' nor '.join(files)}"
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
