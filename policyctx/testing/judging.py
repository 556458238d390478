"""Whether scenarios notice the mutants of a policy, and the list of accepted mutants."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any, TypeAlias

import pytest
from _pytest.runner import runtestprotocol
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from policyctx.errors import MutationError, present
from policyctx.policy.lookup import RulePath
from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import read_source
from policyctx.testing.mutants import Mutant
from policyctx.testing.policies import ChangedPolicy, changed_policy

_PLUGINS = ("-p", "pytest-bdd", "-p", "policyctx")
_PYTEST = (sys.executable, "-m", "pytest", *_PLUGINS, "--policyctx-only")
# pytest's exit code where it collected no test.
_NOTHING_RAN = 5
Answer: TypeAlias = tuple[int, str | None]
"""The number of a mutant, and the first scenario that noticed it."""


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant by its number, and the node ids of the scenarios that may notice it."""

    number: int
    policy: ChangedPolicy
    scenarios: tuple[str, ...]


_TASKS = TypeAdapter(list[Task])


class MutantRuns:
    """Takes the place of pytest's own loop over the tests; `file` holds the tasks, as JSON."""

    def __init__(self, file: Path) -> None:
        self._tasks = _TASKS.validate_json(file.read_bytes())
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


class Accepted(BaseModel):
    """One mutant, as the command tells it, and why no scenario can notice it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mutant: str
    reason: Annotated[str, Field(min_length=1)]


def accepted(file: Path) -> dict[str, str]:
    """Return the reasons by the mutants that a YAML file lists, as `{mutant, reason}` each.

    Raises `PolicyError` for what is not YAML, `MutationError` for any other list.
    """
    try:
        plain = read_yaml(read_source(file, str(file))).plain()
        entries = TypeAdapter(list[Accepted]).validate_python(plain)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise MutationError(
            f"{file}: expected a list of maps of `mutant` and `reason`; {place or 'it'}:"
            f" {error.errors()[0]['msg']}"
        ) from error
    return {entry.mutant: entry.reason for entry in entries}


@dataclass(frozen=True, slots=True)
class MutantVerdict:
    """A mutant, how many scenarios may notice it, and the first one that did."""

    mutant: Mutant
    scenarios: int
    noticed_by: str | None


@dataclass(frozen=True, slots=True)
class Covered:
    """The scenarios that ran a policy, and of each of its rules those that made it decide."""

    scenarios: tuple[str, ...]
    by_rule: Mapping[RulePath, tuple[str, ...]]

    @classmethod
    def of_report(cls, report: Mapping[str, Any]) -> "Covered":
        """Read the JSON of rule coverage, which is of one policy."""
        [policy] = report["policies"]
        rules = {
            tuple(rule["path"]): tuple(dict.fromkeys(chain.from_iterable(rule["sides"].values())))
            for rule in policy["rules"]
        }
        return cls(tuple(policy["scenarios"]), rules)

    def of(self, rule: RulePath) -> tuple[str, ...]:
        """Return the scenarios that may notice a change of this key.

        They are those of the rule that it is, of the rules below it, else of the nearest above
        it; all that ran the policy where no rule is.
        """
        below = [found for path, found in self.by_rule.items() if path[: len(rule)] == rule]
        if below:
            return tuple(dict.fromkeys(name for found in below for name in found))
        for length in range(len(rule) - 1, 0, -1):
            if rule[:length] in self.by_rule:
                return self.by_rule[rule[:length]]
        return self.scenarios


def covered(policy: str, paths: Sequence[str]) -> Covered:
    """Run the scenarios once, unchanged, and return which of them reach what.

    Raises `MutationError`, with the scenarios that fail, when one does or when there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "coverage.json")
        options = (f"--policyctx-cov={policy}", f"--policyctx-cov-json={file}", "-q")
        run = subprocess.run(  # noqa: S603 - no shell
            [*_PYTEST, *options, *paths], capture_output=True, text=True, check=False
        )
        report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if run.returncode:
            raise _not_run(run, tuple(report.get("failed", ())))
        return Covered.of_report(report)


def _not_run(run: subprocess.CompletedProcess[str], failing: tuple[str, ...]) -> MutationError:
    """The error for scenarios that do not pass unchanged, with what pytest says of them."""
    if failing:
        count = "1 scenario fails" if len(failing) == 1 else f"{len(failing)} scenarios fail"
        why = f"{count} before the policy is changed:"
    elif run.returncode == _NOTHING_RAN:
        why = "there is no scenario to notice one"
    else:
        why = f"the scenarios cannot be run, pytest ended with {run.returncode}"
    lines = (f"no mutant was run: {why}", *(f"  {name}" for name in failing))
    return MutationError("\n".join((*lines, "", run.stdout + run.stderr)), failing=failing)


def judged(
    mutants: Sequence[Mutant], policy: str, known: Covered, paths: Sequence[str], jobs: int
) -> Iterator[MutantVerdict]:
    """Yield the verdict on each mutant as it comes; `policy` is the file, resolved.

    Raises `MutationError` when a process ends before its time.
    """
    tasks = [
        Task(i, ChangedPolicy(policy, mutant.change), known.of(mutant.rule))
        for i, mutant in enumerate(mutants)
    ]
    counts = [len(task.scenarios) for task in tasks]
    for task in tasks:
        if not task.scenarios:
            yield MutantVerdict(mutants[task.number], 0, None)
    to_run = [task for task in tasks if task.scenarios]
    shares = [share for i in range(jobs) if (share := to_run[i::jobs])]
    for number, noticed_by in _answers(shares, paths):
        yield MutantVerdict(mutants[number], counts[number], noticed_by)


def _answers(shares: Sequence[Sequence[Task]], paths: Sequence[str]) -> Iterator[Answer]:
    """Run each share in a process of its own; yield the answers as they come."""
    answers: SimpleQueue[Answer | Future[None]] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(shares) or 1) as threads:
        for number, share in enumerate(shares):
            file = Path(folder, f"{number}.json")
            file.write_bytes(_TASKS.dump_json([*share]))
            threads.submit(_ask, file, paths, answers.put).add_done_callback(answers.put)
        running = len(shares)
        while running:
            answer = answers.get()
            if isinstance(answer, Future):
                answer.result()
                running -= 1
            else:
                yield answer


def _ask(tasks: Path, paths: Sequence[str], put: Callable[[Answer], None]) -> None:
    """Have a process run tasks, and put its answers; raises `MutationError` if it ends early."""
    command = [*_PYTEST, f"--policyctx-mutants={tasks}", "-qq", *_alone(), *paths]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,  # noqa: S603
    ):
        told = []
        for line in present(process.stdout):
            try:
                answer = json.loads(line)
                put((answer["number"], answer["noticed_by"]))
            except (ValueError, TypeError, KeyError):
                # What pytest itself prints is no answer, and may tell why there is none.
                told.append(line)
        if code := process.wait():
            errors.seek(0)
            why = f"pytest ended with {code} before every mutant was run"
            raise MutationError(f"{why}:\n{''.join(told)}{errors.read()}")


def _alone() -> tuple[str, ...]:
    """Keep pytest-xdist, which an ini may ask for, from running the scenarios elsewhere."""
    is_loaded = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ and find_spec("xdist")
    return ("-n0",) if is_loaded else ()
