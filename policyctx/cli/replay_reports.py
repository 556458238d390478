"""What `policyctx replay` reports to programs: JSON, and CSV with a line a session."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from policyctx.replay.summing import figures_of, total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.cli.progress import Progressed
    from policyctx.policy.models import Model
    from policyctx.replay.accuracy import Check
    from policyctx.replay.cost import Cost
    from policyctx.replay.simulated import Regret, SimulatedSession
    from policyctx.replay.summing import Figures

_DIGITS = 6


def replay_report(
    policy: str, model: Model, so_far: Progressed[SimulatedSession], *, details: bool
) -> dict[str, Any]:
    """Return everything as plain values; the needs behind a regret only with `details`."""
    figures = [(session, figures_of(session, model)) for session in so_far.results]
    return {
        "policy": policy,
        "context_window": model.context_window,
        "sessions": [
            {
                "name": session.name,
                "format": session.format,
                "path": session.path,
                **figures_report(one, model),
                "regrets": [_regret(regret, details=details) for regret in session.regrets],
            }
            for session, one in figures
        ],
        "total": figures_report(total(one for _, one in figures), model),
        **outcome_report(so_far),
    }


def outcome_report(so_far: Progressed[Any]) -> dict[str, Any]:
    """Return what became of the files, as plain values."""
    return {
        "files": so_far.files,
        "failures": [asdict(failure) for failure in so_far.failures],
        "passed_over": so_far.passed_over,
        "interrupted": so_far.is_interrupted,
    }


def figures_report(figures: Figures, model: Model) -> dict[str, Any]:
    """Return figures as plain values."""
    before, after = figures.unedited, figures.edited
    return {
        "sessions": figures.sessions,
        "calls": figures.calls,
        "calls_with_usage": figures.billed,
        "calls_with_summed_usage": figures.summed,
        "tokens_without": before.tokens,
        "tokens_with": after.tokens,
        "saved": round(figures.saved, _DIGITS),
        "largest_without": before.largest,
        "largest_with": after.largest,
        "over_window_without": before.over_window,
        "over_window_with": after.over_window,
        "steps": {name: asdict(use) for name, use in figures.steps.items()},
        "types": {name: asdict(one) for name, one in figures.types.items()},
        "files": figures.files,
        "bytes": figures.bytes,
        "compactions": figures.compactions,
        "summarizers_not_asked": list(figures.not_asked),
        "begun_anew": figures.begun_anew,
        "removed_items": figures.removed,
        "removed_tokens": figures.removed_tokens,
        "regretted_items": figures.regretted,
        "regretted_tokens": figures.regretted_tokens,
        "cost_without": _cost(figures.costs.unedited, model),
        "cost_with": _cost(figures.costs.edited, model),
        "check": None if figures.check is None else _check(figures.check),
        "records": figures.records,
        "not_prompt": dict(figures.not_prompt),
        "not_understood": dict(figures.not_understood),
        "warnings": dict(figures.warnings),
        "seconds": round(figures.seconds, _DIGITS),
    }


def replay_csv(sessions: Iterable[SimulatedSession], model: Model) -> str:
    """Return a header, and a line a session; what holds several values is left to JSON."""
    text = io.StringIO()
    writer: Any = None
    for session in sessions:
        report = figures_report(figures_of(session, model), model)
        row = {"name": session.name, "format": session.format, "path": session.path}
        for key, value in report.items():
            if key.startswith("cost_"):
                row |= {f"{key}_{part}": number for part, number in value.items()}
            elif not isinstance(value, dict | list) and key not in {"sessions", "check"}:
                row[key] = value
        if writer is None:
            writer = csv.DictWriter(text, row.keys(), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def _cost(cost: Cost, model: Model) -> dict[str, Any]:
    dollars = None if model.price is None else round(cost.dollars(model.price), _DIGITS)
    return {**asdict(cost), "dollars": dollars}


def _check(check: Check) -> dict[str, Any]:
    return {
        "calls": check.calls,
        "cached": check.cached,
        "billed_cached": check.billed_cached,
        "uncached": check.uncached,
        "billed_uncached": check.billed_uncached,
        "is_near": check.is_near,
        "causes": dict(check.causes),
    }


def _regret(regret: Regret, *, details: bool) -> dict[str, Any]:
    report: dict[str, Any] = asdict(regret.removal)
    report["needed_at"] = [need.call for need in regret.needs]
    if details:
        report["needs"] = [asdict(need) for need in regret.needs]
    return report
