"""What is known while a scenario runs, and what a failing one shows: line, values, reasons."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from time import perf_counter
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
    TerminalRepr,
)
from _pytest.terminal import TerminalReporter
from pluggy import Result

from policyctx.errors import Diagnostic, PolicyctxError, visible
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import PolicySource
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.plugin import shown_errors
from policyctx.testing.selecting import TurnEvent
from policyctx.testing.world import World

if TYPE_CHECKING:
    from pytest_bdd.parser import Feature, Scenario, Step

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MACHINERY = re.compile(r"[/\\](_pytest|pytest_bdd|pluggy)[/\\]")
_ROW = re.compile(r"(?P<name>.*?)(?:\[(?P<row>.*)\])?", re.DOTALL)
_COLOURS = {"passed": "green", "failed": "red", "error": "red"}


@dataclass(frozen=True, slots=True)
class RunningStep:
    """Where in a feature a scenario is: the step that runs, or the last one that ran."""

    feature: Path
    step: Step


RUNNING: pytest.StashKey[RunningStep] = pytest.StashKey()
WORLD: pytest.StashKey[World] = pytest.StashKey()


def running_step(item: pytest.Item) -> RunningStep:
    """Return the step that runs; raises `KeyError` outside of a scenario."""
    return item.stash[RUNNING]


@pytest.fixture
def policyctx_world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """The `World` of the running scenario, for steps of your own."""
    item = request.node
    here = running_step(item).feature.parent
    world = World(
        tmp_path / "context", folders=(here, item.config.rootpath), observe=partial(_observe, item)
    )
    item.stash[WORLD] = world
    return world


def _observe(
    item: pytest.Item, turn: TurnEvent, policy: OffloadPolicy, source: PolicySource
) -> None:
    if turn.plan is not None:
        item.ihook.pytest_policyctx_plan(plan=turn.plan, policy=policy, scenario=item.nodeid)
    item.ihook.pytest_policyctx_turn(turn=turn, policy=policy, source=source, scenario=item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_bdd_before_step(
    request: pytest.FixtureRequest,
    feature: Feature,
    scenario: Scenario,  # noqa: ARG001 - the hook is called with it
    step: Step,
    step_func: Callable[..., object],  # noqa: ARG001 - the hook is called with it
) -> None:
    """Remember which step runs, so that a failure can name its line."""
    request.node.stash[RUNNING] = RunningStep(Path(feature.filename), step)


def finish(item: pytest.Item) -> None:
    """End a scenario: raises `OutcomeError` for an error that none of its steps has expected."""
    if (world := item.stash.get(WORLD, None)) is not None:
        world.require_no_error()


def shown_path(path: Path, config: pytest.Config) -> str:
    """Return a path as people name it: from where pytest was started, when it is below that."""
    base = config.invocation_params.dir
    return str(path.relative_to(base) if path.is_relative_to(base) else path)


def shown_problems(problems: Iterable[Diagnostic]) -> str:
    """Return the problems, each led by `file:line:`, without a newline at the end."""
    return visible("\n".join(map(_shown, problems)))


def _shown(problem: Diagnostic) -> str:
    place = problem.place
    where = f"{place.file}:{place.line}" if place.line else place.file
    lines = [f"{where}: {problem.sentence}"]
    if place.source_line.strip():
        lines.append(f"{place.line:5} | {place.source_line.rstrip()}")
    lines += [f"        {line}" for line in problem.hint.splitlines()]
    return "\n".join(lines)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell a failure of a step in the words of the feature.

    What no step of the library raised keeps its traceback, below the step's line. A step of the
    user's own, a fixture and what they print may have the text of a recording.
    """
    report = yield from _report(item, call)
    if item.path.suffix == ".feature":
        _show(report)
        report.sections = [(name, visible(_COLOUR.sub("", text))) for name, text in report.sections]
        if why := getattr(report, "wasxfail", ""):
            report.wasxfail = visible(why)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Show what an error during collection says, such as that of a `conftest.py`."""
    report = yield
    _show(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_internalerror(excrepr: TerminalRepr) -> None:
    """Show the error of a hook, such as one of the user's own."""
    text = visible(str(excrepr))
    excrepr.toterminal = lambda tw: tw.write(text)  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Show an error of a hook that is called when the session has ended, and each `pytest.exit`."""
    end = config.pluginmanager.add_hookcall_monitoring(lambda *_: None, _show_exit)
    try:
        with shown_errors():
            return (yield)
    finally:
        end()


def _show_exit(outcome: Result[object], *_: object) -> None:
    """Show the reason of a `pytest.exit`, which pytest writes from the error itself."""
    error = outcome.exception
    if isinstance(error, pytest.exit.Exception):
        error.msg = visible(error.msg)
        error.args = (error.msg,)


def _show(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Have an escape for each hidden or control character in what kept a scenario from passing."""
    found = report.longrepr
    if isinstance(found, tuple):
        report.longrepr = (*found[:2], visible(found[2]))
    elif found is not None and (text := str(found)) != (shown := visible(text)):
        report.longrepr = shown


