"""Mutations of the engine: whether the features notice when the package does something else.

A mutation names a function or a constant of the package, and gives the body that it has instead,
where `original` is what it replaces. So the lines of a function may be rewritten. A function that
does not exist any more is an error, and so is a replacement that does not fit the package any
more; neither counts as noticed.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from symtable import SymbolTable, symtable
from textwrap import indent
from typing import Literal
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import read_source
from tests.cli.running import policyctx

REPOSITORY = Path(__file__).parents[2]
MUTATIONS = Path(__file__).with_suffix(".yaml")
PROGRAM = Path(__file__).with_name("running_features.py")
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
    """Folders below `features/`, files in them, or `FILE::SCENARIO` where it comes late."""
    profile: Literal["short", "long"] = "long"
    """`short`: CI runs it as well."""


class MutationError(Exception):
    """A mutation does not fit the package any more."""


def mutations() -> list[Mutation]:
    """Return the mutations that the file lists."""
    plain = read_yaml(read_source(MUTATIONS, MUTATIONS.name)).plain()
    return TypeAdapter(list[Mutation]).validate_python(plain)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of features, each in a process that may change the package for itself."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Runs:
        """Have the presets and the features in an empty folder, without this project's settings."""
        for name in ("policies", "features"):
            (folder / name).symlink_to(REPOSITORY / name)
        return cls(folder)

    def noticed_by(self, mutation: Mutation) -> str | None:
        """Return the first scenario that fails under a mutation, None when all of them pass.

        Raises `MutationError`, and `RuntimeError` when the features cannot be run.
        """
        definition = self.changed_by(mutation)
        self._misfit.unlink(missing_ok=True)
        found = self.first_failure(mutation.features, mutation.function, definition)
        if self._misfit.exists():
            raise _error_of(mutation, f"does not fit any more: {self._misfit.read_text()}")
        return found

    def changed_by(self, mutation: Mutation) -> str:
        """Return the definition that a mutation puts in the place of a function or constant."""
        module, name = mutation.function.split(":")
        path = REPOSITORY.joinpath(*module.split(".")).with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
        body, [*classes, name] = tree.body, name.split(".")
        for each in classes:
            inner = (one.body for one in body if isinstance(one, ast.ClassDef) and one.name == each)
            body = next(inner, [])
        found = [one for one in body if name in _names(one)]
        if len(found) != 1:
            raise _error_of(mutation, f"is in the package {len(found)} times, not once")
        return ast.unparse(self._changed(found[0], mutation))

    def first_failure(
        self, features: tuple[str, ...], function: str = "", definition: str = ""
    ) -> str | None:
        """Run features, with another definition of a function, and return what fails first."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        options = ("-q", "-x", f"--junit-xml={report}", *(f"features/{name}" for name in features))
        run = policyctx(function, definition, *options, cwd=self.folder, program=PROGRAM)
        failed = _failures(report) if report.exists() else []
        if run.returncode == _PASSED and not failed:
            return None
        if run.returncode == _FAILED and failed:
            return failed[0]
        raise RuntimeError(f"the features cannot be run:\n{run.stdout}{run.stderr}")

    @property
    def _misfit(self) -> Path:
        """The file that has the error of a replacement itself, which may fail a scenario."""
        return self.folder / "misfit.txt"

    def _changed(self, definition: ast.stmt, mutation: Mutation) -> ast.stmt:
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
            definition.body, definition.decorator_list = [original, *body], []
            return definition
        [function] = ast.parse("def changed(original): ...").body
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        return function


def unknown_names(mutation: Mutation, definition: str) -> set[str]:
    """Return the global names of a replacement that neither its module nor Python has."""
    module = import_module(mutation.function.partition(":")[0])
    table = symtable(definition, MUTATIONS.name, "exec")
    used = {name for function in _functions(table) for name in _globals(function)}
    return used - vars(module).keys() - vars(builtins).keys()


def _functions(table: SymbolTable) -> Iterator[SymbolTable]:
    """Yield what has names of its own in a definition, without the function as it was."""
    for child in table.get_children():
        if child.get_name() != "original":
            yield child
            yield from _functions(child)


def _globals(table: SymbolTable) -> Iterator[str]:
    return (
        one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()
    )


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
