"""The part of the pytest plugin that measures rule coverage, loaded where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import PolicyError, StoreError, visible
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.plan import Plan
from policyctx.policy.loading import loaded
from policyctx.policy.sources import PolicySource
from policyctx.testing.coverage.observing import Side, carried_out_sides, decided_sides
from policyctx.testing.coverage.report import (
    Coverage,
    PolicyCoverage,
    below_bound,
    missing_lines,
    report,
    table_lines,
)
from policyctx.testing.coverage.rules import rules_of
from policyctx.testing.fates import Turn
from policyctx.testing.policies import named_source

_OUTPUT = "policyctx_coverage"


class RuleCoverage:
    """Watches every event of every scenario, and reports when all have run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._bound: float | None = config.getoption("policyctx_cov_fail_under")
        self._file: str | None = config.getoption("policyctx_cov_json")
        self._coverage: Coverage = {}
        self._saved: dict[tuple[str, str], str] = {}
        self._failed: dict[str, None] = {}
        self._names = tuple(name for name in config.getoption("policyctx_cov") or () if name)
        self._named = {source.path: source for source in map(self._source, self._names)}

    def pytest_policyctx_turn(
        self, turn: Turn, policy: OffloadPolicy, source: PolicySource, scenario: str
    ) -> None:
        """Note which rules the event made decide."""
        if not self._is_asked_for(source) or source.path is None or policy.tree is None:
            return
        known = self._coverage.setdefault(source.path, PolicyCoverage(policy.name, source.path))
        known.add_rules(rules_of(policy.tree))
        known.add(self._sides(turn, policy, scenario), scenario)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which scenarios fail."""
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note which features are broken."""
        if report.failed:
            self._failed[report.nodeid] = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - a class of pytest-xdist
        """Take over what a process of pytest-xdist has seen."""
        for plain in getattr(node, "workeroutput", {}).get(_OUTPUT, ()):
            self._merge(PolicyCoverage.of_plain(plain))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Hand over what was seen, or judge it."""
        if self._is_worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_OUTPUT] = [policy.plain() for policy in self._coverage.values()]
            return (yield)
        # After pytest-xdist has ended its processes, and before the report is shown.
        outcome = yield
        self._take_up_named()
        if self._file is not None:
            measured = {**report(self._policies), "failed": list(self._failed)}
            text = json.dumps(measured, ensure_ascii=False, indent=2)
            Path(self._file).write_text(f"{text}\n", encoding="utf-8")
        if session.exitstatus == pytest.ExitCode.OK and any(self._below_bound()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table, and below what was not covered."""

        def write(line: str, **colours: bool) -> None:
            terminalreporter.write_line(visible(line), **colours)

        write("")
        if not self._coverage:
            write("rule coverage: no scenario ran a policy of a file or a preset", yellow=True)
            return
        write("rule coverage", bold=True)
        for line in table_lines(self._policies):
            write(line)
        for policy in self._policies:
            lines = list(missing_lines(policy, self._config.invocation_params.dir))
            if lines:
                write("")
                write(f"not covered in {policy.name}", bold=True)
            for line in lines:
                write(line)
        for sentence in self._below_bound():
            write("")
            write(sentence, red=True, bold=True)

    @property
    def _policies(self) -> list[PolicyCoverage]:
        return sorted(self._coverage.values(), key=lambda policy: (policy.name, policy.file))

    def _is_asked_for(self, source: PolicySource) -> bool:
        if self._named:
            return source.path in self._named
        # A policy that a feature writes out is a part of the feature.
        return not (source.path or "").endswith(".feature")

    def _below_bound(self) -> Iterator[str]:
        return below_bound(self._policies, 0 if self._bound is None else self._bound)

    def _merge(self, other: PolicyCoverage) -> None:
        known = self._coverage.get(other.file)
        if known is None:
            self._coverage[other.file] = other
        else:
            known.merge(other)

    def _take_up_named(self) -> None:
        """Count policies that were named and that no scenario ran as covered by nothing."""
        for path, source in self._named.items():
            if path is not None and path not in self._coverage:
                policy, tree = loaded(source)
                self._coverage[path] = PolicyCoverage(policy.name, path)
                self._coverage[path].add_rules(rules_of(tree))

    def _source(self, name: str) -> PolicySource:
        folders = (self._config.invocation_params.dir, self._config.rootpath)
        try:
            return named_source(name, folders)
        except PolicyError as error:
            raise pytest.UsageError(f"--policyctx-cov: {error}") from error

    def _sides(self, turn: Turn, policy: OffloadPolicy, scenario: str) -> Iterable[Side]:
        if isinstance(turn.error, StoreError):
            yield ("store", "on_failure"), "failed"
            # A name that is taken is refused by the store itself, and has no cause in the system.
            if turn.error.__cause__ is None:
                yield ("store", "on_conflict"), "taken"
        if turn.plan is not None:
            yield from decided_sides(turn.plan)
        if turn.plan is not None and turn.result is not None and turn.result.compaction is not None:
            yield from carried_out_sides(turn.result.compaction, turn.plan)
        if turn.result is not None and policy.store.on_conflict == "overwrite":
            yield from self._of_names(turn.result.plan, scenario)

    def _of_names(self, plan: Plan, scenario: str) -> Iterator[Side]:
        """A name is taken when a file of the scenario had another content before."""
        for decision in plan.to_save:
            if decision.file is not None:
                text = decision.item.text
                if self._saved.get((scenario, decision.file.path), text) != text:
                    yield ("store", "on_conflict"), "taken"
                self._saved[scenario, decision.file.path] = text