def _report(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    place = item.stash.get(RUNNING, None)
    if call.when != "call" or place is None or call.excinfo is None:
        return (yield)
    where, error = _where(place, item.config), call.excinfo.value
    if isinstance(error, OutcomeError | WordingError | PolicyctxError):
        text = f"{where}\n{indent(_told(error), '  ')}\n"
        told = _as_traceback(text, place, item.config, str(error))
        # Before pytest reads the source of every frame, which takes longer than the scenario.
        item.repr_failure = lambda *_, **__: told  # type: ignore[method-assign]
        return (yield)
    # The frames of the user's own code, where there are any.
    own = call.excinfo.traceback.filter(lambda entry: not _MACHINERY.search(str(entry.path)))
    call.excinfo.traceback = own or call.excinfo.traceback
    report = yield
    if report.failed:
        report.sections.insert(0, ("the step", where))
    return report


def _where(place: RunningStep, config: pytest.Config) -> str:
    path, step = shown_path(place.feature, config), place.step
    return visible(f"{path}:{step.line_number}: {step.keyword} {step.name}")


def _told(error: Exception) -> str:
    plain = isinstance(error, OutcomeError | WordingError)
    return visible(str(error) if plain else f"{type(error).__name__}: {error}")


def _as_traceback(
    text: str, place: RunningStep, config: pytest.Config, message: str
) -> ExceptionChainRepr:
    """The text in the form that pytest, its summary, junit and xdist take a failure in."""
    summary = visible(" ".join(message.split()))
    crash = ReprFileLocation(shown_path(place.feature, config), place.step.line_number, summary)
    shown = ReprTraceback([ReprEntryNative([text])], None, "native")
    return ExceptionChainRepr([(shown, crash, None)])


def install(config: pytest.Config) -> None:
    """Take the place of pytest's own report, where there is one: xdist's workers have none."""
    if (current := config.pluginmanager.get_plugin("terminalreporter")) is not None:
        config.pluginmanager.unregister(current)
        config.pluginmanager.register(ScenarioReporter(config), "terminalreporter")


class ScenarioReporter(TerminalReporter):  # type: ignore[misc] # pytest-bdd's own does so, too
    """A line for each scenario, below the name of its file; the rows of an outline in one line."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._started = perf_counter()
        self._shown: tuple[str, str] = ("", "")
        encoding = getattr(getattr(self._tw, "_file", None), "encoding", None) or "ascii"
        self._signs = _signs(encoding)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Keep a warning for the summary, as text for people."""
        super().pytest_warning_recorded(warning_message, nodeid)
        recorded = self.stats["warnings"][-1]
        recorded.message = visible(recorded.message)

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        """Say nothing before the outcome is known."""

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Say nothing more."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show how one scenario, or one row of an outline, went."""
        self._tests_ran = True
        category, letter, word = self.config.hook.pytest_report_teststatus(
            report=report, config=self.config
        )
        self._add_stats(category, [report])
        if not letter and not word:
            return
        file, _, scenario = report.nodeid.partition("::")
        match = _ROW.fullmatch(scenario)
        name, row = (match["name"], match["row"]) if match else (scenario, None)
        self._show_file(visible(file))
        self._show_name(file, name, has_rows=row is not None)
        colour = {_COLOURS.get(category, "yellow"): True}
        text = self._signs.get(category, self._signs["other"])
        self._tw.write(f"{text} {row}" if row is not None else f"  {text} {name}", **colour)
        self._tw.write("  " if row is not None else "")
        self.flush()

    def _show_file(self, file: str) -> None:
        if file != self._shown[0]:
            self.ensure_newline()
            self._end_line()
            self._tw.line(file if not self._shown[0] else f"\n{file}", bold=True)
            self._shown = (file, "")

    def _show_name(self, file: str, name: str, *, has_rows: bool) -> None:
        if (file, name) != self._shown:
            self._end_line()
            if has_rows:
                self._tw.write(f"    {name}: ")
            self._shown = (file, name)

    def _end_line(self) -> None:
        if self._shown[1]:
            self._tw.line()

    def summary_errors(self) -> None:
        """Show what kept features from being collected, or tests from being set up."""
        self._show_failures(self.stats.get("error", ()))

    def summary_failures(self) -> None:
        """Show what failed and why."""
        self._show_failures(self.stats.get("failed", ()))

    def _show_failures(self, reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> None:
        for report in reports:
            self._tw.line()
            name = report.nodeid.partition("::")[2] or "cannot be run"
            self._tw.line(f"{self._signs['failed']} {name}", red=True, bold=True)
            self._outrep_summary(report)

    def short_test_summary(self) -> None:
        """Nothing is said twice."""

    def summary_stats(self) -> None:
        """Show how many scenarios passed and failed, and in which time."""
        parts, colour = self.build_summary_stats_line()
        counts = ", ".join(text for text, _ in parts)
        if not any(self.stats.get(outcome) for outcome in ("passed", "failed", "error", "skipped")):
            deselected = self.stats.get("deselected")
            counts = "no scenario was selected" if deselected else "no feature file was found"
        self._tw.line()
        self._tw.line(f"{counts} in {perf_counter() - self._started:.1f} s", **{colour: True})


def _signs(encoding: str) -> dict[str, str]:
    signs = {"passed": "✓", "failed": "✗", "error": "✗", "other": "○"}
    try:
        "".join(signs.values()).encode(encoding)
    except UnicodeEncodeError:
        return {"passed": "ok", "failed": "FAILED", "error": "FAILED", "other": "-"}
    return signs
