"""The pytest plugin: makes `*.feature` files tests, in the folders that pytest's ini names.

It is loaded with every pytest run where policyctx is installed, so this module needs nothing but
pytest, and does nothing until it is asked to.
"""

from __future__ import annotations

import argparse
import importlib
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.config import ConftestImportFailure

from policyctx.errors import install_command, visible

if TYPE_CHECKING:
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.planning.plan import Plan
    from policyctx.policy.sources import PolicySource
    from policyctx.testing.selecting import TurnEvent

_COLLECTING = "policyctx.testing.collecting"
_REPORTING = "policyctx.testing.reporting"
_COVERAGE = "policyctx.testing.coverage"
_MUTANTS = "policyctx.testing.judging"
_STEPS = "policyctx.testing.steps"
_HIDDEN = "collect feature files only, and report scenario by scenario; see `policyctx test`"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options and those of `policyctx test`."""
    group = parser.getgroup("policyctx", "features of policies (policyctx)")
    group.addoption(
        "--policyctx-steps",
        choices=("text", "json"),
        help="list the steps that features may use, and exit",
    )
    group.addoption(
        "--policyctx-steps-with",
        default="",
        metavar="WORDS",
        help="list only the steps that have all of these words in them, or in what they mean",
    )
    group.addoption(
        "--policyctx-cov",
        action="append",
        nargs="?",
        const="",
        metavar="POLICY",
        help="report which rules of a policy the scenarios cover; without a name, of each policy"
        " that they run",
    )
    group.addoption(
        "--policyctx-cov-fail-under",
        type=float,
        metavar="PERCENT",
        help="fail when a smaller share of the sides of one of the policies is covered",
    )
    group.addoption(
        "--policyctx-cov-json",
        metavar="FILE",
        help="write every rule with the scenarios that cover it",
    )
    # What `policyctx test` adds: features anywhere below the paths given, and nothing but features.
    group.addoption("--policyctx-only", action="store_true", help=_HIDDEN)
    # What `policyctx test --mutate` adds.
    group.addoption("--policyctx-mutants", metavar="FILE", help=argparse.SUPPRESS)
    parser.addini(
        "policyctx_features",
        "folders or files, from the ini file's folder, whose *.feature files are tests",
        type="paths",
        default=[],
    )
    parser.addini(
        "policyctx_tags",
        "regular expressions of tags that scenarios may bear, beside the markers",
        type="linelist",
        default=[],
    )


class Hooks:
    """The hooks that the plugin calls; any plugin or `conftest.py` may implement them."""

    @staticmethod
    def pytest_policyctx_plan(plan: Plan, policy: OffloadPolicy, scenario: str) -> None:
        """Called with every plan that a scenario makes, after it was made or carried out.

        `scenario` is the node id of the running scenario, one for each row of an outline.
        """

    @staticmethod
    def pytest_policyctx_turn(
        turn: TurnEvent, policy: OffloadPolicy, source: PolicySource, scenario: str
    ) -> None:
        """Called with every event of a scenario, also one that failed: its `error` says how.

        `source` is what the policy was read from; the path of one that is written in a feature is
        the feature's.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks that the plugin calls."""
    pluginmanager.add_hookspecs(Hooks)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Load what collects and runs features, where they are asked for.

    This comes before any `conftest.py`, whose steps so take the place of ours. An error of one is
    shown with an escape for each hidden or control character.
    """
    folders = feature_folders(early_config)
    if folders:
        _load(early_config, folders)
    with shown_errors() if folders else nullcontext():
        yield


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show an error that pytest leaves to the interpreter, as one of the command line."""
    try:
        yield
    except pytest.UsageError as error:  # pytest shows its text alone
        error.args = tuple(visible(str(one)) for one in error.args)
        raise
    except Exception as error:
        cause = error.cause if isinstance(error, ConftestImportFailure) else error
        text = "".join(traceback.format_exception(cause, limit=-1))
        if text == visible(text):
            raise
        raise pytest.UsageError(visible(text)) from error


def _load(early_config: pytest.Config, folders: tuple[Path, ...]) -> None:
    try:
        collecting = importlib.import_module(_COLLECTING)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in {"pytest_bdd", "gherkin", "parse"}:
            text = f"features need pytest-bdd: {install_command('bdd')}"
            raise pytest.UsageError(text) from error
        raise
    manager = early_config.pluginmanager
    collection = collecting.FeatureCollection(early_config, folders)
    manager.register(collection, collecting.FeatureCollection.NAME)
    steps = (f"{_STEPS}.{name}" for name in importlib.import_module(_STEPS).MODULES)
    for name in (_REPORTING, *steps):
        manager.register(importlib.import_module(name), name)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have the features collected, and reported as `policyctx test` does it."""
    manager = config.pluginmanager
    if _measures_coverage(config) and manager.has_plugin(_REPORTING):
        coverage = importlib.import_module(_COVERAGE).RuleCoverage(config)
        manager.register(coverage, "policyctx-coverage")
    if (mutants := config.getoption("policyctx_mutants")) is not None:
        running = importlib.import_module(_MUTANTS).MutantRuns(Path(mutants))
        manager.register(running, "policyctx-mutants")
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        # An ini that names features means them to be run, whatever its `testpaths` says.
        named = map(str, config.getini("policyctx_features"))
        config.args += [path for path in named if path not in config.args]
    if config.getoption("policyctx_only") and not config.getoption("policyctx_steps"):
        # After pytest's own report is there, since its place is taken.
        importlib.import_module(_REPORTING).install(config)


def _measures_coverage(config: pytest.Config) -> bool:
    """Is coverage asked for; a bound or a file asks for that of every policy."""
    names = ("policyctx_cov", "policyctx_cov_fail_under", "policyctx_cov_json")
    return any(config.getoption(name) is not None for name in names)


def pytest_cmdline_main(config: pytest.Config) -> int | pytest.ExitCode | None:
    """List the steps, where `--policyctx-steps` asks for it, in place of running tests."""
    if config.getoption("policyctx_steps") is None:
        return None
    from _pytest.main import wrap_session  # noqa: PLC0415 - seldom needed, and pytest's own

    return wrap_session(config, _list_steps)


def _list_steps(config: pytest.Config, session: pytest.Session) -> None:
    importlib.import_module(_COLLECTING).list_steps(config, session)


def feature_folders(config: pytest.Config) -> tuple[Path, ...]:
    """Return where feature files are tests; empty when nobody has asked for any.

    The ini says so; where there is no ini at all and no Python either, nothing but the feature
    files can be meant.
    """
    named = tuple(Path(path) for path in config.getini("policyctx_features"))
    if config.known_args_namespace.policyctx_only or config.known_args_namespace.policyctx_steps:
        return (*named, Path(config.rootpath.anchor))
    if named or config.inipath is not None:
        return named
    root = config.rootpath
    return () if any(_python_files(root)) else (root,)


def _python_files(root: Path) -> Iterator[str]:
    """The Python files below a folder, those of environments and hidden folders apart."""
    for at, folders, names in os.walk(root):
        folders[:] = [
            folder
            for folder in folders
            if not folder.startswith(".") and not Path(at, folder, "pyvenv.cfg").exists()
        ]
        yield from (name for name in names if name.endswith(".py"))
