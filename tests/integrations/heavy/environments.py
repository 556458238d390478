"""The environments of hosts whose packages are too heavy for the development environment.

`environments.toml` has a table for each host: the requirements that are tested (`requires`), the
oldest ones (`oldest`, where there are others), the test files, and whether CI runs them (`ci`).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILE = Path(__file__).with_name("environments.toml")


@dataclass(frozen=True, slots=True)
class Environment:
    """What one host needs: requirements as pip takes them, and test files below the checkout."""

    host: str
    requires: tuple[str, ...]
    oldest: tuple[str, ...]
    tests: tuple[str, ...]
    ci: bool = False

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the names of the required packages."""
        return tuple(re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in self.requires)

    def is_installed(self) -> bool:
        """Return whether each package is in the environment of this process."""
        try:
            return all(version(name) for name in self.packages)
        except PackageNotFoundError:
            return False


def environments(file: Path = FILE) -> list[Environment]:
    """Return the environments that a file names, in its order."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Environment(
            host,
            tuple(table["requires"]),
            tuple(table.get("oldest", table["requires"])),
            tuple(table["tests"]),
            table.get("ci", False),
        )
        for host, table in tables.items()
    ]


def left_out() -> list[Environment]:
    """Return the environments of the hosts that are not installed here."""
    return [each for each in environments() if not each.is_installed()]
