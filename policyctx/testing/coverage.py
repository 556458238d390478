"""`PolicyCoverage`: which scenarios covered each side of each rule, as a report of pytest."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pydantic import TypeAdapter

from policyctx.definitions.items import HostObject
from policyctx.errors import PolicyError, StoreError, visible
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.plan import Plan
from policyctx.policy.loading import loaded
from policyctx.policy.lookup import RulePath
from policyctx.policy.sources import PolicySource
from policyctx.testing import observing
from policyctx.testing.policies import named_source
from policyctx.testing.selecting import TurnEvent

# The policies of one test run by the files that they are read from.
Coverage: TypeAlias = dict[str, "PolicyCoverage"]
_COLUMNS = ("policy", "rules", "sides", "covered")
_OUTPUT = "policyctx_coverage"


@dataclass(slots=True)
class PolicyCoverage:
    """What scenarios made one policy decide; `file` is what it was read from, resolved."""

    name: str
    file: str
    rules: dict[RulePath, observing.CoverageRule] = field(default_factory=dict)
    scenarios: dict[str, None] = field(default_factory=dict)
    """The node ids of all that ran the policy, in the order of the run."""
    seen: dict[observing.Side, dict[str, None]] = field(default_factory=dict)
    """The node ids of those that made a side decide; some sides may be of keys not written."""

    def add_rules(self, rules: Iterable[observing.CoverageRule]) -> None:
        """Take up the rules of the policy; a variable of the environment may bring others."""
        for rule in rules:
            known = self.rules.setdefault(rule.path, rule)
            if known.sides != rule.sides:
                sides = dict.fromkeys((*known.sides, *rule.sides))
                self.rules[rule.path] = replace(known, sides=tuple(sides))

    def add(self, sides: Iterable[observing.Side], scenario: str) -> None:
        """Note the sides that a scenario made decide."""
        self.scenarios[scenario] = None
        for side in sides:
            self.seen.setdefault(side, {})[scenario] = None

    def merge(self, other: "PolicyCoverage") -> None:
        """Take up what another process has seen of the policy."""
        self.add_rules(other.rules.values())
        self.scenarios.update(other.scenarios)
        for side, scenarios in other.seen.items():
            self.seen.setdefault(side, {}).update(scenarios)

    def of_side(self, path: RulePath, side: str) -> tuple[str, ...]:
        """Return the scenarios that made this side decide."""
        return tuple(self.seen.get((path, side), ()))

    @property
    def side_count(self) -> int:
        """How many sides the rules have together."""
        return sum(len(rule.sides) for rule in self.rules.values())

    @property
    def covered_count(self) -> int:
        """How many of them decided in some scenario."""
        return self.side_count - len(list(self.missing()))

    @property
    def percent(self) -> float:
        """The share of the sides that decided, of 100; a policy without rules is covered."""
        return 100 * self.covered_count / self.side_count if self.side_count else 100.0

    def missing(self) -> Iterator[tuple[observing.CoverageRule, str]]:
        """Yield the sides that no scenario made decide, in the order of the rules."""
        for rule in self.rules.values():
            for side in rule.sides:
                if not self.of_side(rule.path, side):
                    yield rule, side


def table_lines(policies: Sequence[PolicyCoverage]) -> Iterator[str]:
    """Yield a table of the policies: how many rules and sides they have, how many decided."""
    rows = [_COLUMNS, *map(_row, policies)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for name, *numbers in rows:
        cells = [n.rjust(width) for n, width in zip(numbers, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *cells])


def missing_lines(policy: PolicyCoverage, base: Path) -> Iterator[str]:
    """Yield a line for each rule that did not decide, or not both ways, led by its place.

    Files are named from the folder `base`.
    """
    told: dict[str, list[str]] = {}
    for rule, side in sorted(policy.missing(), key=lambda found: (found[0].file, found[0].line)):
        value = f": {_short(rule.value)}" if rule.value else ""
        key = f"{_place(rule, base)}  {'.'.join(rule.path)}{value}"
        told.setdefault(key, []).append(observing.MISSING[side])
    for key, sides in told.items():
        yield f"{key} · {', '.join(sides)}"


def report(policies: Sequence[PolicyCoverage]) -> dict[str, Any]:
    """Return the coverage of the policies as plain values, for a JSON file."""
    found = [
        {
            "name": policy.name,
            "file": policy.file,
            "sides": policy.side_count,
            "covered": policy.covered_count,
            "percent": round(policy.percent, 2),
            "scenarios": list(policy.scenarios),
            "rules": [
                {
                    "rule": ".".join(rule.path),
                    "path": list(rule.path),
                    "file": rule.file,
                    "line": rule.line,
                    "value": rule.value,
                    "sides": {side: list(policy.of_side(rule.path, side)) for side in rule.sides},
                }
                for rule in policy.rules.values()
            ],
        }
        for policy in policies
    ]
    return {"policies": found}


def _row(policy: PolicyCoverage) -> tuple[str, ...]:
    sides = f"{policy.covered_count}/{policy.side_count}"
    # Only what is whole is called 100 %.
    return policy.name, str(len(policy.rules)), sides, f"{int(policy.percent)} %"


def _place(rule: observing.CoverageRule, base: Path) -> str:
    path = Path(rule.file)
    shown = path.relative_to(base) if path.is_relative_to(base) else path
    return f"{shown}:{rule.line}"


def _short(value: str) -> str:
    first, _, rest = value.partition("\n")
    return f"{first} …" if rest else first


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
        self, turn: TurnEvent, policy: OffloadPolicy, source: PolicySource, scenario: str
    ) -> None:
        """Note which rules the event made decide."""
        if not self._is_asked_for(source) or source.path is None or policy.tree is None:
            return
        known = self._of(policy.name, source.path)
        known.add_rules(observing.rules_of(policy.tree))
        known.add(self._sides(turn, policy, scenario), scenario)

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note which scenarios fail, and which features are broken."""
        if report.failed:
            self._failed[report.nodeid] = None

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: HostObject) -> None:
        """Take over what a process of pytest-xdist has seen."""
        for plain in getattr(node, "workeroutput", {}).get(_OUTPUT, ()):
            other = TypeAdapter(PolicyCoverage).validate_python(plain)
            self._of(other.name, other.file).merge(other)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Hand over what was seen, or judge it."""
        if self._is_worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_OUTPUT] = [asdict(policy) for policy in self._coverage.values()]
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
        """Yield a sentence for each policy of whose sides too small a share is covered."""
        for policy in self._policies:
            if self._bound is not None and policy.percent < self._bound:
                share = f"{policy.name}: {int(policy.percent)} % of the sides are covered"
                yield f"{share}, and {self._bound:g} % are required"

    def _of(self, name: str, file: str) -> PolicyCoverage:
        return self._coverage.setdefault(file, PolicyCoverage(name, file))

    def _take_up_named(self) -> None:
        """Count policies that were named and that no scenario ran as covered by nothing."""
        for path, source in self._named.items():
            if path is not None and path not in self._coverage:
                policy, tree = loaded(source)
                self._of(policy.name, path).add_rules(observing.rules_of(tree))

    def _source(self, name: str) -> PolicySource:
        folders = (self._config.invocation_params.dir, self._config.rootpath)
        try:
            return named_source(name, folders)
        except PolicyError as error:
            raise pytest.UsageError(visible(f"--policyctx-cov: {error}")) from error

    def _sides(
        self, turn: TurnEvent, policy: OffloadPolicy, scenario: str
    ) -> Iterable[observing.Side]:
        if isinstance(turn.error, StoreError):
            yield ("store", "on_failure"), "failed"
            # A name that is taken is refused by the store itself, and has no cause in the system.
            if turn.error.__cause__ is None:
                yield ("store", "on_conflict"), "taken"
        if turn.plan is not None:
            yield from observing.decided_sides(turn.plan)
        if turn.plan is not None and turn.result is not None and turn.result.compaction is not None:
            yield from observing.carried_out_sides(turn.result.compaction, turn.plan)
        if turn.result is not None and policy.store.on_conflict == "overwrite":
            yield from self._of_names(turn.result.plan, scenario)

    def _of_names(self, plan: Plan, scenario: str) -> Iterator[observing.Side]:
        """A name is taken when a file of the scenario had another content before."""
        for decision in plan.to_save:
            if decision.file is not None:
                text = decision.item.text
                if self._saved.get((scenario, decision.file.path), text) != text:
                    yield ("store", "on_conflict"), "taken"
                self._saved[scenario, decision.file.path] = text
