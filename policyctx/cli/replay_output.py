"""What `policyctx replay` prints: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyctx.cli.net_output import net_lines, net_report, net_row, print_net
from policyctx.cli.output import (
    Grid,
    counted,
    percent,
    print_wrapped,
    saving,
    short,
    shortened,
    signed_dollars,
    table,
)
from policyctx.cli.progress import Progressed
from policyctx.errors import visible
from policyctx.policy.models import Model
from policyctx.pricing.rows import prices_source
from policyctx.replay.accuracy import MEANINGS, Cause, Checks
from policyctx.replay.answer import answer_of, day_of, titles, verdict
from policyctx.replay.cost import LAYOUT_MEANINGS, Cost
from policyctx.replay.running import FEW, ShownSessions
from policyctx.replay.simulated import Need, Regret, SimulatedSession
from policyctx.replay.summing import Figures, SummedSession, contradicting, figures_of, total
from policyctx.replay.terms import PricesOf

if TYPE_CHECKING:
    from rich.console import Console

# Below this width, sentences are wrapped.
_WIDE = 110
# A session's name is shortened to what the other columns leave, and to no less than the second of
# these; columns are left out until it has the first.
_NAME, _SHORT_NAME = 35, 24
_COLUMNS = (
    *("calls", "sent", "with it", "change", "largest", "with it"),
    *("over", "with it", "removed", "files", "regret", "$"),
)
# The columns of each layout, the widest first, as positions in `_COLUMNS`.
_LAYOUTS = (tuple(range(12)), (0, 1, 2, 3, 4, 5, 8, 9, 10, 11), (0, 1, 2, 3, 10, 11))
_PRICED = ("layout", "read", "with it", "not read", "with it", "$", "with it", "change")
_CHECKED = (
    *("format", "sessions", "calls", "tokens", "wrong", "unknown"),
    *("error", "median", "unknown $", "bias"),
)
_FOUND_CHARS = 100
_INDENT = " " * 10
_MORE = "--details: cost, cache, forecast; --regret-details: what was needed; --report: a page"


def print_replay(
    out: Console,
    policy: str,
    sessions: Sequence[ShownSessions],
    so_far: Progressed[Any],
    *,
    each: bool,
    details: bool,
    prices: PricesOf = "recorded",
) -> None:
    """Print the verdict, a row for each session or for a file with more than `FEW`, their total.

    With `details` also what the cost is made of, and how good the forecast of the cache is.
    """
    if not sessions:
        out.print("no session was replayed")
        return
    rows = list(_rows(sessions, each=each))
    whole = total(one.figures for one in sessions)
    print_wrapped(out, verdict(policy, whole), "")
    out.print()
    out.print(session_table([*rows, ("total", whole)], out.width))
    out.print()
    for is_short, line in _summary(whole, so_far, prices):
        if details or is_short:
            print_wrapped(out, line, _INDENT)
    if details:
        print_net(out, whole)
        _print_layouts(out, whole)
        _print_checks(out, whole.checks)
    else:
        print_wrapped(out, f"more      {_MORE}", _INDENT)


def print_regrets(out: Console, sessions: Sequence[SimulatedSession]) -> None:
    """Print each item that was needed after it had been removed, and what shows it."""
    for session in sessions:
        for regret in session.regrets:
            gone, what = regret.removal, regret.removal.tool or regret.removal.item_type
            out.print()
            out.print(
                f"{session.name}: {gone.item_id} ({what}, {gone.tokens:,} tokens) was removed"
                f" before call {gone.call} by step {gone.step}: {gone.reason}",
                soft_wrap=True,
            )
            for need in regret.needs:
                found = " | ".join(dict.fromkeys(map(_shortened, need.found)))
                out.print(
                    f"  call {need.call}, {need.item_id}: {need.kind}, {_lines(need)}: {found}",
                    soft_wrap=True,
                )


def _lines(need: Need) -> str:
    """Return the lines of an item that are needed, and the tokens that no earlier need has."""
    spans = (f"{one.first}-{one.last}" for one in need.ranges)
    one_line = all(one.first == one.last for one in need.ranges) and len(need.ranges) == 1
    if one_line:
        return f"line {need.ranges[0].first} ({counted(need.tokens, 'token')})"
    return f"lines {', '.join(dict.fromkeys(spans))} ({counted(need.tokens, 'token')})"


def _rows(sessions: Sequence[ShownSessions], *, each: bool) -> Iterator[tuple[str, Figures]]:
    for path, of_path in groupby(sessions, key=lambda one: one.path):
        of_file = list(of_path)
        whole = total(one.figures for one in of_file)
        if each or whole.sessions <= FEW:
            yield from ((one.name, one.figures) for one in of_file)
        else:
            yield f"{Path(path).name} ({whole.sessions} sessions)", whole


def session_table(rows: Sequence[tuple[str, Figures]], width: int) -> Grid:
    """Return the table with as many columns as fit beside the sessions' names."""
    cells = [_cells(figures) for _, figures in rows]
    names = [name for name, _ in rows]
    for layout in _LAYOUTS:
        columns = ["session", *(_COLUMNS[i] for i in layout)]
        numbers = [[row[i] for i in layout] for row in cells]
        if (room := _room(columns, numbers, width)) >= min(_NAME, max(map(len, names))):
            break
    room = max(room, _SHORT_NAME)
    shown = [(shortened(name, room), *row) for name, row in zip(names, numbers, strict=True)]
    return table(columns, shown, numeric=set(columns[1:]))


