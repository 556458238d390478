"""What a failing scenario shows: the feature's line, the values compared, the plan's reasons."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
)

from policyctx.errors import Diagnostic, PolicyctxError, visible
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.running import RUNNING, RunningStep


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


_MACHINERY = re.compile(r"[/\\](_pytest|pytest_bdd|pluggy)[/\\]")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell a failure of a step in the words of the feature.

    What no step of the library raised keeps its traceback, below the step's line.
    """
    place = item.stash.get(RUNNING, None)
    if call.when != "call" or place is None or call.excinfo is None:
        return (yield)
    where, error = _where(place, item.config), call.excinfo.value
    if isinstance(error, OutcomeError | WordingError | PolicyctxError):
        text = f"{where}\n{_indented(_told(error))}\n"
        told = _as_traceback(text, place, item.config, str(error))
        # Before pytest reads the source of every frame, which takes longer than the scenario.
        item.repr_failure = lambda *_, **__: told  # type: ignore[method-assign]
        return (yield)
    _leave_out_machinery(call.excinfo)
    report = yield
    if report.failed:
        report.sections.insert(0, ("the step", where))
    return report


def _leave_out_machinery(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Keep the frames of the user's own code, where there are any."""
    inner = excinfo.traceback.filter(lambda entry: not _MACHINERY.search(str(entry.path)))
    if len(inner):
        excinfo.traceback = inner


def _where(place: RunningStep, config: pytest.Config) -> str:
    path, step = shown_path(place.feature, config), place.step
    return visible(f"{path}:{step.line_number}: {step.keyword} {step.name}")


def _told(error: Exception) -> str:
    plain = isinstance(error, OutcomeError | WordingError)
    return visible(str(error) if plain else f"{type(error).__name__}: {error}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.splitlines())


def _as_traceback(
    text: str, place: RunningStep, config: pytest.Config, message: str
) -> ExceptionChainRepr:
    """The text in the form that pytest, its summary, junit and xdist take a failure in."""
    summary = visible(" ".join(message.split()))
    crash = ReprFileLocation(shown_path(place.feature, config), place.step.line_number, summary)
    shown = ReprTraceback([ReprEntryNative([text])], None, "native")
    return ExceptionChainRepr([(shown, crash, None)])
