"""What the page shows, as the plain values that its script reads.

A session has four pieces, so that a page with many sessions reads no more than is looked at: a
line in the overview, and the rows of its calls, its decisions and its items.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from policyctx.definitions.actions import Action
from policyctx.pricing.rows import prices_source
from policyctx.replay.accuracy import Checks
from policyctx.replay.answer import answer_of, day_of, titles
from policyctx.replay.cost import BilledCall, Cost, billed_calls
from policyctx.replay.simulated import Absence, KeptItem, Need, Removal, SeenItem, SimulatedSession
from policyctx.replay.summing import Figures, Net, SentTokens, contradicting, figures_of, total

Values = dict[str, Any]
# What a token may be taken for; the page stacks them, so none is in two of them.
_KINDS = ("cache_read", "cache_write", "input", "output")


def overview(policy: str, sessions: Sequence[SimulatedSession], missing: Sequence[str]) -> Values:
    """Return the policy, a line a session, their total, and what is missing."""
    figures = [figures_of(session) for session in sessions]
    whole = total(figures)
    return {
        "policy": policy,
        "answer": answer_of(sessions, figures, whole).values(),
        "windows": whole.windows,
        "prices_of": prices_source(),
        "is_priced": whole.priced > 0,
        "missing": list(missing),
        "sessions": [
            {
                "title": title,
                "day": day_of(one),
                "name": one.name,
                "format": one.format,
                "path": one.path,
                **_figures(its),
            }
            for one, title, its in zip(sessions, titles(sessions), figures, strict=True)
        ],
        "total": _figures(whole),
    }


def calls(session: SimulatedSession) -> list[Values]:
    """Return the calls of a session."""
    return [_call(billed) for billed in billed_calls(session, layouts=())]


def decisions(session: SimulatedSession) -> list[Values]:
    """Return what left the context of a session and was needed again, then what stayed, and why."""
    needed: dict[tuple[int, int], list[Need]] = defaultdict(list)
    for regret in session.regrets:
        needed[regret.removal.part, regret.removal.position] += regret.needs
    gone = [
        _removal(removal, needed.get((removal.part, removal.position), ()))
        for removal in session.removals
    ]
    return gone + [_stay(item, item.kept) for item in session.items if item.kept is not None]


def said(session: SimulatedSession) -> list[Values]:
    """Return the items of a session, in the order in which a model reads them."""
    return [_item(item) for item in session.items]


def _figures(figures: Figures) -> Values:
    return {
        "calls": figures.calls,
        "calls_with_usage": figures.billed,
        "without": _sent(figures.unedited),
        "with": _sent(figures.edited),
        "removed": figures.removed,
        "removed_tokens": figures.removed_tokens,
        "regretted": figures.regretted,
        "regretted_tokens": figures.regretted_tokens,
        "regretted_item_tokens": figures.regretted_item_tokens,
        "files": figures.files,
        "bytes": figures.bytes,
        "compactions": figures.compactions,
        "begun_anew": figures.begun_anew,
        "own_compactions": figures.own_compactions,
        "seconds": figures.seconds,
        "types": [{"type": name, **asdict(one)} for name, one in figures.types.items()],
        "steps": [{"step": name, **asdict(use)} for name, use in figures.steps.items()],
        "priced": figures.priced,
        "billed_dollars": figures.bill.total if figures.priced else None,
        "unpriced": sorted(figures.unpriced),
        "cost_without": _cost(figures.costs.unedited, is_priced=figures.priced > 0),
        "cost_with": _cost(figures.costs.edited, is_priced=figures.priced > 0),
        "net": _net(figures.net, is_priced=figures.priced > 0),
        "dearer": figures.dearer,
        "idle": figures.idle,
        "worst": None if figures.worst is None else figures.worst._asdict(),
        "untouched": dict(figures.untouched),
        "baselines": {
            name: {
                "net": _net(one.net, is_priced=one.priced > 0),
                "dearer": one.dearer,
                "worst": None if one.worst is None else one.worst._asdict(),
                "regretted_tokens": one.regretted_tokens,
            }
            for name, one in figures.baselines.items()
        },
        "checks": list(_checks(figures.checks)),
        "told": [
            *_not_asked(figures),
            *(f"The policy contradicts the recording: {one}." for one in contradicting(figures)),
            *_told(figures.assumed_windows, "Window assumed"),
            *_told(figures.tiers, "Standard prices taken for another service tier"),
            *_told(figures.not_understood, "Not understood"),
            *_told(figures.warnings, "Warning"),
        ],
    }


def _checks(checks: Checks) -> Iterator[Values]:
    for format_ in checks.formats:
        check = checks.together(format_)
        yield {
            "format": format_,
            "calls": check.calls,
            "tokens": check.tokens,
            "off": check.off,
            "unknown": check.unknown,
            "error": check.error,
        }


def _not_asked(figures: Figures) -> Iterator[str]:
    if figures.not_asked:
        yield f"Summaries are made from the text alone, not by {', '.join(figures.not_asked)}."


def _told(numbers: Mapping[str, int], what: str) -> Iterator[str]:
    for text, number in sorted(numbers.items()):
        times = "once" if number == 1 else f"{number:,} times"
        yield f"{what} {times}: {text}"


def _sent(sent: SentTokens) -> Values:
    return {"tokens": sent.tokens, "largest": sent.largest, "over_window": sent.over_window}


def _cost(cost: Cost, *, is_priced: bool) -> Values:
    """Return tokens by what is taken for them, and the $ that each kind comes to, where known."""
    tokens = {kind: getattr(cost, kind) for kind in _KINDS}
    return {"tokens": tokens, "dollars": asdict(cost.dollars) if is_priced else None}


def _net(net: Net, *, is_priced: bool) -> Values:
    """Return the net and each of its lines; $ are None without prices."""
    lines = {
        "without": net.without,
        "with": net.edited,
        "summaries": net.summaries,
        "re_reads": net.re_reads,
    }
    return {
        "tokens": net.tokens,
        "dollars": net.dollars if is_priced else None,
        "output_dollars": net.output_dollars if is_priced else None,
        "lines": {
            name: {
                "calls": one.number,
                "tokens": one.tokens,
                "output": one.output,
                "dollars": one.dollars.prompt if is_priced else None,
                "output_dollars": one.dollars.output if is_priced else None,
            }
            for name, one in lines.items()
        },
    }


def _call(billed: BilledCall) -> Values:
    call = billed.call
    return {
        "without": billed.unedited,
        "with": billed.edited,
        "cached_without": billed.costs.unedited.cache_read,
        "cached_with": billed.costs.edited.cache_read,
        "window": call.terms.window,
        "removed": call.removed,
        "anew": call.why_anew or ("change" if call.anew else None),
        "compacted": call.compacted,
        "model": call.language_model,
        "at": call.at,
    }


def _removal(removal: Removal, needs: Sequence[Need]) -> Values:
    return {
        **_subject(removal),
        "call": removal.call,
        "action": removal.action,
        "step": removal.step,
        "reason": f"{removal.code}: {removal.reason}",
        "rule": removal.rule,
        "place": removal.place,
        "freed": removal.freed,
        "path": removal.path,
        "needs": [need.values() for need in needs if need.call >= removal.call],
    }


def _stay(item: SeenItem, kept: KeptItem) -> Values:
    return {
        **_subject(item),
        **asdict(kept),
        "action": Action.KEEP,
        "freed": 0,
        "path": None,
        "needs": [],
    }


def _subject(of: Removal | SeenItem) -> Values:
    return {
        "part": of.part,
        "position": of.position,
        "item_id": of.item_id,
        "item_type": of.item_type,
        "what": of.tool or of.item_type,
        "tokens": of.tokens,
    }


def _item(item: SeenItem) -> Values:
    return {
        "part": item.part,
        "position": item.position,
        "message": item.message,
        "role": item.role,
        "item_type": item.item_type,
        "tool": item.tool,
        "item_id": item.item_id,
        "error": item.error,
        "tokens": item.tokens,
        "chars": item.chars,
        "media": item.media,
        "arrived": item.arrived,
        "inside": item.inside,
        "text": item.text,
        "absences": [_absence(absence) for absence in item.absences],
    }


def _absence(absence: Absence) -> Values:
    until = None if absence.until == float("inf") else absence.until
    return {"since": absence.since, "until": until, "left": absence.left}
