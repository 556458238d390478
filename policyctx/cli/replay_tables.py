"""What `policyctx replay` prints for people."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyctx.cli.output import counted, saving, table
from policyctx.replay.accuracy import MEANINGS, TOLERANCE
from policyctx.replay.summing import figures_of, total

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from policyctx.cli.progress import Progressed
    from policyctx.policy.models import Model
    from policyctx.replay.accuracy import Check
    from policyctx.replay.simulated import SimulatedSession
    from policyctx.replay.summing import Figures

# A file with more sessions than this has one line for them all.
_FEW = 3
# Narrower terminals are shown the columns without which there would be nothing to see.
_WIDE = 110
# On a terminal a session's name takes no more than this.
_NAME, _SHORT_NAME, _NAME_END = 35, 24, 13
_CHECKED = ("cached", "billed", "cached off", "uncached", "billed", "uncached off")
_THOUSAND = 1_000
_FOUND_CHARS = 100


def print_replay(
    out: Console, so_far: Progressed[SimulatedSession], model: Model, *, each: bool
) -> None:
    """Print a line a session, or a file with many, and what all of them come to."""
    figures = [(session, figures_of(session, model)) for session in so_far.results]
    if not figures:
        out.print("no session was replayed")
        return
    rows = list(_rows(figures, each=each))
    whole = total(one for _, one in figures)
    shown = [(_fitting(name, out), one) for name, one in [*rows, ("total", whole)]]
    out.print(_table(shown, is_wide=out.width >= _WIDE))
    for line in _summary(whole, so_far, model):
        out.print(line, soft_wrap=out.width >= _WIDE)
    _print_check(out, rows, whole)


def print_regrets(out: Console, sessions: Sequence[SimulatedSession]) -> None:
    """Print each item that was needed after it had been removed, and what shows it."""
    for session in sessions:
        for regret in session.regrets:
            gone, what = regret.removal, regret.removal.tool or regret.removal.item_type
            out.print()
            out.print(
                f"{session.name}: {gone.item_id} ({what}, {gone.tokens:,} tokens) left before call"
                f" {gone.call} by step {gone.step}: {gone.reason}",
                soft_wrap=True,
            )
            for need in regret.needs:
                found = " | ".join(dict.fromkeys(map(_shortened, need.found)))
                out.print(
                    f"  call {need.call}, {need.item_id}: {need.kind}: {found}", soft_wrap=True
                )


def _rows(
    figures: Sequence[tuple[SimulatedSession, Figures]], *, each: bool
) -> Iterator[tuple[str, Figures]]:
    for path, of_path in groupby(figures, key=lambda one: one[0].path):
        of_file = list(of_path)
        if each or len(of_file) <= _FEW:
            yield from ((session.name, one) for session, one in of_file)
        else:
            name = f"{Path(path).name} ({len(of_file)} sessions)"
            yield name, total(one for _, one in of_file)


def _fitting(name: str, out: Console, most: int = _NAME) -> str:
    """Shorten a long name in its middle, where there is a terminal to fit in."""
    if len(name) <= most or not out.is_terminal:
        return name
    return f"{name[: most - _NAME_END - 1]}…{name[-_NAME_END:]}"


def _table(rows: Sequence[tuple[str, Figures]], *, is_wide: bool) -> Any:  # noqa: ANN401 - rich
    columns = ["session", "calls", "sent", "with it", "saved"]
    if is_wide:
        columns += ["largest", "with it", "over", "with it", "removed", "files"]
    columns.append("regret")
    shown = (_cells(name, figures, is_wide=is_wide) for name, figures in rows)
    return table(columns, shown, numeric=set(columns[1:]))


def _cells(name: str, figures: Figures, *, is_wide: bool) -> list[object]:
    before, after = figures.unedited, figures.edited
    cells: list[object] = [name, figures.calls, short(before.tokens), short(after.tokens)]
    cells.append(percent(-figures.saved))
    if is_wide:
        cells += [short(before.largest), short(after.largest)]
        cells += [before.over_window, after.over_window]
        cells += [figures.removed, figures.files]
    cells.append(figures.regretted)
    return cells


def _summary(whole: Figures, so_far: Progressed[SimulatedSession], model: Model) -> Iterator[str]:
    unread = {failure.path for failure in so_far.failures if not failure.recording}
    files = so_far.files - len(so_far.passed_over) - len(unread)
    summed = f", and of {whole.summed:,} as a sum" if whole.summed else ""
    yield (
        f"replayed  {counted(whole.sessions, 'session')} of {counted(files, 'file')}:"
        f" {counted(whole.calls, 'call')} of a model, the usage of {whole.billed:,} of them known"
        f"{summed}"
    )
    yield f"sent      {saving(whole.unedited.tokens, whole.edited.tokens)}"
    yield (
        f"largest   {whole.unedited.largest:,} → {whole.edited.largest:,} tokens; over the window"
        f" of {model.context_window:,}: {whole.unedited.over_window:,} →"
        f" {whole.edited.over_window:,} calls"
    )
    for name, use in whole.steps.items():
        times = counted(use.calls, "call")
        yield f"step      {name}: {counted(use.items, 'item')} before {times}"
    yield (
        f"saved     {counted(whole.files, 'file')}, {counted(whole.bytes, 'byte')};"
        f" {counted(whole.compactions, 'compaction')}, {whole.begun_anew:,} of the recordings' own"
    )
    if whole.not_asked:
        yield f"summary   from the text alone: a replay does not ask {', '.join(whole.not_asked)}"
    yield (
        f"regret    {whole.regretted:,} of {whole.removed:,} removed items were needed again:"
        f" {whole.regretted_tokens:,} of {whole.removed_tokens:,} tokens"
    )
    yield _cache(whole, model)
    for what, number in sorted(whole.not_understood.items()):
        yield f"unread    {number:,} × {what}"
    for warning, number in sorted(whole.warnings.items()):
        yield f"warning   {number:,} × {warning}"
    a_call = 1_000 * whole.seconds / whole.calls if whole.calls else 0
    yield f"time      {whole.seconds:.2f} s in policyctx, {a_call:.2f} ms a call"


def _cache(whole: Figures, model: Model) -> str:
    before, after = whole.costs.unedited, whole.costs.edited
    text = (
        f"cache     {short(before.cache_read)} → {short(after.cache_read)} tokens read,"
        f" {short(before.uncached)} → {short(after.uncached)} not"
    )
    if model.price is None:
        return f"{text}; no $ without model.price"
    paid, would_be = before.dollars(model.price), after.dollars(model.price)
    change = percent((would_be - paid) / paid) if paid else "0 %"
    return f"{text}; ${paid:,.2f} → ${would_be:,.2f} ({change})"


def _print_check(out: Console, rows: Sequence[tuple[str, Figures]], whole: Figures) -> None:
    if whole.check is None:
        return
    checks = [(name, one.check) for name, one in rows if one.check is not None]
    told = [(name, check) for name, check in checks if not check.is_near]
    is_wide = out.width >= _WIDE
    out.print()
    out.print(
        "the prompt cache as foreseen without the policy, against the bill,"
        f" of {counted(whole.checked_sessions, 'session')} whose usage is known in full:",
        soft_wrap=is_wide,
    )
    columns = ["session", *(_CHECKED if is_wide else _CHECKED[2::3]), "why"]
    shown = [
        (
            _fitting(name, out, _NAME if is_wide else _SHORT_NAME),
            *_check_cells(check, is_wide=is_wide),
        )
        for name, check in [*told, ("total", whole.check)]
    ]
    out.print(table(columns, shown, numeric=set(columns[1:-1])))
    if near := len(checks) - len(told):
        out.print(f"{near} of {len(checks)} are within {TOLERANCE:.0%} and not shown")
    for cause, _ in whole.check.causes:
        out.print(f"{cause}: {MEANINGS[cause]}", soft_wrap=is_wide)


def _check_cells(check: Check, *, is_wide: bool) -> Iterator[str]:
    if is_wide:
        yield short(check.cached)
        yield short(check.billed_cached)
    yield percent(check.cached_error, digits=1)
    if is_wide:
        yield short(check.uncached)
        yield short(check.billed_uncached)
    yield percent(check.uncached_error, digits=1)
    yield ", ".join(f"{cause} {short(off)}" for cause, off in check.causes)


def short(number: int) -> str:
    """Return a number in at most five characters: `812`, `16.2k`, `1.35M`."""
    if number < _THOUSAND:
        return str(number)
    for unit in "kMG":
        value = number / _THOUSAND ** ("kMG".index(unit) + 1)
        if value < _THOUSAND - 0.5 or unit == "G":
            return f"{value:.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"  # noqa: PLR2004
    raise AssertionError


def percent(share: float, *, digits: int = 0) -> str:
    """Return a signed share: `−45 %`, `+2 %`, `0 %`."""
    if share in {float("inf"), float("-inf")}:
        return "all"
    text = f"{100 * share:+.{digits}f} %".replace("-", "−")
    return text[1:] if float(f"{100 * share:.{digits}f}") == 0 else text


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _FOUND_CHARS else f"{line[:_FOUND_CHARS]}…"