def _room(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> int:
    """Return the characters that the columns after the first one leave to the sessions' names."""
    others = [("", *row) for row in rows]
    return width - table(["", *columns[1:]], others, numeric=set(columns)).width


def _cells(figures: Figures) -> tuple[object, ...]:
    """Return the numbers of a row, in the order of `_COLUMNS`."""
    before, after = figures.unedited, figures.edited
    return (
        *(figures.calls, short(before.tokens), short(after.tokens)),
        *(percent(-figures.saved), short(before.largest), short(after.largest)),
        *(before.over_window, after.over_window),
        *(figures.removed, figures.files, figures.regretted),
        signed_dollars(figures.net.dollars) if figures.priced else "-",
    )


def _summary(
    whole: Figures, so_far: Progressed[Any], prices: PricesOf
) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it is shown without `--details` too."""
    before, after = whole.unedited, whole.edited
    unread = {failure.path for failure in so_far.failures if not failure.recording}
    files = so_far.files - len(so_far.passed_over) - len(unread)
    summed = f"; for {whole.summed:,} more only as a sum over several calls" if whole.summed else ""
    yield (
        True,
        f"replayed  {counted(whole.sessions, 'session')} of {counted(files, 'file')}:"
        f" {counted(whole.calls, 'model call')}",
    )
    yield False, f"usage     recorded for {counted(whole.billed, 'call')}{summed}"
    yield True, f"sent      {saving(before.tokens, after.tokens)}"
    yield True, f"largest   prompt: {saving(before.largest, after.largest)}"
    yield (
        bool(before.over_window or after.over_window),
        f"window    {before.over_window:,} → {after.over_window:,} prompts exceed"
        f" the context window of their model ({_windows(whole.windows)})",
    )
    for name, use in whole.steps.items():
        times = counted(use.calls, "call")
        removed = f"removed {counted(use.items, 'item')} before {times}"
        yield bool(use.items), f"step      {name} {removed}"
    yield False, f"files     {counted(whole.files, 'file')} with {counted(whole.bytes, 'byte')}"
    yield (
        bool(whole.compactions),
        f"compacted {counted(whole.compactions, 'time')} by the policy,"
        f" {counted(whole.own_compactions, 'time')} by the recorded agents",
    )
    if whole.not_asked:
        names = ", ".join(whole.not_asked)
        yield True, f"summary   made from the text alone, because a replay does not ask {names}"
    yield (
        True,
        f"regret    needed again: {whole.regretted:,} of {counted(whole.removed, 'removed item')},"
        f" {whole.regretted_tokens:,} of {counted(whole.removed_tokens, 'removed token')}",
    )
    yield from ((False, line) for line in _cache(whole))
    yield from net_lines(whole)
    yield from ((False, line) for line in _prices(whole, prices))
    yield from ((True, line) for line in _exceptions(whole))
    a_call = 1_000 * whole.seconds / whole.calls if whole.calls else 0
    yield False, f"time      {whole.seconds:.2f} s in policyctx, {a_call:.2f} ms per call"


def _exceptions(whole: Figures) -> Iterator[str]:
    """Yield what is unknown or not as expected."""
    yield from unknown(whole)
    yield from _untouched(whole)
    for why, number in sorted(whole.unmarked.items()):
        yield f"unmarked  {counted(number, 'call')}: {why}"
    for contradiction in contradicting(whole):
        yield f"hint      {contradiction}"
    for what, number in sorted(whole.not_understood.items()):
        yield f"unread    {number:,} × {what}"
    for warning, number in sorted(whole.warnings.items()):
        yield f"warning   {number:,} × {warning}"


def _cache(whole: Figures) -> Iterator[str]:
    """Yield what the prompts read from the cache, and what they cost."""
    before, after = whole.costs.unedited, whole.costs.edited
    yield (
        f"cache     {short(before.cache_read)} → {short(after.cache_read)} tokens read from it,"
        f" {short(before.uncached)} → {short(after.uncached)} tokens not read from it"
    )
    if not whole.priced:
        yield "prompts   cost unknown: no session has prices"
        return
    paid, would_be = before.dollars.prompt, after.dollars.prompt
    change = percent((would_be - paid) / paid) if paid else "0 %"
    yield f"prompts   cost ${paid:,.2f} → ${would_be:,.2f} ({change})"


def _prices(whole: Figures, prices: PricesOf) -> Iterator[str]:
    """Yield whose prices the dollars are of, and what they leave out."""
    if whole.priced:
        where = {
            "policy": "model.price of the policy",
            "recorded": "those of the recorded models on the day of each call",
            "today": f"those of the recorded models today, by {prices_source()}",
        }["policy" if whole.priced_by_policy else prices]
        output = whole.costs.unedited.dollars.output
        yield f"prices    {where}"
        yield (
            f"output    of the recorded calls cost ${output:,.2f}, which no other figure includes"
        )
    if whole.ttl_assumed:
        calls = counted(whole.ttl_assumed, "call")
        yield (
            f"ttl       assumed for {calls}: the recording does not say how long cache entries live"
        )


def unknown(whole: Figures) -> Iterator[str]:
    """Yield which prices and windows are not known, and whose prices are not the standard ones."""
    if whole.unpriced:
        models = sorted(whole.unpriced.items())
        calls = ", ".join(f"{counted(n, 'call')} to {name}" for name, n in models)
        others = counted(whole.sessions - whole.priced, "session")
        yield f"no price  for {others}: {calls}"
    if whole.assumed_windows:
        unknown = sorted(whole.assumed_windows.items())
        calls = ", ".join(f"{counted(n, 'call')} to {name}" for name, n in unknown)
        assumed = f"{Model().context_window:,} tokens"
        yield f"window    {assumed} assumed for {calls}: model.context_window sets it"
    for tier, number in sorted(whole.tiers.items()):
        calls = counted(number, "call")
        yield f"tier      {calls} at the service tier {visible(tier)} have the standard prices here"


def _untouched(whole: Figures) -> Iterator[str]:
    """Yield why the policy took nothing, the most frequent reason first."""
    for why, number in sorted(whole.untouched.items(), key=lambda one: (-one[1], one[0])):
        yield f"untouched {counted(number, 'session')}: {why}"


def _windows(windows: Sequence[int]) -> str:
    if len(windows) <= 1:
        return f"{windows[0]:,}" if windows else "0"
    return f"{windows[0]:,} to {windows[-1]:,}"


def _print_layouts(out: Console, whole: Figures) -> None:
    """Print what the prompts cost under each layout of breakpoints."""
    rows = []
    for layout, (before, after) in whole.costs.layouts.items():
        tokens = (before.cache_read, after.cache_read, before.uncached, after.uncached)
        paid = would_be = change = "-"
        if whole.priced:
            costs = [cost.dollars.prompt for cost in (before, after)]
            paid, would_be = (f"{cost:,.2f}" for cost in costs)
            change = percent((costs[1] - costs[0]) / costs[0]) if costs[0] else "0 %"
        rows.append((layout, *map(short, tokens), paid, would_be, change))
    is_wide = out.width >= _WIDE
    out.print()
    out.print("the prompt cache by layout of breakpoints, without the policy and with it:")
    out.print(table(_PRICED, rows, numeric=set(_PRICED[1:])))
    for layout in whole.costs.layouts:
        out.print(f"{layout}: {LAYOUT_MEANINGS[layout]}", soft_wrap=is_wide)


def _print_checks(out: Console, checks: Checks) -> None:
    """Print how far the forecast of the prompt cache is from the bill, by format."""
    if not checks.formats:
        return
    is_wide = out.width >= _WIDE
    out.print()
    out.print(
        "forecast of the prompt cache without the policy, compared with the bill of each call:",
        soft_wrap=is_wide,
    )
    rows = [
        (name, len(found), *_check_cells(checks, name)) for name, found in checks.formats.items()
    ]
    out.print(table(_CHECKED, rows, numeric=set(_CHECKED[1:])))
    causes: Counter[Cause] = Counter()
    for name in checks.formats:
        causes.update(dict(checks.together(name).causes))
    for cause, tokens in causes.most_common():
        out.print(f"{cause}, {short(tokens)} tokens: {MEANINGS[cause]}", soft_wrap=is_wide)


def _check_cells(checks: Checks, name: str) -> tuple[str, ...]:
    """Return the numbers of a row, in the order of `_CHECKED`."""
    check = checks.together(name)
    shares = (check.error, checks.median(name), check.unknown_share, check.bias)
    return (
        str(check.calls),
        *map(short, (check.tokens, check.off, check.unknown)),
        *("-" if s is None else f"{s:.1%}".replace("%", " %").replace("-", "−") for s in shares),
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FOUND_CHARS else f"{line[:_FOUND_CHARS]}…"


_DIGITS = 6
# What says nothing of a single session.
_NOT_OF_ONE = frozenset({"sessions", "worst_session"})


def replay_report(
    policy: str,
    so_far: Progressed[SummedSession],
    *,
    details: bool,
    prices: PricesOf = "recorded",
) -> dict[str, Any]:
    """Return everything as plain values; the needs behind a regret only with `details`."""
    figures = [(session, figures_of(session)) for session in so_far.results]
    whole = total(one for _, one in figures)
    answer = answer_of(so_far.results, [one for _, one in figures], whole)
    return {
        "policy": policy,
        "prices": prices,
        "prices_of": prices_source(),
        "answer": answer.values(),
        "sessions": [
            {
                "title": title,
                "day": day_of(session),
                "name": session.name,
                "format": session.format,
                "path": session.path,
                **figures_report(one),
                "regrets": [_regret(regret, details=details) for regret in session.regrets],
            }
            for title, (session, one) in zip(titles(so_far.results), figures, strict=True)
        ],
        "total": figures_report(whole),
        **outcome_report(so_far),
    }


def outcome_report(so_far: Progressed[Any]) -> dict[str, Any]:
    """Return what became of the files, as plain values."""
    return {
        "files": so_far.files,
        "failures": [asdict(failure) for failure in so_far.failures],
        "passed_over": so_far.passed_over,
        "not_understood": so_far.unread,
        "repeated_calls": +so_far.repeated,
        "interrupted": so_far.is_interrupted,
    }


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
        **net_report(figures),
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


def replay_csv(sessions: Iterable[ShownSessions]) -> str:
    """Return a header, and a row for each session; only JSON has what holds several values."""
    text = io.StringIO()
    writer: Any = None
    for session in sessions:
        figures = session.figures
        report = figures_report(figures)
        row = {
            "name": _no_formula(session.name),
            "format": session.format,
            "path": _no_formula(session.path),
        }
        for key, value in report.items():
            if key.startswith("cost_"):
                row |= {f"{key}_{part}": number for part, number in value.items()}
            elif key == "net":
                row |= net_row(figures)
            elif not isinstance(value, dict | list) and key not in _NOT_OF_ONE:
                row[key] = value
        if writer is None:
            writer = csv.DictWriter(text, row.keys(), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def _no_formula(name: str) -> str:
    """Return a name that a spreadsheet takes for text; recordings choose their sessions' names."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _cost(cost: Cost, *, is_priced: bool) -> dict[str, Any]:
    """Return tokens by what is taken for them, and the $ of each kind and of all together."""
    tokens = asdict(cost)
    dollars = {"dollars": cost.dollars.total}
    dollars |= {f"dollars_{kind}": paid for kind, paid in tokens.pop("dollars").items()}
    return tokens | {k: round(v, _DIGITS) if is_priced else None for k, v in dollars.items()}


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


def _regret(regret: Regret, *, details: bool) -> dict[str, Any]:
    report: dict[str, Any] = asdict(regret.removal)
    report["regretted_tokens"] = regret.tokens
    report["needed_at"] = [need.call for need in regret.needs]
    if details:
        report["needs"] = [need.values() for need in regret.needs]
    return report
