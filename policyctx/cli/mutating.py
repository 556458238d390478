"""`policyctx test --mutate`: the mutants of a policy that no scenario notices."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from policyctx.cli.output import console, json_text, table
from policyctx.errors import MutationError
from policyctx.policy.loading import resolved
from policyctx.policy.sources import policy_source
from policyctx.testing.judging import MutantVerdict, accepted, covered, judged
from policyctx.testing.mutants import Mutants, mutants_of


def print_mutants(
    policy: str, paths: Sequence[str], *, jobs: int | None, accept: Path | None, as_json: bool
) -> bool:
    """Judge the mutants of a policy and report; return whether all is as it should be.

    It is when each mutant is noticed, or accepted in the file `accept`, and none of those is
    noticed after all. Raises `MutationError` when mutants could not be run; as JSON, the report
    with their number comes first.
    """
    reasons = {} if accept is None else accepted(accept)
    mutants = mutants_of(resolved(policy_source(policy)))
    verdicts: list[MutantVerdict] = []
    try:
        for verdict in _verdicts(mutants, policy, paths, jobs):
            verdicts.append(verdict)  # noqa: PERF402 - what came before an error is reported
    except MutationError as error:
        if as_json:
            _print_json(mutants, verdicts, reasons, error)
        raise
    order = {mutant: i for i, mutant in enumerate(mutants.all)}
    verdicts.sort(key=lambda verdict: order[verdict.mutant])
    return _reported(mutants, verdicts, reasons, as_json=as_json)


def _verdicts(
    mutants: Mutants, policy: str, paths: Sequence[str], jobs: int | None
) -> Iterator[MutantVerdict]:
    """Yield the verdicts as they come, with a bar on a terminal."""
    err = console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        bar = bars.add_task("the scenarios as they are", total=None)
        known = covered(policy, paths)
        bars.update(bar, description="mutants", total=len(mutants.all), completed=0)
        source = policy_source(policy)
        path = source.path or source.name
        for verdict in judged(mutants.all, path, known, paths, jobs or os.cpu_count() or 1):
            yield verdict
            bars.advance(bar)


def _reported(
    mutants: Mutants, verdicts: Sequence[MutantVerdict], reasons: dict[str, str], *, as_json: bool
) -> bool:
    unnoticed = [v for v in verdicts if v.noticed_by is None]
    survivors, stale = _judgement(verdicts, reasons)
    if as_json:
        _print_json(mutants, verdicts, reasons)
        return not survivors and not stale
    out = console()
    if survivors:
        out.print("no scenario noticed these mutants:")
        columns, whole = ("written at", "mutant", "scenarios"), {"written at", "scenarios"}
        out.print(table(columns, _rows(survivors), numeric=set(), whole=whole))
    for told in stale:
        out.print(f"listed as accepted, but noticed or not a mutant: {told}")
    out.print(_summary(mutants, len(verdicts), len(unnoticed), len(unnoticed) - len(survivors)))
    return not survivors and not stale


def _judgement(
    verdicts: Sequence[MutantVerdict], reasons: dict[str, str]
) -> tuple[list[MutantVerdict], list[str]]:
    """Return the mutants that nothing noticed or accepts, and what is accepted for no reason."""
    unnoticed = [v for v in verdicts if v.noticed_by is None]
    survivors = [v for v in unnoticed if v.mutant.told not in reasons]
    return survivors, sorted(reasons.keys() - {v.mutant.told for v in unnoticed})


def _print_json(
    mutants: Mutants,
    verdicts: Sequence[MutantVerdict],
    reasons: dict[str, str],
    error: MutationError | None = None,
) -> None:
    """Print the report; where mutants were not run, their total is not known."""
    survivors, stale = _judgement(verdicts, reasons)
    report = {
        "mutants": [_plain(v, reasons) for v in verdicts],
        "not_run": len(mutants.all) - len(verdicts),
        "failing": [] if error is None else list(error.failing),
        "error": None if error is None else str(error),
        "not_a_policy": mutants.invalid,
        "without_effect": mutants.same,
        "survivors": len(survivors) if error is None else None,
        "accepted_but_noticed": stale if error is None else None,
    }
    console().out(json_text(report), highlight=False)


def _rows(survivors: Iterable[MutantVerdict]) -> Iterable[tuple[str, str, str]]:
    for verdict in survivors:
        mutant = verdict.mutant
        reached = f"{verdict.scenarios} ran" if verdict.scenarios else "none covers it"
        yield f"{mutant.file}:{mutant.line}", mutant.told, reached


def _summary(mutants: Mutants, count: int, unnoticed: int, listed: int) -> str:
    text = f"{count - unnoticed} of {count} mutants noticed"
    if listed:
        text += f", {listed} accepted"
    others = (mutants.invalid, "invalid"), (mutants.same, "without effect")
    not_run = ", ".join(f"{number} {word}" for number, word in others if number)
    return f"{text}; changes not run: {not_run}" if not_run else text


def _plain(verdict: MutantVerdict, reasons: dict[str, str]) -> dict[str, Any]:
    mutant = verdict.mutant
    return {
        "mutant": mutant.told,
        "rule": ".".join(mutant.rule),
        "file": mutant.file,
        "line": mutant.line,
        "scenarios": verdict.scenarios,
        "noticed_by": verdict.noticed_by,
        "accepted": reasons.get(mutant.told),
    }
