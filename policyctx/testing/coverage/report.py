"""CoverageRule coverage for people, as lines of text, and for programs, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyctx.testing.coverage.rules import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.testing.coverage.record import PolicyCoverage
    from policyctx.testing.coverage.rules import CoverageRule

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
    """Yield a sentence for each policy of whose rules less than `bound` percent decided."""
    for policy in policies:
        if policy.percent < bound:
            share = f"{_floored(policy.percent)} % of the rules of {policy.name} are covered"
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
