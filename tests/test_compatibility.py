"""The page on compatibility has the versions that the tests run with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from tests.integrations.heavy.environments import environments
from tests.proxy.blackbox.programs import PROGRAMS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOSTS = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
ROWS = {
    found[1]: (found[2], found[3])
    for found in re.finditer(r"^\|[^|]*\| `([\w-]+)` ([\d.]+), ([\d.]+) \|", HOSTS, re.MULTILINE)
}
# What is tested there and is no package of a host in the table.
NO_HOSTS = {"bedrock", "haystack", "s3"}


def pinned(requirements: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of requirements such as `name[extra]==1.2.*`, without the `.*`."""
    found = (re.fullmatch(r"([\w-]+)(?:\[.*\])?==([\d.]+?)(?:\.\*)?", one) for one in requirements)
    return {one[1]: one[2] for one in found if one}


def test_heavy_hosts_have_the_versions_of_their_environments() -> None:
    assert {one.host for one in environments()} > NO_HOSTS
    for one in environments():
        newest, oldest = pinned(one.requires), pinned(one.oldest)
        package = one.packages[0]
        if one.host not in NO_HOSTS:
            assert ROWS[package] == (oldest[package], newest[package])
        elif one.host == "haystack":
            assert f"(plain-loop.md) runs with {newest[package]}." in " ".join(PAGE.split())


def test_light_hosts_have_the_oldest_versions_that_are_tested() -> None:
    script = (ROOT / "scripts" / "test-oldest").read_text(encoding="utf-8")
    tested = dict(re.findall(r"'([\w-]+)==([\d.]+)\.\*'", script))
    assert tested
    assert {package: ROWS[package][0] for package in tested} == tested


def test_each_host_in_the_table_has_an_extra() -> None:
    extras = PROJECT["optional-dependencies"].values()
    needed = {re.split(r"[\[>]", one)[0] for extra in extras for one in extra}
    assert {*ROWS} <= needed


def test_python_versions_are_those_of_the_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    assert [f"{prefix}{one}" for one in versions] == [
        one for one in PROJECT["classifiers"] if re.fullmatch(rf"{prefix}3\.\d+", one)
    ]
    assert f"Python {', '.join(versions[:-1])} and {versions[-1]}." in PAGE


def test_each_agent_that_the_tests_run_is_in_the_table_with_its_version() -> None:
    rows = re.findall(r"^\| ([\w -]+) \| (\d[\d.]+) \| \d{4}-\d\d-\d\d \|$", PAGE, re.MULTILINE)
    assert {name.lower().replace(" ", "-") for name, _ in rows} == {one.name for one in PROGRAMS}
