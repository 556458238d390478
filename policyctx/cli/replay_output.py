"""What `policyctx replay` prints: tables for people, JSON and CSV for programs."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from policyctx.cli import output
from policyctx.cli.progress import Progressed
from policyctx.errors import counted, visible
from policyctx.policy.models import Model
from policyctx.pricing.rows import prices_source
from policyctx.replay.accuracy import MEANINGS, Cause, Checks
from policyctx.replay.answer import answer_of, day_of, titles, verdict
from policyctx.replay.cost import LAYOUT_MEANINGS
from policyctx.replay.plain_values import figures_report, paid
from policyctx.replay.running import FEW, SUMMARISE_ONLY, ShownSessions
from policyctx.replay.simulated import Need, Regret, SimulatedSession
from policyctx.replay.summing import Figures, Net, SummedSession, contradicting, figures_of, total
from policyctx.replay.terms import PricesOf

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
# What says nothing of a single session.
_NOT_OF_ONE = frozenset({"sessions", "worst_session"})
_UNKNOWN = "-"
_NET_MEANINGS = (
    "net cost = with this policy + summary calls + re-reads − without a policy",
    "the $ of summary calls and re-reads include their output",
)
_NO_MODEL = "summary calls: none, because the summaries are made without a model"
_NET_LINES = (
    *("without a policy", "with this policy", "summary calls", "re-reads", "net cost"),
    *("needed again", "dearer sessions"),
)


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
    output.print_wrapped(out, verdict(policy, whole))
    out.print()
    out.print(session_table([*rows, ("total", whole)], out.width))
    out.print()
    for is_short, line in _summary(whole, so_far, prices):
        if details or is_short:
            output.print_wrapped(out, line, _INDENT)
    if details:
        print_net(out, whole)
        _print_layouts(out, whole)
        _print_checks(out, whole.checks)
    else:
        output.print_wrapped(out, f"more      {_MORE}", _INDENT)


def print_regrets(out: Console, sessions: Sequence[SimulatedSession]) -> None:
    """Print each item that was needed after it had been removed, and what shows it."""
    for session in sessions:
        for regret in session.regrets:
            gone, what = regret.removal, regret.removal.tool or regret.removal.item_type
            out.print()
            said = (
                f"{session.name}: {gone.item_id} ({what}, {gone.tokens:,} tokens) was removed"
                f" before call {gone.call} by step {gone.step}: {gone.reason}"
            )
            out.print(output.in_one_line(said))
            for need in regret.needs:
                found = " | ".join(dict.fromkeys(map(_shortened, need.found)))
                said = f"  call {need.call}, {need.item_id}: {need.kind}, {_lines(need)}: {found}"
                out.print(output.in_one_line(said))


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


def session_table(rows: Sequence[tuple[str, Figures]], width: int) -> output.Grid:
    """Return the table with as many columns as fit beside the sessions' names."""
    cells = [_cells(figures) for _, figures in rows]
    names = [name for name, _ in rows]
    for layout in _LAYOUTS:
        columns = ["session", *(_COLUMNS[i] for i in layout)]
        numbers = [[row[i] for i in layout] for row in cells]
        if (room := _room(columns, numbers, width)) >= min(_NAME, max(map(len, names))):
            break
    room = max(room, _SHORT_NAME)
    shown = [(output.shortened(name, room), *row) for name, row in zip(names, numbers, strict=True)]
    return output.Grid(columns, shown, numeric=columns[1:])


