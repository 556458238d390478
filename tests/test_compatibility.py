"""The page on compatibility has the versions that the tests run with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from tests.integrations.heavy.environments import environments

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROWS = {
    found[1]: (found[2], found[3], found[4])
    for found in re.finditer(
        r"^\|[^|]*\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \| (?:`([\w-]+)`|none) \|$",
        PAGE,
        re.MULTILINE,
    )
}


def pinned(requirements: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of requirements such as `name[extra]==1.2.*`, without the `.*`."""
    found = (re.fullmatch(r"([\w-]+)(?:\[.*\])?==([\d.]+?)(?:\.\*)?", one) for one in requirements)
    return {one[1]: one[2] for one in found if one}


def test_heavy_hosts_have_the_versions_of_their_environments() -> None:
    checked = set()
    for one in environments():
        newest, oldest = pinned(one.requires), pinned(one.oldest)
        for package in newest.keys() & ROWS.keys():
            if package != "anthropic":
                assert ROWS[package][:2] == (oldest[package], newest[package])
                checked.add(package)
    assert len(checked) == 7


def test_light_hosts_have_the_oldest_versions_that_are_tested() -> None:
    script = (ROOT / "scripts" / "test-oldest").read_text(encoding="utf-8")
    tested = dict(re.findall(r"'([\w-]+)==([\d.]+)\.\*'", script))
    assert len(tested) == 5
    assert {package: ROWS[package][0] for package in tested} == tested


def test_the_table_of_hosts_has_the_same_versions() -> None:
    hosts = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    for oldest, newest, extra in ROWS.values():
        if extra:
            assert f"| {oldest}, {newest} |" in hosts
            assert extra in PROJECT["optional-dependencies"]


def test_python_versions_are_those_of_the_workflow() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    assert [f"{prefix}{one}" for one in versions] == [
        one for one in PROJECT["classifiers"] if re.fullmatch(rf"{prefix}3\.\d+", one)
    ]
    assert f"Python {', '.join(versions[:-1])} and {versions[-1]}." in PAGE
