"""`policyctx test --mutate`: the mutants of a policy that no scenario notices."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from policyctx.cli.output import Grid, console, print_json, print_wrapped
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
    source = policy_source(policy)
    mutants = mutants_of(resolved(source))
    verdicts: list[MutantVerdict] = []
    err = console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    try:
        with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
            bar = bars.add_task("the scenarios as they are", total=None)
            known = covered(policy, paths)
            bars.update(bar, description="mutants", total=len(mutants.all), completed=0)
            path, processes = source.path or source.name, jobs or os.cpu_count() or 1
            for verdict in judged(mutants.all, path, known, paths, processes):
                verdicts.append(verdict)
                bars.advance(bar)
    except MutationError as error:
        if as_json:
            _print_json(mutants, verdicts, reasons, error)
        raise
    order = {mutant: i for i, mutant in enumerate(mutants.all)}
    verdicts.sort(key=lambda verdict: order[verdict.mutant])
    survivors, stale = _judgement(verdicts, reasons)
    if as_json:
        _print_json(mutants, verdicts, reasons)
    else:
        _print(mutants, verdicts, reasons)
    return not survivors and not stale


def _judgement(
    verdicts: Sequence[MutantVerdict], reasons: dict[str, str]
) -> tuple[list[MutantVerdict], list[str]]:
    """Return the mutants that nothing noticed or accepts, and what is accepted for no reason."""
    unnoticed = [v for v in verdicts if v.noticed_by is None]
    survivors = [v for v in unnoticed if v.mutant.told not in reasons]
    return survivors, sorted(reasons.keys() - {v.mutant.told for v in unnoticed})


def _print(mutants: Mutants, verdicts: Sequence[MutantVerdict], reasons: dict[str, str]) -> None:
    out = console()
    survivors, stale = _judgement(verdicts, reasons)
    if survivors:
        out.print("no scenario noticed these mutants:")
        columns, whole = ("written at", "mutant", "scenarios"), {"written at", "scenarios"}
        out.print(Grid(columns, map(_row, survivors), whole=whole))
    for told in stale:
        out.print(f"listed as accepted, but noticed or not a mutant: {told}")
    print_wrapped(out, "; ".join(_summary(mutants, verdicts, survivors)))


def _row(verdict: MutantVerdict) -> tuple[str, str, str]:
    mutant = verdict.mutant
    reached = f"{verdict.scenarios} ran" if verdict.scenarios else "none covers it"
    return f"{mutant.file}:{mutant.line}", mutant.told, reached


def _summary(
    mutants: Mutants, verdicts: Sequence[MutantVerdict], survivors: Sequence[MutantVerdict]
) -> Iterator[str]:
    noticed = sum(v.noticed_by is not None for v in verdicts)
    listed = len(verdicts) - noticed - len(survivors)
    accepted_too = f", {listed} accepted" if listed else ""
    yield f"{noticed} of {len(verdicts)} mutants noticed{accepted_too}"
    others = (mutants.invalid, "invalid"), (mutants.same, "without effect")
    if not_run := ", ".join(f"{number} {word}" for number, word in others if number):
        yield f"changes not run: {not_run}"


def _print_json(
    mutants: Mutants,
    verdicts: Sequence[MutantVerdict],
    reasons: dict[str, str],
    error: MutationError | None = None,
) -> None:
    """Print the report; where mutants were not run, their total is not known."""
    survivors, stale = _judgement(verdicts, reasons)
    report = {
        "mutants": [
            {
                "mutant": v.mutant.told,
                "rule": ".".join(v.mutant.rule),
                "file": v.mutant.file,
                "line": v.mutant.line,
                "scenarios": v.scenarios,
                "noticed_by": v.noticed_by,
                "accepted": reasons.get(v.mutant.told),
            }
            for v in verdicts
        ],
        "not_run": len(mutants.all) - len(verdicts),
        "failing": [] if error is None else list(error.failing),
        "error": None if error is None else str(error),
        "not_a_policy": mutants.invalid,
        "without_effect": mutants.same,
        "survivors": len(survivors) if error is None else None,
        "accepted_but_noticed": stale if error is None else None,
    }
    print_json(report)
