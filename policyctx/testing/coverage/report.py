"""`PolicyCoverage`: the rules of a policy, the scenarios that covered each side, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from policyctx.policy.lookup import RulePath
from policyctx.testing.coverage.observing import Side
from policyctx.testing.coverage.rules import MISSING, CoverageRule

# The policies of one test run by the files that they are read from.
Coverage: TypeAlias = dict[str, "PolicyCoverage"]


@dataclass(slots=True)
class PolicyCoverage:
    """What scenarios made one policy decide; `file` is what it was read from, resolved."""

    name: str
    file: str
    rules: dict[RulePath, CoverageRule] = field(default_factory=dict)
    scenarios: dict[str, None] = field(default_factory=dict)
    """The node ids of all that ran the policy, in the order of the run."""
    seen: dict[Side, dict[str, None]] = field(default_factory=dict)
    """The node ids of those that made a side decide; some sides may be of keys not written."""

    def add_rules(self, rules: Iterable[CoverageRule]) -> None:
        """Take up the rules of the policy; a variable of the environment may bring others."""
        for rule in rules:
            known = self.rules.setdefault(rule.path, rule)
            if known.sides != rule.sides:
                sides = dict.fromkeys((*known.sides, *rule.sides))
                self.rules[rule.path] = CoverageRule(
                    known.path, known.file, known.line, known.value, tuple(sides)
                )

    def add(self, sides: Iterable[Side], scenario: str) -> None:
        """Note the sides that a scenario made decide."""
        self.scenarios[scenario] = None
        for side in sides:
            self.seen.setdefault(side, {})[scenario] = None

    def merge(self, other: PolicyCoverage) -> None:
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

    def missing(self) -> Iterator[tuple[CoverageRule, str]]:
        """Yield the sides that no scenario made decide, in the order of the rules."""
        for rule in self.rules.values():
            for side in rule.sides:
                if not self.of_side(rule.path, side):
                    yield rule, side

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, from which `of_plain` makes it anew."""
        return {
            "name": self.name,
            "file": self.file,
            "rules": [asdict(rule) for rule in self.rules.values()],
            "scenarios": list(self.scenarios),
            "seen": [[list(path), side, list(ids)] for (path, side), ids in self.seen.items()],
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> PolicyCoverage:
        """Make it from plain values, as JSON or another process hands them over."""
        made = cls(plain["name"], plain["file"], scenarios=dict.fromkeys(plain["scenarios"]))
        made.add_rules(
            CoverageRule(tuple(r["path"]), r["file"], r["line"], r["value"], tuple(r["sides"]))
            for r in plain["rules"]
        )
        for path, side, ids in plain["seen"]:
            made.seen[tuple(path), side] = dict.fromkeys(ids)
        return made


_COLUMNS = ("policy", "rules", "sides", "covered")


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
        told.setdefault(key, []).append(MISSING[side])
    for key, sides in told.items():
        yield f"{key} · {', '.join(sides)}"


def below_bound(policies: Sequence[PolicyCoverage], bound: float) -> Iterator[str]:
    """Yield a sentence for each policy of whose sides less than `bound` percent are covered."""
    for policy in policies:
        if policy.percent < bound:
            share = f"{policy.name}: {_floored(policy.percent)} % of the sides are covered"
            yield f"{share}, and {bound:g} % are required"


def report(policies: Sequence[PolicyCoverage]) -> dict[str, Any]:
    """Return the coverage of the policies as plain values, for a JSON file."""
    return {"policies": [_policy_report(policy) for policy in policies]}


def _policy_report(policy: PolicyCoverage) -> dict[str, Any]:
    return {
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


def _row(policy: PolicyCoverage) -> tuple[str, ...]:
    sides = f"{policy.covered_count}/{policy.side_count}"
    return policy.name, str(len(policy.rules)), sides, f"{_floored(policy.percent)} %"


def _floored(percent: float) -> int:
    """Only what is whole is called 100 %."""
    return int(percent)


def _place(rule: CoverageRule, base: Path) -> str:
    path = Path(rule.file)
    shown = path.relative_to(base) if path.is_relative_to(base) else path
    return f"{shown}:{rule.line}"


def _short(value: str) -> str:
    first, _, rest = value.partition("\n")
    return f"{first} …" if rest else first
