"""Mutations of the engine: whether the features notice when the package does something else.

A mutation is a passage of the package's source and what is there instead. The passage is
looked for in the whole package and must be found once, so code may move from module to module; a
passage that was rewritten, or is not unique any more, is an error and never counts as noticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import read_source

REPOSITORY = Path(__file__).parents[2]
MUTATIONS = Path(__file__).with_suffix(".yaml")
# Large and no code: linked rather than copied.
_DATA = "vocabularies"
_FAILED, _PASSED = 1, 0


class Mutation(BaseModel):
    """One change of the engine, and the features that have to notice it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    passage: str = Field(min_length=1)
    instead: str
    features: tuple[str, ...] = Field(min_length=1, strict=False)
    """Folders below `features/`, or files in them."""
    profile: Literal["short", "long"] = "long"
    """`short`: CI runs it as well."""


class MutationPassageError(Exception):
    """A mutation's passage is not in the package, or is there more than once."""


def mutations() -> list[Mutation]:
    """Return the mutations that the file lists."""
    plain = read_yaml(read_source(MUTATIONS, MUTATIONS.name)).plain()
    return TypeAdapter(list[Mutation]).validate_python(plain)


@dataclass(frozen=True, slots=True)
class PackageCopy:
    """A copy of the package, with the presets and the features beside it, that may be changed."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> PackageCopy:
        """Make the copy in an empty folder."""
        source = REPOSITORY / "policyctx"
        ignored = shutil.ignore_patterns("__pycache__", _DATA)
        shutil.copytree(source, folder / "policyctx", ignore=ignored)
        for path in source.rglob(_DATA):
            (folder / "policyctx" / path.relative_to(source)).symlink_to(path)
        for name in ("policies", "features"):
            (folder / name).symlink_to(REPOSITORY / name)
        return cls(folder)

    def noticed_by(self, mutation: Mutation) -> str | None:
        """Return the first scenario that fails under a mutation, None when all of them pass.

        Raises `MutationPassageError`, and `RuntimeError` when the features cannot be run.
        """
        path, text = self._place_of(mutation)
        self._write(path, text.replace(mutation.passage, mutation.instead))
        try:
            return self.first_failure(mutation.features)
        finally:
            self._write(path, text)

    def first_failure(self, features: tuple[str, ...]) -> str | None:
        """Run features with the package as it is, and return the first scenario that fails."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        plugins = ("-p", "pytest-bdd", "-p", "policyctx", "--policyctx-only")
        paths = [f"features/{name}" for name in features]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, "-q", "-x", f"--junit-xml={report}", *paths],
            cwd=self.folder,  # so `-m` finds the copy before any installed package
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
            | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        failed = _failures(report) if report.exists() else []
        if run.returncode == _PASSED and not failed:
            return None
        if run.returncode == _FAILED and failed:
            return failed[0]
        raise RuntimeError(f"the features cannot be run:\n{run.stdout}{run.stderr}")

    def _place_of(self, mutation: Mutation) -> tuple[Path, str]:
        """Return the one file that has the passage, with its text."""
        files = sorted((self.folder / "policyctx").rglob("*.py"))
        texts = [(path, path.read_text(encoding="utf-8")) for path in files]
        found = [(path, text) for path, text in texts if mutation.passage in text]
        count = sum(text.count(mutation.passage) for _, text in found)
        if count != 1:
            raise MutationPassageError(
                f"{mutation.name}: the passage is in the package {count} times, not once. Adapt it"
                f" in {MUTATIONS.name} to what the code says now:\n{mutation.passage}"
            )
        return found[0]

    def _write(self, path: Path, text: str) -> None:
        """Write a module, and forget what was compiled of it: its size and second may be equal."""
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _failures(report: Path) -> list[str]:
    """Return the scenarios that failed at a step; a feature that is broken is none of them."""
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest wrote it
    return [str(case.get("name")) for case in cases if case.find("failure") is not None]
