"""Mutations of the engine: whether the features notice when the package does something else.

A mutation names a function or a constant of the package, and gives the body that it has instead,
where `original` is what it replaces. So the lines of a function may be rewritten. The change is
made in the source, because other modules hold functions that they import by name. A function that
does not exist any more is an error, and so is a replacement that does not fit the package any
more; neither counts as noticed.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Literal
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import read_source

REPOSITORY = Path(__file__).parents[2]
MUTATIONS = Path(__file__).with_suffix(".yaml")
SERVER = Path(__file__).with_name("running_features.py")
# Large and no code: linked rather than copied.
_DATA = "vocabularies"
_FAILED, _PASSED = 1, 0


class Mutation(BaseModel):
    """One change of the engine, and the features that have to notice it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    function: str = Field(pattern=r"^policyctx(\.\w+)+:\w+(\.\w+)*$")
    """`module:function`, `module:Class.method` or `module:CONSTANT`."""
    instead: str = Field(min_length=1)
    """The body of the replacement: it has the parameters of the function, and `original`."""
    features: tuple[str, ...] = Field(min_length=1, strict=False)
    """Folders below `features/`, or files in them."""
    profile: Literal["short", "long"] = "long"
    """`short`: CI runs it as well."""


class MutationError(Exception):
    """A mutation does not fit the package any more."""


def mutations() -> list[Mutation]:
    """Return the mutations that the file lists."""
    plain = read_yaml(read_source(MUTATIONS, MUTATIONS.name)).plain()
    return TypeAdapter(list[Mutation]).validate_python(plain)


@dataclass(frozen=True, slots=True)
class PackageCopy:
    """A copy of the package, with the presets and the features beside it, that may be changed."""

    folder: Path
    _servers: list[subprocess.Popen[str]] = field(default_factory=list)

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

        Raises `MutationError`, and `RuntimeError` when the features cannot be run.
        """
        path, text = self._file_of(mutation), self.changed_by(mutation)
        before = path.read_text(encoding="utf-8")
        self._misfit.unlink(missing_ok=True)
        self._write(path, text)
        try:
            found = self.first_failure(mutation.features)
        finally:
            self._write(path, before)
        if self._misfit.exists():
            raise _error_of(mutation, f"does not fit any more: {self._misfit.read_text()}")
        return found

    def changed_by(self, mutation: Mutation) -> str:
        """Return the source of the module that a mutation changes, with the change."""
        path, (_, name) = self._file_of(mutation), mutation.function.split(":")
        tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
        body, [*classes, name] = tree.body, name.split(".")
        for each in classes:
            inner = (one.body for one in body if isinstance(one, ast.ClassDef) and one.name == each)
            body = next(inner, [])
        found = [position for position, one in enumerate(body) if name in _names(one)]
        if len(found) != 1:
            raise _error_of(mutation, f"is in the package {len(found)} times, not once")
        body[found[0] : found[0] + 1] = self._changed(body[found[0]], mutation)
        return ast.unparse(tree)

    def first_failure(self, features: tuple[str, ...]) -> str | None:
        """Run features with the package as it is, and return the first scenario that fails."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        plugins = ("-p", "pytest-bdd", "-p", "policyctx", "--policyctx-only")
        paths = [f"features/{name}" for name in features]
        code = self._pytest(*plugins, "-q", "-x", f"--junit-xml={report}", *paths)
        failed = _failures(report) if report.exists() else []
        if code == _PASSED and not failed:
            return None
        if code == _FAILED and failed:
            return failed[0]
        raise RuntimeError(f"the features cannot be run:\n{self._printed.read_text()}")

    def _pytest(self, *arguments: str) -> int:
        """Return the exit code of pytest, run in a fork that imports this copy of the package."""
        if not self._servers:
            self._servers.append(
                subprocess.Popen(
                    [sys.executable, "-c", SERVER.read_text(encoding="utf-8"), self._printed],
                    cwd=self.folder,  # so the copy is found before any installed package
                    env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
                    | {"PYTHONPATH": str(self.folder)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        [server] = self._servers
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(arguments) + "\n")
        server.stdin.flush()
        return int(server.stdout.readline())

    def close(self) -> None:
        """End the server that runs the features, if there is one."""
        for server in self._servers:
            server.communicate()
        self._servers.clear()

    @property
    def _printed(self) -> Path:
        """The file that has what the last run printed."""
        return self.folder / "printed.txt"

    @property
    def _misfit(self) -> Path:
        """The file that has the error of a replacement itself, which may fail a scenario."""
        return self.folder / "misfit.txt"

    def _file_of(self, mutation: Mutation) -> Path:
        module, _ = mutation.function.split(":")
        return self.folder.joinpath(*module.split(".")).with_suffix(".py")

    def _changed(self, definition: ast.stmt, mutation: Mutation) -> list[ast.stmt]:
        """Return a definition with another body, which has the definition as it was as `original`.

        An error that was raised by the replacement, and not in what it calls, is written down.
        """
        body = ast.parse(f"""
from dataclasses import replace
try:
{indent(mutation.instead, "    ")}
except (AttributeError, NameError, TypeError) as misfit:
    if misfit.__traceback__.tb_next is None:
        open({str(self._misfit)!r}, "w").write(repr(misfit))
    raise
""").body
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
            original = copy.copy(definition)
            original.name, original.decorator_list = "original", []
            definition.body = [original, *body]
            return [definition]
        assert isinstance(definition, ast.Assign | ast.AnnAssign)
        assert definition.value is not None
        [function] = ast.parse("def changed(original): ...").body
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        definition.value = ast.Call(ast.Name("changed"), [definition.value], [])
        return [function, definition]

    def _write(self, path: Path, text: str) -> None:
        """Write a module, and forget what was compiled of it: its size and second may be equal."""
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _failures(report: Path) -> list[str]:
    """Return the scenarios that failed at a step; a feature that is broken is none of them."""
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest wrote it
    return [str(case.get("name")) for case in cases if case.find("failure") is not None]


def _names(statement: ast.stmt) -> list[str]:
    """Return the names of a function, or of a constant with its value."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
    return []


def _error_of(mutation: Mutation, why: str) -> MutationError:
    return MutationError(
        f"{mutation.name}: {mutation.function} {why}. Adapt it in {MUTATIONS.name} so that it"
        " changes the same behaviour"
    )
