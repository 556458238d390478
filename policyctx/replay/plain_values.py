"""The figures of sessions as plain values, as the JSON and the page of a replay have them."""

from dataclasses import asdict
from typing import Any

from policyctx.replay.accuracy import Checks
from policyctx.replay.cost import Cost
from policyctx.replay.summing import Charge, Figures, Worst, contradicting

_DIGITS = 6


def figures_report(figures: Figures) -> dict[str, Any]:
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
        "context_windows": list(figures.windows),
        "over_window_without": before.over_window,
        "over_window_with": after.over_window,
        "steps": {name: asdict(use) for name, use in figures.steps.items()},
        "types": {name: asdict(one) for name, one in figures.types.items()},
        "files": figures.files,
        "bytes": figures.bytes,
        "compactions": figures.compactions,
        "summarizers_not_asked": list(figures.not_asked),
        "begun_anew": figures.begun_anew,
        "compactions_of_recordings": figures.own_compactions,
        "removed_items": figures.removed,
        "removed_tokens": figures.removed_tokens,
        "regretted_items": figures.regretted,
        "regretted_tokens": figures.regretted_tokens,
        "regretted_item_tokens": figures.regretted_item_tokens,
        "cost_without": _cost(figures.costs.unedited, is_priced=figures.priced > 0),
        "cost_with": _cost(figures.costs.edited, is_priced=figures.priced > 0),
        "layouts": {
            name: {
                "without": _cost(pair.unedited, is_priced=figures.priced > 0),
                "with": _cost(pair.edited, is_priced=figures.priced > 0),
            }
            for name, pair in figures.costs.layouts.items()
        },
        "net": _net(figures),
        "dearer_sessions": figures.dearer,
        "sessions_never_acted": figures.idle,
        "worst_session": _worst(figures.worst),
        "untouched": dict(figures.untouched),
        "baselines": {
            name: {
                "net": _net(one),
                "dearer_sessions": one.dearer,
                "worst_session": _worst(one.worst),
                "tokens_with": one.edited.tokens,
                "over_window_with": one.edited.over_window,
                "compactions": one.compactions,
                "regretted_tokens": one.regretted_tokens,
            }
            for name, one in figures.baselines.items()
        },
        "billed_dollars": round(figures.bill.total, _DIGITS) if figures.priced else None,
        "priced_sessions": figures.priced,
        "calls_without_prices": dict(figures.unpriced),
        "calls_with_assumed_ttl": figures.ttl_assumed,
        "calls_with_tier": dict(figures.tiers),
        "calls_with_assumed_window": dict(figures.assumed_windows),
        "calls_without_markers": dict(figures.unmarked),
        "contradictions": contradicting(figures),
        "checks": {name: _check(figures.checks, name) for name in figures.checks.formats},
        "records": figures.records,
        "not_prompt": dict(figures.not_prompt),
        "not_understood": dict(figures.not_understood),
        "warnings": dict(figures.warnings),
        "seconds": round(figures.seconds, _DIGITS),
    }


def _cost(cost: Cost, *, is_priced: bool) -> dict[str, Any]:
    """Return tokens by what is taken for them, and the $ of each kind and of all together."""
    tokens = asdict(cost)
    dollars = {"dollars": cost.dollars.total}
    dollars |= {f"dollars_{kind}": paid for kind, paid in tokens.pop("dollars").items()}
    return tokens | {k: round(v, _DIGITS) if is_priced else None for k, v in dollars.items()}


def _net(figures: Figures) -> dict[str, Any]:
    net, is_priced = figures.net, figures.priced > 0
    return {
        "tokens": net.tokens,
        "dollars": paid(net.dollars, is_priced=is_priced),
        "share": paid(net.share, is_priced=is_priced),
        "output_tokens": net.output,
        "output_dollars": paid(net.output_dollars, is_priced=is_priced),
        "without": _charge(net.without, is_priced=is_priced),
        "with": _charge(net.edited, is_priced=is_priced),
        "summaries": _charge(net.summaries, is_priced=is_priced),
        "re_reads": _charge(net.re_reads, is_priced=is_priced),
    }


def _charge(charge: Charge, *, is_priced: bool) -> dict[str, Any]:
    return {
        "calls": charge.number,
        "tokens": charge.tokens,
        "output_tokens": charge.output,
        "dollars": paid(charge.dollars.prompt, is_priced=is_priced),
        "output_dollars": paid(charge.dollars.output, is_priced=is_priced),
    }


def _worst(worst: Worst | None) -> dict[str, Any] | None:
    if worst is None:
        return None
    return {
        "name": worst.name,
        "path": worst.path,
        "net_dollars": round(worst.dollars, _DIGITS),
        "net_share": round(worst.share, _DIGITS),
    }


def _check(checks: Checks, name: str) -> dict[str, Any]:
    check = checks.together(name)
    return {
        "sessions": len(checks.formats[name]),
        "calls": check.calls,
        "tokens": check.tokens,
        "tokens_off": check.off,
        "tokens_unknown": check.unknown,
        "error": _rounded(check.error),
        "median_error": _rounded(checks.median(name)),
        "bias": _rounded(check.bias),
        "unknown": _rounded(check.unknown_share),
        "causes": dict(check.causes),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)


def paid(amount: float, *, is_priced: bool) -> float | None:
    """Return $ as they are shown, None without prices."""
    return round(amount, _DIGITS) if is_priced else None