def _room(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> int:
    """Return the characters that the columns after the first one leave to the sessions' names."""
    others = [("", *row) for row in rows]
    return width - output.Grid(["", *columns[1:]], others, numeric=columns).width


def _cells(figures: Figures) -> tuple[object, ...]:
    """Return the numbers of a row, in the order of `_COLUMNS`."""
    before, after = figures.unedited, figures.edited
    return (
        *(figures.calls, output.short(before.tokens), output.short(after.tokens)),
        *(
            output.percent(-figures.saved),
            output.short(before.largest),
            output.short(after.largest),
        ),
        *(before.over_window, after.over_window),
        *(figures.removed, figures.files, figures.regretted),
        output.signed_dollars(figures.net.dollars) if figures.priced else "-",
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
    yield True, f"sent      {output.saving(before.tokens, after.tokens)}"
    yield True, f"largest   prompt: {output.saving(before.largest, after.largest)}"
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
    before, after = whole.costs.unedited, whole.costs.edited
    yield (
        f"cache     {output.short(before.cache_read)} → {output.short(after.cache_read)} tokens"
        f" read from it, {output.short(before.uncached)} → {output.short(after.uncached)} tokens"
        " not read from it"
    )
    if not whole.priced:
        yield "prompts   cost unknown: no session has prices"
        return
    paid, would_be = before.dollars.prompt, after.dollars.prompt
    change = output.percent((would_be - paid) / paid) if paid else "0 %"
    yield f"prompts   cost ${paid:,.2f} → ${would_be:,.2f} ({change})"


def _prices(whole: Figures, prices: PricesOf) -> Iterator[str]:
    if whole.priced:
        where = {
            "policy": "model.price of the policy",
            "recorded": "those of the recorded models on the day of each call",
            "today": f"those of the recorded models today, by {prices_source()}",
        }["policy" if whole.priced_by_policy else prices]
        replies = whole.costs.unedited.dollars.output
        yield f"prices    {where}"
        yield (
            f"output    of the recorded calls cost ${replies:,.2f}, which no other figure includes"
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
    for why, number in sorted(whole.untouched.items(), key=lambda one: (-one[1], one[0])):
        yield f"untouched {counted(number, 'session')}: {why}"


def _windows(windows: Sequence[int]) -> str:
    if len(windows) <= 1:
        return f"{windows[0]:,}" if windows else "0"
    return f"{windows[0]:,} to {windows[-1]:,}"


def _print_layouts(out: Console, whole: Figures) -> None:
    rows = []
    for layout, (before, after) in whole.costs.layouts.items():
        tokens = (before.cache_read, after.cache_read, before.uncached, after.uncached)
        paid = would_be = change = "-"
        if whole.priced:
            costs = [cost.dollars.prompt for cost in (before, after)]
            paid, would_be = (f"{cost:,.2f}" for cost in costs)
            change = output.percent((costs[1] - costs[0]) / costs[0]) if costs[0] else "0 %"
        rows.append((layout, *map(output.short, tokens), paid, would_be, change))
    out.print()
    out.print("the prompt cache by layout of breakpoints, without the policy and with it:")
    out.print(output.Grid(_PRICED, rows, numeric=_PRICED[1:]))
    for layout in whole.costs.layouts:
        output.print_wrapped(out, f"{layout}: {LAYOUT_MEANINGS[layout]}")


def _print_checks(out: Console, checks: Checks) -> None:
    if not checks.formats:
        return
    out.print()
    what = "forecast of the prompt cache without the policy, compared with the bill of each call:"
    output.print_wrapped(out, what)
    rows = [
        (name, len(found), *_check_cells(checks, name)) for name, found in checks.formats.items()
    ]
    out.print(output.Grid(_CHECKED, rows, numeric=_CHECKED[1:]))
    causes: Counter[Cause] = Counter()
    for name in checks.formats:
        causes.update(dict(checks.together(name).causes))
    for cause, tokens in causes.most_common():
        output.print_wrapped(out, f"{cause}, {output.short(tokens)} tokens: {MEANINGS[cause]}")


def _check_cells(checks: Checks, name: str) -> tuple[str, ...]:
    check = checks.together(name)
    shares = (check.error, checks.median(name), check.unknown_share, check.bias)
    return (
        str(check.calls),
        *map(output.short, (check.tokens, check.off, check.unknown)),
        *("-" if s is None else f"{s:.1%}".replace("%", " %").replace("-", "−") for s in shares),
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FOUND_CHARS else f"{line[:_FOUND_CHARS]}…"


def replay_report(
    policy: str, so_far: Progressed[SummedSession], *, details: bool, prices: PricesOf = "recorded"
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


def _regret(regret: Regret, *, details: bool) -> dict[str, Any]:
    report: dict[str, Any] = asdict(regret.removal)
    report["regretted_tokens"] = regret.tokens
    report["needed_at"] = [need.call for need in regret.needs]
    if details:
        report["needs"] = [need.values() for need in regret.needs]
    return report


def net_lines(whole: Figures) -> Iterator[tuple[bool, str]]:
    """Yield what a policy saves or costs, and where it costs more, each with whether it is news."""
    if not whole.priced:
        return
    against = "".join(f"; {name}: {net_dollars(one.net)}" for name, one in whole.baselines.items())
    sessions = counted(whole.priced, "session")
    yield True, f"net cost  {net_dollars(whole.net)} in {sessions} with prices{against}"
    worst = "no session costs more with the policy"
    if whole.worst is not None and whole.worst.dollars > 0:
        cost = f"+${whole.worst.dollars:,.2f} ({output.percent(whole.worst.share)})"
        worst = f"{whole.worst.name}: {cost}"
    yield (
        bool(whole.dearer),
        f"dearer    {whole.dearer:,} of {sessions} with prices; the policy never acted in"
        f" {whole.idle:,} of the {whole.priced:,}",
    )
    yield bool(whole.dearer), f"worst     {worst}"


def print_net(out: Console, whole: Figures) -> None:
    """Print each line of the net cost in tokens and $, of the policy and of its baselines."""
    of_each = {"policy": whole, **whole.baselines}
    cells = [list(_net_cells(one)) for one in of_each.values()]
    rows = [
        (line, *(value for column in cells for value in column[i]))
        for i, line in enumerate(_NET_LINES)
    ]
    columns = ["net cost", *(name for one in of_each for name in (f"{one}, tokens", "$"))]
    out.print()
    out.print(output.Grid(columns, rows, numeric=columns[1:]))
    for meaning in _net_meanings(whole):
        output.print_wrapped(out, meaning)


def _net_meanings(whole: Figures) -> Iterator[str]:
    yield from _NET_MEANINGS
    if whole.priced:
        sessions = counted(whole.sessions, "session")
        yield f"tokens are those of {sessions}, $ those of the {whole.priced:,} with prices"
    each = [whole, *whole.baselines.values()]
    if any(one.compactions for one in each) and not any(one.net.summaries.number for one in each):
        yield _NO_MODEL
    alone = whole.baselines.get(SUMMARISE_ONLY)
    if alone is None:
        return
    # Where the policy summarises itself, the step has the policy's own name.
    what = (
        "a step that summarises at 80 % of the context window, and no other step"
        if SUMMARISE_ONLY in alone.steps
        else "the policy's own step that summarises, and no other step"
    )
    yield f"{SUMMARISE_ONLY}: {what}"


def _net_cells(figures: Figures) -> Iterator[tuple[str, str]]:
    """Yield tokens and $ of each of `_NET_LINES`."""
    net, is_priced = figures.net, figures.priced > 0
    for line in (net.without, net.edited, net.summaries, net.re_reads):
        yield output.short(line.tokens), f"{line.dollars.total:,.2f}" if is_priced else _UNKNOWN
    sign = "−" if net.tokens < 0 else "+" if net.tokens else ""
    total = output.signed_dollars(net.dollars) if is_priced else _UNKNOWN
    yield f"{sign}{output.short(abs(net.tokens))}", total
    yield output.short(figures.regretted_tokens), ""
    yield "", f"{figures.dearer:,} of {figures.priced:,}" if is_priced else _UNKNOWN


def net_dollars(net: Net) -> str:
    """Return the net in $ with its sign, and as a share of the cost: `−$1.32 (−1 %)`."""
    return f"{output.signed_dollars(net.dollars, '$')} ({output.percent(net.share)})"


def net_row(figures: Figures) -> dict[str, Any]:
    """Return the net of a session as columns of a CSV file."""
    net, priced = figures.net, figures.priced > 0
    row: dict[str, Any] = {
        "net_tokens": net.tokens,
        "net_dollars": paid(net.dollars, is_priced=priced),
        "net_output_dollars": paid(net.output_dollars, is_priced=priced),
        "net_summaries_dollars": paid(net.summaries.dollars.total, is_priced=priced),
        "net_re_reads_dollars": paid(net.re_reads.dollars.total, is_priced=priced),
        "untouched": "; ".join(figures.untouched),
    }
    for name, one in figures.baselines.items():
        key = f"{name.replace('-', '_')}_net_dollars"
        row[key] = paid(one.net.dollars, is_priced=one.priced > 0)
    return row
