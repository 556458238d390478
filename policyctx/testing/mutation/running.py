"""The part of the pytest plugin that runs scenarios again and again, each time under a mutant.

The scenarios are collected once. For each mutant a line of JSON goes to stdout,
beside what pytest writes there.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from policyctx.testing.mutation.mutants import Change
from policyctx.testing.policies import ChangedPolicy, changed_policy


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant by its number, and the node ids of the scenarios that may notice it."""

    number: int
    policy: ChangedPolicy
    scenarios: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, from which `of_plain` makes it anew."""
        return {
            "number": self.number,
            "policy": self.policy.path,
            "change": self.policy.change.plain(),
            "scenarios": list(self.scenarios),
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Task:
        """Make it from plain values, as JSON hands them over."""
        changed = ChangedPolicy(plain["policy"], Change.of_plain(plain["change"]))
        return cls(plain["number"], changed, tuple(plain["scenarios"]))


class MutantRuns:
    """Takes the place of pytest's own loop over the tests; `file` holds the tasks, as JSON."""

    def __init__(self, file: Path) -> None:
        self._tasks = [Task.of_plain(t) for t in json.loads(file.read_text(encoding="utf-8"))]
        self._noticed: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the scenarios of each task until one fails."""
        items = {item.nodeid: item for item in session.items}
        for task in self._tasks:
            # What noticed one change will most likely notice the next.
            names = sorted(task.scenarios, key=lambda name: -self._noticed[name])
            with changed_policy(task.policy):
                found = _first_to_fail([items[name] for name in names])
            self._noticed.update([found] if found else [])
            line = json.dumps({"number": task.number, "noticed_by": found})
            sys.stdout.write(f"\n{line}\n")
            sys.stdout.flush()
        return True


def _first_to_fail(items: Sequence[pytest.Item]) -> str | None:
    following: list[pytest.Item | None] = [*items[1:], None]
    for item, next_item in zip(items, following, strict=True):
        # A test function has its fixtures for one run; this gives it those of the next.
        item._initrequest()  # type: ignore[attr-defined] # noqa: SLF001
        reports = runtestprotocol(item, nextitem=next_item, log=False)
        if any(report.failed for report in reports):
            # What was set up for the next scenario is not needed now.
            item.session._setupstate.teardown_exact(None)  # noqa: SLF001
            return item.nodeid
    return None
